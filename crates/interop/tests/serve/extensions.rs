//! Runtime and filters by name.

use std::time::Duration;

use interop::bootstrap::ADS;
use interop::{Backend, Envoy, assert_no_init_fetch_timeout};
use trunkline::kind;

use crate::site::Site;
use crate::texts::{listener_of, other, rds, route, static_cluster};
use crate::way::{DELTA, SOTW, Way};
use crate::{status, wait_for_status};

const SOON: Duration = Duration::from_secs(10);

pub(crate) fn runtime(value: u32) -> String {
    other(
        "envoy.service.runtime.v3.Runtime",
        &format!("name: rt, layer: {{some.key: {value}}}"),
    )
}

/// Envoy requests this before anything else, and nothing else before it has it.
pub(crate) fn with_runtime(way: Way, port: u16) -> String {
    let layer = format!("{{name: rt, rtds_layer: {{name: rt, rtds_config: {ADS}}}}}");
    format!(
        "{}layered_runtime: {{layers: [{layer}]}}\n",
        way.bootstrap(port)
    )
}

pub(crate) fn wait_for_runtime(envoy: &Envoy, value: &str) {
    envoy.wait_for(&format!("the value {value}"), SOON, |envoy| {
        let shown = envoy.get("/runtime").body;
        shown
            .contains(&format!("\"final_value\": \"{value}\""))
            .then_some(())
    });
}

fn runtime_is_followed(way: Way) {
    let site = Site::new(&[("runtime.yaml", &[runtime(1)])]);
    let serving = site.serve();
    let envoy = Envoy::start(&with_runtime(way, serving.port));
    wait_for_runtime(&envoy, "1");
    site.write("runtime.yaml", &[runtime(2)]);
    wait_for_runtime(&envoy, "2");
    assert_no_init_fetch_timeout(&envoy);
}

#[test]
fn runtime_is_followed_by_state_of_the_world() {
    runtime_is_followed(SOTW);
}

#[test]
fn runtime_is_followed_by_delta() {
    runtime_is_followed(DELTA);
}

/// A filter that ends every request with a status.
fn filter(status: u16) -> String {
    filter_of("ends", status)
}

pub(crate) fn filter_of(name: &str, status: u16) -> String {
    other(
        "envoy.config.core.v3.TypedExtensionConfig",
        &format!(
            r#"name: {name}, typed_config: {{"@type": type.googleapis.com/envoy.extensions.filters.http.fault.v3.HTTPFault, abort: {{http_status: {status}, percentage: {{numerator: 100}}}}}}"#
        ),
    )
}

/// How a listener names such a filter.
pub(crate) fn filter_by_name(name: &str) -> String {
    format!(
        "{{name: {name}, config_discovery: {{config_source: {ADS}, \
         type_urls: [type.googleapis.com/envoy.extensions.filters.http.fault.v3.HTTPFault]}}}}"
    )
}

/// If a filter that Envoy uses were removed, every request would fail.
fn filters_are_followed_and_never_removed(way: Way) {
    let by_name = filter_by_name("ends");
    let backend = Backend::start("any");
    let http = listener_of("http", &rds("r", ADS), &by_name);
    let site = Site::new(&[
        ("clusters.yaml", &[static_cluster("c", backend.address())]),
        ("http.yaml", &[http, route("r", "c")]),
        ("filter.yaml", &[filter(418)]),
    ]);
    let serving = site.serve();
    let envoy = Envoy::start(&way.bootstrap(serving.port));
    assert_eq!(status(&envoy, "http"), 418);
    site.write("filter.yaml", &[filter(419)]);
    wait_for_status(&envoy, "the changed filter", 419);

    site.remove("filter.yaml");
    let more = ["c", "d"].map(|name| static_cluster(name, backend.address()));
    site.write("clusters.yaml", &more);
    envoy.wait_for("another change", SOON, |envoy| {
        (envoy.active_clusters().len() == 2).then_some(())
    });
    site.write("filter.yaml", &[filter(420)]);
    wait_for_status(&envoy, "the filter that is back", 420);
    let sent = serving.journal.sent(0, kind::ECDS);
    assert!(sent.iter().all(|sent| sent.removed.is_empty()), "{sent:?}");
    assert_no_init_fetch_timeout(&envoy);
}

#[test]
fn s57_filters_are_followed_by_state_of_the_world() {
    filters_are_followed_and_never_removed(SOTW);
}

#[test]
fn s57_filters_are_followed_by_delta() {
    filters_are_followed_and_never_removed(DELTA);
}

/// A listener that has a default needs no negative answer.
fn a_missing_filter_with_a_default_holds_nothing_up(way: Way) {
    let fault = "type.googleapis.com/envoy.extensions.filters.http.fault.v3.HTTPFault";
    let by_name = format!(
        "{{name: ends, config_discovery: {{config_source: {ADS}, type_urls: [{fault}], \
         default_config: {{\"@type\": {fault}}}, apply_default_config_without_warming: true}}}}"
    );
    let backend = Backend::start("any");
    let http = listener_of("http", &rds("r", ADS), &by_name);
    let site = Site::new(&[
        ("clusters.yaml", &[static_cluster("c", backend.address())]),
        ("http.yaml", &[http, route("r", "c")]),
    ]);
    let serving = site.serve();
    let envoy = Envoy::start(&way.bootstrap(serving.port));
    assert_eq!(status(&envoy, "http"), 200);
    assert_no_init_fetch_timeout(&envoy);
    site.write("filter.yaml", &[filter(418)]);
    wait_for_status(&envoy, "the filter", 418);
}

#[test]
fn s35_a_missing_filter_with_a_default_by_state_of_the_world() {
    a_missing_filter_with_a_default_holds_nothing_up(SOTW);
}

#[test]
fn s35_a_missing_filter_with_a_default_by_delta() {
    a_missing_filter_with_a_default_holds_nothing_up(DELTA);
}
