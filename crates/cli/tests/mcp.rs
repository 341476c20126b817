//! The Mesh Configuration Protocol by the program: files, a source, a control
//! plane, and what is seen where something is rejected.
#![allow(clippy::unwrap_used, reason = "all of this is a test")]

mod support;

use std::net::SocketAddr;
use std::path::Path;

use serde_json::Value;
use support::{CLUSTER, Running, Server, bad, good, put, run, until};

/// A source on ports of its own.
struct Source {
    running: Running,
    listen: String,
    admin: SocketAddr,
}

impl Source {
    fn start(config: &Path, flags: &[&str]) -> Self {
        let config = config.to_str().unwrap();
        let mut args = vec![
            "mcp",
            "source",
            "--config",
            config,
            "--admin",
            "127.0.0.1:0",
        ];
        args.extend(flags);
        let running = Running::start(&args);
        let line = running.logged("ready");
        Self {
            listen: line["listen"].as_str().unwrap_or_default().to_owned(),
            admin: line["admin"].as_str().unwrap().parse().unwrap(),
            running,
        }
    }

    fn listening(config: &Path) -> Self {
        Self::start(config, &["--listen", "127.0.0.1:0"])
    }

    fn get(&self, path: &str) -> Value {
        let (_, body) = Server::http_at(self.admin, "GET", path, &[], "");
        serde_json::from_str(&body).unwrap()
    }
}

const GATEWAY: &str = r#"
apiVersion: networking.istio.io/v1
kind: Gateway
metadata:
  name: front
  namespace: shop
  labels: {env: prod}
spec:
  servers:
  - port: {number: 80, name: http, protocol: HTTP}
    hosts: ["on"]
"#;

/// A cluster of Envoy as a manifest, for clients of an environment.
fn cluster_of(env: &str, timeout: &str) -> String {
    format!(
        "apiVersion: envoy.config.cluster.v3\nkind: Cluster\nmetadata:\n  name: backend-{env}\n  \
         namespace: shop\n  labels: {{env: {env}}}\nspec:\n  name: backend\n  \
         connect_timeout: {timeout}\n"
    )
}

fn edited(cluster: &str) -> String {
    CLUSTER.replace("1s", "2s").replace("backend", cluster)
}

#[test]
fn m11_an_edit_of_a_file_reaches_a_control_plane_and_a_bad_one_is_stopped_at_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("clusters.yaml");
    put(&file, CLUSTER);
    let source = Source::listening(dir.path());
    let plane = Server::start_until(&["--mcp-from", &source.listen], "ready");
    assert_eq!(plane.names("cds"), ["backend"]);

    put(&file, &edited("other"));
    until("the edit", || {
        (plane.names("cds") == ["other"]).then_some(())
    });

    // The place that can know is the source, which says so; nobody else hears.
    put(
        &file,
        &edited("other").replace("connect_timeout: 2s", "connect_timeout: -2s"),
    );
    let files = until("a bad file", || {
        let files = source.get("/api/v1/files");
        (files["files"][0]["status"] == "BAD").then_some(files)
    });
    let error = files["files"][0]["errors"][0].as_str().unwrap();
    assert!(error.contains("clusters.yaml:4:"), "{error}");
    let said = bad(
        &run(&["status", "--check", "--admin", &source.admin.to_string()]),
        1,
    );
    assert!(said.contains("1 file is bad"), "{said}");
    assert_eq!(plane.names("cds"), ["other"]);
    assert_eq!(source.get("/api/v1/mcp")["nacks"], 0);
}

