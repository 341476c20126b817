//! `trunkline watch TYPE --server ADDR`: what a control plane sends to a client,
//! by the real program on both sides.
#![allow(clippy::unwrap_used, reason = "all of this is a test")]

mod support;

use std::net::{SocketAddr, TcpListener};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use support::program::Program;
use support::{CLUSTER, ROUTES, Running, SECRET, Server, bad, good, run, run_with, said};

fn apply(server: &Server, text: &str) {
    good(&server.ask_with(&["apply", "-f", "-"], text));
}

fn apply_timeout(server: &Server, seconds: u32) {
    apply(server, &CLUSTER.replace("1s", &format!("{seconds}s")));
}

/// Watches something of a server, until it is ended.
fn watch(server: SocketAddr, args: &[&str]) -> Program {
    let server = server.to_string();
    Program::start(&[&["watch"], args, &["--server", &server]].concat())
}

/// Asks a server for something once.
fn once(server: SocketAddr, args: &[&str]) -> std::process::Output {
    let server = server.to_string();
    run(&[&["watch"], args, &["--once", "--server", &server]].concat())
}

/// What a line says behind its time, up to the version.
fn event(line: &str) -> String {
    let (_, event) = line.split_once(' ').unwrap();
    let event = event.split(" version").next().unwrap();
    event.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// An address at which nobody listens.
fn nobody() -> SocketAddr {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    free.local_addr().unwrap()
}

#[test]
fn each_change_is_told_in_both_protocols() {
    let server = Server::start(&[]);
    apply(&server, CLUSTER);
    for protocol in ["--delta", "--sotw"] {
        apply_timeout(&server, 1);
        let mut program = watch(server.listen, &["cds", protocol]);
        program.said("connecting to 127.0.0.1:");
        program.said("connected to 127.0.0.1:");
        assert_eq!(event(&program.line()), "added cds/backend", "{protocol}");
        apply_timeout(&server, 2);
        assert_eq!(event(&program.line()), "changed cds/backend", "{protocol}");
        apply(&server, &CLUSTER.replace("backend", "other"));
        assert_eq!(event(&program.line()), "added cds/other", "{protocol}");
        good(&server.ask(&["delete", "cds", "other"]));
        let line = program.line();
        assert!(event(&line).starts_with("removed cds/other"), "{line}");
    }
}

#[test]
fn names_are_told_apart_from_all_others() {
    let server = Server::start(&[]);
    apply(&server, CLUSTER);
    apply(&server, ROUTES);
    let mut program = watch(server.listen, &["cds/later", "rds/routes", "-o", "json"]);
    let mut seen: Vec<Value> = (0..2)
        .map(|_| serde_json::from_str(&program.line()).unwrap())
        .collect();
    seen.sort_by_key(|event| event["name"].as_str().unwrap().to_owned());
    assert_eq!(seen[0]["event"], "missing");
    assert_eq!(seen[0]["name"], "later");
    assert!(seen[0]["error"].as_str().unwrap().contains("not exist"));
    assert_eq!(seen[1]["event"], "added");
    assert_eq!(seen[1]["resource"]["virtual_hosts"][0]["name"], "all");
    apply_timeout(&server, 2);
    apply(&server, &CLUSTER.replace("backend", "later"));
    let event: Value = serde_json::from_str(&program.line()).unwrap();
    assert_eq!(event["event"], "added");
    assert_eq!(event["name"], "later");
}

#[test]
fn once_says_by_its_code_whether_all_was_found() {
    let server = Server::start(&[]);
    let nothing = once(server.listen, &["cds"]);
    assert!(bad(&nothing, 1).contains("not found: cds/*"));
    apply(&server, CLUSTER);
    apply(&server, ROUTES);
    let summary = good(&once(server.listen, &["clusters"]));
    assert_eq!(event(&summary), "added cds/backend");
    good(&once(server.listen, &["cds", "backend", "--sotw"]));
    let half = once(server.listen, &["cds", "backend", "missing"]);
    assert!(bad(&half, 1).contains("not found: cds/missing"));
    assert_eq!(String::from_utf8(half.stdout).unwrap().lines().count(), 2);

    // What is printed as YAML is a file of resources.
    let yaml = good(&once(
        server.listen,
        &["cds/backend", "rds/routes", "-o", "yaml"],
    ));
    assert!(yaml.contains("---\n# cds/backend added"), "{yaml}");
    good(&run_with(&["validate", "-"], &yaml));
    let other = Server::start(&[]);
    apply(&other, &yaml);
    assert_eq!(other.names("rds"), ["routes"]);

    let nobody = nobody();
    let error = bad(&once(nobody, &["cds"]), 3);
    assert!(error.contains("no connection: "), "{error}");
    assert!(error.contains("no control plane is reached"), "{error}");
    bad(&once(nobody, &["cds", "a"]), 3);
}

#[test]
fn what_makes_no_sense_is_refused_with_a_remedy() {
    for (args, remedy) in [
        (&["cds"][..], "which control plane? Give --server ADDR"),
        (&["--once"], "--once is for resources"),
        (&["--server", "127.0.0.1:1"], "which resources? Give a type"),
        (&["vhds", "--server", "127.0.0.1:1"], "sent by name only"),
        (&["cdx", "--server", "127.0.0.1:1"], "did you mean \"cds\"?"),
        (&["cds", "--server", "nowhere"], "write host:port"),
        (&["cds", "--server", "a:1", "--json"], "cannot be used with"),
        (&["cds", "--server", "a:1", "--param", "x"], "KEY=VALUE"),
        (
            &["cds", "--server", "a:1", "--node", "a", "--node", "b"],
            "give it once",
        ),
        (
            &["cds", "--server", "a:1", "--token-file", "t"],
            "--server-token-file",
        ),
        (
            &["cds", "--server", "https://a:1", "--tls-ca", "none.pem"],
            "--tls-ca none.pem: No such file",
        ),
        (&["cds", "--bootstrap", "none.yaml"], "none.yaml"),
        (&["--tree"], "--tree is for resources"),
        (
            &["cds", "--server", "a:1", "--tree"],
            "one listener or cluster",
        ),
        (
            &["rds:r", "--server", "a:1", "--tree"],
            "one listener or cluster",
        ),
        (&["cds", "--server", "a:1", "-o", "dot"], "add --tree"),
        (
            &["cluster:a", "--server", "a:1", "--tree", "-o", "yaml"],
            "summary or dot",
        ),
    ] {
        let args = [&["watch"], args].concat();
        let error = bad(&run(&args), 2);
        assert!(error.contains(remedy), "{args:?}: {error}");
    }
}

/// A listener whose routes come by RDS.
const LISTENER: &str = r#"resources:
- "@type": type.googleapis.com/envoy.config.listener.v3.Listener
  name: front
  address: {socket_address: {address: 127.0.0.1, port_value: 80}}
  filter_chains:
  - filters:
    - name: http
      typed_config:
        "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
        stat_prefix: front
        rds: {route_config_name: routes, config_source: {ads: {}, resource_api_version: V3}}
        http_filters:
        - name: router
          typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}
