//! The rules against Envoy's recorded rejections, and against themselves.

use super::{table, *};
use crate::{descriptor::pool, text::Options};

/// The violations of a file, as text.
fn wrong(yaml: &str) -> Vec<String> {
    let read = text::read("f.yaml", yaml, &Options::default());
    assert_eq!(read.errors, [], "{yaml}");
    let found = read.resources.iter().flat_map(text::Resource::validate);
    found.map(|e| e.to_string()).collect()
}

#[test]
fn every_rule_of_every_field_is_read() {
    let rules: usize = table::all().values().map(|m| m.fields.len()).sum();
    let oneofs: usize = table::all().values().map(|m| m.oneofs.len()).sum();
    assert_eq!(
        (rules, oneofs),
        (1195, 126),
        "another envoy-types? then say so here"
    );
    let fields = table::all().values().flat_map(|m| &m.fields);
    let empty = fields.filter(|(_, r)| r.check.is_none() && !r.required && !r.skip);
    let empty: Vec<_> = empty.map(|(f, _)| f.full_name()).collect();
    // The rule of this one is `required: false`.
    assert_eq!(
        empty,
        ["envoy.config.route.v3.VirtualHost.request_body_buffer_limit"]
    );
}

#[test]
fn every_pattern_compiles() {
    let extension = pool().get_extension_by_name("validate.rules").unwrap();
    let mut patterns = 0;
    for field in pool()
        .all_messages()
        .flat_map(|m| m.fields().collect::<Vec<_>>())
    {
        let options = field.options();
        let rules = options.get_extension(&extension);
        let strings = rules
            .as_message()
            .unwrap()
            .get_field_by_name("string")
            .unwrap();
        let pattern = strings
            .as_message()
            .unwrap()
            .get_field_by_name("pattern")
            .unwrap();
        let pattern = pattern.as_str().unwrap();
        regex::Regex::new(pattern).unwrap();
        patterns += usize::from(!pattern.is_empty());
    }
    assert_eq!(patterns, 11);
}

const CLUSTER: &str = "\"@type\": x/envoy.config.cluster.v3.Cluster\nname: c\n";

/// The bad resources of wire-facts II.3 that Envoy refused at protobuf level.
#[test]
fn s12_what_envoy_rejects_at_protobuf_level() {
    assert_eq!(
        wrong(&format!("{CLUSTER}connect_timeout: -1s")),
        ["f.yaml:3:1: connect_timeout: is -1s, must be greater than 0s"]
    );
    assert_eq!(
        wrong(
            "\"@type\": x/envoy.config.route.v3.RouteConfiguration\nvirtual_hosts:\n- name: v\n  domains: []"
        ),
        ["f.yaml:4:3: virtual_hosts[0].domains: has 0 items, must have at least 1"]
    );
    assert_eq!(
        wrong(
            "\"@type\": x/envoy.config.endpoint.v3.ClusterLoadAssignment\ncluster_name: c\nendpoints:\n- priority: 200"
        ),
        ["f.yaml:4:3: endpoints[0].priority: is 200, must be at most 128"]
    );
    assert_eq!(
        wrong(
            "\"@type\": x/envoy.config.listener.v3.Listener\nfilter_chains:\n- filters:\n  - name: \"\"\n    \
             typed_config: {\"@type\": x/envoy.extensions.filters.network.echo.v3.Echo}"
        ),
        ["f.yaml:4:5: filter_chains[0].filters[0].name: has 0 characters, must have at least 1"]
    );
}

#[test]
fn a_good_file_breaks_nothing() {
    assert_eq!(wrong(CLUSTER), Vec::<String>::new());
    assert_eq!(
        wrong(&format!("{CLUSTER}connect_timeout: 1s\nlb_policy: MAGLEV")),
        Vec::<String>::new()
    );
}

/// Each has a name, so neither needs the name of a header.
#[test]
fn a_cluster_that_is_named_needs_no_header_that_names_it() {
    let routes = |action: &str| {
        format!(
            "\"@type\": x/envoy.config.route.v3.RouteConfiguration\nvirtual_hosts:\n- name: v\n  \
             domains: [d]\n  routes: [{{match: {{prefix: /}}, route: {action}}}]"
        )
    };
    for action in [
        "{weighted_clusters: {clusters: [{name: a, weight: 1}]}}",
        "{cluster: a, request_mirror_policies: [{cluster: b}]}",
    ] {
        assert_eq!(wrong(&routes(action)), Vec::<String>::new(), "{action}");
    }
    assert_eq!(wrong(&routes("{cluster_header: ''}")).len(), 1);
}

