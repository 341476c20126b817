//! `trunkline status NODE --envoy-admin URL`: which Envoy and which client are
//! compared, and what is wrong if they are not. A real Envoy is compared in
//! `crates/interop/tests/proxy_status.rs`.
#![allow(clippy::unwrap_used)]

mod support;

use std::net::TcpListener;
use std::process::Output;

use support::envoy_admin::EnvoyAdmin;
use support::peer::{CDS, Peer};
use support::{CLUSTER, Server, bad, good, run};

/// A dump of an Envoy with a node and a cluster.
fn dump(node: &str, timeout: &str) -> String {
    format!(
        r#"{{"configs": [
 {{"@type": "type.googleapis.com/envoy.admin.v3.BootstrapConfigDump",
  "bootstrap": {{"node": {{"id": "{node}"}}}}}},
 {{"@type": "type.googleapis.com/envoy.admin.v3.ClustersConfigDump",
  "dynamic_active_clusters": [{{"cluster": {{
   "@type": "{CDS}", "name": "backend", "connect_timeout": "{timeout}"}}}}]}}]}}"#
    )
}

/// Connects a client that takes what it is sent.
async fn connect(server: &Server, node: &str) -> Peer {
    let mut peer = Peer::connect(server, node, CDS, &["*"]).await;
    let response = peer.next().await;
    peer.answer(&response, None).await;
    peer
}

/// Compares the client `sidecar-7` with an Envoy that says this.
fn compare(server: &Server, dump: String) -> Output {
    let envoy = EnvoyAdmin::start(dump);
    let url = format!("http://{}/", envoy.address);
    server.ask(&["status", "sidecar-7", "--envoy-admin", &url])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_code_says_whether_there_is_a_difference() {
    let server = Server::start(&[]);
    good(&server.ask_with(&["apply", "-f", "-"], CLUSTER));
    let _peer = connect(&server, "sidecar-7").await;
    let shown = good(&server.ask(&["status", "sidecar-7"]));
    assert!(shown.starts_with("1 client: "), "{shown}");
    let shown = good(&server.ask(&["status", "sidecar-8"]));
    assert_eq!(shown, "no such clients are connected\n");

    let same = good(&compare(&server, dump("sidecar-7", "1s")));
    assert_eq!(
        same,
        "sidecar-7: 1 same\n\nTYPE  NAME     STATE  REASON\ncds   backend  same   -\n"
    );
    let differs = compare(&server, dump("sidecar-7", "5s"));
    assert_eq!(bad(&differs, 1), "");
    let differs = String::from_utf8(differs.stdout).unwrap();
    assert!(
        differs.contains("cds/backend: - in the proxy, + from the server\n@@\n")
            && differs.contains("\n- connect_timeout: \"5s\"\n+ connect_timeout: \"1s\"\n"),
        "{differs}"
    );

    let envoy = EnvoyAdmin::start(dump("sidecar-7", "5s"));
    let address = envoy.address.to_string();
    let of_type = |kind| {
        let args = ["status", "--node", "sidecar-7", "--envoy-admin", &address];
        server.ask(&[&args[..], &["--type", kind, "-o", "json"]].concat())
    };
    let json = String::from_utf8(of_type("cds").stdout).unwrap();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["node"], "sidecar-7");
    assert_eq!(json["resources"][0]["state"], "differs");
    assert!(good(&of_type("lds")).contains("\"resources\": []"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_envoy_or_client_is_an_error() {
    let server = Server::start(&[]);
    good(&server.ask_with(&["apply", "-f", "-"], CLUSTER));
    let first = connect(&server, "sidecar-8").await;

    let other = bad(&compare(&server, dump("sidecar-1", "1s")), 2);
    assert!(
        other.ends_with(
            " has the node id \"sidecar-1\", and not \"sidecar-7\"; correct the one or the other\n"
        ),
        "{other}"
    );
    assert_eq!(
        bad(&compare(&server, dump("sidecar-7", "1s")), 2),
        "error: no client with the node id \"sidecar-7\" is connected; did you mean \
         \"sidecar-8\"?; see `trunkline status` for those that are, and the log of the Envoy for \
         why it is not\n"
    );
    drop(first);
    let _both = [
        connect(&server, "sidecar-7").await,
        connect(&server, "sidecar-7").await,
    ];
    assert_eq!(
        bad(&compare(&server, dump("sidecar-7", "1s")), 2),
        "error: 2 clients with the node id \"sidecar-7\" are connected, so nobody can tell which of \
         them this Envoy is; give each a `node.id` of its own\n"
    );
}

#[test]
fn what_is_no_envoy_is_told() {
    let server = Server::start(&[]);
    let closed = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = closed.local_addr().unwrap().to_string();
    drop(closed);
    let ask = |envoy: &str| server.ask(&["status", "sidecar-7", "--envoy-admin", envoy]);
    assert_eq!(
        bad(&ask(&address), 3),
        format!(
            "error: cannot reach the admin page of the Envoy at {address}: nothing listens there; \
             is the Envoy running, and is this the address that `admin` in its bootstrap has?\n"
        )
    );
    let remedy = "; name the address that `admin` in the bootstrap of the Envoy has with \
                  --envoy-admin\n";
    let admin = server.admin.to_string();
    for (said, reason) in [
        ("{}", "it has no `configs`"),
        ("<html>", "it has no `configs`"),
        (r#"{"configs": []}"#, "it has no bootstrap"),
    ] {
        let error = bad(&compare(&server, said.to_owned()), 2);
        let end = format!(
            " is not the admin page of an Envoy: {reason} for /config_dump?include_eds{remedy}"
        );
        assert!(error.ends_with(&end), "{error}");
    }
    // The server's own page, and the port of xDS.
    let own = bad(&ask(&admin), 2);
    assert!(own.contains(": it has no bootstrap for "), "{own}");
    let xds = bad(&ask(&server.listen.to_string()), 2);
    assert!(xds.contains(": it has no `configs` for "), "{xds}");
}

#[test]
fn one_node_is_named_and_plain_http_is_spoken() {
    let many = ["status", "--node", "a", "--node", "b"];
    for nodes in [&["status"][..], &many] {
        let error = bad(
            &run(&[nodes, &["--envoy-admin", "127.0.0.1:9"]].concat()),
            2,
        );
        assert_eq!(
            error,
            "error: --envoy-admin compares one client; name its node, as in `trunkline status \
             sidecar-7 --envoy-admin 127.0.0.1:9901`\n"
        );
    }
    let secure = run(&["status", "a", "--envoy-admin", "https://127.0.0.1:9"]);
    assert_eq!(
        bad(&secure, 2),
        "error: --envoy-admin https://127.0.0.1:9: expected host:port or http://host:port, as \
         `admin` in the bootstrap of the Envoy has it\n"
    );
}
