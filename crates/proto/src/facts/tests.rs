//! References, by an example of each type.

use super::*;
use crate::text::{self, Options};

fn facts(yaml: &str) -> Facts {
    let read = text::read("f.yaml", yaml, &Options::default());
    assert_eq!(read.errors, [], "{yaml}");
    let resource = &read.resources[0];
    let facts = of(&resource.type_url, &resource.body).unwrap();
    assert_eq!(of_message(&resource.message).unwrap(), facts);
    facts
}

/// References in short: `cluster c`, `secret s`.
fn references(yaml: &str) -> Vec<String> {
    let short = |(url, name): (&str, String)| {
        let kind = url.rsplit('.').next().unwrap().to_owned();
        format!("{kind} {name}")
    };
    facts(yaml).references.into_iter().map(short).collect()
}

const HCM: &str = "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager";
const TLS: &str = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3";

#[test]
fn a_cluster_refers_to_endpoints_secrets_and_children() {
    let head = "\"@type\": x/envoy.config.cluster.v3.Cluster\nname: c\n";
    let eds = "eds_cluster_config: {eds_config: {ads: {}}";
    assert_eq!(
        references(&format!("{head}type: EDS\n{eds}}}")),
        ["ClusterLoadAssignment c"]
    );
    let service = format!("{head}type: EDS\n{eds}, service_name: s}}");
    assert_eq!(references(&service), ["ClusterLoadAssignment s"]);
    assert_eq!(
        references(&format!("{head}type: STATIC\n{eds}}}")),
        Vec::<String>::new()
    );
    assert_eq!(
        references(&format!("{head}type: EDS")),
        ["ClusterLoadAssignment c"]
    );
    let file = "type: EDS\neds_cluster_config: {eds_config: {path_config_source: {path: /x}}}";
    assert_eq!(references(&format!("{head}{file}")), Vec::<String>::new());

    let tls = format!(
        r#"{head}
transport_socket:
  name: tls
  typed_config:
    "@type": {TLS}.UpstreamTlsContext
    common_tls_context:
      tls_certificate_sds_secret_configs:
      - {{name: cert, sds_config: {{ads: {{}}}}}}
      - {{name: static}}
      combined_validation_context:
        default_validation_context: {{}}
        validation_context_sds_secret_config: {{name: ca, sds_config: {{ads: {{}}}}}}
"#
    );
    assert_eq!(references(&tls), ["Secret ca", "Secret cert"]);

    let aggregate = format!(
        "{head}cluster_type: {{name: a, typed_config: {{\"@type\": x/envoy.extensions.clusters.aggregate.v3.ClusterConfig, clusters: [b, a, b]}}}}"
    );
    assert_eq!(references(&aggregate), ["Cluster a", "Cluster b"]);
}

const ROUTES: &str = r"
      - {match: {prefix: /a}, route: {cluster: c1, request_mirror_policies: [{cluster: m1}]}}
      - {match: {prefix: /b}, route: {weighted_clusters: {clusters: [{name: w2, weight: 1}, {name: w1, weight: 1}]}}}
      - {match: {prefix: /c}, route: {cluster_header: x-cluster}}
      - {match: {prefix: /d}, redirect: {host_redirect: z}}
";

#[test]
fn routes_refer_to_clusters() {
    let clusters = ["Cluster c1", "Cluster m1", "Cluster w1", "Cluster w2"];
    let host = format!(
        "\"@type\": x/envoy.config.route.v3.VirtualHost\nname: r/v\ndomains: [b.com, a.com]\nroutes:{ROUTES}"
    );
    assert_eq!(references(&host), clusters);
    let host = facts(&host);
    assert_eq!(host.name.as_deref(), Some("r/v"));
    assert_eq!(host.domains, ["b.com", "a.com"]);

    let routes = format!(
        "\"@type\": x/envoy.config.route.v3.RouteConfiguration\nname: r\nrequest_mirror_policies: [{{cluster: m0}}]\nvirtual_hosts:\n- name: v\n  domains: [a]\n  routes:{ROUTES}"
    );
    assert_eq!(
        references(&routes),
        [
            "Cluster c1",
            "Cluster m0",
            "Cluster m1",
            "Cluster w1",
            "Cluster w2"
        ]
    );
    assert_eq!(facts(&routes).vhds, None);
    assert!(facts(&routes).domains.is_empty());
    let vhds = format!("{routes}\nvhds: {{config_source: {{ads: {{}}}}}}");
    let other = vhds.replace("ads: {}", "path: x");
    assert_ne!(facts(&vhds).vhds, None);
    assert_ne!(facts(&vhds).vhds, facts(&other).vhds);

    let scoped = "\"@type\": x/envoy.config.route.v3.ScopedRouteConfiguration\nname: s\nroute_configuration_name: r\nkey: {fragments: [{string_key: a}]}";
    assert_eq!(references(scoped), ["RouteConfiguration r"]);
}

