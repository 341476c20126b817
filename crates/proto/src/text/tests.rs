//! Reading and writing, and the places of mistakes.

use prost_reflect::ReflectMessage;

use super::*;
use crate::descriptor::types;

const HEAD: &str = "\
resources:
- \"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster
  name: c1
";

fn yaml(text: &str) -> Document {
    read("f.yaml", text, &Options::default())
}

/// The one mistake of a cluster whose further lines are `lines`.
fn mistake(lines: &str) -> String {
    let read = yaml(&format!("{HEAD}{lines}"));
    assert!(read.resources.is_empty(), "the resource is refused");
    let [error] = read.errors.as_slice() else {
        panic!("one mistake expected: {:#?}", read.errors);
    };
    error.to_string()
}

fn good(text: &str) -> Vec<Resource> {
    let read = yaml(text);
    assert_eq!(read.errors, [], "{text}");
    read.resources
}

#[test]
fn mistakes_name_file_line_column_field_and_fix() {
    let deep = "  load_assignment:
    cluster_name: c1
    endpoints:
    - lb_endpoints:
      - endpoint: {adress: {}}
";
    assert_eq!(
        mistake(deep),
        "f.yaml:8:20: resources[0].load_assignment.endpoints[0].lb_endpoints[0].endpoint: \
         unknown field \"adress\" in Endpoint, did you mean \"address\"?"
    );
    for (lines, expected) in [
        (
            "  type: EDZ",
            "f.yaml:4:9: resources[0].type: unknown value \"EDZ\" of DiscoveryType, did you mean \"EDS\"?",
        ),
        (
            "  load_assignment:\n  cluster_name: c1\n",
            "f.yaml:5:3: resources[0]: \"cluster_name\" is a field of \"load_assignment\", which has none; indent it deeper than that",
        ),
        (
            "  load_assignment:\n    endpoints:\n    - lb_endpoints:\n      - endpoint:\n        address: {}\n",
            "f.yaml:8:9: resources[0].load_assignment.endpoints[0].lb_endpoints[0]: \"address\" is a field of \"endpoint\", which has none; indent it deeper than that",
        ),
        (
            "  lb_policy: round-robin",
            "f.yaml:4:14: resources[0].lb_policy: unknown value \"round-robin\" of LbPolicy, did you mean \"ROUND_ROBIN\"?",
        ),
        (
            "  type: BANANA",
            "f.yaml:4:9: resources[0].type: unknown value \"BANANA\" of DiscoveryType; there are STATIC, STRICT_DNS, LOGICAL_DNS, EDS, ORIGINAL_DST",
        ),
        (
            "  connectTimout: 5s",
            "f.yaml:4:3: resources[0]: unknown field \"connectTimout\" in Cluster, did you mean \"connectTimeout\"?",
        ),
        (
            "  connect_timeout: 5",
            "f.yaml:4:20: resources[0].connect_timeout: expected a duration such as 0.25s or 30s, found the number 5",
        ),
        (
            "  alt_stat_name: 5",
            "f.yaml:4:18: resources[0].alt_stat_name: expected a string (put the value in quotes), found the number 5",
        ),
        (
            "  per_connection_buffer_limit_bytes: -1",
            "f.yaml:4:38: resources[0].per_connection_buffer_limit_bytes: -1 is not a valid uint32",
        ),
        (
            "  name: c2",
            "f.yaml:4:3: the key \"name\" occurs twice, first at 3:3; keep one",
        ),
        (
            "  lbPolicy: MAGLEV\n  lb_policy: MAGLEV",
            "f.yaml:5:3: resources[0]: the field \"lb_policy\" is given twice, in two spellings; keep one",
        ),
        (
            "  ring_hash_lb_config: {}\n  maglev_lb_config: {}",
            "f.yaml:5:3: resources[0]: only one of \"ring_hash_lb_config\" and \"maglev_lb_config\" may be set (both belong to \"lb_config\")",
        ),
        (
            "  alt_stat_name: no",
            "f.yaml:4:18: resources[0].alt_stat_name: expected a string (put the value in quotes: y, n, yes, no, on and off are booleans), found the boolean false",
        ),
        (
            "  filters: a",
            "f.yaml:4:12: resources[0].filters: expected a mapping (Filter), found the string \"a\"",
        ),
        (
            "  metadata: {filter_metadata: {a: 3}}",
            "f.yaml:4:35: resources[0].metadata.filter_metadata[\"a\"]: expected a mapping, found a number",
        ),
        (
            "  x: &a [*a]",
            "f.yaml:4:10: the alias refers to an anchor that is not complete before it",
        ),
        (
            "  transport_socket: {name: t, typed_config: {a: 1}}",
            "f.yaml:4:45: resources[0].transport_socket.typed_config: the key \"@type\" is missing; add \"@type\": type.googleapis.com/<message>",
        ),
        (
            "  transport_socket: {name: t, typed_config: {\"@type\": x/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContxt}}",
            "f.yaml:4:55: resources[0].transport_socket.typed_config: unknown type \"envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContxt\", did you mean \"envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext\"?",
        ),
        (
            "  transport_socket: {name: t, typed_config: {\"@type\": type.googleapis.com/envoy.api.v2.auth.UpstreamTlsContext}}",
            "f.yaml:4:55: resources[0].transport_socket.typed_config: unknown type \"envoy.api.v2.auth.UpstreamTlsContext\", did you mean \"envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext\"?",
        ),
        (
            "  transport_socket: {name: t, typed_config: {\"@type\": envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext}}",
            "f.yaml:4:55: resources[0].transport_socket.typed_config: a type has a slash before its name; write type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext",
        ),
        (
            "  transport_socket: {name: t, typed_config: {\"@type\": x/my.Socket, a: 1}}",
            "f.yaml:4:55: resources[0].transport_socket.typed_config: unknown type \"my.Socket\"; give its descriptors by --descriptors FILE, or its bytes in base64 as `value:`",
        ),
    ] {
        assert_eq!(mistake(lines), expected);
    }
    for name in [
        "envoy.api.v2.Cluster",
        "Cluster",
        "envoy.config.cluster.v4.Cluster",
    ] {
        assert_eq!(
            yaml(&format!(
                "{{\"@type\": type.googleapis.com/{name}, name: a}}"
            ))
            .errors[0]
                .to_string(),
            format!(
                "f.yaml:1:11: unknown type {name:?}, did you mean \"envoy.config.cluster.v3.Cluster\"?"
            ),
        );
    }
    assert_eq!(
        yaml("a: [").errors[0].path,
        "",
        "a text that is no YAML has no fields"
    );
}