#[test]
fn m11_what_only_the_control_plane_can_know_is_stopped_there_and_seen_on_both_sides() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("clusters.yaml");
    put(&file, CLUSTER);
    let own = tempfile::tempdir().unwrap();
    let of_plane = own.path().join("own.yaml");
    put(&of_plane, &edited("own"));
    let source = Source::listening(dir.path());
    let flags = [
        "--mcp-from",
        &source.listen,
        "--config",
        of_plane.to_str().unwrap(),
    ];
    let plane = Server::start_until(&flags, "ready");
    assert_eq!(plane.names("cds"), ["backend", "own"]);

    // The name belongs to a file of the control plane.
    put(&file, &edited("own"));
    let status = until("a rejection", || {
        let (_, status) = plane.get("/api/v1/mcp");
        status.contains("NACKED").then_some(status)
    });
    assert!(status.contains("own: "), "{status}");
    let said = good(&plane.ask(&["status"]));
    assert!(
        said.contains("1 collection is rejected; its last good state stays"),
        "{said}"
    );
    assert!(said.contains("belongs to origin"), "{said}");
    let said = bad(&plane.ask(&["status", "--check"]), 1);
    assert!(said.contains("1 collection is rejected"), "{said}");
    assert!(
        plane
            .get("/metrics")
            .1
            .contains("trunkline_mcp_rejected_collections 1")
    );
    plane.running.logged("rejected");
    assert_eq!(plane.names("cds"), ["backend", "own"]);

    source.running.logged("NACK");
    let admin = source.admin.to_string();
    let said = good(&run(&["mcp", "status", "--admin", &admin]));
    assert!(
        said.contains("NACKED") && said.contains("belongs to origin"),
        "{said}"
    );
    let said = good(&run(&["status", "--admin", &admin]));
    assert!(
        said.contains("envoy/cluster/v3/clusters at trunkline"),
        "{said}"
    );

    // What was in the way goes, and the collection is taken as it is.
    put(&file, &edited("third"));
    until("the next edit", || {
        (plane.names("cds") == ["own", "third"]).then_some(())
    });
    assert!(
        plane
            .get("/metrics")
            .1
            .contains("trunkline_mcp_rejected_collections 0")
    );
}

#[test]
fn m12_a_source_dials_a_control_plane() {
    let dir = tempfile::tempdir().unwrap();
    put(&dir.path().join("clusters.yaml"), CLUSTER);
    let plane = ["--mcp-listen", "127.0.0.1:0", "--collections", "cds"];
    let mut args = vec!["serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"];
    args.extend(plane);
    let plane = Running::start(&args);
    let address = plane.logged("sources may connect")["address"]
        .as_str()
        .unwrap()
        .to_owned();
    let source = Source::start(dir.path(), &["--dial", &address]);
    assert_eq!(plane.logged("ready")["resources"], 1);
    assert!(source.listen.is_empty());
    let sinks = until("an ACK", || {
        let status = source.get("/api/v1/mcp");
        (status["sinks"][0]["status"] == "SYNCED").then_some(status)
    });
    assert_eq!(sinks["collections"][0]["resources"], 1);
}

#[test]
fn manifests_are_collections() {
    let dir = tempfile::tempdir().unwrap();
    put(&dir.path().join("front.yaml"), GATEWAY);
    let source = Source::listening(dir.path());
    let watch = |more: &[&str]| {
        let mut args = vec!["mcp", "watch", "istio/networking/v1/gateways"];
        args.extend(["--server", &source.listen, "--once"]);
        args.extend(more);
        good(&run(&args))
    };
    let line = watch(&[]);
    assert!(
        line.starts_with("added istio/networking/v1/gateways shop/front version "),
        "{line}"
    );
    let shown: Value = serde_json::from_str(&watch(&["-o", "json", "--incremental"])).unwrap();
    assert_eq!(shown["labels"]["env"], "prod");
    assert_eq!(shown["type"], "type.googleapis.com/google.protobuf.Struct");
    // `on` is text in a manifest, which Kubernetes' readers quote, and 80 a number.
    assert_eq!(shown["body"]["servers"][0]["hosts"][0], "on");
    assert_eq!(
        shown["body"]["servers"][0]["port"]["number"].as_f64(),
        Some(80.0)
    );
    let empty = good(&run(&[
        "mcp",
        "watch",
        "no/such",
        "--server",
        &source.listen,
        "--once",
    ]));
    assert_eq!(empty, "empty no/such\n");
}

#[test]
fn tp2_labels_of_one_source_make_views_for_clients() {
    let dir = tempfile::tempdir().unwrap();
    put(&dir.path().join("prod.yaml"), &cluster_of("prod", "1s"));
    put(&dir.path().join("test.yaml"), &cluster_of("test", "2s"));
    let source = Source::listening(dir.path());
    let flags = ["--mcp-from", &source.listen, "--mcp-label", "env"];
    let plane = Server::start_until(&flags, "ready");
    let shown = |env: &str| {
        let param = format!("env={env}");
        let server = plane.listen.to_string();
        let args = [
            "watch",
            "cds/backend",
            "--server",
            &server,
            "--once",
            "-o",
            "yaml",
        ];
        good(&run(&[&args[..], &["--param", &param]].concat()))
    };
    assert!(
        shown("prod").contains("connect_timeout: \"1s\""),
        "{}",
        shown("prod")
    );
    assert!(
        shown("test").contains("connect_timeout: \"2s\""),
        "{}",
        shown("test")
    );
}