#[test]
fn s76_route_configurations_inside_a_listener_that_leave_hosts_to_vhds_are_known() {
    let listener = |source: &str| {
        format!(
            "\"@type\": x/envoy.config.listener.v3.Listener\nname: l\nfilter_chains:\n- filters:\n  - name: hcm\n    typed_config: {{\"@type\": {HCM}, stat_prefix: s, route_config: {{name: inside, vhds: {{config_source: {source}}}}}}}"
        )
    };
    assert_eq!(facts(&listener("{ads: {}}")).leaves, ["inside"]);
    assert!(facts(&listener("{path: x}")).leaves.is_empty());
    let routes = "\"@type\": x/envoy.config.route.v3.RouteConfiguration\nname: r\nvhds: {config_source: {ads: {}}}";
    assert!(facts(routes).leaves.is_empty(), "it is not inside anything");
}

#[test]
fn a_listener_refers_to_everything_behind_it() {
    let hcm = |more: &str| {
        format!("{{name: hcm, typed_config: {{\"@type\": {HCM}, stat_prefix: s, {more}}}}}")
    };
    let rds = |name: &str| {
        hcm(&format!(
            "rds: {{route_config_name: {name}, config_source: {{ads: {{}}}}}}"
        ))
    };
    let listener = format!(
        r#"
"@type": type.googleapis.com/envoy.config.listener.v3.Listener
name: l
filter_chains:
- filters: [{}]
  transport_socket:
    name: tls
    typed_config:
      "@type": {TLS}.DownstreamTlsContext
      common_tls_context:
        tls_certificate_sds_secret_configs: [{{name: cert, sds_config: {{ads: {{}}}}}}]
- filters: [{}]
- filters:
  - name: tcp
    typed_config:
      "@type": type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy
      stat_prefix: t
      weighted_clusters: {{clusters: [{{name: t2, weight: 1}}]}}
- filters:
  - name: ecds-net
    config_discovery: {{config_source: {{ads: {{}}}}, type_urls: [a]}}
default_filter_chain:
  filters: [{}]
"#,
        rds("r1"),
        hcm(
            "http_filters: [{name: ecds-http, config_discovery: {config_source: {ads: {}}, type_urls: [a]}}], route_config: {virtual_hosts: [{name: v, domains: [a], routes: [{match: {prefix: /}, route: {cluster: inline}}]}]}"
        ),
        hcm(
            "scoped_routes: {name: s, scope_key_builder: {}, rds_config_source: {ads: {}}, scoped_rds: {scoped_rds_config_source: {ads: {}}}}"
        ),
    );
    assert_eq!(
        references(&listener),
        [
            "Cluster inline",
            "Cluster t2",
            "TypedExtensionConfig ecds-http",
            "TypedExtensionConfig ecds-net",
            "RouteConfiguration r1",
            "ScopedRouteConfiguration *",
            "Secret cert",
        ]
    );
    let api = format!(
        "\"@type\": x/envoy.config.listener.v3.Listener\nname: l\napi_listener: {{api_listener: {{\"@type\": {HCM}, rds: {{route_config_name: api, config_source: {{self: {{}}}}}}}}}}"
    );
    assert_eq!(references(&api), ["RouteConfiguration api"]);
    let file = format!(
        "\"@type\": x/envoy.config.listener.v3.Listener\nname: l\napi_listener: {{api_listener: {{\"@type\": {HCM}, rds: {{route_config_name: api, config_source: {{path: /x}}}}}}}}"
    );
    assert_eq!(references(&file), Vec::<String>::new());
}

