//! Names of files and their contents, in secrets.

use super::*;
use crate::text;

const SECRET: &str = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret";

/// Fills a secret with the names of its files in upper case, and returns it as
/// YAML, with the fields that named a file.
fn filled(fields: &str) -> (String, Vec<String>) {
    let text = format!("\"@type\": {SECRET}\nname: s\n{fields}");
    let read = text::read("s.yaml", &text, &text::Options::default());
    assert_eq!(read.errors, [], "{text}");
    let mut message = read.resources[0].message.clone();
    let mut paths = Vec::new();
    let changed = fill(&mut message, &mut |path, name| {
        paths.push(path.to_string());
        (name != "absent").then(|| name.to_uppercase().into())
    });
    let is_same = canonical::encode(&message).unwrap() == read.resources[0].body;
    assert_eq!(changed, Ok(!is_same));
    (text::to_yaml([(SECRET, &message)]), paths)
}

#[test]
fn relative_names_become_contents_wherever_they_are() {
    let (text, paths) = filled(
        "generic_secret:\n  secret: {filename: a}\n  \
         secrets: {y: {filename: c}, x: {filename: b/b}}",
    );
    assert_eq!(
        paths,
        [
            "generic_secret.secret.filename",
            "generic_secret.secrets[\"x\"].filename",
            "generic_secret.secrets[\"y\"].filename",
        ]
    );
    // `A`, `B/B` and `C` in base64.
    for contents in ["QQ==", "Qi9C", "Qw=="] {
        assert!(text.contains(contents), "{text}");
    }
    assert!(!text.contains("filename"), "{text}");

    let (_, paths) = filled("session_ticket_keys: {keys: [{filename: a}, {filename: b}]}");
    assert_eq!(paths[1], "session_ticket_keys.keys[1].filename");
}

#[test]
fn data_sources_in_an_any_are_found() {
    let (text, paths) = filled(
        r#"validation_context:
  custom_validator_config:
    name: spiffe
    typed_config:
      "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.SPIFFECertValidatorConfig
      trust_domains: [{name: a.example, trust_bundle: {filename: a}}]
"#,
    );
    assert_eq!(
        paths,
        [
            "validation_context.custom_validator_config.typed_config.trust_domains[0].trust_bundle.filename"
        ]
    );
    assert!(text.contains("QQ=="), "{text}");
}

#[test]
fn other_sources_stay_as_they_are() {
    for source in [
        "{filename: /a}",
        "{filename: absent}",
        "{inline_string: a}",
        "{environment_variable: A}",
    ] {
        let (text, paths) = filled(&format!("generic_secret: {{secret: {source}}}"));
        assert_eq!(paths.len(), usize::from(source.contains("absent")));
        assert!(!text.contains("QQ=="), "{text}");
    }
}

#[test]
fn a_relative_watched_directory_goes_with_its_files() {
    let secret = |name: &str, directory: &str| {
        let fields = format!(
            "tls_certificate:\n  private_key: {{filename: {name}}}\n  \
             watched_directory: {{path: {directory}}}"
        );
        filled(&fields).0
    };
    assert!(!secret("a", "certs").contains("watched"));
    // A client watches these.
    assert!(secret("a", "/certs").contains("watched"));
    assert!(secret("/a", "certs").contains("watched"));
}
