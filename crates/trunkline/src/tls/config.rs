//! From the contents of the files to a rustls configuration.

use std::path::Path;
use std::sync::Arc;

use tokio_rustls::rustls::crypto::{CryptoProvider, aws_lc_rs};
use tokio_rustls::rustls::pki_types::pem::{self, PemObject as _};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::server::danger::ClientCertVerifier;
use tokio_rustls::rustls::sign::{CertifiedKey, SingleCertAndKey};
use tokio_rustls::rustls::{Error, InconsistentKeys, RootCertStore, ServerConfig};

use super::TlsError;
use super::files::{Contents, TlsFiles};

/// HTTP/2 first: gRPC has no other.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// Builds a configuration of the contents of the files; their paths are for
/// errors. Clients need a certificate if there are authorities for it.
pub(super) fn build(files: &TlsFiles, contents: &Contents) -> Result<Arc<ServerConfig>, TlsError> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let certified = read_certified_key(files, contents, &provider)?;

    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(TlsError::Versions)?;
    let ca_path = files.client_ca.as_deref();
    let builder = match ca_path.zip(contents.client_ca.as_deref()) {
        Some((path, pem)) => {
            builder.with_client_cert_verifier(client_verifier(path, pem, provider)?)
        }
        None => builder.with_no_client_auth(),
    };

    let mut config = builder.with_cert_resolver(Arc::new(SingleCertAndKey::from(certified)));
    config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).to_vec();
    Ok(Arc::new(config))
}

/// Reads the certificates and the key of the server, and checks that they fit.
fn read_certified_key(
    files: &TlsFiles,
    contents: &Contents,
    provider: &CryptoProvider,
) -> Result<CertifiedKey, TlsError> {
    let chain = read_certificates(&files.cert, &contents.cert)?;

    let key = PrivateKeyDer::from_pem_slice(&contents.key).map_err(|error| {
        let path = files.key.clone();
        match error {
            pem::Error::NoItemsFound => TlsError::NoKey { path },
            _ => TlsError::Pem { path },
        }
    })?;
    let key = provider.key_provider.load_private_key(key);
    let key = key.map_err(|source| TlsError::Key {
        path: files.key.clone(),
        source,
    })?;

    let certified = CertifiedKey::new(chain, key);
    match certified.keys_match() {
        // Not every key can derive its public half, which is no fault of it.
        Ok(()) | Err(Error::InconsistentKeys(InconsistentKeys::Unknown)) => Ok(certified),
        Err(Error::InconsistentKeys(_)) => Err(TlsError::Mismatch {
            cert: files.cert.clone(),
            key: files.key.clone(),
        }),
        Err(source) => Err(TlsError::Certificate {
            path: files.cert.clone(),
            source,
        }),
    }
}

/// Reads the certificates in a PEM file, of which there has to be one at least.
fn read_certificates(path: &Path, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let path = path.to_owned();
    match found {
        Err(_) => Err(TlsError::Pem { path }),
        Ok(found) if found.is_empty() => Err(TlsError::NoCertificate { path }),
        Ok(found) => Ok(found),
    }
}

/// Makes a verifier of clients' certificates from the authorities in a PEM
/// file.
fn client_verifier(
    path: &Path,
    pem: &[u8],
    provider: Arc<CryptoProvider>,
) -> Result<Arc<dyn ClientCertVerifier>, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in read_certificates(path, pem)? {
        roots
            .add(certificate)
            .map_err(|source| TlsError::Certificate {
                path: path.to_owned(),
                source,
            })?;
    }

    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
    verifier
        .map(|verifier| verifier as _)
        .map_err(|source| TlsError::ClientCa {
            path: path.to_owned(),
            source,
        })
}
