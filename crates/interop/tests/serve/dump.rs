//! What an Envoy dumps is what another Envoy can be served.

use std::fs;
use std::net::SocketAddr;
use std::time::Duration;

use interop::{Backend, Envoy, Serving, folder, http};
use trunkline_proto::text;

use crate::site::Site;
use crate::texts::{cluster_from, listener_from, other, route};
use crate::way::DELTA;

const SOON: Duration = Duration::from_secs(10);

/// Envoy dumps a weight of zero for a locality that has none.
fn endpoints_without_weight(cluster: &str, at: SocketAddr) -> String {
    let (ip, port) = (at.ip(), at.port());
    other(
        "envoy.config.endpoint.v3.ClusterLoadAssignment",
        &format!(
            "cluster_name: {cluster}, endpoints: [{{lb_endpoints: [{{endpoint: {{address: \
             {{socket_address: {{address: {ip}, port_value: {port}}}}}}}}}]}}]"
        ),
    )
}

#[test]
fn a_dump_of_envoy_is_served_to_another() {
    let source = DELTA.source();
    let backend = Backend::start("backend");
    let site = Site::new(&[(
        "all.yaml",
        &[
            cluster_from("c", &source, 1),
            endpoints_without_weight("c", backend.address()),
            listener_from("http", "r", &source),
            route("r", "c"),
        ],
    )]);
    let serving = site.serve();
    let first = Envoy::start(&DELTA.bootstrap(serving.port));
    first.wait_for("all in a dump", SOON, |envoy| {
        let dump = envoy.get("/config_dump?include_eds").body;
        dump.contains("dynamic_endpoint_configs").then_some(())
    });
    let dump = first.get("/config_dump?include_eds").body;

    let read = text::read("dump.json", &dump, &text::Options::default());
    assert_eq!(read.errors, []);
    assert_eq!(read.warnings, []);

    let files = folder("dump");
    fs::write(files.join("dump.json"), dump).expect("a file");
    let serving = Serving::files(&files);
    let second = Envoy::start(&DELTA.bootstrap(serving.port));
    second.wait_for("the answer of the backend", SOON, |envoy| {
        let at = envoy.listener("http")?;
        let answer = http::get(at, "/").ok()?;
        (answer.body == "backend").then_some(())
    });
}

/// Envoy names a listener of its own accord if it has no name.
#[test]
fn a_static_listener_needs_no_name_for_envoy_either() {
    let bootstrap = "\
admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}
static_resources:
  secrets:
  - name: token
    generic_secret: {secret: {inline_string: hidden}}
  listeners:
  - address: {socket_address: {address: 127.0.0.1, port_value: 0}}
    filter_chains:
    - filters:
      - name: echo
        typed_config: {\"@type\": type.googleapis.com/envoy.extensions.filters.network.echo.v3.Echo}
";
    let written = text::read("envoy.yaml", bootstrap, &text::Options::default());
    assert_eq!(written.errors, []);
    let envoy = Envoy::start(bootstrap);
    let dump = envoy.get("/config_dump").body;
    let dumped = text::read("dump.json", &dump, &text::Options::default());
    assert_eq!(dumped.errors, []);

    // The secret is not in the dump; the listener is, and has the same name.
    let [listener] = &dumped.resources[..] else {
        panic!("one resource: {:?}", dumped.resources);
    };
    let name = listener.message.get_field_by_name("name");
    let name = name.and_then(|name| name.as_str().map(str::to_owned));
    assert_eq!(name.as_deref(), Some("127.0.0.1_0"));
    assert!(written.resources.iter().any(|r| r.body == listener.body));
    assert_eq!(dumped.warnings.len(), 2);
}
