//! Envoy's bootstrap.

use std::time::Duration;

use trunkline::Name;
use trunkline::client::{Bootstrap, RateLimit, Specifier};

use super::{api, mistakes};

/// A bootstrap with these fields of `dynamic_resources`, and a cluster `xds`.
fn with(dynamic: &str, more: &str) -> String {
    format!(
        "\
node: {{id: n1, cluster: c}}
dynamic_resources: {{{dynamic}}}
static_resources:
  clusters:
  - name: xds
    type: STATIC
    typed_extension_protocol_options:
      envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
        \"@type\": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
        explicit_http_config: {{http2_protocol_options: {{}}}}
    load_assignment:
      cluster_name: xds
      endpoints:
      - lb_endpoints:
        - endpoint: {{address: {{socket_address: {{address: 127.0.0.1, port_value: 1}}}}}}
{more}"
    )
}

/// The configuration of an aggregated stream, with these fields.
fn ads(fields: &str) -> String {
    format!(
        "ads_config: {{api_type: GRPC, transport_api_version: V3, \
         grpc_services: [{{envoy_grpc: {{cluster_name: xds}}}}]{fields}}}"
    )
}

fn read(text: &str) -> Bootstrap {
    Bootstrap::from_envoy("b.yaml", text).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn e2_a_first_fetch_has_a_time_out_unless_it_is_zero() {
    let timeout = |field: &str| {
        let lds = format!("{}, lds_config: {{ads: {{}}{field}}}", ads(""));
        read(&with(&lds, "")).lds.unwrap().initial_fetch_timeout
    };
    assert_eq!(timeout(""), Some(Duration::from_secs(15)));
    assert_eq!(
        timeout(", initial_fetch_timeout: 2.5s"),
        Some(Duration::from_millis(2500))
    );
    assert_eq!(timeout(", initial_fetch_timeout: 0s"), None);
}

#[test]
fn requests_have_a_limit_if_it_says_so() {
    let limit = |field: &str| {
        let bootstrap = read(&with(&ads(field), ""));
        api(bootstrap.ads.as_ref()).rate_limit
    };
    assert_eq!(limit(""), None);
    assert_eq!(
        limit(", rate_limit_settings: {}"),
        Some(RateLimit::default())
    );
    let own = RateLimit {
        max_tokens: 5,
        token_time: Duration::from_secs(2),
    };
    let set = ", rate_limit_settings: {max_tokens: 5, fill_rate: 0.5}";
    assert_eq!(limit(set), Some(own));
}

#[test]
fn e7_the_longest_wait_is_ten_times_the_first() {
    let waits = |policy: &str| {
        let grpc = format!("{{cluster_name: xds, retry_policy: {{retry_back_off: {policy}}}}}");
        let ads = format!(
            "ads_config: {{api_type: GRPC, transport_api_version: V3, \
             grpc_services: [{{envoy_grpc: {grpc}}}]}}"
        );
        let bootstrap = read(&with(&ads, ""));
        let backoff = api(bootstrap.ads.as_ref()).backoff;
        (backoff.base.as_millis(), backoff.max.as_millis())
    };
    assert_eq!(waits("{base_interval: 0.1s}"), (100, 1000));
    assert_eq!(
        waits("{base_interval: 0.1s, max_interval: 5s}"),
        (100, 5000)
    );
}

#[test]
fn several_services_are_servers_in_their_order() {
    let ads = "ads_config: {api_type: DELTA_GRPC, transport_api_version: V3, grpc_services: \
        [{envoy_grpc: {cluster_name: xds}}, {google_grpc: {target_uri: 'b:2', stat_prefix: s}}]}";
    let bootstrap = read(&with(ads, ""));
    let servers = &api(bootstrap.ads.as_ref()).servers;
    let hosts: Vec<_> = servers
        .iter()
        .map(|server| format!("{:?}", server.address))
        .collect();
    assert!(
        hosts[0].contains("127.0.0.1") && hosts[1].contains("\"b\""),
        "{hosts:?}"
    );
}

#[test]
fn e13_the_first_source_that_knows_an_authority_counts() {
    let source = |authority: &str, path: &str| {
        format!("- {{authorities: [{{name: {authority}}}], path_config_source: {{path: {path}}}}}")
    };
    let more = format!(
        "config_sources:\n{}\n{}\n{}\ndefault_config_source: {{path_config_source: {{path: /d}}}}",
        source("a", "/a1"),
        source("a", "/a2"),
        source("b", "/b")
    );
    let bootstrap = read(&with("", &more));
    let path = |authority: &str| match bootstrap.source_of_authority(authority)?.specifier {
        Specifier::Path(path) => Some(path.path.display().to_string()),
        _ => None,
    };
    assert_eq!(path("a").as_deref(), Some("/a1"));
    assert_eq!(path("b").as_deref(), Some("/b"));
    assert_eq!(path("c").as_deref(), Some("/d"));
}

#[test]
fn e14_the_node_may_go_in_the_first_request_only() {
    for (field, expected) in [
        ("", false),
        (", set_node_on_first_message_only: true", true),
    ] {
        let bootstrap = read(&with(&ads(field), ""));
        let source = api(bootstrap.ads.as_ref());
        assert_eq!(source.node_on_first_message_only, expected);
    }
}

#[test]
fn locators_are_marked_by_the_metadata_of_the_cluster() {
    for (value, expected) in [("true", true), ("false", false)] {
        let marked = with(&ads(""), "").replace(
            "    type: STATIC\n",
            &format!(
                "    type: STATIC\n    metadata: {{filter_metadata: {{trunkline: \
                 {{dynamic_parameters: {value}}}}}}}\n"
            ),
        );
        let bootstrap = read(&marked);
        let server = &api(bootstrap.ads.as_ref()).servers[0];
        assert_eq!(server.features.locators, expected);
    }
}

#[test]
fn parameters_are_in_the_metadata_of_the_node() {
    let text = with("", "").replace(
        "node: {id: n1, cluster: c}",
        "node: {id: n1, cluster: c, metadata: {ZONE: z, trunkline: {dynamic_parameters: \
         {env: prod}, dynamic_parameters_from_metadata: [ZONE], authorities: {a: \
         {dynamic_parameters: {env: test}}}}}}",
    );
    let bootstrap = read(&text);
    let params = |name: &str| bootstrap.params_of("lds", &Name::new(name)).to_string();
    assert_eq!(params("old"), "ZONE=z,env=prod");
    assert_eq!(params("xdstp://a/t/x"), "env=test");
}

#[test]
fn a_slip_hides_what_follows_from_it_and_nothing_else() {
    let slip = with(&ads(", rate_limit_settings: {max_tokens: 0}"), "")
        .replace("- name: xds", "- nam: xds");
    let all = mistakes(Bootstrap::from_envoy("b.yaml", &slip));
    assert_eq!(all.len(), 2, "{all:#?}");
    assert!(
        all[0].contains("rate_limit_settings: is not valid"),
        "{all:#?}"
    );
    assert!(all[1].contains("unknown field \"nam\""), "{all:#?}");
}

#[test]
fn a_token_without_tls_is_warned_of_unless_it_stays_on_this_machine() {
    let warnings = |target: &str| {
        let service = format!(
            "{{google_grpc: {{target_uri: '{target}', stat_prefix: s}}, \
             initial_metadata: [{{key: Authorization, value: Bearer x}}]}}"
        );
        let ads = format!(
            "ads_config: {{api_type: GRPC, transport_api_version: V3, grpc_services: [{service}]}}"
        );
        let warnings = read(&with(&ads, "")).warnings.into_iter();
        let shown = warnings.map(|warning| warning.to_string());
        shown
            .filter(|text| text.contains("TLS"))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        warnings("xds.example.com:1"),
        [
            "b.yaml:2:93: dynamic_resources.ads_config.grpc_services[0]: the token of the control \
          plane is sent without TLS, and anybody on the way can read it; use TLS, or a control \
          plane on this machine"
        ]
    );
    assert_eq!(warnings("127.0.0.1:1"), [""; 0]);
    assert_eq!(warnings("unix:/run/xds.sock"), [""; 0]);
}