#[test]
fn good_resources_and_mistakes_travel_together() {
    let mixed = yaml(&format!(
        "{HEAD}  bananas: 1\n  type: EDZ\n- \"@type\": a/envoy.config.cluster.v3.Cluster\n  name: c2\n- 5\n"
    ));
    assert_eq!(mixed.resources.len(), 1);
    assert_eq!(mixed.resources[0].path.to_string(), "resources[1]");
    assert_eq!(mixed.errors.len(), 3);

    let options = Options {
        unknown: Unknown::Warn,
        ..Options::default()
    };
    let read = read("f.yaml", &format!("{HEAD}  bananas: 1\n"), &options);
    assert_eq!((read.resources.len(), read.errors.len()), (1, 0));
    assert_eq!(
        read.warnings[0].to_string(),
        "f.yaml:4:3: resources[0]: unknown field \"bananas\" in Cluster"
    );
}

const EVERYTHING: &str = r#"
version_info: "7"
resources:
- name: l1
  "@type": type.googleapis.com/envoy.config.listener.v3.Listener
  address: {socketAddress: {address: 127.0.0.1, portValue: 0x50}}
  per_connection_buffer_limit_bytes: 1e3
  metadata:
    filter_metadata:
      b: {list: [1, two, null, true, {x: -1.5}], s: "1"}
      a: {}
  traffic_direction: 2
  filter_chains:
  - filters:
    - name: hcm
      typed_config:
        stat_prefix: s
        route_config:
          name: r
          virtual_hosts:
          - name: v
            domains: ["*"]
            routes:
            - match: {prefix: "/"}
              route: {cluster: c, timeout: 0.250s, max_stream_duration: {max_stream_duration: 1s}}
              typed_per_filter_config:
                z: {"@type": type.googleapis.com/google.protobuf.StringValue, value: hello}
                y: {"@type": type.googleapis.com/google.protobuf.Duration, value: 3s}
                x: {"@type": type.googleapis.com/google.protobuf.Empty}
                w: {"@type": type.googleapis.com/not.known.Here, value: AQID}
        http_filters: [{name: r, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}}]
        "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
