//! Secrets whose certificates and keys are in PEM files.
#![allow(clippy::unwrap_used)]

mod support;

use std::path::Path;

use rcgen::{CertificateParams, KeyPair};
use serde_json::Value;
use support::{Server, bad, good, put, run, said, until};

/// A file with a secret of two PEM files in a directory beside it.
const SECRET: &str = r#"resources:
- "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret
  name: shop
  tls_certificate:
    certificate_chain: {filename: certs/tls.crt}
    private_key: {filename: certs/tls.key}
"#;

/// A certificate and its key, in PEM.
fn pair() -> (String, String) {
    let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let key = KeyPair::generate().unwrap();
    let chain = params.self_signed(&key).unwrap().pem();
    (chain, key.serialize_pem())
}

/// Writes the certificate and then the key, as most tools do.
fn write_pair(dir: &Path) -> (String, String) {
    let (chain, key) = pair();
    std::fs::create_dir_all(dir.join("certs")).unwrap();
    put(&dir.join("certs/tls.crt"), &chain);
    put(&dir.join("certs/tls.key"), &key);
    (chain, key)
}

/// A line of the middle of PEM, and what base64 makes of it at any offset.
fn traces(pem: &str) -> Vec<String> {
    let line = pem.lines().nth(1).unwrap().to_owned();
    let encoded = |skip: usize| {
        let text = base64(&line.as_bytes()[skip..skip + 12]);
        text[..12].to_owned()
    };
    let encoded: Vec<String> = (0..3).map(encoded).collect();
    [vec![line], encoded].concat()
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digits = bytes.chunks_exact(3).flat_map(|part| {
        let number = u32::from_be_bytes([0, part[0], part[1], part[2]]);
        [18, 12, 6, 0].map(|shift| char::from(DIGITS[(number >> shift & 63) as usize]))
    });
    digits.collect()
}

fn version(server: &Server) -> Option<String> {
    let (_, body) = server.get("/api/v1/resources/sds?summary=true");
    let body: Value = serde_json::from_str(&body).ok()?;
    let shop = body["resources"].as_array()?.first()?;
    Some(shop["version"].as_str()?.to_owned())
}

#[test]
fn pem_files_are_served_rotated_and_their_keys_never_shown() {
    let dir = tempfile::tempdir().unwrap();
    let (chain, key) = write_pair(dir.path());
    put(&dir.path().join("secrets.yaml"), SECRET);
    let server = Server::start(&["--config", dir.path().to_str().unwrap()]);
    let first = version(&server).expect("a version");

    let yaml = good(&server.ask(&["get", "sds", "shop", "-o", "yaml"]));
    assert!(yaml.contains("[redacted]"), "{yaml}");
    assert!(!yaml.contains("certs/tls"), "{yaml}");
    let shows = |text: &str, pem: &str| traces(pem).iter().any(|trace| text.contains(trace));
    assert!(shows(&yaml, &chain), "{yaml}");
    for path in [
        "/api/v1/resources/sds",
        "/api/v1/resources/sds?name=shop",
        "/api/v1/files",
        "/config_dump",
        "/debug/clients",
        "/metrics",
    ] {
        let (status, body) = server.get(path);
        assert_eq!(status, 200, "{path}");
        assert!(!shows(&body, &key), "{path}: {body}");
    }
    assert!(!shows(&yaml, &key), "{yaml}");

    let (_, new_key) = write_pair(dir.path());
    until("the new pair", || {
        (version(&server)? != first).then_some(())
    });
    let log = format!("{:?}", server.running.log());
    assert!(!shows(&log, &key) && !shows(&log, &new_key), "{log}");
}

#[test]
fn validate_checks_the_pair() {
    let dir = tempfile::tempdir().unwrap();
    write_pair(dir.path());
    let file = dir.path().join("secrets.yaml");
    put(&file, SECRET);
    let file = file.to_str().unwrap();
    let valid = good(&run(&["validate", file]));
    assert_eq!(valid, "1 resource in 1 file is valid\n");

    put(&dir.path().join("certs/tls.key"), &pair().1);
    let error = bad(&run(&["validate", file]), 1);
    let place = "secrets.yaml:6:5: resources[0].tls_certificate.private_key: is not the private";
    assert!(error.contains(place), "{error}");
    std::fs::remove_file(dir.path().join("certs/tls.key")).unwrap();
    let error = bad(&run(&["validate", file]), 1);
    assert!(error.contains("certs/tls.key does not exist"), "{error}");
}

#[test]
fn over_the_api_no_file_is_read() {
    let server = Server::start(&[]);
    let output = server.ask_with(&["apply", "-f", "-"], SECRET);
    good(&output);
    let warning = said(&output);
    assert!(
        warning.contains("\"certs/tls.crt\" is a relative path"),
        "{warning}"
    );
    let yaml = good(&server.ask(&["get", "sds", "shop", "-o", "yaml"]));
    assert!(yaml.contains("certs/tls.crt"), "{yaml}");
}
