//! Redacted and shown fields.

use super::*;
use crate::text;

/// A secret in base64.
const KEY: &str = "aHVudGVyMg==";

/// The resource that a YAML text describes, shown as YAML.
fn shown(yaml: &str) -> String {
    let read = text::read("a.yaml", yaml, &text::Options::default());
    assert!(read.errors.is_empty(), "{:?}", read.errors);
    let resource = &read.resources[0];
    let url = format!(
        "type.googleapis.com/{}",
        resource.message.descriptor().full_name()
    );
    let message = redact(&url, resource.message.encode_to_vec().into()).unwrap();
    let shown = text::to_yaml([(&*url, &message)]);
    assert!(!shown.contains("hunter2"), "{shown}");
    assert!(!shown.contains(KEY), "{shown}");
    shown
}

#[test]
fn every_name_in_the_table_is_a_field() {
    let is_field = |message: &str, field: &str| {
        let message = descriptor::message(message).unwrap_or_else(|| panic!("{message}"));
        assert!(
            message.get_field_by_name(field).is_some(),
            "{message:?} {field}"
        );
    };
    for name in [table::UNMARKED, table::KEYS, table::MAPS].concat() {
        let (message, field) = name.rsplit_once('.').unwrap();
        is_field(message, field);
    }
    for pair in table::PAIRS {
        is_field(pair.message, pair.name);
        pair.values
            .iter()
            .for_each(|field| is_field(pair.message, field));
    }
    assert!(table::count() > UNMARKED_AND_SOME, "the marks are not seen");
}

const UNMARKED_AND_SOME: usize = table::UNMARKED.len() + 20;

#[test]
fn the_key_and_password_of_a_secret_are_hidden() {
    let shown = shown(
        r#"
"@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret
name: tls
tls_certificate:
  certificate_chain: {inline_string: chain}
  private_key: {inline_bytes: aHVudGVyMg==}
  password: {inline_string: hunter2}
"#,
    );
    assert!(shown.contains("chain"));
    assert_eq!(shown.matches(REDACTED).count(), 2, "{shown}");
}

#[test]
fn the_place_of_a_secret_is_shown() {
    let shown = shown(
        r#"
"@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret
name: tls
tls_certificate:
  private_key: {filename: /etc/key.pem}
  password: {environment_variable: PASSWORD}
"#,
    );
    assert!(shown.contains("/etc/key.pem") && shown.contains("PASSWORD"));
}

#[test]
fn generic_secrets_and_session_tickets_are_hidden() {
    let generic = shown(
        r#"
"@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret
name: generic
generic_secret:
  secret: {inline_string: hunter2}
  secrets: {one: {inline_string: hunter2}}
"#,
    );
    assert_eq!(generic.matches(REDACTED).count(), 2, "{generic}");
    let tickets = shown(
        r#"
"@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret
name: tickets
session_ticket_keys:
  keys: [{inline_string: hunter2}, {inline_bytes: aHVudGVyMg==}]
"#,
    );
    assert_eq!(tickets.matches(REDACTED).count(), 2, "{tickets}");
}

const LISTENER: &str = r#"
"@type": type.googleapis.com/envoy.config.listener.v3.Listener
name: l
address: {socket_address: {address: 127.0.0.1, port_value: 80}}
filter_chains:
- filters: []
  transport_socket:
    name: tls
    typed_config:
"#;

#[test]
fn a_key_inside_a_listener_is_hidden() {
    let shown = shown(&format!(
        r#"{LISTENER}
      "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext
      common_tls_context:
        tls_certificates:
        - certificate_chain: {{inline_string: chain}}
          private_key: {{inline_string: hunter2}}
"#
    ));
    assert!(
        shown.contains(REDACTED) && shown.contains("chain"),
        "{shown}"
    );
}