"#;

/// Text, message, text again: nothing is lost, in either language.
#[test]
fn what_is_written_reads_back() {
    let [first] = good(EVERYTHING).try_into().unwrap();
    let pairs = [(first.type_url.as_str(), &first.message)];
    let (as_yaml, as_json) = (to_yaml(pairs), to_json(pairs));
    for (file, text) in [("a.yaml", &as_yaml), ("a.json", &as_json)] {
        let again = read(file, text, &Options::default());
        assert_eq!(again.errors, [], "{text}");
        assert!(again.resources[0].message == first.message, "{text}");
        assert_eq!(again.resources[0].body, first.body);
    }
    // JSON is YAML too.
    assert_eq!(good(&as_json)[0].body, first.body);
    assert!(
        as_yaml.contains("  traffic_direction: OUTBOUND\n"),
        "{as_yaml}"
    );
    assert!(as_yaml.contains("timeout: \"0.25s\""), "{as_yaml}");
}

/// The same message, read by the typed messages of `envoy-types`.
#[test]
fn the_typed_messages_read_the_same() {
    use envoy_types::pb::envoy::config::{core::v3::address::Address, listener::v3::Listener};
    use prost::Message;

    let [read] = good(EVERYTHING).try_into().unwrap();
    let listener = Listener::decode(read.body.clone()).unwrap();
    assert_eq!(listener.name, "l1");
    assert_eq!(
        listener.per_connection_buffer_limit_bytes.unwrap().value,
        1000
    );
    assert_eq!(listener.traffic_direction, 2);
    let Some(Address::SocketAddress(socket)) = listener.address.unwrap().address else {
        panic!("a socket address was written");
    };
    assert_eq!(socket.address, "127.0.0.1");
    let config = listener.filter_chains[0].filters[0].config_type.clone();
    assert!(format!("{config:?}").contains("HttpConnectionManager"));
}

#[test]
fn a_resource_alone_and_in_a_wrapper() {
    let alone = good("\"@type\": x/envoy.config.cluster.v3.Cluster\nname: c\n");
    assert_eq!(alone[0].wrapper, Default::default());
    assert_eq!(alone[0].path.to_string(), "");

    let text = r#"
resources:
- "@type": type.googleapis.com/envoy.service.discovery.v3.Resource
  name: v1
  version: "4"
  ttl: 30s
  aliases: [r/a.com]
  resource_name: {name: v1, dynamic_parameter_constraints: {constraint: {key: env, value: prod}}}
  resource:
    "@type": type.googleapis.com/envoy.config.route.v3.VirtualHost
    name: v1
    domains: [a.com]
"#;
    let [wrapped] = good(text).try_into().unwrap();
    assert_eq!(wrapped.type_url, types::VIRTUAL_HOST);
    assert_eq!(wrapped.path.to_string(), "resources[0].resource");
    assert_eq!(wrapped.wrapper.name, "v1");
    assert_eq!(wrapped.wrapper.ttl.unwrap().seconds, 30);
    assert_eq!(wrapped.wrapper.aliases, ["r/a.com"]);
    assert!(
        wrapped
            .wrapper
            .resource_name
            .unwrap()
            .dynamic_parameter_constraints
            .is_some()
    );
}