"#;

/// A cluster whose endpoints come by EDS.
const EDS_CLUSTER: &str = r#"resources:
- "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
  name: backend
  type: EDS
  eds_cluster_config: {eds_config: {ads: {}, resource_api_version: V3}}
"#;

fn endpoints(ports: &[u32]) -> String {
    let endpoints = ports.iter().map(|port| {
        format!("{{endpoint: {{address: {{socket_address: {{address: 127.0.0.1, port_value: {port}}}}}}}}}")
    });
    let endpoints = endpoints.collect::<Vec<_>>().join(", ");
    format!(
        r#"resources:
- "@type": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment
  cluster_name: backend
  endpoints: [{{lb_endpoints: [{endpoints}]}}]
"#
    )
}

/// A line of a tree without its version.
fn without_version(line: &str) -> String {
    let Some((before, rest)) = line.split_once(" version \"") else {
        return line.to_owned();
    };
    let (_, after) = rest.split_once('"').unwrap();
    format!("{before}{after}")
}

#[test]
fn c51_a_tree_is_printed_and_then_each_change_of_it() {
    let server = Server::start(&[]);
    for text in [EDS_CLUSTER, &endpoints(&[1]), ROUTES, LISTENER] {
        apply(&server, text);
    }
    let mut program = watch(server.listen, &["listener:front", "--tree"]);
    let tree: Vec<_> = (0..4).map(|_| without_version(&program.line())).collect();
    let expected = [
        "lds/front",
        "  rds/routes",
        "    cds/backend",
        "      eds/backend, endpoints: 1",
    ];
    assert_eq!(tree, expected);

    apply(&server, &endpoints(&[1, 2]));
    assert!(program.line().ends_with(" changed"));
    let path = "lds/front > rds/routes > cds/backend > eds/backend";
    let change = without_version(&program.line());
    assert_eq!(change, format!("~ {path}, endpoints: 2"));

    apply(&server, CLUSTER);
    assert!(program.line().ends_with(" changed"));
    assert!(program.line().starts_with(&format!("- {path}")));
    let change = without_version(&program.line());
    assert_eq!(change, "~ lds/front > rds/routes > cds/backend");
}

#[test]
fn a_tree_is_drawn_and_says_what_is_missing() {
    let server = Server::start(&[]);
    for text in [EDS_CLUSTER, &endpoints(&[1]), ROUTES, LISTENER] {
        apply(&server, text);
    }
    let dot = good(&once(
        server.listen,
        &["listener:front", "--tree", "-o", "dot"],
    ));
    assert!(dot.starts_with("digraph tree {"), "{dot}");
    assert!(dot.contains("\"rds/routes\" -> \"cds/backend\";"), "{dot}");
    let cluster = good(&once(server.listen, &["cds/backend", "--tree", "--sotw"]));
    assert!(cluster.contains("\n  eds/backend version"), "{cluster}");
    let missing = once(server.listen, &["cluster:other", "--tree"]);
    assert!(bad(&missing, 1).contains("not found: cds/other"));
}

