//! From the contents of the files to a rustls configuration.

use std::path::Path;
use std::sync::Arc;

use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::{CryptoProvider, aws_lc_rs};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::server::danger::ClientCertVerifier;
use tokio_rustls::rustls::sign::SingleCertAndKey;

use super::TlsError;
use super::files::{Contents, TlsFiles};
use crate::pem;

/// HTTP/2 first: gRPC has no other.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// Builds a configuration of the contents of the files. The paths of `files`
/// are for errors. Clients need a certificate if there are authorities for it.
pub(super) fn build(files: &TlsFiles, contents: &Contents) -> Result<Arc<ServerConfig>, TlsError> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let cert = (files.cert.as_path(), &contents.cert[..]);
    let key = (files.key.as_path(), &contents.key[..]);
    let certified_key = pem::read_certified_key(cert, key, &provider)?;

    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(TlsError::Versions)?;
    let ca_path = files.client_ca.as_deref();
    let builder = match ca_path.zip(contents.client_ca.as_deref()) {
        Some((path, pem)) => {
            builder.with_client_cert_verifier(build_client_verifier(path, pem, provider)?)
        }
        None => builder.with_no_client_auth(),
    };

    let mut config = builder.with_cert_resolver(Arc::new(SingleCertAndKey::from(certified_key)));
    config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).to_vec();
    Ok(Arc::new(config))
}

/// Returns a verifier of clients' certificates by the authorities in a PEM
/// file.
fn build_client_verifier(
    path: &Path,
    contents: &[u8],
    provider: Arc<CryptoProvider>,
) -> Result<Arc<dyn ClientCertVerifier>, TlsError> {
    let roots = pem::read_roots((path, contents))?;
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
    verifier
        .map(|verifier| verifier as _)
        .map_err(|source| TlsError::ClientCa {
            path: path.to_owned(),
            source,
        })
}