#[test]
fn a_key_that_is_written_as_a_struct_is_hidden() {
    let shown = shown(&format!(
        r#"{LISTENER}
      "@type": type.googleapis.com/xds.type.v3.TypedStruct
      type_url: type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext
      value:
        no_such_field: hunter2
        require_client_certificate: true
        commonTlsContext:
          alpn_protocols: [h2]
          custom_handshaker:
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.TlsCertificate
              password: {{inline_string: hunter2}}
          tls_certificates:
          - certificate_chain: {{inline_string: chain}}
            private_key: {{inline_string: hunter2}}
"#
    ));
    assert_eq!(shown.matches(REDACTED).count(), 3, "{shown}");
    assert!(shown.contains("chain") && shown.contains("h2"), "{shown}");
}

#[test]
fn tokens_that_envoy_does_not_mark_are_hidden() {
    let shown = shown(
        r#"
"@type": type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig
name: lambda
typed_config:
  "@type": type.googleapis.com/envoy.extensions.filters.http.aws_lambda.v3.Config
  arn: "arn:aws:lambda:us-west-2:987654321:function:hello"
  credentials: {access_key_id: id, secret_access_key: hunter2}
"#,
    );
    assert!(shown.contains(REDACTED), "{shown}");
}

#[test]
fn what_is_not_known_is_not_shown() {
    let url = "type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig";
    let of = descriptor::message(url).unwrap();
    let mut message = DynamicMessage::new(of);
    let any = message.get_field_by_name_mut("typed_config").unwrap();
    let any = any.as_message_mut().unwrap();
    any.set_field_by_number(1, Value::String("t/no.such.Type".into()));
    any.set_field_by_number(2, Value::Bytes("hunter2".into()));
    let mut body = message.encode_to_vec();
    // Field 1000, which is unknown.
    body.extend(b"\xc2\x3e\x07hunter2");
    let redacted = redact(url, body.into()).unwrap().encode_to_vec();
    let has = |text: &str| redacted.windows(text.len()).any(|w| w == text.as_bytes());
    assert!(has("no.such.Type") && has(REDACTED) && !has("hunter2"));

    let unknown = redact("t/no.such.Type", Bytes::new());
    assert!(matches!(unknown, Err(RedactError::Unknown { .. })));
    let malformed = redact(url, Bytes::from_static(b"\xff"));
    assert!(matches!(malformed, Err(RedactError::Malformed { .. })));
}

