//! Each fault of a secret, with its place.

use std::collections::HashMap;
use std::io::Cursor;

use prost::Message as _;
use rcgen::{CertificateParams, KeyPair, PKCS_ED25519};
use trunkline_core::kind;
use trunkline_proto::discovery::{Any, DiscoveryResponse, Resource};
use trunkline_proto::envoy::envoy::extensions::transport_sockets::tls::v3::{Secret, secret};

use super::*;
use crate::checked::{Decoded, Form, decode, decode_with_files};
use crate::wire;

/// Files in memory, by name.
#[derive(Default)]
struct Memory(HashMap<&'static str, Vec<u8>>);

impl SecretFiles for Memory {
    fn read(&self, name: &str) -> Result<Bytes, SecretFault> {
        let path = || format!("dir/{name}").into();
        match self.0.get(name) {
            Some(contents) => Ok(contents.clone().into()),
            None => Err(SecretFault::Missing { path: path() }),
        }
    }
}

impl Memory {
    /// A certificate and its key, and the key of another one.
    fn with_pair() -> Self {
        let (chain, key) = pair();
        let (_, other_key) = pair();
        let files = [("chain", chain), ("key", key), ("other", other_key)];
        Self(files.map(|(name, pem)| (name, pem.into_bytes())).into())
    }
}

/// A certificate and its key, in PEM.
fn pair() -> (String, String) {
    let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let key = KeyPair::generate_for(&PKCS_ED25519).unwrap();
    let chain = params.self_signed(&key).unwrap();
    (chain.pem(), key.serialize_pem())
}

fn tls_certificate(fields: &str) -> String {
    format!(
        "resources:\n- \"@type\": {}\n  name: s\n  tls_certificate:\n{fields}",
        kind::SDS
    )
}

fn decoded(text: &str, files: Option<&Memory>) -> Decoded {
    let (name, options) = ("s.yaml".into(), wire::text_options());
    let source = Cursor::new(text);
    let decoded = match files {
        Some(files) => decode_with_files(&name, Form::ByName, source, &options, files),
        None => decode(&name, Form::ByName, source, &options),
    };
    decoded.unwrap()
}

/// The errors and the warnings, as people read them.
fn said(decoded: &Decoded) -> (Vec<String>, Vec<String>) {
    let texts = |findings: &[crate::checked::Finding]| {
        findings.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    (texts(&decoded.errors), texts(&decoded.warnings))
}

fn first_secret(decoded: &Decoded) -> Secret {
    let body = decoded.document.items[0].resource.body.clone();
    Secret::decode(body.unwrap()).unwrap()
}

#[test]
fn a_pair_is_read_from_files() {
    let files = Memory::with_pair();
    let text = tls_certificate(
        "    certificate_chain: {filename: chain}\n    private_key: {filename: key}\n",
    );
    let decoded = decoded(&text, Some(&files));
    assert_eq!(said(&decoded), (vec![], vec![]));
    let Some(secret::Type::TlsCertificate(served)) = first_secret(&decoded).r#type else {
        panic!("a certificate");
    };
    assert_eq!(
        pem::inline(served.certificate_chain.as_ref()),
        Some(&files.0["chain"][..])
    );
    assert_eq!(
        pem::inline(served.private_key.as_ref()),
        Some(&files.0["key"][..])
    );
}

/// In binary documents, wrapped and not.
#[test]
fn binary_secrets_are_read_as_texts_are() {
    let files = Memory::with_pair();
    let text = tls_certificate(
        "    certificate_chain: {filename: chain}\n    private_key: {filename: other}\n",
    );
    let body = text::read("s.yaml", &text, &wire::text_options()).resources[0]
        .body
        .clone();
    let plain = Any {
        type_url: kind::SDS.to_owned(),
        value: body,
    };
    let wrapper = Resource {
        name: "s".into(),
        resource: Some(plain.clone()),
        ..Resource::default()
    };
    let wrapped = Any {
        type_url: types::RESOURCE.to_owned(),
        value: wrapper.encode_to_vec().into(),
    };
    let response = DiscoveryResponse {
        resources: vec![plain, wrapped],
        ..DiscoveryResponse::default()
    };
    let source = Cursor::new(response.encode_to_vec());
    let name = "s.pb".into();
    let options = wire::text_options();
    let read = decode_with_files(&name, Form::ByName, source, &options, &files).unwrap();
    let (errors, _) = said(&read);
    assert_eq!(errors.len(), 2, "{errors:?}");
    let place = "s.pb: resources[0].tls_certificate.private_key: is not the private key";
    assert!(errors[0].starts_with(place), "{errors:?}");
    let place = "s.pb: resources[1].resource.tls_certificate.private_key: is not";
    assert!(errors[1].starts_with(place), "{errors:?}");
    let names = read.document.items.iter().map(|item| item.at.field());
    assert_eq!(names.count(), 2);
}

#[test]
fn every_fault_of_a_file_has_its_place_and_a_remedy() {
    let mut files = Memory::with_pair();
    for (name, contents) in [
        ("text", "no PEM at all"),
        ("cut", "-----BEGIN CERTIFICATE-----\nMIIB"),
        (
            "encrypted",
            "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n",
        ),
        (
            "older",
            "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nAAAA\n\
             -----END RSA PRIVATE KEY-----\n",
        ),
    ] {
        files.0.insert(name, contents.into());
    }
    for (chain, key, expected) in [
        (
            "none",
            "key",
            "s.yaml:5:25: resources[0].tls_certificate.certificate_chain.filename: the file \
             dir/none does not exist; create it, or correct the name: a relative path starts at \
             the directory of this file",
        ),
        (
            "text",
            "key",
            "s.yaml:5:5: resources[0].tls_certificate.certificate_chain: has no certificate in \
             it; it must have a section CERTIFICATE in PEM",
        ),
        (
            "cut",
            "key",
            "s.yaml:5:5: resources[0].tls_certificate.certificate_chain: has PEM that is not \
             valid; write it again from its source",
        ),
        (
            "chain",
            "text",
            "s.yaml:6:5: resources[0].tls_certificate.private_key: has no private key in it; it \
             must have a section PRIVATE KEY, RSA PRIVATE KEY or EC PRIVATE KEY in PEM",
        ),
        (
            "chain",
            "encrypted",
            "s.yaml:6:5: resources[0].tls_certificate.private_key: has a private key that is \
             encrypted; give its password too, or decrypt it",
        ),
        (
            "chain",
            "older",
            "s.yaml:6:5: resources[0].tls_certificate.private_key: has a private key that is \
             encrypted; give its password too, or decrypt it",
        ),
        (
            "chain",
            "other",
            "s.yaml:6:5: resources[0].tls_certificate.private_key: is not the private key of the \
             first certificate in certificate_chain; give the two that were made together",
        ),
    ] {
        let fields = format!(
            "    certificate_chain: {{filename: {chain}}}\n    private_key: {{filename: {key}}}\n"
        );
        let found = said(&decoded(&tls_certificate(&fields), Some(&files)));
        assert_eq!(found, (vec![expected.to_owned()], vec![]), "{chain}, {key}");
    }

    let text = format!(
        "\"@type\": {}\nname: s\nvalidation_context: {{trusted_ca: {{filename: key}}}}",
        kind::SDS
    );
    let (errors, _) = said(&decoded(&text, Some(&files)));
    assert!(errors[0].contains("trusted_ca: has no certificate"));
}

#[test]
fn a_kind_that_is_not_known_is_no_mistake() {
    let mut files = Memory::with_pair();
    let unknown = |name: &str| format!("-----BEGIN {name}-----\nAAAA\n-----END {name}-----\n");
    for (name, section) in [
        ("dsa", "DSA PRIVATE KEY"),
        ("odd", "PRIVATE KEY"),
        ("trusted", "TRUSTED CERTIFICATE"),
        ("encrypted", "ENCRYPTED PRIVATE KEY"),
    ] {
        files.0.insert(name, unknown(section).into());
    }
    for (chain, key) in [("chain", "dsa"), ("chain", "odd"), ("trusted", "key")] {
        let fields = format!(
            "    certificate_chain: {{filename: {chain}}}\n    private_key: {{filename: {key}}}\n"
        );
        let (errors, warnings) = said(&decoded(&tls_certificate(&fields), Some(&files)));
        assert_eq!(errors, [""; 0]);
        assert!(warnings[0].contains("cannot be compared"), "{warnings:?}");
    }
    let fields = "    certificate_chain: {filename: chain}\n    \
                  private_key: {filename: encrypted}\n    password: {inline_string: p}\n";
    let found = said(&decoded(&tls_certificate(fields), Some(&files)));
    assert_eq!(found, (vec![], vec![]));
}

#[test]
fn an_absolute_path_is_the_client_s() {
    let fields = "    certificate_chain: {filename: /chain}\n    private_key: {filename: /key}\n";
    for files in [None, Some(&Memory::default())] {
        let decoded = decoded(&tls_certificate(fields), files);
        assert_eq!(said(&decoded), (vec![], vec![]));
        let body = decoded.document.items[0].resource.body.clone().unwrap();
        assert!(String::from_utf8_lossy(&body).contains("/chain"));
    }
}

#[test]
fn without_files_a_relative_path_is_a_warning() {
    let fields = "    certificate_chain: {filename: a.pem}\n";
    let found = said(&decoded(&tls_certificate(fields), None));
    let expected = "s.yaml:5:25: resources[0].tls_certificate.certificate_chain.filename: \
                    \"a.pem\" is a relative path, and the server reads files only for files of \
                    configuration: a client looks for it in its own working directory; put the \
                    contents in as inline_bytes, or name an absolute path of the client's";
    assert_eq!(found, (vec![], vec![expected.to_owned()]));
}

#[test]
fn inline_pairs_are_compared_too() {
    let (chain, key) = pair();
    let (_, other) = pair();
    let secret = |key: &str| {
        let fields = format!(
            "    certificate_chain: {{inline_string: {chain:?}}}\n    \
             private_key: {{inline_string: {key:?}}}\n"
        );
        said(&decoded(&tls_certificate(&fields), None))
    };
    assert_eq!(secret(&key), (vec![], vec![]));
    let (errors, _) = secret(&other);
    assert!(errors[0].contains("is not the private key"), "{errors:?}");
    // What is no PEM may be meant for another client than Envoy.
    let (errors, warnings) = secret("hunter2");
    assert_eq!(errors, [""; 0]);
    assert!(warnings[0].contains("no private key"), "{warnings:?}");
    assert!(!warnings[0].contains("hunter2"));
}

#[test]
fn no_byte_of_a_secret_is_in_a_finding() {
    let mut files = Memory::with_pair();
    let secret = "-----BEGIN PRIVATE KEY-----\nhunter2!\n-----END PRIVATE KEY-----\n";
    files.0.insert("bad", secret.into());
    let fields = "    certificate_chain: {filename: bad}\n    private_key: {filename: bad}\n";
    let decoded = decoded(&tls_certificate(fields), Some(&files));
    assert_eq!(decoded.errors.len(), 2);
    assert!(!format!("{:?}", decoded.errors).contains("hunter2"));
}
