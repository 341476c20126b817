//! From PEM to values of rustls: certificates, a key that fits them, and
//! authorities.

use std::path::Path;

use tokio_rustls::rustls::crypto::CryptoProvider;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject as _};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::sign::CertifiedKey;
use tokio_rustls::rustls::{Error, InconsistentKeys, RootCertStore};

use super::TlsError;

/// A path, which is for errors, and the PEM that is there.
type Part<'a> = (&'a Path, &'a [u8]);

/// Parses certificates and their key, and checks that they belong together.
pub(crate) fn read_certified_key(
    cert: Part<'_>,
    key: Part<'_>,
    provider: &CryptoProvider,
) -> Result<CertifiedKey, TlsError> {
    let chain = read_certificates(cert)?;
    let (cert_path, _) = cert;

    let (key_path, pem) = key;
    let der = PrivateKeyDer::from_pem_slice(pem).map_err(|error| {
        let path = key_path.to_owned();
        match error {
            pem::Error::NoItemsFound => TlsError::NoKey { path },
            _ => TlsError::Pem { path },
        }
    })?;
    let signing_key = provider.key_provider.load_private_key(der);
    let signing_key = signing_key.map_err(|source| TlsError::Key {
        path: key_path.to_owned(),
        source,
    })?;

    let certified_key = CertifiedKey::new(chain, signing_key);
    match certified_key.keys_match() {
        // Not every key can derive its public half, which is no fault of it.
        Ok(()) | Err(Error::InconsistentKeys(InconsistentKeys::Unknown)) => Ok(certified_key),
        Err(Error::InconsistentKeys(_)) => Err(TlsError::Mismatch {
            cert: cert_path.to_owned(),
            key: key_path.to_owned(),
        }),
        Err(source) => Err(TlsError::Certificate {
            path: cert_path.to_owned(),
            source,
        }),
    }
}

/// Parses certificates. Returns an error if there is none.
fn read_certificates((path, pem): Part<'_>) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let path = path.to_owned();
    match certificates {
        Err(_) => Err(TlsError::Pem { path }),
        Ok(certificates) if certificates.is_empty() => Err(TlsError::NoCertificate { path }),
        Ok(certificates) => Ok(certificates),
    }
}

/// Parses the certificates of certificate authorities.
pub(crate) fn read_roots(part: Part<'_>) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in read_certificates(part)? {
        roots
            .add(certificate)
            .map_err(|source| TlsError::Certificate {
                path: part.0.to_owned(),
                source,
            })?;
    }
    Ok(roots)
}
