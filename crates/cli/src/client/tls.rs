//! TLS of the client: the authorities that it trusts, and its certificate.

use std::path::Path;
use std::sync::Arc;

use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto::aws_lc_rs};

use crate::cli::Remote;
use crate::failure::{Failure, Result};

/// Makes the configuration of TLS from the flags. Without `--tls-ca` the
/// authorities of the system are trusted; without `--tls-cert` the client shows
/// no certificate.
///
/// # Errors
/// A file cannot be read, or the certificate and the key do not fit.
pub(super) fn make_config(remote: &Remote) -> Result<Arc<ClientConfig>> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(Failure::usage)?
        .with_root_certificates(read_roots(remote.tls_ca.as_deref())?);
    let (Some(cert), Some(key)) = (&remote.tls_cert, &remote.tls_key) else {
        return Ok(Arc::new(builder.with_no_client_auth()));
    };

    let chain = read_certificates(cert, "--tls-cert")?;
    let key = PrivateKeyDer::from_pem_file(key)
        .map_err(|error| Failure::usage(format!("--tls-key {}: {error}", key.display())))?;
    let config = builder.with_client_auth_cert(chain, key);
    config.map(Arc::new).map_err(Failure::usage)
}

/// Reads the trusted authorities from a file, or those of the system if there
/// is no file. An authority that cannot be parsed is skipped.
///
/// # Errors
/// The file cannot be read, or no authority can be parsed.
fn read_roots(path: Option<&Path>) -> Result<RootCertStore> {
    let certificates = match path {
        Some(path) => read_certificates(path, "--tls-ca")?,
        None => rustls_native_certs::load_native_certs().certs,
    };
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(certificates);
    match roots.is_empty() {
        false => Ok(roots),
        true => Err(Failure::usage(
            "no authority is known that could vouch for the server; give one with --tls-ca",
        )),
    }
}

/// Reads all certificates of a file; `flag`, which names the file, is for the
/// error.
fn read_certificates(path: &Path, flag: &str) -> Result<Vec<CertificateDer<'static>>> {
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect);
    read.map_err(|error| Failure::usage(format!("{flag} {}: {error}", path.display())))
}