#[test]
fn rules_hold_through_any_lists_maps_and_wrappers() {
    let found = wrong(
        r#"
"@type": type.googleapis.com/envoy.config.listener.v3.Listener
name: l
address: {socket_address: {address: "", port_value: 70000}}
filter_chains:
- filters:
  - name: hcm
    typed_config:
      "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
      common_http_protocol_options: {max_headers_count: 0}
      route_config:
        name: r
        virtual_hosts:
        - name: v
          domains: ["a\nb"]
          routes:
          - match: {prefix: /}
            route: {cluster: ""}
          - match: {}
            route: {cluster: c}
          request_headers_to_add: [{header: {key: ""}}, {}]
metadata: {filter_metadata: {"": {}}}
"#,
    );
    let expected = [
        "f.yaml:4:41: address.socket_address.port_value: is 70000, must be at most 65535",
        "f.yaml:4:28: address.socket_address.address: has 0 characters, must have at least 1",
        "f.yaml:8:5: filter_chains[0].filters[0].typed_config.stat_prefix: has 0 characters",
        "f.yaml:10:38: filter_chains[0].filters[0].typed_config.common_http_protocol_options.max_headers_count: is 0, must be at least 1",
        "virtual_hosts[0].domains[0]: is \"a\\nb\", must be a value of an HTTP header",
        "routes[0].route.cluster: has 0 characters",
        "routes[1].match: one of prefix, path, ",
        "request_headers_to_add[0].header.key: has 0 characters",
        "request_headers_to_add[1].header: is required and missing; set it",
        "metadata.filter_metadata[\"\"]: has 0 characters",
    ];
    for expected in expected {
        assert!(
            found.iter().any(|f| f.contains(expected)),
            "{expected} in {found:#?}"
        );
    }
}

#[test]
fn enums_outside_of_their_names() {
    let found = wrong(&format!("{CLUSTER}lb_policy: 77"));
    assert_eq!(found.len(), 1);
    assert!(
        found[0]
            .contains("lb_policy: is 77, which LbPolicy does not define; use one of ROUND_ROBIN,"),
        "{}",
        found[0]
    );
}

/// An unset field of a oneof breaks nothing.
#[test]
fn the_fields_of_a_oneof_that_are_not_set_break_nothing() {
    let found = wrong("\"@type\": x/envoy.type.matcher.v3.StringMatcher\nexact: a");
    assert_eq!(found, Vec::<String>::new());
    let found = wrong("\"@type\": x/envoy.type.matcher.v3.StringMatcher");
    assert!(
        found[0].contains("one of exact, prefix, suffix, safe_regex, contains, custom is required"),
        "{}",
        found[0]
    );
}

#[test]
fn bodies_that_cannot_be_read_are_violations() {
    use prost::Message;

    let mut cluster = crate::envoy::envoy::config::cluster::v3::Cluster {
        name: "c".into(),
        ..Default::default()
    };
    let any = crate::envoy::google::protobuf::Any {
        type_url: "t/envoy.config.cluster.v3.Cluster".into(),
        value: vec![0x0a, 0xff],
    };
    cluster
        .typed_extension_protocol_options
        .insert("k".into(), any);
    let body = cluster.encode_to_vec().into();
    let found = validate_bytes(descriptor::types::CLUSTER, &body).unwrap();
    assert!(matches!(
        found.as_slice(),
        [Violation {
            broken: Broken::Body { .. },
            ..
        }]
    ));
    assert_eq!(
        found[0].path.to_string(),
        "typed_extension_protocol_options[\"k\"]"
    );
    assert!(matches!(
        validate_bytes("x", &body),
        Err(ValidateError::UnknownType(_))
    ));
}

#[test]
fn violations_are_bounded() {
    let endpoints: String = (0..500).map(|_| "- priority: 200\n".to_owned()).collect();
    let text = format!(
        "\"@type\": x/envoy.config.endpoint.v3.ClusterLoadAssignment\ncluster_name: c\nendpoints:\n{endpoints}"
    );
    assert_eq!(wrong(&text).len(), MAX_VIOLATIONS);
}
