//! Handshakes over loopback, with certificates made here.

use std::fs;
use std::path::Path;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, SanType};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::{PrivatePkcs8KeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::*;
use crate::Identity;

/// An authority and a directory with files from it.
struct Place {
    authority: CertifiedIssuer<'static, KeyPair>,
    dir: TempDir,
}

impl Place {
    fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params
            .distinguished_name
            .push(DnType::CommonName, "authority");
        let key = KeyPair::generate().unwrap();
        let authority = CertifiedIssuer::self_signed(params, key).unwrap();
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("ca.pem"), authority.pem()).unwrap();
        Self { authority, dir }
    }

    fn files(&self, client_ca: bool) -> TlsFiles {
        let at = |name: &str| self.dir.path().join(name);
        TlsFiles {
            cert: at("cert.pem"),
            key: at("key.pem"),
            client_ca: client_ca.then(|| at("ca.pem")),
        }
    }

    /// A certificate and its key, in PEM.
    fn make(&self, name: &str) -> (rcgen::Certificate, KeyPair) {
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        let uri = format!("spiffe://example/{name}");
        params
            .subject_alt_names
            .push(SanType::URI(uri.try_into().unwrap()));
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.authority).unwrap();
        (certificate, key)
    }

    fn write(&self, name: &str) -> Vec<u8> {
        let (certificate, key) = self.make(name);
        self.put("cert.pem", certificate.pem().as_bytes());
        self.put("key.pem", key.serialize_pem().as_bytes());
        certificate.der().to_vec()
    }

    /// As a careful program does: written beside it, then moved into its place.
    fn put(&self, file: &str, contents: &[u8]) {
        let new = self.dir.path().join("new");
        fs::write(&new, contents).unwrap();
        fs::rename(new, self.dir.path().join(file)).unwrap();
    }

    /// A client that trusts this authority; `shown` is the authority and the name
    /// of its own certificate.
    fn client(&self, shown: Option<(&Self, &str)>) -> ClientConfig {
        let mut roots = RootCertStore::empty();
        roots.add(self.authority.der().clone()).unwrap();
        let provider = Arc::new(aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let mut config = match shown {
            None => builder.with_no_client_auth(),
            Some((authority, name)) => {
                let (certificate, key) = authority.make(name);
                let key = PrivatePkcs8KeyDer::from(key.serialize_der());
                let chain = vec![certificate.der().clone()];
                builder.with_client_auth_cert(chain, key.into()).unwrap()
            }
        };
        config.alpn_protocols = vec![b"h2".to_vec()];
        config
    }
}

/// The certificate that each end saw.
struct Met {
    peer: Option<PeerCertificate>,
    protocol: Option<Vec<u8>>,
    certificate: Vec<u8>,
}

async fn meet(tls: &Tls, client: ClientConfig) -> io::Result<Met> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let server = async {
        let (stream, _) = listener.accept().await?;
        let mut stream = tls.accept(stream).await?;
        stream.write_all(b"x").await?;
        let protocol = stream.get_ref().1.alpn_protocol().map(<[u8]>::to_vec);
        io::Result::Ok((PeerCertificate::of(&stream), protocol))
    };
    let client = async {
        let stream = TcpStream::connect(address).await?;
        let name = ServerName::try_from("localhost").unwrap();
        let connector = TlsConnector::from(Arc::new(client));
        let mut stream = connector.connect(name, stream).await?;
        // A server's refusal of a certificate comes after the handshake.
        stream.read_u8().await?;
        let chain = stream.get_ref().1.peer_certificates().unwrap_or_default();
        io::Result::Ok(chain[0].to_vec())
    };
    let (server, client) = tokio::join!(server, client);
    let ((peer, protocol), certificate) = (server?, client?);
    Ok(Met {
        peer,
        protocol,
        certificate,
    })
}

#[tokio::test]
async fn a_handshake_shows_the_certificate_and_agrees_on_http_2() {
    let place = Place::new();
    let certificate = place.write("server");
    let tls = Tls::load(place.files(false)).unwrap();
    let met = meet(&tls, place.client(None)).await.unwrap();
    assert_eq!(met.certificate, certificate);
    assert_eq!(met.protocol.as_deref(), Some(&b"h2"[..]));
    assert_eq!(met.peer, None);
}

#[tokio::test]
async fn mutual_tls_refuses_who_has_no_certificate_and_names_who_has() {
    let place = Place::new();
    place.write("server");
    let tls = Tls::load(place.files(true)).unwrap();
    assert!(meet(&tls, place.client(None)).await.is_err());
    let other = Place::new();
    let stranger = place.client(Some((&other, "envoy")));
    assert!(meet(&tls, stranger).await.is_err());
    let met = meet(&tls, place.client(Some((&place, "envoy"))))
        .await
        .unwrap();
    let peer = met.peer.unwrap();
    assert_eq!(
        peer.identity(),
        Some(&Identity::Uri("spiffe://example/envoy".into()))
    );
}

#[tokio::test]
async fn new_files_are_used_by_new_connections() {
    let place = Place::new();
    place.write("old");
    let tls = Tls::load(place.files(false)).unwrap();
    assert!(tls.check_files().is_none());
    let new = place.write("new");
    assert!(matches!(tls.check_files(), Some(Ok(()))));
    assert!(tls.check_files().is_none());
    let met = meet(&tls, place.client(None)).await.unwrap();
    assert_eq!(met.certificate, new);
}

