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
    for name in table::UNMARKED {
        let (message, field) = name.rsplit_once('.').unwrap();
        let message = descriptor::message(message).unwrap_or_else(|| panic!("{message}"));
        assert!(message.get_field_by_name(field).is_some(), "{name}");
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
