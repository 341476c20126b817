//! Files beside a store: a restart is to them as if the server had run all the
//! time.
#![allow(clippy::unwrap_used, reason = "all of this is a test")]

mod support;

use std::path::{Path, PathBuf};

use rustix::process::{Signal, kill_process};
use serde_json::Value;

use support::{Server, good, until};

/// A directory of files beside one of data.
struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("config")).unwrap();
        Self { dir }
    }

    fn config(&self) -> PathBuf {
        self.dir.path().join("config")
    }

    fn write(&self, file: &str, names: std::ops::Range<usize>) {
        let text: String = names.map(cluster).collect();
        std::fs::write(self.config().join(file), format!("resources:\n{text}")).unwrap();
    }

    fn start(&self, more: &[&str]) -> Server {
        let text = |path: &Path| path.to_str().unwrap().to_owned();
        let (data, config) = (text(&self.dir.path().join("data")), text(&self.config()));
        let flags = [&["--data", &data, "--config", &config][..], more].concat();
        Server::start(&flags)
    }
}

fn cluster(number: usize) -> String {
    format!("- '@type': type.googleapis.com/envoy.config.cluster.v3.Cluster\n  name: c{number}\n")
}

fn kill(server: Server) {
    kill_process(server.running.pid(), Signal::KILL).unwrap();
    drop(server);
}

/// The first bad file: whether its change is held, with the hash.
fn held(server: &Server) -> Option<String> {
    let files: Value = serde_json::from_str(&server.get("/api/v1/files").1).unwrap();
    let files = files["files"].as_array().unwrap().iter();
    let mut hashes = files.filter_map(|file| file["held"].as_str());
    hashes.next().map(str::to_owned)
}

fn await_names(server: &Server, count: usize) {
    until("the names", || {
        (server.names("cds").len() == count).then_some(())
    });
}

#[test]
fn a_change_of_a_file_that_is_held_is_held_after_a_restart() {
    let place = Place::new();
    place.write("a.yaml", 0..12);
    let server = place.start(&[]);
    server.running.logged("no earlier state is known");
    place.write("a.yaml", 0..1);
    let hash = until("the held change", || held(&server));
    kill(server);

    let server = place.start(&[]);
    server.running.logged("what was served of them before");
    assert_eq!(until("the held change", || held(&server)), hash);
    assert_eq!(server.get("/ready").0, 200);
    assert_eq!(server.names("cds").len(), 12);
    let text = good(&server.ask(&["status"]));
    assert!(text.contains(&hash), "{text}");
    good(&server.ask(&["confirm", &hash]));
    await_names(&server, 1);
    until("the file to be good", || {
        held(&server).is_none().then_some(())
    });
    kill(server);

    let server = place.start(&[]);
    assert_eq!((server.names("cds").len(), held(&server)), (1, None));
}

#[test]
fn a_file_that_changed_while_the_server_was_down_is_judged_at_the_start() {
    let place = Place::new();
    place.write("a.yaml", 0..12);
    place.write("b.yaml", 12..14);
    kill(place.start(&[]));

    // A mount that is gone looks like this.
    for file in ["a.yaml", "b.yaml"] {
        std::fs::remove_file(place.config().join(file)).unwrap();
    }
    let server = place.start(&[]);
    until("the held change", || held(&server));
    assert_eq!(server.names("cds").len(), 14);
    assert_eq!(server.get("/ready").0, 200);
    kill(server);

    // What is no large removal is made, and what is gone is gone.
    place.write("a.yaml", 0..13);
    let server = place.start(&[]);
    await_names(&server, 13);
    kill(server);
    std::fs::write(place.config().join("a.yaml"), "resources: [no cluster]\n").unwrap();
    let server = place.start(&[]);
    assert_eq!(server.names("cds").len(), 13, "the last good contents");
    assert_eq!(server.get("/ready").0, 200);
}

#[test]
fn without_the_guard_files_are_served_as_they_are() {
    let place = Place::new();
    place.write("a.yaml", 0..12);
    kill(place.start(&[]));
    place.write("a.yaml", 0..1);
    let server = place.start(&["--hold-removals=false"]);
    assert_eq!(server.names("cds").len(), 1);
    kill(server);
    place.write("a.yaml", 1..2);
    let server = place.start(&[]);
    server.running.logged("no earlier state is known");
    assert_eq!(server.names("cds"), ["c1"]);
}
