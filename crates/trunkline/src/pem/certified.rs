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

/// Reads certificates and their key, and checks that they fit.
pub(crate) fn certified_key(
    cert: Part<'_>,
    key: Part<'_>,
    provider: &CryptoProvider,
) -> Result<CertifiedKey, TlsError> {
    let chain = read_certificates(cert)?;

    let (path, pem) = key;
    let der = PrivateKeyDer::from_pem_slice(pem).map_err(|error| {
        let path = path.to_owned();
        match error {
            pem::Error::NoItemsFound => TlsError::NoKey { path },
            _ => TlsError::Pem { path },
        }
    })?;
    let loaded = provider.key_provider.load_private_key(der);
    let loaded = loaded.map_err(|source| TlsError::Key {
        path: path.to_owned(),
        source,
    })?;

    let certified = CertifiedKey::new(chain, loaded);
    match certified.keys_match() {
        // Not every key can derive its public half, which is no fault of it.
        Ok(()) | Err(Error::InconsistentKeys(InconsistentKeys::Unknown)) => Ok(certified),
        Err(Error::InconsistentKeys(_)) => Err(TlsError::Mismatch {
            cert: cert.0.to_owned(),
            key: path.to_owned(),
        }),
        Err(source) => Err(TlsError::Certificate {
            path: cert.0.to_owned(),
            source,
        }),
    }
}

/// Reads certificates, of which there has to be one at least.
fn read_certificates((path, pem): Part<'_>) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let path = path.to_owned();
    match found {
        Err(_) => Err(TlsError::Pem { path }),
        Ok(found) if found.is_empty() => Err(TlsError::NoCertificate { path }),
        Ok(found) => Ok(found),
    }
}

/// Reads certificates of authorities.
pub(crate) fn roots(part: Part<'_>) -> Result<RootCertStore, TlsError> {
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
