//! Accidents with files, with real clients under load: no request is lost.
//!
//! A generator that pauses, an editor that moves a file away, a generator that
//! fails, files and directories that vanish, a server that starts where nothing
//! is mounted yet.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use interop::succession::{Caller, Client};
use interop::{Backend, Envoy, Flow, GrpcBackend, Script, Serving};
use tokio::sync::watch;
use trunkline::Server;
use trunkline_store::{FileContents, Files, FilesStatus, Options};

use crate::grpc::api_listener;
use crate::site::Site;
use crate::texts::{cluster, endpoints, listener, route};
use crate::way::{DELTA, SOTW, Way};

const SOON: Duration = Duration::from_secs(15);
/// Requests that are answered while something is wrong: more than enough for
/// the server to see it.
const MEANWHILE: usize = 100;
/// The latency of the farther gRPC client, each way.
const FAR: Duration = Duration::from_millis(25);

/// A server of files that holds large removals, as it is run.
struct Guarded {
    serving: Serving,
    status: watch::Receiver<Arc<FilesStatus>>,
}

impl Guarded {
    fn start(folder: &Path, port: u16) -> Self {
        let options = Options {
            rescan: Duration::from_secs(1),
            // Longer than a slow machine pauses between two steps of an editor.
            retry: Duration::from_secs(2),
            ..Options::default()
        };
        let contents = FileContents::watch(Files::new([folder], options)).expect("a thread");
        let status = contents.status();
        let builder = Server::builder().contents(contents);
        let builder = builder.options(|options| {
            options.ready_patience = Duration::from_millis(50);
            options.refusal_delay = Duration::from_millis(50);
        });
        Self {
            serving: Serving::unready(builder, port),
            status,
        }
    }

    /// Waits for a status of the files.
    fn wait(&mut self, is_it: impl FnMut(&Arc<FilesStatus>) -> bool) {
        let found = self.serving.block_on(self.status.wait_for(is_it));
        found.expect("the files are watched");
    }

    /// Waits until all files are good, and loaded.
    fn wait_good(&mut self) {
        self.wait(|status| status.loaded && status.bad().next().is_none());
    }

    fn wait_held(&mut self) {
        self.wait(|status| !status.held().is_empty());
    }
}

/// Files for an Envoy and a gRPC client; what both use comes last in each.
fn site(http: &Backend, grpc: &GrpcBackend) -> Site {
    Site::new(&[
        ("clusters.yaml", &["spare", "g", "c"].map(cluster)),
        (
            "endpoints.yaml",
            &[
                endpoints("spare", http.address()),
                endpoints("g", grpc.address()),
                endpoints("c", http.address()),
            ],
        ),
        (
            "listeners.yaml",
            &[
                api_listener("svc", "grpc"),
                route("grpc", "g"),
                listener("http", "r"),
                route("r", "c"),
            ],
        ),
    ])
}

/// Writes a file as a shell does for a generator that pauses after its first
/// resource.
fn regenerate(site: &Site, file: &str, flow: &Flow) {
    let path = site.folder().join(file);
    let text = fs::read_to_string(&path).expect("a file");
    let second = text.match_indices("\n- ").nth(1).expect("two items").0 + 1;
    let mut writer = File::create(&path).expect("a file");
    for part in [&text[..second], &text[second..]] {
        flow.go_on_for(MEANWHILE);
        writer.write_all(part.as_bytes()).expect("a file");
        writer.flush().expect("a file");
        flow.go_on_for(MEANWHILE);
    }
}

fn nothing_is_lost(way: Way) {
    let (http, grpc) = (Backend::start("http"), GrpcBackend::start("grpc"));
    let site = site(&http, &grpc);
    let folder = site.folder();
    let mut server = Guarded::start(folder, 0);
    server.wait_good();
    let port = server.serving.port;
    let envoy = Envoy::start(&way.bootstrap(port));
    let script = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/py/caller.py"));
    let callers = [Duration::ZERO, FAR]
        .map(|latency| Caller::start("grpc", Script::python(script), port, latency));
    envoy.wait_for("the gRPC clients", SOON, |_| {
        callers
            .iter()
            .all(|caller| caller.has_seen("grpc"))
            .then_some(())
    });
    let flow = Flow::start(envoy.listener("http").expect("the listener"));
    flow.go_on_for(MEANWHILE);
    let files = ["clusters.yaml", "endpoints.yaml", "listeners.yaml"];

    // A generator that pauses at a boundary.
    for file in files {
        regenerate(&site, file, &flow);
        server.wait_good();
    }
    // An editor that moves a file away, and writes it anew.
    for file in files {
        let (path, away) = (folder.join(file), folder.join(format!("{file}~")));
        fs::rename(&path, &away).expect("another name");
        flow.go_on_for(MEANWHILE / 4);
        fs::copy(&away, &path).expect("a file");
        flow.go_on_for(MEANWHILE);
    }
    // A generator that fails.
    for file in files {
        let path = folder.join(file);
        let text = fs::read_to_string(&path).expect("a file");
        File::create(&path).expect("a file");
        server.wait_held();
        flow.go_on_for(MEANWHILE);
        fs::write(&path, text).expect("a file");
        server.wait_good();
    }
    // All files vanish.
    let away = folder.with_extension("away");
    fs::create_dir(&away).expect("a folder");
    let move_all = |from: &Path, to: &Path| {
        for file in files {
            fs::rename(from.join(file), to.join(file)).expect("another name");
        }
    };
    move_all(folder, &away);
    server.wait_held();
    flow.go_on_for(MEANWHILE);
    move_all(&away, folder);
    server.wait_good();
    // The directory vanishes.
    let elsewhere = folder.with_extension("elsewhere");
    fs::rename(folder, &elsewhere).expect("another name");
    server.wait(|status| status.bad().next().is_some());
    flow.go_on_for(MEANWHILE);
    fs::rename(&elsewhere, folder).expect("another name");
    server.wait_good();
    // A server starts where nothing is mounted yet.
    server.serving.stop();
    move_all(folder, &away);
    let mut server = Guarded::start(folder, port);
    let refused = || {
        envoy
            .stat("cluster_manager.cds.update_failure")
            .unwrap_or(0)
    };
    let before = refused();
    envoy.wait_for("Envoy to be refused twice", SOON, |_| {
        (refused() >= before + 2).then_some(())
    });
    assert!(!server.serving.server.is_ready());
    move_all(&away, folder);
    server.wait_good();
    flow.go_on_for(MEANWHILE);

    assert_eq!(envoy.active_clusters().len(), 3);
    let flowed = flow.stop();
    assert_eq!(flowed.failures, [""; 0], "of {}", flowed.answered);
    for caller in callers {
        let tally = Box::new(caller).stop();
        assert!(tally.lost.is_empty(), "{tally:?}");
        println!("{}: none of {} calls lost", tally.who, tally.made);
    }
    println!("Envoy: none of {} requests lost", flowed.answered);
}

#[test]
fn s51_no_request_is_lost_by_accidents_in_state_of_the_world() {
    nothing_is_lost(SOTW);
}

#[test]
fn s51_no_request_is_lost_by_accidents_in_delta() {
    nothing_is_lost(DELTA);
}