#[test]
fn every_kind_has_its_name() {
    for (message, field) in [
        ("config.endpoint.v3.ClusterLoadAssignment", "cluster_name"),
        ("extensions.transport_sockets.tls.v3.Secret", "name"),
        ("service.runtime.v3.Runtime", "name"),
        ("config.core.v3.TypedExtensionConfig", "name"),
    ] {
        let yaml = format!("\"@type\": x/envoy.{message}\n{field}: a");
        assert_eq!(facts(&yaml).name.as_deref(), Some("a"), "{message}");
    }
    assert_eq!(
        facts("\"@type\": x/envoy.config.endpoint.v3.LbEndpoint").name,
        None
    );
    assert_eq!(
        of("not.known.Here", &Bytes::from_static(b"\xff")),
        Ok(Facts::default())
    );
    let bad = of(types::CLUSTER, &Bytes::from_static(b"\x0a\xff"));
    assert!(matches!(bad, Err(FactsError::Malformed { .. })));
}

proptest::proptest! {
    #[test]
    fn arbitrary_bodies_never_panic(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200)) {
        let body = Bytes::from(bytes);
        for url in types::ALL {
            let _ = of(url, &body);
            let _ = canonical::canonicalize(url, &body);
            let _ = crate::validate::validate_bytes(url, &body);
        }
    }
}

/// Whether a resource holds secrets, and keys, by the descriptors; the quick
/// look has to leave it to them.
fn secrets(yaml: &str) -> (bool, bool) {
    let read = text::read("a.yaml", yaml, &Options::default());
    assert_eq!(read.errors, []);
    let resource = &read.resources[0];
    let facts = of_message(&resource.message).unwrap();
    if let Some(quick) = crate::quick::look(&resource.type_url, &resource.body) {
        assert_eq!(quick, facts);
    }
    (facts.holds_secrets, facts.holds_keys)
}

#[test]
fn keys_and_other_secrets_of_a_resource_are_known() {
    let tls = |key: &str| {
        secrets(&format!(
            r#"
"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
name: c
transport_socket:
  name: tls
  typed_config:
    "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext
    common_tls_context: {{tls_certificates: [{{private_key: {key}}}]}}
"#
        ))
    };
    assert_eq!(tls("{inline_string: swordfish}"), (true, true));
    assert_eq!(tls("{inline_bytes: c3dvcmRmaXNo}"), (true, true));
    assert_eq!(tls("{filename: /key.pem}"), (false, false));

    let host = |rest: &str| {
        secrets(&format!(
            r#"
"@type": type.googleapis.com/envoy.config.route.v3.VirtualHost
name: v
domains: [d]
{rest}
"#
        ))
    };
    let header = |name: &str, value: &str| {
        host(&format!(
            "request_headers_to_add: [{{header: {{key: {name}, value: {value}}}}}]"
        ))
    };
    assert_eq!(header("authorization", "swordfish"), (true, false));
    assert_eq!(header("x-a", "Bearer swordfish"), (true, false));
    assert_eq!(header("x-a", "swordfish"), (false, false));
    let metadata = |values: &str| host(&format!("metadata: {{filter_metadata: {{m: {values}}}}}"));
    assert_eq!(metadata("{a: {token: x}}"), (true, false));
    assert_eq!(metadata("{a: Bearer x}"), (true, false));
    assert_eq!(metadata("{a: 1, b: true, c: [x]}"), (false, false));
}

#[test]
fn a_key_in_a_typed_struct_is_known() {
    let listener = |key: &str| {
        secrets(&format!(
            r#"
"@type": type.googleapis.com/envoy.config.listener.v3.Listener
name: l
address: {{socket_address: {{address: 127.0.0.1, port_value: 80}}}}
filter_chains:
- transport_socket:
    name: tls
    typed_config:
      "@type": type.googleapis.com/xds.type.v3.TypedStruct
      type_url: type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext
      value: {{common_tls_context: {{tls_certificates: [{{private_key: {key}}}]}}}}
"#
        ))
    };
    assert_eq!(listener("{inline_string: swordfish}"), (true, true));
}
