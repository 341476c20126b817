//! TLS of the connections: whom clients trust, and who they say they are.

use std::io;
use std::path::Path;
use std::sync::Arc;

use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject as _};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore, crypto::aws_lc_rs};

use crate::error::{Error, Result};
use crate::options::Options;

/// What is wrong with a file of TLS.
#[derive(Debug, thiserror::Error)]
pub enum TlsFault {
    /// It cannot be read, or not as what it should be.
    #[error("{0}; it must be PEM")]
    Pem(#[from] pem::Error),
    /// It is PEM of something else.
    #[error("no certificate in it; it must have a section CERTIFICATE")]
    NoCertificate,
    /// What is in it cannot be used.
    #[error(transparent)]
    Unusable(#[from] rustls::Error),
}

/// How connections are made secure; clones share it.
#[derive(Clone)]
pub(crate) struct Tls {
    connector: TlsConnector,
    name: ServerName<'static>,
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tls").field("name", &self.name).finish()
    }
}

impl Tls {
    /// As the flags say, for a server at an address; none without `--tls-ca`.
    pub(crate) fn new(options: &Options, address: &str) -> Result<Option<Self>> {
        let Some(authorities) = &options.tls_ca else {
            return Ok(None);
        };
        let name = match &options.tls_name {
            Some(name) => name.as_str(),
            None => host(address),
        };
        let name = ServerName::try_from(name.to_owned()).map_err(|error| {
            Error::Usage(format!(
                "{name}: {error}; say the server's name with --tls-name"
            ))
        })?;
        let provider = Arc::new(aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(fault("--tls-ca", authorities))?
            .with_root_certificates(roots(authorities)?);
        let mut config = match (&options.tls_cert, &options.tls_key) {
            (Some(cert), Some(key)) => {
                let chain = certificates("--tls-cert", cert)?;
                let own = PrivateKeyDer::from_pem_file(key).map_err(fault("--tls-key", key))?;
                let config = builder.with_client_auth_cert(chain, own);
                config.map_err(fault("--tls-key", key))?
            }
            _ => builder.with_no_client_auth(),
        };
        config.alpn_protocols = vec![b"h2".to_vec()];
        let connector = TlsConnector::from(Arc::new(config));
        Ok(Some(Self { connector, name }))
    }

    pub(super) async fn connect(&self, socket: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        self.connector.connect(self.name.clone(), socket).await
    }
}

/// The host of an address.
fn host(address: &str) -> &str {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    host.trim_start_matches('[').trim_end_matches(']')
}

fn roots(path: &Path) -> Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates("--tls-ca", path)? {
        roots.add(certificate).map_err(fault("--tls-ca", path))?;
    }
    Ok(roots)
}

fn certificates(flag: &'static str, path: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect);
    let read: Vec<_> = read.map_err(fault(flag, path))?;
    match read.is_empty() {
        true => Err(fault(flag, path)(TlsFault::NoCertificate)),
        false => Ok(read),
    }
}

fn fault<F: Into<TlsFault>>(flag: &'static str, path: &Path) -> impl FnOnce(F) -> Error {
    let path = path.to_owned();
    move |source| Error::Tls {
        flag,
        path,
        source: source.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_host() {
        for (address, expected) in [
            ("127.0.0.1:18000", "127.0.0.1"),
            ("[::1]:18000", "::1"),
            ("xds.example.com:443", "xds.example.com"),
            ("bare", "bare"),
        ] {
            assert_eq!(host(address), expected);
        }
    }
}
