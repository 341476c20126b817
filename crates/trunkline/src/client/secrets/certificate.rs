//! A certificate of SDS, for both ends of TLS.

use std::fmt;
use std::sync::Arc;

use tokio_rustls::rustls::SignatureScheme;
use tokio_rustls::rustls::client::ResolvesClientCert;
use tokio_rustls::rustls::server::{ClientHello, ResolvesServerCert};
use tokio_rustls::rustls::sign::CertifiedKey;
use trunkline_proto::envoy::envoy::extensions::transport_sockets::tls::v3::Secret;

use super::SecretError;
use super::follow::Followed;
use super::material;
use crate::client::{DataSourcePolicy, Watch};

/// The certificate of a secret, with its key, which rotates as the secret does:
/// for `ServerConfig::with_cert_resolver` and
/// `ClientConfig::with_client_cert_resolver` of rustls.
///
/// ```no_run
/// use std::sync::Arc;
/// use tokio_rustls::rustls::ServerConfig;
/// use trunkline::client::secrets::SecretCertificate;
/// use trunkline::client::{Client, DataSourcePolicy};
/// use trunkline::envoy::extensions::transport_sockets::tls::v3::Secret;
///
/// # async fn run(client: &Client) -> Result<(), Box<dyn std::error::Error>> {
/// let secret = client.subscribe::<Secret>("server-cert")?.watch();
/// let certificate = Arc::new(SecretCertificate::follow(secret, DataSourcePolicy::default()));
/// certificate.ready().await?;
/// let config = ServerConfig::builder()
///     .with_no_client_auth()
///     .with_cert_resolver(certificate);
/// # Ok(())
/// # }
/// ```
pub struct SecretCertificate(Followed<CertifiedKey>);

impl SecretCertificate {
    /// Follows a secret, in a task of the present runtime, until this value is
    /// dropped. The policy says which files the control plane may name.
    #[must_use]
    pub fn follow(secret: Watch<Secret>, policy: DataSourcePolicy) -> Self {
        Self(Followed::start(secret, move |secret| {
            material::read_certified_key(secret, &policy)
        }))
    }

    /// Waits until there is a certificate.
    ///
    /// # Errors
    /// There is none, and why. A later one is taken all the same.
    pub async fn ready(&self) -> Result<(), SecretError> {
        self.0.ready().await
    }

    /// Returns what is wrong with the newest state of the secret, if anything
    /// is. The last good certificate is used meanwhile.
    #[must_use]
    pub fn problem(&self) -> Option<SecretError> {
        self.0.problem()
    }
}

impl fmt::Debug for SecretCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecretCertificate").finish_non_exhaustive()
    }
}

impl ResolvesServerCert for SecretCertificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.0.current()
    }
}

impl ResolvesClientCert for SecretCertificate {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        self.0.current()
    }

    fn has_certs(&self) -> bool {
        self.0.current().is_some()
    }
}