/// C++ and Python write an `Empty` in an `Any` without a value, Go with one.
#[test]
fn an_empty_body_is_read_either_way_and_written_without() {
    let body = |inner: &str| {
        let text = format!(
            "\"@type\": x/envoy.config.core.v3.TypedExtensionConfig\nname: e\ntyped_config: {{\"@type\": x/google.protobuf.Empty{inner}}}"
        );
        good(&text)[0].body.clone()
    };
    assert_eq!(body(""), body(", value: {}"));
    let [read] = good("\"@type\": x/envoy.config.core.v3.TypedExtensionConfig\ntyped_config: {\"@type\": x/google.protobuf.Empty}").try_into().unwrap();
    let json = to_node(&read.message, None).to_json();
    assert!(!json.contains("value"), "{json}");
}

#[test]
fn the_place_of_a_field_is_known_afterwards() {
    let [read] = good(EVERYTHING).try_into().unwrap();
    let of = read.message.descriptor();
    let mut path = crate::Path::default();
    path.push(crate::Step::Field(of.get_field_by_name("address").unwrap()));
    assert_eq!(read.position(&path).to_string(), "6:3");
    let address = of
        .parent_pool()
        .get_message_by_name("envoy.config.core.v3.Address")
        .unwrap();
    let socket = address.get_field_by_name("socket_address").unwrap();
    path.push(crate::Step::Field(socket));
    assert_eq!(
        read.position(&path).to_string(),
        "6:13",
        "camelCase in the file"
    );
    path.push(crate::Step::Field(of.get_field_by_name("name").unwrap()));
    assert_eq!(
        read.position(&path).to_string(),
        "6:13",
        "not written: what is around it"
    );
}

#[test]
fn anchors_and_merge_keys_are_expanded() {
    let read = good(
        r#"
"@type": x/envoy.config.cluster.v3.Cluster
name: c
health_checks:
- &hc {timeout: 1s, interval: 2s, unhealthy_threshold: 1, healthy_threshold: 1, tcp_health_check: {}}
- *hc
- <<: *hc
  interval: 9s
- {<<: [{timeout: 7s}, *hc]}
"#,
    );
    let node = to_node(&read[0].message, None);
    let Value::List(checks) = &node.get("health_checks").unwrap().node.value else {
        panic!("a list was written");
    };
    assert_eq!(checks[0], checks[1]);
    let field = |check: &Node, name| check.get(name).unwrap().node.value.clone();
    assert_eq!(field(&checks[2], "interval"), Value::String("9s".into()));
    assert_eq!(field(&checks[2], "timeout"), Value::String("1s".into()));
    assert_eq!(field(&checks[3], "timeout"), Value::String("7s".into()));
}

#[test]
fn bombs_are_refused() {
    let mut laughs = String::from("a0: &a0 [lol, lol]\n");
    for level in 1..40 {
        laughs += &format!("a{level}: &a{level} [*a{0}, *a{0}]\n", level - 1);
    }
    let problem = |text: &str| yaml(text).errors[0].problem.clone();
    assert!(matches!(problem(&laughs), Problem::TooManyAliases { .. }));

    let deep = "[".repeat(5_000);
    assert!(matches!(
        problem(&deep[..200]),
        Problem::TooDeep { max: 100 }
    ));
    assert!(
        matches!(problem(&deep), Problem::Slip(Slip::Bracket('['))),
        "the scanner has a limit too, and none of them is closed"
    );
    let block: String = (0..5_000).map(|i| " ".repeat(i) + "a:\n").collect();
    assert!(matches!(problem(&block), Problem::TooDeep { max: 100 }));
    let json = read("a.json", &deep, &Options::default());
    assert!(matches!(
        json.errors[0].problem,
        Problem::TooDeep { max: 100 }
    ));

    let mut nested = "&a [x]".to_owned();
    for _ in 0..90 {
        nested = format!("[{nested}]");
    }
    let text = format!("a: {nested}\nb: {}*a{}", "[".repeat(99), "]".repeat(99));
    assert!(matches!(problem(&text), Problem::TooDeep { max: 100 }));

    let limits = Limits {
        bytes: 10,
        ..Limits::default()
    };
    let options = Options {
        limits,
        ..Options::default()
    };
    let long = read("a.yaml", &" ".repeat(11), &options);
    assert!(matches!(
        long.errors[0].problem,
        Problem::TooLong { len: 11, max: 10 }
    ));
}

