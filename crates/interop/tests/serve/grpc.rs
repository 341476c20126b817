//! gRPC without any proxy, from files: clients and servers.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use interop::bootstrap::ADS;
use interop::{Entry, Script, Sent, Serving, free_port};
use trunkline::kind;
use trunkline::load::LoadClusters;
use trunkline::node::NodeMatch;

use crate::script;
use crate::site::Site;
use crate::texts::{ROUTER, cluster_with, endpoints, manager, other, rds, route};

pub(crate) const SOON: Duration = Duration::from_secs(15);

/// A gRPC server that answers with a text.
pub(crate) fn backend(text: &str) -> (Script, SocketAddr) {
    let mut script = script("backend.py", &[text], &[]);
    let port = script.wait_for_line("port ", SOON).parse().expect("a port");
    (script, SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
}

fn bootstrap(port: u16, node: &str) -> String {
    format!(
        r#"{{"xds_servers": [{{"server_uri": "127.0.0.1:{port}",
            "channel_creds": [{{"type": "insecure"}}], "server_features": ["xds_v3"]}}],
            "server_listener_resource_name_template": "grpc/server?at=%s",
            "authorities": {{"auth.example": {{"client_listener_resource_name_template":
                "xdstp://auth.example/envoy.config.listener.v3.Listener/%s?az=1&env=prod"}}}},
            "node": {{"id": "{node}", "cluster": "interop"}}}}"#
    )
}

/// A client that calls until it is answered with a text.
pub(crate) fn client(serving: &Serving, arguments: &[&str]) -> Script {
    client_of(serving, "xds:///svc", arguments)
}

/// The same, with a node of another name.
pub(crate) fn client_as(serving: &Serving, node: &str, arguments: &[&str]) -> Script {
    client_from(&bootstrap(serving.port, node), "xds:///svc", arguments)
}

fn client_of(serving: &Serving, target: &str, arguments: &[&str]) -> Script {
    client_from(&bootstrap(serving.port, "g1"), target, arguments)
}

fn client_from(bootstrap: &str, target: &str, arguments: &[&str]) -> Script {
    let variables = [("GRPC_XDS_BOOTSTRAP_CONFIG", bootstrap)];
    script("client.py", &[&[target], arguments].concat(), &variables)
}

/// A listener that gRPC clients subscribe to by the name of a service.
pub(crate) fn api_listener(name: &str, route: &str) -> String {
    let manager = manager(name, &rds(route, ADS), ROUTER);
    // The manager alone, without the name that it has as a filter.
    let config = manager
        .strip_prefix("{name: http, typed_config: ")
        .and_then(|rest| rest.strip_suffix('}'))
        .expect("a filter");
    other(
        "envoy.config.listener.v3.Listener",
        &format!("name: {name:?}, api_listener: {{api_listener: {config}}}"),
    )
}

fn site(at: SocketAddr) -> Site {
    let reporting =
        format!("type: EDS, eds_cluster_config: {{eds_config: {ADS}}}, lrs_server: {{self: {{}}}}");
    Site::new(&[
        ("endpoints.yaml", &[endpoints("c", at)]),
        (
            "svc.yaml",
            &[
                api_listener("svc", "r"),
                route("r", "c"),
                cluster_with("c", &reporting),
            ],
        ),
    ])
}

#[test]
fn s50_grpc_survives_a_restart_of_the_server_and_follows_files() {
    let (_first, first) = backend("first");
    let (_second, second) = backend("second");
    let (_third, third) = backend("third");
    let site = site(first);
    let serving = site.serve();
    let mut client = client(&serving, &["third"]);
    client.wait_for_line("answer first", SOON);
    site.write("endpoints.yaml", &[endpoints("c", second)]);
    client.wait_for_line("answer second", SOON);

    let port = serving.port;
    serving.stop();
    let serving = site.serve_on(port);
    serving.journal.wait("the client to come back", 0, |entry| {
        matches!(entry, Entry::Opened(_)).then_some(())
    });
    site.write("endpoints.yaml", &[endpoints("c", third)]);
    // It ends with a failure as soon as a call fails.
    assert_eq!(client.finish(SOON), Some(0), "{}", client.text());
}

/// A resource of its subscriptions that a response to gRPC leaves out is
/// removed.
#[test]
fn s40_what_is_deleted_is_gone_for_grpc() {
    let (_first, first) = backend("first");
    let site = site(first);
    let serving = site.serve();
    let mut client = client(&serving, &["never"]);
    client.wait_for_line("answer first", SOON);
    site.remove("svc.yaml");
    assert_eq!(client.finish(SOON), Some(1));
    let said = client.text();
    assert!(said.contains("UNAVAILABLE"), "{said}");
}

/// Without the error, gRPC waits for a route configuration that does not exist
/// until its timeout.
#[test]
fn s61_grpc_that_understands_errors_is_told_why_there_is_nothing() {
    let (_first, first) = backend("first");
    let site = site(first);
    site.write("svc.yaml", &[api_listener("svc", "missing")]);
    let serving = site.serve_with(0, |options| {
        let id = "id".parse().expect("a field");
        let g1 = vec!["g1".parse().expect("a pattern")];
        options.resource_errors = vec![NodeMatch::new([(id, g1)])];
    });
    let bootstrap = bootstrap(serving.port, "g1");
    let variables = [
        ("GRPC_XDS_BOOTSTRAP_CONFIG", bootstrap.as_str()),
        ("GRPC_EXPERIMENTAL_XDS_DATA_ERROR_HANDLING", "true"),
    ];
    let mut client = script("client.py", &["xds:///svc", "never"], &variables);
    assert_eq!(client.finish(SOON), Some(1));
    let said = client.text();
    assert!(said.contains("there is no such resource"), "{said}");
}