#[test]
fn a_dump_in_a_reason_is_cut_before_a_secret() {
    let reason = r#"Proto constraint validation failed: private_key { inline_string: "hunter2" }"#;
    assert_eq!(
        quoted(reason),
        "Proto constraint validation failed: private_key { [redacted]"
    );
    for harmless in [
        "Failed to load private key from <inline>: KEY_VALUES_MISMATCH",
        "unexpected token: }",
    ] {
        assert_eq!(quoted(harmless), harmless);
    }
    assert_eq!(quoted(r#"{"inline_string":"x"}"#), "{[redacted]");
    assert_eq!(quoted("a: session_token: \"x\""), "a: [redacted]");
}

#[test]
fn secret_fields_are_known_by_name_in_both_spellings() {
    for name in ["private_key", "privateKey", "password", "access_token"] {
        assert!(is_secret_name(name), "{name}");
    }
    for name in ["name", "cluster", "connect_timeout", "key", "value", "type"] {
        assert!(!is_secret_name(name), "{name}");
        assert!(!resembles_secret_name(name), "{name}");
    }
    for slip in ["pasword", "privat_key", "private_kei"] {
        assert!(!is_secret_name(slip), "{slip}");
        assert!(resembles_secret_name(slip), "{slip}");
    }
}

const ROUTE: &str = r#"
"@type": type.googleapis.com/envoy.config.route.v3.RouteConfiguration
name: r
"#;

#[test]
fn headers_to_add_are_hidden_by_their_names_and_values() {
    let shown = shown(&format!(
        r#"{ROUTE}
request_headers_to_add:
- header: {{key: Authorization, value: "Bearer hunter2"}}
- header: {{key: X-Api-Key, raw_value: aHVudGVyMg==}}
- header: {{key: x-who, value: "Basic hunter2"}}
- header: {{key: proxy-authorization, value: "%REQ(x-other)%"}}
- header: {{key: x-plain, value: visible}}
response_headers_to_add:
- header: {{key: set-cookie, value: id=hunter2}}
"#
    ));
    assert_eq!(shown.matches(REDACTED).count(), 3, "{shown}");
    assert!(
        shown.contains("visible") && shown.contains("%REQ(x-other)%"),
        "{shown}"
    );
}

#[test]
fn metadata_is_hidden_where_a_key_or_a_value_says_so() {
    let shown = shown(&format!(
        r#"{ROUTE}
metadata:
  filter_metadata:
    trunkline: {{base_sets: [a]}}
    envoy.lb: {{canary: true, weight: 3, stage: [prod]}}
    mine:
      api_token: hunter2
      nested: {{list: [{{dbPassword: 12345}}], plain: visible}}
      header: Bearer hunter2
      secrets: {{deep: {{one: hunter2, two: [hunter2]}}}}
    credentials: {{all: hunter2}}
  typed_filter_metadata:
    some.token: {{"@type": type.googleapis.com/google.protobuf.StringValue, value: hunter2}}
"#
    ));
    for visible in [
        "base_sets",
        "canary: true",
        "weight: 3",
        "prod",
        "plain: visible",
    ] {
        assert!(shown.contains(visible), "{visible}: {shown}");
    }
    assert!(!shown.contains("12345"), "{shown}");
    assert_eq!(shown.matches(REDACTED).count(), 6, "{shown}");
}

#[test]
fn keys_of_web_tokens_are_hidden_unless_they_are_in_a_file() {
    let jwks = |source: &str| {
        shown(&format!(
            r#"
"@type": type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig
name: jwt
typed_config:
  "@type": type.googleapis.com/envoy.extensions.filters.http.jwt_authn.v3.JwtAuthentication
  providers: {{p: {{issuer: i, local_jwks: {source}}}}}
"#
        ))
    };
    let inline = jwks(r#"{inline_string: '{"keys":[{"kty":"oct","k":"hunter2"}]}'}"#);
    assert!(inline.contains(REDACTED), "{inline}");
    assert!(jwks("{filename: /etc/jwks.json}").contains("/etc/jwks.json"));
}

#[test]
fn a_private_key_is_hidden_wherever_it_stands() {
    let shown = shown(
        r#"
"@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret
name: ca
validation_context:
  trusted_ca: {inline_string: "-----BEGIN PRIVATE KEY-----\nhunter2\n-----END PRIVATE KEY-----"}
"#,
    );
    assert!(shown.contains(REDACTED), "{shown}");
}

#[test]
fn headers_and_metadata_in_a_typed_struct_are_hidden() {
    let shown = shown(&format!(
        r#"{LISTENER}
      "@type": type.googleapis.com/xds.type.v3.TypedStruct
      type_url: type.googleapis.com/envoy.config.route.v3.RouteConfiguration
      value:
        name: visible
        request_headers_to_add:
        - header: {{key: authorization, value: hunter2}}
        - header: {{key: x-b, value: Bearer hunter2}}
        - header: {{key: x-c, value: plain}}
        metadata: {{filter_metadata: {{mine: {{token: hunter2, other: open}}}}}}
"#
    ));
    assert_eq!(shown.matches(REDACTED).count(), 3, "{shown}");
    for visible in ["visible", "plain", "open", "authorization"] {
        assert!(shown.contains(visible), "{visible}: {shown}");
    }
}

#[test]
fn all_that_is_hidden_is_collected() {
    let text = format!(
        r#"{LISTENER}
      "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext
      common_tls_context:
        tls_certificates:
        - private_key: {{inline_string: hunter2}}
          password: {{inline_bytes: aHVudGVyMw==}}
metadata: {{filter_metadata: {{mine: {{secret: {{a: hunter4, b: [hunter5]}}}}}}}}
"#
    );
    let read = text::read("a.yaml", &text, &text::Options::default());
    assert_eq!(read.errors, []);
    let resource = &read.resources[0];
    let mut found = values(&resource.type_url, resource.body.clone()).unwrap();
    found.sort();
    assert_eq!(found, ["hunter2", "hunter3", "hunter4", "hunter5"]);
}
