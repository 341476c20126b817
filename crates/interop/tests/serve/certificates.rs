//! Certificates made for a test, and which one somebody shows.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};

use crate::site::replace;

/// A certificate and its key, in PEM.
pub(crate) struct Certificate {
    pub(crate) chain: String,
    pub(crate) key: String,
}

/// Signs certificates.
pub(crate) struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let name = &mut params.distinguished_name;
        name.push(DnType::CommonName, "authority");
        let key = KeyPair::generate().expect("a key");
        Self(CertifiedIssuer::self_signed(params, key).expect("an authority"))
    }

    pub(crate) fn pem(&self) -> String {
        self.0.pem()
    }

    /// Another certificate for `localhost`.
    pub(crate) fn issue(&self) -> Certificate {
        let params = CertificateParams::new(vec!["localhost".to_owned()]).expect("a name");
        let key = KeyPair::generate().expect("a key");
        let signed = params.signed_by(&key, &self.0).expect("a certificate");
        Certificate {
            chain: signed.pem(),
            key: key.serialize_pem(),
        }
    }
}

impl Certificate {
    /// Writes both into files of these names.
    pub(crate) fn write(&self, folder: &Path, name: &str) -> (PathBuf, PathBuf) {
        let chain = folder.join(format!("{name}.crt"));
        let key = folder.join(format!("{name}.key"));
        replace(&chain, &self.chain);
        replace(&key, &self.key);
        (chain, key)
    }

    /// Whether it is shown at an address.
    pub(crate) fn is_shown(&self, at: SocketAddr) -> bool {
        shown(at).is_some_and(|shown| bare(&shown) == bare(&self.chain))
    }
}

/// The certificate that is shown at an address, in PEM.
fn shown(at: SocketAddr) -> Option<String> {
    let (ip, port) = (at.ip(), at.port());
    let script = format!("import ssl; print(ssl.get_server_certificate(('{ip}', {port})))");
    let mut python = Command::new(interop::python());
    let out = python.args(["-c", &script]).output().expect("python");
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    out.status.success().then_some(text)
}

/// What is left when lines may be broken anywhere.
fn bare(pem: &str) -> String {
    pem.split_whitespace().collect()
}
