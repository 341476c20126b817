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
    let error = bad(&ask(&["--tls-ca", ca]), 3);
    // The reason of the server may be lost, if it closes the connection at once.
    let start = format!("error: cannot reach the server at {admin}: it ");
    assert!(error.starts_with(&start), "{error}");
    let end = "a certificate that it trusts; show one with --tls-cert and --tls-key\n";
    let end_without_reason = "a certificate, show one with --tls-cert and --tls-key\n";
    assert!(
        error.ends_with(end) || error.ends_with(end_without_reason),
        "{error}"
    );
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
fn plain_text_to_a_port_of_tls_and_tls_to_one_of_plain_text_are_told() {
    let dir = tempfile::tempdir().unwrap();
    let authority = Authority::new();
    let ca = dir.path().join("ca.crt");
    std::fs::write(&ca, authority.0.pem()).unwrap();
    let ca = ca.to_str().unwrap();
    let (cert, key) = authority.issue(dir.path(), "server", "localhost");
    let secure = Server::start(&["--tls-cert", &cert, "--tls-key", &key]);
    let plain = Server::start(&[]);
    let status = |admin: &str, flags: &[&str]| {
        let args = [&["status", "--admin", admin], flags].concat();
        bad(&run_with(&args, ""), 3)
    };

    let (https, http) = (secure.admin, plain.admin);
    assert_eq!(
        status(&https.to_string(), &[]),
        format!(
            "error: cannot reach the server at http://{https}: it speaks TLS; write --admin \
             https://{https}, with --tls-ca if no authority of the system vouches for it\n"
        )
    );
    assert_eq!(
        status(&format!("https://{http}"), &["--tls-ca", ca]),
        format!(
            "error: cannot reach the server at https://{http}: it does not speak TLS; write \
             --admin http://{http}\n"
        )
    );
    let strange = dir.path().join("strange.crt");
    std::fs::write(&strange, Authority::new().0.pem()).unwrap();
    let admin = format!("https://localhost:{}", https.port());
    let error = status(&admin, &["--tls-ca", strange.to_str().unwrap()]);
    let expected =
        format!("error: cannot reach the server at {admin}: its certificate is not trusted: ");
    assert!(error.starts_with(&expected), "{error}");
    assert!(
        error.contains("name its authority with --tls-ca"),
        "{error}"
    );

    // The server tells it too, once for each host.
    let message = "a client speaks plain text to a port of TLS";
    let line = secure.running.logged(message);
    assert!(line["peer"].as_str().unwrap().starts_with("127.0.0.1:"));
    assert_eq!(line["local"], https.to_string());
    let listen = secure.listen;
    let mut socket = std::net::TcpStream::connect(listen).unwrap();
    std::io::Write::write_all(&mut socket, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    let _ = std::io::Read::read_to_end(&mut socket, &mut answer);
    let lines = secure.running.log();
    let told = lines.iter().filter(|line| {
        let text = line["message"].as_str().unwrap_or_default();
        text.contains(message)
    });
    assert_eq!(told.count(), 1);
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
