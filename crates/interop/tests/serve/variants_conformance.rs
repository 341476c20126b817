//! Variants (TP2) to a client that is not ours: Python with the public
//! messages, which subscribes by locators and judges what it gets.

use std::time::Duration;

use crate::script;
use crate::site::Site;
use crate::texts::other;

const ROUTE: &str = "envoy.config.route.v3.RouteConfiguration";

/// A route configuration for clients of one environment.
fn variant(env: &str, body: &str) -> String {
    let of_type = |name: &str| format!("\"@type\": type.googleapis.com/{name}");
    let constraints = format!("{{constraint: {{key: env, value: {env}}}}}");
    format!(
        "- {}\n  resource_name: {{name: r, dynamic_parameter_constraints: {constraints}}}\n  \
         resource: {{{}, name: r, internal_only_headers: [{body}]}}",
        of_type("envoy.service.discovery.v3.Resource"),
        of_type(ROUTE),
    )
}

/// The client changes the file itself from here on.
fn conforms(way: &str) {
    let plain = other(ROUTE, "name: plain, internal_only_headers: [x]");
    let all = [variant("prod", "p"), variant("test", "t"), plain];
    let site = Site::new(&[("routes.yaml", &all)]);
    let serving = site.serve();
    let folder = site.folder().to_str().expect("a name of plain text");
    let port = serving.port.to_string();
    let mut client = script("variants.py", &[&port, folder, way], &[]);
    let code = client.finish(Duration::from_secs(120));
    assert_eq!(code, Some(0), "{}", client.text());
    assert!(client.text().ends_with("done\n"), "{}", client.text());
}

#[test]
fn s62_a_client_of_several_variants_on_one_stream() {
    conforms("delta");
}

#[test]
fn s62_a_client_of_several_variants_in_the_state_of_the_world() {
    conforms("sotw");
}