#[cfg(unix)]
#[tokio::test]
async fn the_swap_of_a_link_to_a_directory_is_a_change() {
    let place = Place::new();
    let root = place.dir.path();
    let volume = |name: &str| {
        place.write(name);
        fs::create_dir(root.join(name)).unwrap();
        for file in ["cert.pem", "key.pem"] {
            fs::rename(root.join(file), root.join(name).join(file)).unwrap();
        }
    };
    let point = |at: &str| {
        std::os::unix::fs::symlink(at, root.join("link")).unwrap();
        fs::rename(root.join("link"), root.join("..data")).unwrap();
    };
    volume("one");
    volume("two");
    point("one");
    let tls = Tls::load(TlsFiles {
        cert: root.join("..data/cert.pem"),
        key: root.join("..data/key.pem"),
        client_ca: None,
    })
    .unwrap();
    point("two");
    assert!(matches!(tls.check_files(), Some(Ok(()))));
}

#[tokio::test]
async fn a_bad_pair_is_told_once_and_changes_nothing() {
    let place = Place::new();
    let old = place.write("old");
    let tls = Tls::load(place.files(false)).unwrap();
    let good = fs::read(place.dir.path().join("key.pem")).unwrap();
    let (_, other) = place.make("other");
    place.put("key.pem", other.serialize_pem().as_bytes());
    assert!(
        tls.check_files().is_none(),
        "the certificate may be on its way"
    );
    assert!(matches!(
        tls.check_files(),
        Some(Err(TlsError::Mismatch { .. }))
    ));
    assert!(tls.check_files().is_none(), "it was told");
    let met = meet(&tls, place.client(None)).await.unwrap();
    assert_eq!(met.certificate, old);

    fs::remove_file(place.dir.path().join("key.pem")).unwrap();
    assert!(tls.check_files().is_none());
    assert!(matches!(
        tls.check_files(),
        Some(Err(TlsError::Read { .. }))
    ));

    place.put("key.pem", &good);
    assert!(
        matches!(tls.check_files(), Some(Ok(()))),
        "it is good again"
    );
    assert!(tls.check_files().is_none());
}

#[tokio::test]
async fn files_that_are_replaced_one_by_one_are_no_failure() {
    let place = Place::new();
    place.write("old");
    let tls = Tls::load(place.files(false)).unwrap();
    let (certificate, key) = place.make("new");
    place.put("cert.pem", certificate.pem().as_bytes());
    assert!(tls.check_files().is_none());
    place.put("key.pem", key.serialize_pem().as_bytes());
    assert!(matches!(tls.check_files(), Some(Ok(()))));
}

#[tokio::test]
async fn a_watch_tells_of_new_files() {
    let place = Place::new();
    place.write("old");
    let tls = Tls::load(place.files(false)).unwrap();
    place.write("new");
    let (told, mut news) = tokio::sync::mpsc::unbounded_channel();
    let watch = tls.watch(move |result| told.send(result.is_ok()).unwrap());
    tokio::select! {
        () = watch => panic!("a watch does not end"),
        ok = news.recv() => assert_eq!(ok, Some(true)),
    }
}

fn error(place: &Place) -> TlsError {
    Tls::load(place.files(true)).unwrap_err()
}

#[test]
fn an_error_names_the_file() {
    let place = Place::new();
    let names = |error: &TlsError, file: &str| {
        let path = place.dir.path().join(file);
        error.to_string().contains(&path.display().to_string())
    };
    let missing = error(&place);
    assert!(matches!(missing, TlsError::Read { .. }) && names(&missing, "cert.pem"));

    place.write("server");
    let text = |file: &str| fs::read(place.dir.path().join(file)).unwrap();
    let (cert, key, ca) = (text("cert.pem"), text("key.pem"), text("ca.pem"));

    let (_, other) = place.make("other");
    place.put("key.pem", other.serialize_pem().as_bytes());
    let mismatch = error(&place);
    assert!(matches!(mismatch, TlsError::Mismatch { .. }));
    assert!(names(&mismatch, "cert.pem") && names(&mismatch, "key.pem"));

    place.put("key.pem", &cert);
    let no_key = error(&place);
    assert!(matches!(no_key, TlsError::NoKey { .. }) && names(&no_key, "key.pem"));

    place.put(
        "key.pem",
        b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
    );
    assert!(matches!(error(&place), TlsError::Key { .. }));

    place.put("key.pem", &key);
    place.put("ca.pem", b"nothing");
    let no_ca = error(&place);
    assert!(matches!(no_ca, TlsError::NoCertificate { .. }) && names(&no_ca, "ca.pem"));

    place.put("ca.pem", &ca);
    place.put("cert.pem", b"-----BEGIN CERTIFICATE-----\n!");
    assert!(matches!(error(&place), TlsError::Pem { .. }));
}

#[test]
fn nothing_shows_the_key() {
    let place = Place::new();
    place.write("server");
    let tls = Tls::load(place.files(false)).unwrap();
    let key = fs::read_to_string(place.dir.path().join("key.pem")).unwrap();
    let shown = format!("{tls:?}");
    assert!(shown.contains(Path::new("key.pem").to_str().unwrap()));
    assert!(!key.lines().any(|line| shown.contains(line)));
}