#[test]
fn secrets_are_not_shown() {
    let server = Server::start(&[]);
    apply(&server, SECRET);
    for output in ["summary", "yaml", "json"] {
        let shown = once(server.listen, &["sds", "cert", "-o", output]);
        let shown = good(&shown);
        assert!(!shown.contains("swordfish"), "{shown}");
        assert!(
            output == "summary" || shown.contains("[redacted]"),
            "{shown}"
        );
    }
}

#[test]
fn parameters_choose_a_variant() {
    let server = Server::start(&[]);
    let variants = r#"resources:
- "@type": type.googleapis.com/envoy.service.discovery.v3.Resource
  name: shop
  resource_name: {name: shop, dynamic_parameter_constraints: "env=prod"}
  resource: {"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: shop, connect_timeout: 7s}
"#;
    apply(&server, variants);
    let found = once(
        server.listen,
        &["cds", "shop", "--param", "env=prod", "-o", "yaml"],
    );
    assert!(good(&found).contains("7s"));
    bad(
        &once(server.listen, &["cds", "shop", "--param", "env=test"]),
        1,
    );
}

#[test]
fn a_server_that_comes_late_and_goes_is_waited_for() {
    let address = nobody();
    let mut program = watch(address, &["cds"]);
    program.said("no connection, trying again: ");
    let listen = address.to_string();
    let serve = || {
        let flags = [
            "serve",
            "--admin",
            "127.0.0.1:0",
            "--allow-empty",
            "--listen",
        ];
        let running = Running::start(&[&flags[..], &[&listen]].concat());
        let ready = running.logged("ready");
        let admin = ready["admin"].as_str().unwrap().parse().unwrap();
        Server {
            running,
            listen: address,
            admin,
        }
    };
    let server = serve();
    apply(&server, CLUSTER);
    assert_eq!(event(&program.line()), "added cds/backend");
    drop(server);
    program.said("the connection is lost, trying again: ");
    let server = serve();
    apply_timeout(&server, 2);
    program.said("again");
    assert_eq!(event(&program.line()), "changed cds/backend");
}

#[test]
fn a_bootstrap_has_servers_to_fall_back_to() {
    let server = Server::start(&[]);
    apply(&server, CLUSTER);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("grpc.json");
    let plane = |address: SocketAddr| {
        format!(
            r#"{{"server_uri": "{address}", "channel_creds": [{{"type": "insecure"}}], "server_features": ["xds_v3"]}}"#
        )
    };
    let text = format!(
        r#"{{"xds_servers": [{}, {}], "node": {{"id": "me"}}}}"#,
        plane(nobody()),
        plane(server.listen)
    );
    std::fs::write(&path, text).unwrap();
    let path = path.to_str().unwrap();
    let found = run(&["watch", "cds", "backend", "--once", "--bootstrap", path]);
    assert_eq!(event(&good(&found)), "added cds/backend");
    assert!(
        said(&found).contains("falling back to "),
        "{}",
        said(&found)
    );

    let envoy = dir.path().join("envoy.yaml");
    let text = format!(
        "node: {{id: me, cluster: c}}\n\
         dynamic_resources:\n  ads_config:\n    api_type: DELTA_GRPC\n    \
         transport_api_version: V3\n    grpc_services: [{{envoy_grpc: {{cluster_name: xds}}}}]\n\
         static_resources:\n  clusters:\n  - name: xds\n    http2_protocol_options: {{}}\n    \
         load_assignment:\n      cluster_name: xds\n      endpoints:\n      - lb_endpoints:\n        \
         - endpoint: {{address: {{socket_address: {{address: 127.0.0.1, port_value: {}}}}}}}\n",
        server.listen.port()
    );
    std::fs::write(&envoy, text).unwrap();
    let mut program = Program::start(&[
        "watch",
        "clusters",
        "--bootstrap",
        envoy.to_str().unwrap(),
        "--node",
        "sidecar-9",
    ]);
    assert_eq!(event(&program.line()), "added cds/backend");
    let status = good(&server.ask(&["status", "sidecar-9"]));
    assert!(status.contains("sidecar-9"), "{status}");
}

#[test]
fn the_program_ends_when_it_is_stopped_or_nobody_reads() {
    let server = Server::start(&[]);
    apply(&server, CLUSTER);
    let mut program = watch(server.listen, &["cds"]);
    program.line();
    kill_process(Pid::from_child(&program.child), Signal::INT).unwrap();
    assert_eq!(program.end(), Some(0));
    assert!(!program.errors().contains("error"), "{}", program.errors());

    let mut program = watch(server.listen, &["cds"]);
    program.line();
    program.lines = None;
    apply_timeout(&server, 2);
    assert_eq!(program.end(), Some(0));
    assert!(!program.errors().contains("error"), "{}", program.errors());
}
