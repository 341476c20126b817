//! Access to the API: tokens, certificates, browsers.
#![allow(clippy::unwrap_used)]

mod support;

use std::path::Path;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use support::{CLUSTER, Server, bad, good, put, run_with};

#[test]
fn a_token_is_asked_for_and_may_be_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("token");
    put(&file, "sesame\n");
    let path = file.to_str().unwrap();
    let server = Server::start(&["--admin-token-file", path]);
    let error = bad(&server.ask_with(&["apply", "-f", "-"], CLUSTER), 1);
    assert!(error.contains("--token-file"), "{error}");
    let with = ["apply", "-f", "-", "--token-file", path];
    good(&server.ask_with(&with, CLUSTER));
    good(&server.ask(&["get", "cds"]));
    // The server reads the file anew; the old token is refused.
    let old = dir.path().join("old");
    put(&old, "sesame");
    put(&file, "rose\n");
    let stale = ["apply", "-f", "-", "--token-file", old.to_str().unwrap()];
    let error = bad(&server.ask_with(&stale, CLUSTER), 1);
    assert!(error.contains("not the right one"), "{error}");
    good(&server.ask_with(&with, CLUSTER));
}

#[test]
fn a_token_file_that_is_empty_is_refused_at_the_start() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("token");
    put(&file, "\n");
    let flags = ["serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"];
    let mut args = flags.to_vec();
    args.extend(["--admin-token-file", file.to_str().unwrap()]);
    let error = bad(&run_with(&args, ""), 1);
    assert!(error.contains("is empty"), "{error}");
}

#[test]
fn pages_of_other_sites_may_not_write_and_bent_names_may_not_ask() {
    let server = Server::start(&[]);
    let post =
        |headers: &[(&str, &str)]| server.http("POST", "/api/v1/resources", headers, CLUSTER).0;
    assert_eq!(post(&[("origin", "http://evil.example")]), 403);
    assert_eq!(post(&[("host", "evil.example")]), 421);
    let own = format!("http://{}", server.admin);
    assert_eq!(post(&[("origin", &own)]), 200);
    let evil = [("host", "evil.example")];
    assert_eq!(server.http("GET", "/config_dump", &evil, "").0, 421);
    assert_eq!(server.http("GET", "/metrics", &evil, "").0, 200);
}

/// Certificates from an authority made here.
struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        Self(CertifiedIssuer::self_signed(params, key).unwrap())
    }

    fn issue(&self, dir: &Path, file: &str, name: &str) -> (String, String) {
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let key = KeyPair::generate().unwrap();
        let cert = params.signed_by(&key, &self.0).unwrap();
        let at = |end: &str| dir.join(format!("{file}.{end}"));
        std::fs::write(at("crt"), cert.pem()).unwrap();
        std::fs::write(at("key"), key.serialize_pem()).unwrap();
        let text = |end: &str| at(end).to_str().unwrap().to_owned();
        (text("crt"), text("key"))
    }
}

#[test]
fn with_mutual_tls_a_certificate_is_who_writes() {
    let dir = tempfile::tempdir().unwrap();
    let authority = Authority::new();
    let ca = dir.path().join("ca.crt");
    std::fs::write(&ca, authority.0.pem()).unwrap();
    let ca = ca.to_str().unwrap();
    let (cert, key) = authority.issue(dir.path(), "server", "localhost");
    let (mine, my_key) = authority.issue(dir.path(), "client", "ops.example");
    let audit = dir.path().join("audit.log");
    let audit = audit.to_str().unwrap();
    let server = Server::start(&[
        "--tls-cert",
        &cert,
        "--tls-key",
        &key,
        "--tls-client-ca",
        ca,
        "--audit-log",
        audit,
    ]);
    let admin = format!("https://localhost:{}", server.admin.port());
    let ask = |flags: &[&str]| {
        let mut args = vec!["apply", "-f", "-", "--admin", &admin];
        args.extend(flags);
        run_with(&args, CLUSTER)
    };
    good(&ask(&[
        "--tls-ca",
        ca,
        "--tls-cert",
        &mine,
        "--tls-key",
        &my_key,
    ]));
    bad(&ask(&["--tls-ca", ca]), 3);
    let stranger = Authority::new();
    let (theirs, their_key) = stranger.issue(dir.path(), "stranger", "ops.example");
    bad(
        &ask(&[
            "--tls-ca",
            ca,
            "--tls-cert",
            &theirs,
            "--tls-key",
            &their_key,
        ]),
        3,
    );
    let lines = std::fs::read_to_string(audit).unwrap();
    assert!(lines.contains("\"who\":\"api ops.example\""), "{lines}");
    assert_eq!(lines.lines().count(), 1);
}

#[test]
fn tls_needs_both_of_its_files() {
    let error = bad(&run_with(&["serve", "--tls-cert", "x"], ""), 2);
    assert!(error.contains("--tls-cert needs --tls-key"), "{error}");
    let flags = ["serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"];
    let mut args = flags.to_vec();
    args.extend(["--tls-cert", "no/such.crt", "--tls-key", "no/such.key"]);
    let error = bad(&run_with(&args, ""), 1);
    assert!(error.contains("no/such.crt"), "{error}");
}
