//! The same over TLS, with a certificate of either side.

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use trunkline::client::{ControlPlane, Pem, Security, TlsOptions};
use trunkline::listen::Listening;
use trunkline::tls::{Tls, TlsFiles};

use crate::support::{contents, held, listening, peer, sink, spawn};

/// An authority that both sides trust.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: Vec<u8>,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem().into_bytes();
        let issuer = Issuer::new(params, key);
        Self { issuer, pem }
    }

    /// A certificate for a name, and its key.
    fn issue(&self, name: &str) -> (Vec<u8>, Vec<u8>) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new([name.to_owned()]).unwrap();
        let cert = params.signed_by(&key, &self.issuer).unwrap();
        (cert.pem().into_bytes(), key.serialize_pem().into_bytes())
    }

    /// The options of a side that listens.
    fn listening(&self, folder: &std::path::Path) -> Listening {
        let (cert, key) = self.issue("localhost");
        let write = |name: &str, pem: &[u8]| {
            let path = folder.join(name);
            std::fs::write(&path, pem).unwrap();
            path
        };
        let files = TlsFiles {
            cert: write("cert.pem", &cert),
            key: write("key.pem", &key),
            client_ca: Some(write("ca.pem", &self.pem)),
        };
        Listening {
            tls: Some(Tls::load(files).unwrap()),
            ..Listening::default()
        }
    }

    /// The peer of a side that dials.
    fn peer(&self, address: std::net::SocketAddr) -> ControlPlane {
        let (cert, key) = self.issue("client");
        ControlPlane {
            security: Security::Tls(TlsOptions {
                ca: Some(Pem::Inline(self.pem.clone())),
                certificate: Some((Pem::Inline(cert), Pem::Inline(key))),
                server_name: Some("localhost".to_owned()),
            }),
            ..peer(address)
        }
    }
}

#[tokio::test]
async fn m12_both_directions_work_over_tls() {
    let authority = Authority::new();
    let folder = tempfile::tempdir().unwrap();
    for source_dials in [false, true] {
        let (source, (sink, mut owner)) = (contents(), sink(true));
        let options = authority.listening(folder.path());
        let (_serving, _dialling) = if source_dials {
            let served = sink.clone();
            let (address, serving) = listening(|socket| served.listen(socket, options)).await;
            let dialling = source.clone().dial(authority.peer(address));
            (serving, spawn(dialling))
        } else {
            let served = source.clone();
            let (address, serving) = listening(|socket| served.listen(socket, options)).await;
            let dialling = sink.clone().dial(authority.peer(address));
            (serving, spawn(dialling))
        };
        let first = [owner.next().await, owner.next().await];
        let mut lists = first.map(|(changes, _)| held(&changes));
        lists.sort();
        assert_eq!(lists, ["A: +ns/bar +ns/foo", "B: +ns/b"]);
    }
}
