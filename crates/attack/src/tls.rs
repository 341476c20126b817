//! Certificates of a server behind TLS, and a client that trusts them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcgen::{CertifiedKey, generate_simple_self_signed};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::door::Protocol;
use crate::error::{Error, Result};

/// A self-signed certificate of `localhost` in files, and who trusts it.
#[derive(Clone)]
pub(crate) struct Certificates {
    cert: PathBuf,
    key: PathBuf,
    http1: TlsConnector,
    http2: TlsConnector,
}

impl std::fmt::Debug for Certificates {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Certificates").finish_non_exhaustive()
    }
}

impl Certificates {
    /// Makes them, and writes them into a folder.
    pub(crate) fn make(folder: &Path) -> Result<Self> {
        let made = generate_simple_self_signed(vec!["localhost".to_owned()]);
        let CertifiedKey { cert, signing_key } = made.map_err(fault)?;
        let (cert_file, key_file) = (folder.join("cert.pem"), folder.join("key.pem"));
        std::fs::write(&cert_file, cert.pem())?;
        std::fs::write(&key_file, signing_key.serialize_pem())?;
        Ok(Self {
            http1: connector(cert.der().clone(), b"http/1.1")?,
            http2: connector(cert.der().clone(), b"h2")?,
            cert: cert_file,
            key: key_file,
        })
    }

    /// The flags of the server.
    pub(crate) fn flags(&self) -> [String; 4] {
        let path = |path: &Path| path.display().to_string();
        let (cert, key) = (path(&self.cert), path(&self.key));
        ["--tls-cert".into(), cert, "--tls-key".into(), key]
    }

    /// TLS over a connection, on which a protocol is spoken.
    pub(crate) async fn secure(
        &self,
        socket: TcpStream,
        protocol: Protocol,
    ) -> Result<TlsStream<TcpStream>> {
        let name = ServerName::try_from("localhost").map_err(fault)?;
        let connector = match protocol {
            Protocol::Http1 => &self.http1,
            Protocol::Http2 => &self.http2,
        };
        Ok(connector.connect(name, socket).await?)
    }
}

fn connector(cert: CertificateDer<'static>, protocol: &[u8]) -> Result<TlsConnector> {
    let mut roots = RootCertStore::empty();
    roots.add(cert).map_err(fault)?;
    let mut config = ClientConfig::builder()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![protocol.to_vec()];
    Ok(TlsConnector::from(Arc::new(config)))
}

fn fault(error: impl std::fmt::Display) -> Error {
    Error::Tls(error.to_string())
}