#[test]
fn json_has_its_own_reader() {
    let text = "{\"@type\":\"x/envoy.config.cluster.v3.Cluster\",\t\"name\":\"\\ud83d\\ude00\\n\"}";
    let json = read("a.json", text, &Options::default());
    assert_eq!(json.errors, []);
    let name = json.resources[0].message.get_field_by_name("name").unwrap();
    assert_eq!(name.as_str(), Some("\u{1f600}\n"));

    for (text, expected) in [
        ("{", "a.json:1:1: this { is not closed; add the }"),
        (
            "{\"a\": tru}",
            "a.json:1:7: cannot be read: expected a value, found 't'",
        ),
        (
            "{\"a\":1,\n \"a\":2}",
            "a.json:2:2: the key \"a\" occurs twice, first at 1:2; keep one",
        ),
        (
            "{} {}",
            "a.json:1:4: cannot be read: expected the end of the text, found '{'",
        ),
        (
            "\"\\ud83d\"",
            "a.json:1:8: cannot be read: expected '\\\\', found '\"'",
        ),
        (
            "[01]",
            "a.json:1:3: cannot be read: expected a number without a leading zero, found '1'",
        ),
    ] {
        let read = read("a.json", text, &Options::default());
        assert_eq!(read.errors[0].to_string(), expected);
    }
}

#[test]
fn several_documents_may_stand_in_one_file() {
    let one = "\"@type\": x/envoy.config.cluster.v3.Cluster\nname: c\n";
    assert_eq!(good(&format!("---\n{one}---\n{one}---\n")).len(), 2);
    assert_eq!(good("").len(), 0);
    assert_eq!(good("resources: []").len(), 0);
}

proptest::proptest! {
    #[test]
    fn arbitrary_text_never_panics(text in "[-a-z0-9:{}\\[\\]\"'&*<#@|>!%?, \t\n\\\\é]{0,80}") {
        let _ = read("a.yaml", &text, &Options::default());
        let _ = read("a.json", &text, &Options::default());
    }

    /// Every string survives being written, in both languages.
    #[test]
    fn every_string_survives(text in "\\PC{0,20}|[\\x00-\\x7f]{0,12}|(yes|no|on|null|~|1e3|0x10|\\.inf| a|a |- a|a: b|#a)") {
        let mut message = prost_reflect::DynamicMessage::new(crate::descriptor::message(types::CLUSTER).unwrap());
        message.set_field_by_name("name", prost_reflect::Value::String(text.clone()));
        for (file, out) in [("a.yaml", to_yaml([(types::CLUSTER, &message)])), ("a.json", to_json([(types::CLUSTER, &message)]))] {
            let again = read(file, &out, &Options::default());
            proptest::prop_assert_eq!(&again.errors, &[]);
            let name = again.resources[0].message.get_field_by_name("name").unwrap();
            proptest::prop_assert_eq!(name.as_str(), Some(text.as_str()), "{}", out);
        }
    }
}

#[test]
fn an_alias_costs_what_it_copies() {
    let limits = Limits {
        bytes: 1 << 16,
        ..Limits::default()
    };
    let long = "x".repeat(10_000);
    let text = format!("a: &a {long}\nb: [{}]", "*a,".repeat(10));
    let error = parse(Format::Yaml, "a", &text, &limits).unwrap_err();
    assert_eq!(error.problem, Problem::LongAliases { max: 1 << 16 });
    assert_eq!(error.at.line, 2);
}

#[test]
fn a_merge_of_many_mappings_keeps_the_first_of_each_key() {
    let merged: String = (0..20_000).map(|n| format!("{{k{n}: {n}}},")).collect();
    let text = format!("a: {{<<: [{merged} {{k0: last}}], own: 1}}");
    let read = parse(Format::Yaml, "a", &text, &Limits::default()).unwrap();
    let Value::Map(root) = &read[0].value else {
        panic!("a mapping")
    };
    let Value::Map(entries) = &root[0].node.value else {
        panic!("a mapping")
    };
    assert_eq!(entries.len(), 20_001);
    assert_eq!(entries[1].node.value, Value::Number("0".into()));
}