#[test]
fn grpc_reports_its_load() {
    let (_first, first) = backend("first");
    let (_second, second) = backend("second");
    let site = site(first);
    let serving = site.serve_with(0, |options| {
        options.load.interval = Duration::from_millis(100);
        options.load.clusters = LoadClusters::All;
    });
    let mut client = client(&serving, &["second"]);
    let reported = async {
        loop {
            let all = serving.server.load().reports().snapshot();
            let busy = all.iter().any(|load| {
                let requests = load.localities.iter().map(|l| (&l.place, &l.requests));
                let mut here = requests.filter(|(place, _)| place.region == "here");
                load.cluster == "c" && load.node == "g1" && here.any(|(_, r)| r.successful > 0)
            });
            if busy {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    serving.block_on(reported);
    site.write("endpoints.yaml", &[endpoints("c", second)]);
    assert_eq!(client.finish(SOON), Some(0), "{}", client.text());
}

/// The listener that tells a gRPC server how to serve.
fn server_listener(at: SocketAddr) -> String {
    let routes = r#"route_config: {name: inline, virtual_hosts: [{name: all, domains: ["*"], routes: [{match: {prefix: ""}, non_forwarding_action: {}}]}]}"#;
    let manager = manager("server", routes, ROUTER);
    let (ip, port) = (at.ip(), at.port());
    other(
        "envoy.config.listener.v3.Listener",
        &format!(
            "name: \"grpc/server?at={at}\", \
             address: {{socket_address: {{address: {ip}, port_value: {port}}}}}, \
             filter_chains: [{{filters: [{manager}]}}]"
        ),
    )
}

#[test]
fn s40_a_grpc_server_serves_as_it_is_told() {
    let at = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
    let site = site(at);
    let serving = site.serve();
    let bootstrap = bootstrap(serving.port, "g1");
    let variables = [("GRPC_XDS_BOOTSTRAP_CONFIG", bootstrap.as_str())];
    let mut server = script("server.py", &[&at.to_string(), "told"], &variables);
    server.wait_for_line("started", SOON);
    let name = format!("grpc/server?at={at}");
    assert!(std::net::TcpStream::connect(at).is_err(), "not yet");

    site.write("server.yaml", &[server_listener(at)]);
    let brings = |sent: &Sent| sent.names() == [name.as_str()];
    serving
        .journal
        .wait_accepted("the listener", 0, kind::LDS, brings);
    let mut client = client(&serving, &["told", "patient"]);
    assert_eq!(client.finish(SOON), Some(0), "{}", client.text());
}

/// Envoy could use it, gRPC cannot.
#[test]
fn s12_a_cluster_that_grpc_cannot_use_leaves_the_old_one() {
    let (_first, first) = backend("first");
    let (_second, second) = backend("second");
    let site = site(first);
    let serving = site.serve();
    let mut client = client(&serving, &["second"]);
    client.wait_for_line("answer first", SOON);
    let bad = "type: STATIC, load_assignment: {cluster_name: c}";
    let svc = |cluster: &str| {
        let cluster = cluster_with("c", cluster);
        [api_listener("svc", "r"), route("r", "c"), cluster]
    };
    site.write("svc.yaml", &svc(bad));
    let (name, _, error) = serving.journal.wait_parked(0);
    assert_eq!(name.as_str(), "c");
    assert_ne!(error, "");
    // It goes on calling, by what it had.
    site.write("endpoints.yaml", &[endpoints("c", second)]);
    assert_eq!(client.finish(SOON), Some(0), "{}", client.text());
}

/// The name that it subscribes to has parameters, in their order.
#[test]
fn s63_grpc_asks_by_full_names() {
    let (_first, first) = backend("first");
    let site = site(first);
    let listener = "xdstp://auth.example/envoy.config.listener.v3.Listener/full?az=1&env=prod";
    site.write("full.yaml", &[api_listener(listener, "r")]);
    let serving = site.serve();
    let mut client = client_of(&serving, "xds://auth.example/full", &["first"]);
    assert_eq!(client.finish(SOON), Some(0), "{}", client.text());
    let sent = serving.journal.sent(0, kind::LDS);
    assert!(
        sent.iter().all(|sent| sent.names() == [listener]),
        "{sent:?}"
    );
}

#[test]
fn s79_grpc_leaves_connections_that_are_too_old() {
    let (_first, first) = backend("first");
    let (_second, second) = backend("second");
    let site = site(first);
    let serving = site.serve_with(0, |options| {
        options.max_age = Some(Duration::from_millis(300));
        options.drain = Duration::from_millis(200);
    });
    let mut client = client(&serving, &["second"]);
    serving
        .journal
        .wait("a third stream", 0, |entry| match entry {
            Entry::Opened(stream) => (*stream >= 3).then_some(()),
            _ => None,
        });
    site.write("endpoints.yaml", &[endpoints("c", second)]);
    // It ends with a failure as soon as a call fails.
    assert_eq!(client.finish(SOON), Some(0), "{}", client.text());
}
