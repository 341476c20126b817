//! Conditions in all places, allowed and not.

use super::*;
use crate::{canonical, text};

fn read(text: &str) -> DynamicMessage {
    let mut read = text::read("f.yaml", text, &text::Options::default());
    assert_eq!(read.errors, [], "{text}");
    read.resources.remove(0).message
}

fn when(condition: &str) -> String {
    format!("metadata: {{filter_metadata: {{trunkline: {{when: {condition}}}}}}}")
}

fn found(message: &DynamicMessage) -> Vec<String> {
    let all = find(message).unwrap().into_iter();
    all.map(|one| format!("{} {} {}", one.path, one.text, one.whole))
        .collect()
}

fn endpoints() -> String {
    format!(
        "\"@type\": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment\n\
         cluster_name: e\n\
         endpoints:\n\
         - {}\n\
         \x20 lb_endpoints: [{{endpoint_name: a}}, {{endpoint_name: b, {}}}]\n\
         - lb_endpoints: [{{endpoint_name: c}}]\n",
        when("zone=x"),
        when("env=prod"),
    )
}

#[test]
fn conditions_are_found_in_parts_of_parts() {
    const MARK: &str = ".metadata.filter_metadata[\"trunkline\"][\"when\"]";
    assert_eq!(
        found(&read(&endpoints())),
        [
            format!("endpoints[0]{MARK} zone=x false"),
            format!("endpoints[0].lb_endpoints[1]{MARK} env=prod false"),
        ]
    );
}

#[test]
fn what_stays_has_no_trace_of_a_condition() {
    let message = read(&endpoints());
    let kept = |holds: &[&str]| {
        let kept = keep(&message, &|text| holds.contains(&text)).unwrap();
        let bytes = canonical::encode(&kept).unwrap();
        assert!(!mentions(&bytes));
        text::to_node(&kept, None).to_json()
    };
    assert!(mentions(&canonical::encode(&message).unwrap()));
    let all = kept(&["zone=x", "env=prod"]);
    assert!(all.contains("\"a\"") && all.contains("\"b\"") && all.contains("\"c\""));
    assert!(!all.contains("metadata"), "{all}");
    assert!(!kept(&["zone=x"]).contains("\"b\""));
    let without = kept(&["env=prod"]);
    assert!(
        !without.contains("\"a\"") && without.contains("\"c\""),
        "{without}"
    );
}

#[test]
fn what_else_is_said_stays() {
    let message = read(
        "\"@type\": type.googleapis.com/envoy.config.route.v3.VirtualHost\nname: r/v\n\
         domains: [d]\nmetadata: {filter_metadata: {trunkline: {when: a=1, base_sets: [b]}, x: {}}}",
    );
    assert!(find(&message).unwrap()[0].whole);
    let kept = keep(&message, &|_| false).unwrap();
    let json = text::to_node(&kept, None).to_json();
    assert!(
        json.contains("base_sets") && json.contains("\"x\""),
        "{json}"
    );
    assert!(!json.contains("when"), "{json}");
}

#[test]
fn a_body_inside_a_body_has_parts_too() {
    let message = read(&format!(
        "\"@type\": type.googleapis.com/envoy.config.listener.v3.Listener\nname: l\n\
         filter_chains:\n- filters:\n  - name: hcm\n    typed_config:\n      \
         \"@type\": type.googleapis.com/envoy.extensions.filters.network.\
         http_connection_manager.v3.HttpConnectionManager\n      \
         stat_prefix: s\n      route_config:\n        virtual_hosts:\n        \
         - {{name: v, domains: [d], {}}}\n",
        when("a=1")
    ));
    let found = found(&message);
    assert!(
        found[0].starts_with(
            "filter_chains[0].filters[0].typed_config.route_config.virtual_hosts[0].metadata"
        ),
        "{found:?}"
    );
    let with = canonical::encode(&keep(&message, &|_| true).unwrap()).unwrap();
    let without = canonical::encode(&keep(&message, &|_| false).unwrap()).unwrap();
    assert!(!mentions(&with) && without.len() < with.len());
}

#[test]
fn what_means_nothing_is_a_mistake_with_its_place() {
    let host = |metadata: &str| {
        let host = format!(
            "\"@type\": type.googleapis.com/envoy.config.route.v3.VirtualHost\nname: r/v\n\
             domains: [d]\nmetadata: {{filter_metadata: {{trunkline: {{{metadata}}}}}}}"
        );
        find(&read(&host)).unwrap_err().to_string()
    };
    let mark = "metadata.filter_metadata[\"trunkline\"]";
    assert_eq!(
        host("wen: a=1"),
        format!(
            "{mark}[\"wen\"]: unknown key \"wen\", did you mean \"when\"?; \
             known are: when, base_sets"
        )
    );
    for wrong in ["1", "[a]", "{}", "null", "true"] {
        let said = host(&format!("when: {wrong}"));
        assert!(
            said.starts_with(&format!("{mark}[\"when\"]: a condition must be")),
            "{said}"
        );
    }
    // A part that is no item of a list cannot be left out.
    let inner = read(&format!(
        "\"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster\nname: c\n\
         load_assignment:\n  cluster_name: c\n\
         typed_extension_protocol_options:\n  x:\n    \
         \"@type\": type.googleapis.com/envoy.config.route.v3.Route\n    {}\n",
        when("a=1")
    ));
    let error = find(&inner).unwrap_err();
    assert_eq!(error.problem, ConditionProblem::Misplaced);
    let path = error.path.to_string();
    assert!(
        path.starts_with("typed_extension_protocol_options[\"x\"].metadata"),
        "{path}"
    );
}
