//! A canary in every place that holds a secret, and everything that shows
//! something: the canary never appears, but to the client that is sent it.
#![allow(clippy::unwrap_used, reason = "all of this is a test")]

mod support;

use std::process::Output;

use prost::Message as _;
use support::peer::{CDS, Peer, RDS};
use support::{Server, bad, good, put, run, said, until};
use trunkline_proto::envoy::envoy::service::status::v3::ClientStatusRequest;
use trunkline_proto::envoy::envoy::service::status::v3::client_status_discovery_service_client::ClientStatusDiscoveryServiceClient;

/// The canary, and a part of it in base64, at each offset.
const CANARY: &str = "swordfishcanary";
const ENCODED: [&str; 4] = ["c3dvcmRmaXNo", "N3b3JkZmlzaG", "zd29yZGZpc2", "swordfish"];

/// Every place that holds a secret, in resources that are valid.
const CONTENTS: &str = r#"resources:
- "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret
  name: pair
  tls_certificate:
    private_key: {inline_string: swordfishcanary}
    password: {inline_bytes: c3dvcmRmaXNoY2FuYXJ5}
- "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret
  name: generic
  generic_secret:
    secret: {inline_string: swordfishcanary}
    secrets: {one: {inline_string: swordfishcanary}}
- "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret
  name: tickets
  session_ticket_keys: {keys: [{inline_bytes: c3dvcmRmaXNoY2FuYXJ5}]}
- "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
  name: keyed
  connect_timeout: 1s
  transport_socket:
    name: tls
    typed_config:
      "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext
      common_tls_context:
        tls_certificates:
        - private_key: {inline_string: swordfishcanary}
  health_checks:
  - timeout: 1s
    interval: 1s
    unhealthy_threshold: 1
    healthy_threshold: 1
    http_health_check:
      path: /
      request_headers_to_add:
      - header: {key: Proxy-Authorization, value: swordfishcanary}
  metadata:
    filter_metadata:
      mine: {api_token: swordfishcanary, plain: shown}
- "@type": type.googleapis.com/envoy.config.route.v3.RouteConfiguration
  name: routes
  request_headers_to_add:
  - header: {key: authorization, value: Bearer swordfishcanary}
  - header: {key: x-api-key, raw_value: c3dvcmRmaXNoY2FuYXJ5}
  response_headers_to_add:
  - header: {key: Set-Cookie, value: id=swordfishcanary}
  virtual_hosts:
  - name: all
    domains: ["*"]
    routes:
    - match: {prefix: /}
      direct_response: {status: 200}
      typed_per_filter_config:
        basic:
          "@type": type.googleapis.com/envoy.extensions.filters.http.basic_auth.v3.BasicAuthPerRoute
          users: {inline_string: "user:{SHA}swordfishcanary"}
- "@type": type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig
  name: jwt
  typed_config:
    "@type": type.googleapis.com/envoy.extensions.filters.http.jwt_authn.v3.JwtAuthentication
    providers:
      p:
        issuer: i
        local_jwks: {inline_string: '{"keys":[{"kty":"oct","k":"swordfishcanary"}]}'}
- "@type": type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig
  name: struct
  typed_config:
    "@type": type.googleapis.com/xds.type.v3.TypedStruct
    type_url: type.googleapis.com/envoy.extensions.filters.http.aws_lambda.v3.Config
    value:
      arn: "arn:aws:lambda:us-west-2:987654321:function:hello"
      credentials: {access_key_id: id, secret_access_key: swordfishcanary}
- "@type": type.googleapis.com/envoy.service.discovery.v3.Resource
  name: wrapped
  metadata: {filter_metadata: {mine: {password: swordfishcanary}}}
  resource:
    "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
    name: wrapped
    connect_timeout: 1s
"#;

const SUMMARY: &str = "/api/v1/resources/sds?summary=true";
const KINDS: [&str; 4] = ["sds", "cds", "rds", "ecds"];

/// Proves that a text has no trace of the canary.
fn assert_hidden(what: &str, text: &str) {
    for trace in ENCODED {
        assert!(!text.contains(trace), "{what}: {text}");
    }
}

