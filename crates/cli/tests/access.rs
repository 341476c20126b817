//! Access to the API: tokens, certificates, browsers.
#![allow(clippy::unwrap_used)]

mod support;

use std::net::SocketAddr;
use std::path::Path;
use std::process::Output;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use support::{CLUSTER, Server, bad, good, put, run_with, until};

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

/// Authorities of a fleet and of operators, and certificates from both.
struct Trust {
    dir: tempfile::TempDir,
    /// Trusted by everybody for the certificate of the server.
    fleet_ca: String,
    ops_ca: String,
    server: (String, String),
    envoy: (String, String),
    ops: (String, String),
    dev: (String, String),
}

impl Trust {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (fleet, operators) = (Authority::new(), Authority::new());
        let write = |name: &str, authority: &Authority| {
            let path = dir.path().join(name);
            std::fs::write(&path, authority.0.pem()).unwrap();
            path.to_str().unwrap().to_owned()
        };
        Self {
            fleet_ca: write("fleet.pem", &fleet),
            ops_ca: write("operators.pem", &operators),
            server: fleet.issue(dir.path(), "server", "localhost"),
            envoy: fleet.issue(dir.path(), "envoy", "envoy.example"),
            ops: operators.issue(dir.path(), "ops", "ops.example"),
            dev: operators.issue(dir.path(), "dev", "dev.example"),
            dir,
        }
    }

    /// Starts a server for the fleet, with these flags beside.
    fn serve(&self, flags: &[&str]) -> Server {
        let (cert, key) = &self.server;
        let tls = [
            "--tls-cert",
            cert,
            "--tls-key",
            key,
            "--tls-client-ca",
            &self.fleet_ca,
        ];
        Server::start(&[&tls[..], flags].concat())
    }

    /// Runs a command at an address with a certificate, or without.
    fn ask(&self, at: SocketAddr, own: Option<&(String, String)>, args: &[&str]) -> Output {
        let at = format!("https://localhost:{}", at.port());
        let mut all = args.to_vec();
        all.extend(["--admin", &at, "--tls-ca", &self.fleet_ca]);
        if let Some((cert, key)) = own {
            all.extend(["--tls-cert", cert, "--tls-key", key]);
        }
        run_with(&all, CLUSTER)
    }
}

const APPLY: [&str; 3] = ["apply", "-f", "-"];

/// Asserts that the server wants another certificate. Its reason may be lost, if
/// it closes the connection at once.
fn wants_certificate(output: &Output) {
    let error = bad(output, 3);
    let end = "a certificate that it trusts; show one with --tls-cert and --tls-key\n";
    let end_without_reason = "a certificate, show one with --tls-cert and --tls-key\n";
    assert!(
        error.ends_with(end) || error.ends_with(end_without_reason),
        "{error}"
    );
}

#[test]
fn a_certificate_of_the_fleet_is_not_an_operators() {
    let trust = Trust::new();
    let audit = trust.dir.path().join("audit.log");
    let server = trust.serve(&[
        "--admin-tls-client-ca",
        &trust.ops_ca,
        "--audit-log",
        audit.to_str().unwrap(),
    ]);
    // An xDS client is one of the fleet; no page of the admin API is there.
    let error = bad(&trust.ask(server.listen, Some(&trust.envoy), &["get"]), 1);
    assert!(!error.contains("cannot reach"), "{error}");
    wants_certificate(&trust.ask(server.listen, Some(&trust.ops), &["get"]));
    wants_certificate(&trust.ask(server.listen, None, &["get"]));

    for args in [&APPLY[..], &["get"]] {
        wants_certificate(&trust.ask(server.admin, Some(&trust.envoy), args));
        wants_certificate(&trust.ask(server.admin, None, args));
        good(&trust.ask(server.admin, Some(&trust.ops), args));
    }
    let lines = until("the audit log", || {
        let lines = std::fs::read_to_string(&audit).unwrap();
        (!lines.is_empty()).then_some(lines)
    });
    assert!(lines.contains("\"who\":\"api ops.example\""), "{lines}");
    assert_eq!(lines.lines().count(), 1);
}

#[test]
fn operators_may_be_named() {
    let trust = Trust::new();
    let flags = ["--admin-tls-client-ca", &trust.ops_ca];
    let server = trust.serve(&[&flags[..], &["--admin-allow", "dns:ops.*"]].concat());
    good(&trust.ask(server.admin, Some(&trust.ops), &APPLY));
    let error = bad(&trust.ask(server.admin, Some(&trust.dev), &APPLY), 1);
    assert!(
        error.contains("dev.example") && error.contains("--admin-allow"),
        "{error}"
    );
    good(&trust.ask(server.admin, Some(&trust.dev), &["get"]));
    let server = trust.serve(
        &[
            &flags[..],
            &["--admin-allow", "dns:ops.*", "--admin-auth-reads"],
        ]
        .concat(),
    );
    good(&trust.ask(server.admin, Some(&trust.ops), &["get"]));
    bad(&trust.ask(server.admin, Some(&trust.dev), &["get"]), 1);
}

#[test]
fn a_certificate_of_the_fleet_is_no_token() {
    let trust = Trust::new();
    let token = trust.dir.path().join("token");
    put(&token, "sesame\n");
    let token = token.to_str().unwrap();
    let server = trust.serve(&["--admin-token-file", token]);
    for own in [Some(&trust.envoy), None] {
        let error = bad(&trust.ask(server.admin, own, &APPLY), 1);
        assert!(error.contains("--token-file"), "{error}");
        let with_token = [&APPLY[..], &["--token-file", token]].concat();
        good(&trust.ask(server.admin, own, &with_token));
    }
}

#[test]
fn probes_have_an_address_of_their_own() {
    let trust = Trust::new();
    let server = trust.serve(&[
        "--admin-tls-client-ca",
        &trust.ops_ca,
        "--health",
        "127.0.0.1:0",
    ]);
    let line = server.running.logged("ready");
    let health = line["health"].as_str().unwrap().parse().unwrap();
    let get = |path: &str| Server::http_at(health, "GET", path, &[("host", "pod")], "");
    assert_eq!(get("/ready"), (200, "LIVE\n".to_owned()));
    assert!(get("/metrics").1.contains("trunkline_ready 1"));
    for path in ["/", "/config_dump", "/api/v1/status", "/api/v1/resources"] {
        assert_eq!(get(path).0, 404, "{path}");
    }
    let write = Server::http_at(health, "POST", "/api/v1/resources", &[], CLUSTER);
    assert_eq!(write.0, 404);
}

#[test]
fn probes_hear_that_a_server_is_not_ready_and_nothing_of_its_files() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.yaml");
    put(&file, "resources: [nothing]\n");
    let file = file.to_str().unwrap();
    let server = Server::start_until(
        &["--config", file, "--health", "127.0.0.1:0"],
        "waiting for the first contents",
    );
    let line = server.running.logged("waiting for the first contents");
    let health = line["health"].as_str().unwrap().parse().unwrap();
    let (status, text) = Server::http_at(health, "GET", "/ready", &[], "");
    assert_eq!(status, 503);
    assert_eq!(text, "INITIALIZING: the first contents are not complete\n");
    assert!(server.get("/ready").1.contains(file));
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