#[test]
fn a_sink_that_anyone_could_reach_is_refused() {
    let args = ["serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"];
    let said = bad(
        &run(&[&args[..], &["--mcp-listen", "0.0.0.0:0"]].concat()),
        2,
    );
    assert!(said.contains("--tls-client-ca"), "{said}");
    let both = ["--mcp-listen", "127.0.0.1:0", "--mcp-from", "127.0.0.1:1"];
    let said = bad(&run(&[&args[..], &both].concat()), 2);
    assert!(said.contains("two sources"), "{said}");
}

#[test]
fn m14_an_update_reaches_others_after_the_canaries_and_not_if_one_rejects_it() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("clusters.yaml");
    put(&file, CLUSTER);
    let listen = ["--listen", "127.0.0.1:0"];
    let canary = ["--canary", "env=canary", "--soak", "200ms"];
    let source = Source::start(dir.path(), &[&listen[..], &canary[..]].concat());
    let stage = || source.get("/api/v1/mcp")["rollout"]["stage"].clone();
    // The canary has a name of its own, which the source must not bring.
    let own = tempfile::tempdir().unwrap();
    let of_canary = own.path().join("own.yaml");
    put(&of_canary, &edited("own"));
    let first = ["--mcp-from", &source.listen, "--collections", "cds"];
    let more = [
        "--mcp-annotation",
        "env=canary",
        "--config",
        of_canary.to_str().unwrap(),
    ];
    let canary = Server::start_until(&[&first[..], &more[..]].concat(), "ready");
    let other = Server::start_until(&first, "ready");
    assert_eq!(other.names("cds"), ["backend"]);
    until("the first contents to be promoted", || {
        (stage() == "PROMOTED").then_some(())
    });

    put(&file, &edited("second"));
    until("the edit", || {
        (other.names("cds") == ["second"]).then_some(())
    });
    assert_eq!(canary.names("cds"), ["own", "second"]);

    put(&file, &edited("own"));
    let status = until("the stop", || {
        let status = source.get("/api/v1/mcp");
        (status["rollout"]["stage"] == "STOPPED").then_some(status)
    });
    let error = status["rollout"]["error"].as_str().unwrap();
    assert!(error.contains("belongs to origin"), "{error}");
    source.running.logged("a canary rejects an update");
    let admin = source.admin.to_string();
    let said = good(&run(&["mcp", "status", "--admin", &admin]));
    assert!(
        said.contains("stopped: trunkline rejects the newest contents"),
        "{said}"
    );
    let (_, metrics) = Server::http_at(source.admin, "GET", "/metrics", &[], "");
    assert!(metrics.contains("trunkline_mcp_rollout_stopped 1"));
    // Well beyond the soak time.
    std::thread::sleep(std::time::Duration::from_millis(600));
    assert_eq!(other.names("cds"), ["second"]);

    put(&file, &edited("third"));
    until("the next edit", || {
        (other.names("cds") == ["third"]).then_some(())
    });
}

#[test]
fn mcp_over_xds_is_served_and_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    put(&dir.path().join("front.yaml"), GATEWAY);
    put(&dir.path().join("clusters.yaml"), CLUSTER);
    let source = Source::listening(dir.path());
    let ask = |collection: &str, more: &[&str]| {
        let server = &source.listen;
        let args = ["mcp", "watch", collection, "--server", server, "--once"];
        good(&run(&[&args[..], &["--xds"], more].concat()))
    };
    // As Istio asks for it, and by its name here; in state of the world and by
    // delta.
    for collection in [
        "networking.istio.io/v1/Gateway",
        "istio/networking/v1/gateways",
    ] {
        for more in [&[][..], &["--incremental"]] {
            let line = ask(collection, more);
            let expected = format!("added {collection} shop/front version ");
            assert!(line.starts_with(&expected), "{line}");
        }
    }
    assert_eq!(ask("no/such", &["--incremental"]), "empty no/such\n");
    let planes = ["sotw", "delta"].map(|form| {
        let from = ["--mcp-from", &source.listen, "--mcp-over-xds", form];
        Server::start_until(&[&from[..], &["--collections", "cds"]].concat(), "ready")
    });
    for plane in &planes {
        assert_eq!(plane.names("cds"), ["backend"]);
    }
    put(&dir.path().join("clusters.yaml"), &edited("other"));
    for plane in &planes {
        until("the edit", || {
            (plane.names("cds") == ["other"]).then_some(())
        });
    }
}
