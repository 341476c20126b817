//! A server behind TLS, and clients that show certificates.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use trunkline::tls::{Tls, TlsFiles};
use trunkline::{Change, Resource, Server, kind};

use crate::tool::{bench, phase, refused, right};

/// A server with three clusters, and the files that it and its clients need.
/// Its certificate is for `xds.test`.
struct Fixture {
    dir: TempDir,
    address: String,
    _runtime: Runtime,
}

impl Fixture {
    fn new(client_ca: bool) -> Self {
        let dir = tempfile::tempdir().unwrap();
        authority(&dir.path().join("other.pem"));
        let own = authority(&dir.path().join("ca.pem"));
        pair(&own, dir.path(), "server");
        pair(&own, dir.path(), "client");
        fs::write(dir.path().join("empty.pem"), "").unwrap();
        let files = TlsFiles {
            cert: dir.path().join("server.pem"),
            key: dir.path().join("server.key"),
            client_ca: client_ca.then(|| dir.path().join("ca.pem")),
        };
        let runtime = Runtime::new().unwrap();
        let address = runtime.block_on(serve(Tls::load(files).unwrap()));
        Self {
            dir,
            address,
            _runtime: runtime,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Flags for two clients of this server; `@` stands before names of files.
    fn flags(&self, flags: &str) -> String {
        let dir = format!("{}/", self.dir.path().display());
        let own = format!("{} --driver none --clients 2 --patience 1", self.address);
        format!("{own} {}", flags.replace('@', &dir))
    }
}

async fn serve(tls: Tls) -> String {
    let server = Server::default();
    let cluster = |name: &str| {
        let body = [&[0x0a, 1], name.as_bytes()].concat();
        let resource = Resource::new(name.into(), body.into());
        Change::Upsert(kind::CDS.into(), Arc::new(resource))
    };
    server.apply(["a", "b", "c"].map(cluster).to_vec()).unwrap();
    let listener = trunkline::listen::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move { server.serve_with(listener, Some(tls)).await });
    address
}

type Authority = CertifiedIssuer<'static, KeyPair>;

fn authority(path: &Path) -> Authority {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, "bench");
    let key = KeyPair::generate().unwrap();
    let authority = CertifiedIssuer::self_signed(params, key).unwrap();
    fs::write(path, authority.pem()).unwrap();
    authority
}

/// Writes a certificate and its key.
fn pair(authority: &Authority, dir: &Path, name: &str) {
    let params = CertificateParams::new(vec!["xds.test".to_owned()]).unwrap();
    let key = KeyPair::generate().unwrap();
    let certificate = params.signed_by(&key, authority).unwrap();
    fs::write(dir.join(format!("{name}.pem")), certificate.pem()).unwrap();
    fs::write(dir.join(format!("{name}.key")), key.serialize_pem()).unwrap();
}

#[test]
fn a_server_behind_tls_is_measured() {
    let fixture = Fixture::new(false);
    for connections in ["", "--connections 1"] {
        let report = bench(&fixture.flags(&format!(
            "--tls-ca @ca.pem --tls-name xds.test {connections}"
        )));
        right(&report);
        assert_eq!(phase(&report, "connect")["count"]["resources"], 2 * 3);
    }
}

#[test]
fn clients_show_a_certificate_where_one_is_asked_for() {
    let fixture = Fixture::new(true);
    let trust = "--tls-ca @ca.pem --tls-name xds.test";
    let shown = "--tls-cert @client.pem --tls-key @client.key";
    right(&bench(&fixture.flags(&format!("{trust} {shown}"))));
    let said = refused(&fixture.flags(trust));
    assert!(said.contains("connect: 0 of 1"), "{said}");
}

#[test]
fn who_is_not_trusted_is_said_at_once() {
    let fixture = Fixture::new(false);
    for (flags, expected) in [
        ("--tls-ca @other.pem --tls-name xds.test", "no TLS with"),
        ("--tls-ca @ca.pem", "check --tls-ca and --tls-name"),
        ("--tls-ca @empty.pem", "no certificate in it"),
        ("--tls-ca @none.pem", "--tls-ca"),
        ("--tls-ca @ca.pem --tls-name not/a/name", "--tls-name"),
        (
            "--tls-ca @ca.pem --tls-cert @client.pem --tls-key @server.key",
            "--tls-key",
        ),
        ("--tls-ca @ca.pem --tls-cert @client.pem", "--tls-key"),
        ("--tls-name xds.test", "--tls-ca"),
    ] {
        let said = refused(&fixture.flags(flags));
        assert!(said.contains(expected), "{flags}: {said}");
    }
    let said = refused(&format!("--tls-ca {}", fixture.path("ca.pem").display()));
    assert!(said.contains("speak no TLS"), "{said}");
}