#[test]
fn the_canary_is_where_it_should_be() {
    assert_eq!(CONTENTS.matches(CANARY).count(), 12);
    assert_eq!(CONTENTS.matches(ENCODED[0]).count(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_secret_is_shown_to_people() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("all.yaml");
    put(&file, CONTENTS);
    let config = dir.path().to_str().unwrap();
    let server = Server::start(&["--config", config, "--log-level", "debug"]);

    // Its clients get the secrets, and quote them.
    let mut peers = Vec::new();
    for (kind, name) in [
        (CDS, "keyed"),
        (CDS, "wrapped"),
        (RDS, "routes"),
        (SDS, "generic"),
    ] {
        let mut peer = Peer::connect(&server, name, kind, &[name]).await;
        let response = peer.next().await;
        let sent = response.encode_to_vec();
        let sent = String::from_utf8_lossy(&sent);
        assert!(sent.contains(CANARY), "{sent}");
        let error = format!("no: {CANARY} {} c3dvcmRmaXNoY2FuYXJ5", &CANARY[2..]);
        peer.answer(&response, Some(&error)).await;
        peers.push(peer);
    }
    until("the NACKs", || {
        let (_, body) = server.get("/api/v1/status");
        (body.matches("NACKED").count() >= peers.len()).then_some(())
    });
    shows_nothing(&server).await;

    let before = server.get(SUMMARY).1;
    put(&file, &CONTENTS.replace(CANARY, "swordfishcanary2"));
    until("the other contents", || {
        (server.get(SUMMARY).1 != before).then_some(())
    });
    shows_nothing(&server).await;
}

const SDS: &str = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret";

/// Asks for everything that a server shows.
async fn shows_nothing(server: &Server) {
    for kind in KINDS {
        for form in ["table", "yaml", "json"] {
            let output = server.ask(&["get", kind, "-o", form]);
            let shown = good(&output) + &said(&output);
            assert_hidden(&format!("get {kind} -o {form}"), &shown);
        }
        let (status, body) = server.get(&format!("/api/v1/resources/{kind}"));
        assert_eq!(status, 200, "{body}");
        assert_hidden(kind, &body);
    }
    for path in [
        "/",
        "/api/v1/explain?type=cds&name=keyed",
        "/api/v1/files",
        "/api/v1/leases",
        "/api/v1/loads",
        "/api/v1/resources",
        "/api/v1/status",
        "/api/v1/types",
        "/config_dump",
        "/debug/clients",
        "/metrics",
    ] {
        assert_hidden(path, &server.get(path).1);
    }
    for command in [
        &["status"][..],
        &["status", "-o", "json"],
        &["events", "--limit", "100"],
    ] {
        let output = server.ask(command);
        assert_hidden(
            &format!("{command:?}"),
            &String::from_utf8_lossy(&output.stdout),
        );
        assert_hidden(&format!("{command:?}"), &said(&output));
    }
    let url = format!("http://{}", server.listen);
    let mut csds = ClientStatusDiscoveryServiceClient::connect(url)
        .await
        .unwrap();
    let status = csds
        .fetch_client_status(ClientStatusRequest::default())
        .await;
    let status = status.unwrap().into_inner().encode_to_vec();
    assert_hidden("csds", &String::from_utf8_lossy(&status));
    assert_hidden("the log", &format!("{:?}", server.running.log()));
}

#[test]
fn a_difference_shows_no_secret_and_a_redacted_text_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("all.yaml");
    let path = file.to_str().unwrap();
    put(&file, CONTENTS);
    let server = Server::start(&[]);
    good(&server.ask(&["apply", "-f", path]));
    put(
        &file,
        &CONTENTS
            .replace(CANARY, "swordfishcanary2")
            .replace("1s", "2s"),
    );
    for form in [
        &["diff", "-f", path][..],
        &["diff", "-f", path, "-o", "json"],
    ] {
        let output = server.ask(form);
        let shown = String::from_utf8(output.stdout.clone()).unwrap() + &said(&output);
        assert_hidden("diff", &shown);
    }

    // What was shown must not become the secret.
    for kind in KINDS {
        let shown = good(&server.ask(&["get", kind, "-o", "yaml"]));
        let output = server.ask_with(&["apply", "-f", "-"], &shown);
        let error = bad(&output, 1);
        assert!(error.contains("[redacted]"), "{kind}: {error}");
        put(&file, &shown);
        let error = bad(&run(&["validate", path]), 1);
        assert!(error.contains("[redacted]"), "{kind}: {error}");
    }
}

/// Mistakes beside or in a secret, each as a replacement of a part of
/// [`CONTENTS`].
const MISTAKES: &[(&str, &str)] = &[
    (
        "private_key: {inline_string: swordfishcanary}",
        "private_key: swordfishcanary",
    ),
    (
        "private_key: {inline_string: swordfishcanary}",
        "private_key: {inline_strin: swordfishcanary}",
    ),
    (
        "private_key: {inline_string: swordfishcanary}",
        "private_key: [swordfishcanary]",
    ),
    (
        "private_key: {inline_string: swordfishcanary}",
        "private_key: {filename: ''}\n    pasword: swordfishcanary",
    ),
    (
        "password: {inline_bytes: c3dvcmRmaXNoY2FuYXJ5}",
        "password: {inline_bytes: 'swordfishcanary!'}",
    ),
    (
        "password: {inline_bytes: c3dvcmRmaXNoY2FuYXJ5}",
        "password: {swordfishcanary: 1}",
    ),
    (
        "keys: [{inline_bytes: c3dvcmRmaXNoY2FuYXJ5}]",
        "keys: [swordfishcanary]",
    ),
    (
        "keys: [{inline_bytes: c3dvcmRmaXNoY2FuYXJ5}]",
        "keys: swordfishcanary",
    ),
    (
        "secrets: {one: {inline_string: swordfishcanary}}",
        "secrets: {one: swordfishcanary}",
    ),
    (
        "secrets: {one: {inline_string: swordfishcanary}}",
        "secrets: {one: {inline_string: \"swordfishcanary}}",
    ),
    (
        "{key: authorization, value: Bearer swordfishcanary}",
        "{key: authorization, valu: Bearer swordfishcanary}",
    ),
    (
        "{key: authorization, value: Bearer swordfishcanary}",
        "{key: authorization, value: [swordfishcanary]}",
    ),
    (
        "{key: authorization, value: Bearer swordfishcanary}",
        "{key: authorization, value: \"swordfishcanary\\n\"}",
    ),
    (
        "raw_value: c3dvcmRmaXNoY2FuYXJ5",
        "raw_value: 'swordfishcanary!'",
    ),
    (
        "{key: Set-Cookie, value: id=swordfishcanary}",
        "{key: Set-Cookie, value: id=swordfishcanary, append: swordfishcanary}",
    ),
    (
        "mine: {api_token: swordfishcanary, plain: shown}",
        "mine: {api_token: swordfishcanary, api_token: swordfishcanary}",
    ),
    (
        "users: {inline_string: \"user:{SHA}swordfishcanary\"}",
        "users: \"user:{SHA}swordfishcanary\"",
    ),
    ("local_jwks: {inline_string:", "local_jwks: {inline_sting:"),
    (
        "credentials: {access_key_id: id, secret_access_key: swordfishcanary}",
        "credentials: swordfishcanary",
    ),
    (
        "password: swordfishcanary",
        "password: swordfishcanary, password: swordfishcanary",
    ),
];

#[test]
fn no_mistake_quotes_a_secret() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("all.yaml");
    let path = file.to_str().unwrap();
    let server = Server::start(&["--log-level", "debug"]);
    let mut quoted = Vec::new();
    for (good_part, wrong) in MISTAKES {
        let text = CONTENTS.replacen(good_part, wrong, 1);
        assert_ne!(text, CONTENTS, "{good_part}");
        put(&file, &text);
        let outputs = [
            run(&["validate", path]),
            run(&["validate", path, "-o", "json"]),
            server.ask(&["apply", "-f", path]),
            server.ask(&["diff", "-f", path]),
        ];
        let mut shown: Vec<String> = outputs.iter().map(all_of).collect();
        for path in ["resources", "explain?type=cds&name=keyed"] {
            let path = format!("/api/v1/{path}");
            shown.push(server.http("POST", &path, &[], &text).1);
        }
        let shows = |shown: &String| ENCODED.iter().any(|trace| shown.contains(trace));
        quoted.extend(shown.into_iter().filter(shows));
    }
    assert!(quoted.is_empty(), "{}", quoted.join("\n"));
    assert_hidden("the log", &format!("{:?}", server.running.log()));
}

/// All that a command says.
fn all_of(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap() + &said(output)
}
