//! gRPC's bootstrap (gRFC A27, A30, A36, A47, A65, A71, A88, A97).

use std::time::Duration;

use trunkline::Name;
use trunkline::client::{Address, Bootstrap, Pem, Security};

use super::{api, mistakes};

/// A bootstrap with these fields, and one server.
fn with(fields: &str) -> String {
    format!(r#"{{"xds_servers": [{}]{fields}}}"#, server("a:1", ""))
}

/// A server with these fields.
fn server(uri: &str, fields: &str) -> String {
    format!(r#"{{"server_uri": "{uri}", "channel_creds": [{{"type": "insecure"}}]{fields}}}"#)
}

/// A bootstrap of these servers.
fn of_servers(servers: &[String]) -> String {
    format!(r#"{{"xds_servers": [{}]}}"#, servers.join(","))
}

fn read(text: &str) -> Bootstrap {
    Bootstrap::from_grpc("b.json", text).unwrap_or_else(|error| panic!("{error}"))
}

fn wrong(text: &str) -> Vec<String> {
    mistakes(Bootstrap::from_grpc("b.json", text))
}

#[test]
fn c1_unknown_fields_are_ignored() {
    let bootstrap = read(&with(r#", "later": {"a": 1}, "node": {"id": "n", "x": 1}"#));
    assert_eq!(bootstrap.node.id, "n");
}

#[test]
fn c2_the_first_supported_credentials_count() {
    let of = |creds: &str| format!(r#"{{"xds_servers": [{{"server_uri": "a:1", {creds}}}]}}"#);
    let security = |creds: &str| {
        let bootstrap = read(&of(creds));
        api(bootstrap.ads.as_ref()).servers[0].security.clone()
    };
    let both = r#""channel_creds": [{"type": "google_default"}, {"type": "insecure"},
                                    {"type": "tls"}]"#;
    assert_eq!(security(both), Security::Plaintext);
    let files = r#""channel_creds": [{"type": "tls", "config": {"ca_certificate_file": "/ca",
                   "certificate_file": "/cert", "private_key_file": "/key"}}]"#;
    let Security::Tls(tls) = security(files) else {
        panic!("A65: TLS with files");
    };
    assert_eq!(tls.ca, Some(Pem::File("/ca".into())));
    let own = (Pem::File("/cert".into()), Pem::File("/key".into()));
    assert_eq!(tls.certificate, Some(own));

    assert_eq!(
        wrong(&of(r#""channel_creds": [{"type": "google_default"}]"#)),
        [
            "b.json:1:40: xds_servers[0].channel_creds: none of the types google_default is \
          supported; use one of insecure, tls"
        ]
    );
    assert_eq!(
        wrong(&of(r#""x": 1"#)),
        [
            "b.json:1:18: xds_servers[0]: channel_creds is missing; add channel_creds: \
          [{type: insecure}], or tls"
        ]
    );
}

#[test]
fn c3_the_client_says_what_it_is() {
    let node = read(&with(
        r#", "node": {"id": "n", "user_agent_name": "x",
        "locality": {"zone": "z"}, "metadata": {"k": "v"}, "client_features": ["own"]}"#,
    ));
    let node = node.wire_node();
    assert_eq!(node.user_agent_name, "trunkline");
    assert!(node.user_agent_version.is_some());
    let features: Vec<&str> = node.client_features.iter().map(String::as_str).collect();
    assert_eq!(
        features,
        [
            "own",
            "envoy.lb.does_not_support_overprovisioning",
            "xds.config.resource-in-sotw",
            "xds.config.supports-resource-in-sotw",
            "xds.config.supports-resource-ttl",
        ]
    );
    assert_eq!(node.locality.unwrap().zone, "z");
    assert!(node.metadata.is_some());
}

#[test]
fn c4_servers_are_in_order_and_have_features() {
    let features = r#", "server_features": ["xds_v3", "ignore_resource_deletion",
        "trusted_xds_server", "fail_on_data_errors", "resource_timer_is_transient_error",
        "dynamic_parameters"]"#;
    let servers = [server("a:1", features), server("b:2", "")];
    let bootstrap = read(&of_servers(&servers));
    let [first, second] = &api(bootstrap.ads.as_ref()).servers[..] else {
        panic!("two servers");
    };
    let known = first.features;
    assert!(known.ignore_resource_deletion && known.trusted && known.fail_on_data_errors);
    assert!(known.resource_timer_is_transient_error && known.locators);
    let address = Address::Tcp {
        host: "b".into(),
        port: 2,
    };
    assert_eq!(second.address, address);
    assert_eq!(second.features, Default::default());
}

#[test]
fn c4_the_other_spelling_of_a_feature_is_taken_with_a_warning() {
    let features = r#", "server_features": ["resource_timer_is_transient_failure"]"#;
    let bootstrap = read(&of_servers(&[server("a:1", features)]));
    let server = &api(bootstrap.ads.as_ref()).servers[0];
    assert!(server.features.resource_timer_is_transient_error);
    let warning = bootstrap.warnings[0].to_string();
    assert!(warning.contains("write that"), "{warning}");
}

#[test]
fn a_token_that_anybody_can_read_is_a_warning() {
    let token = r#", "call_creds": [{"type": "jwt_token_file",
        "config": {"jwt_token_file": "/token"}}]"#;
    let warnings = |uri: &str, fields: &str| -> Vec<String> {
        let bootstrap = read(&of_servers(&[server(uri, fields)]));
        let warnings = bootstrap.warnings.into_iter();
        warnings.map(|warning| warning.to_string()).collect()
    };
    let [warning] = &warnings("xds.example.com:1", token)[..] else {
        panic!("one warning");
    };
    assert!(warning.contains("sent without TLS"), "{warning}");
    assert_eq!(warnings("xds.example.com:1", ""), [""; 0]);
    assert_eq!(warnings("127.0.0.1:1", token), [""; 0]);
    let over_tls = of_servers(&[server("xds.example.com:1", token).replace("insecure", "tls")]);
    assert!(read(&over_tls).warnings.is_empty());
}

#[test]
fn c5_providers_watch_files() {
    let bootstrap = read(&with(
        r#", "certificate_providers": {
        "both": {"plugin_name": "file_watcher", "config": {"certificate_file": "/c",
            "private_key_file": "/k", "ca_certificate_file": "/ca", "refresh_interval": "1.5s"}},
        "ca": {"plugin_name": "file_watcher", "config": {"ca_certificate_file": "/ca"}},
        "other": {"plugin_name": "mesh_ca"}}"#,
    ));
    let both = &bootstrap.certificate_providers["both"];
    assert_eq!(both.refresh, Duration::from_millis(1500));
    assert_eq!(both.certificate, Some(("/c".into(), "/k".into())));
    let ca = &bootstrap.certificate_providers["ca"];
    assert_eq!(ca.refresh, Duration::from_secs(600));
    assert!(!bootstrap.certificate_providers.contains_key("other"));
    assert_eq!(bootstrap.warnings.len(), 1);

    for config in [
        r#"{"certificate_file": "/c"}"#,
        r#"{"private_key_file": "/k", "ca_certificate_file": "/ca"}"#,
        "{}",
        r#"{"ca_certificate_file": "/ca", "refresh_interval": "soon"}"#,
    ] {
        let one = format!(r#"{{"plugin_name": "file_watcher", "config": {config}}}"#);
        let providers = format!(r#", "certificate_providers": {{"a": {one}}}"#);
        assert_eq!(wrong(&with(&providers)).len(), 1, "{config}");
    }
}

#[test]
fn c6_a_server_is_named_by_its_template() {
    let template = r#", "server_listener_resource_name_template":
        "grpc/server?xds.resource.listening_address=%s""#;
    let name = read(&with(template)).server_listener_name("127.0.0.1:80");
    let expected = "grpc/server?xds.resource.listening_address=127.0.0.1:80";
    assert_eq!(name, Ok(expected.to_owned()));
    assert!(
        read(&with(""))
            .server_listener_name("127.0.0.1:80")
            .is_err()
    );
}

#[test]
fn c7_a_target_is_named_by_the_default_template() {
    let plain = read(&with(""));
    assert_eq!(
        plain.listener_name("xds:///svc:80"),
        Ok("svc:80".to_owned())
    );
    let template = r#", "client_default_listener_resource_name_template":
        "xdstp://x/envoy.config.listener.v3.Listener/%s""#;
    let name = read(&with(template)).listener_name("xds:///a b");
    let expected = "xdstp://x/envoy.config.listener.v3.Listener/a%20b";
    assert_eq!(name, Ok(expected.to_owned()));
}

#[test]
fn c8_the_template_of_an_authority_leads_to_it() {
    let authority = |template: &str| {
        let fields = format!(r#"{{"client_listener_resource_name_template": "{template}"}}"#);
        with(&format!(r#", "authorities": {{"a.b": {fields}}}"#))
    };
    let good = "xdstp://a.b/envoy.config.listener.v3.Listener/x/%s";
    let name = read(&authority(good)).listener_name("xds://a.b/svc");
    let expected = "xdstp://a.b/envoy.config.listener.v3.Listener/x/svc";
    assert_eq!(name, Ok(expected.to_owned()));
    let [mistake] = &wrong(&authority("xdstp://a.bc/x/%s"))[..] else {
        panic!("one mistake");
    };
    assert!(
        mistake.ends_with("must start with \"xdstp://a.b/\"; change its authority"),
        "{mistake}"
    );
}

#[test]
fn an_authority_has_its_servers_or_those_of_the_bootstrap() {
    let fields = format!(
        r#", "authorities": {{"own": {{"xds_servers": [{}]}}, "none": {{}}, "": {{}}}}"#,
        server("b:2", "")
    );
    let bootstrap = read(&with(&fields));
    let address = |authority: &str| {
        let source = bootstrap.source_of_authority(authority)?;
        Some(api(Some(&source)).servers[0].address.clone())
    };
    let tcp = |host: &str, port| {
        Some(Address::Tcp {
            host: host.into(),
            port,
        })
    };
    assert_eq!(address("own"), tcp("b", 2));
    assert_eq!(address("none"), tcp("a", 1));
    assert_eq!(address(""), tcp("a", 1));
    assert_eq!(address("other"), None);
}

#[test]
fn two_authorities_on_one_server_have_equal_ones_to_share() {
    let one = |features| format!(r#"{{"xds_servers": [{}]}}"#, server("a:1", features));
    let fields = format!(
        r#", "authorities": {{"x": {}, "y": {}, "z": {}}}"#,
        one(""),
        one(r#", "server_features": ["not_known"]"#),
        one(r#", "server_features": ["trusted_xds_server"]"#)
    );
    let bootstrap = read(&with(&fields));
    let of = |name: &str| bootstrap.authorities[name].servers.clone().unwrap();
    assert_eq!(of("x"), of("y"));
    assert_ne!(of("x"), of("z"));
    assert_eq!(api(bootstrap.ads.as_ref()).servers, of("x").servers);
}

#[test]
fn a_token_in_a_file_is_sent_with_every_stream() {
    let creds = r#", "call_creds": [{"type": "later"}, {"type": "jwt_token_file",
        "config": {"jwt_token_file": "/token"}}]"#;
    let bootstrap = read(&of_servers(&[server("a:1", creds)]));
    let server = &api(bootstrap.ads.as_ref()).servers[0];
    assert_eq!(server.token_file.as_deref(), Some("/token".as_ref()));
}

#[test]
fn a_token_without_tls_is_warned_of_unless_it_stays_on_this_machine() {
    let creds = r#", "call_creds": [{"type": "jwt_token_file",
        "config": {"jwt_token_file": "/token"}}]"#;
    let warnings = |address: &str| {
        let warnings = read(&of_servers(&[server(address, creds)])).warnings;
        let shown = warnings.iter().map(ToString::to_string);
        shown.collect::<Vec<_>>()
    };
    let [warning] = &warnings("xds.example.com:1")[..] else {
        panic!("one warning");
    };
    assert!(warning.contains("xds_servers[0]: the token of the control plane is sent without TLS"));
    assert_eq!(warnings("127.0.0.1:1"), [""; 0]);
}

#[test]
fn parameters_are_global_or_of_an_authority_or_from_metadata() {
    let bootstrap = read(&with(
        r#", "node": {"metadata": {"ZONE": "z1", "N": 7, "deep": {}},
              "dynamic_parameters": {"cds": {"params": {"tier": "x", "env": "y"}}}},
            "dynamic_parameters": {"env": "prod"},
            "dynamic_parameters_from_metadata": ["ZONE", "N", "deep", "missing"],
            "authorities": {"a": {"dynamic_parameters": {"env": "test"}}, "b": {}}"#,
    ));
    let params = |url: &str, name: &str| bootstrap.params_of(url, &Name::new(name)).to_string();
    assert_eq!(params("lds", "old"), "N=7,ZONE=z1,env=prod");
    assert_eq!(params("cds", "old"), "N=7,ZONE=z1,env=y,tier=x");
    assert_eq!(params("lds", "xdstp://a/t/x"), "env=test");
    assert_eq!(params("lds", "xdstp://b/t/x"), "N=7,ZONE=z1,env=prod");
}
