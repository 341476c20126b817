//! Authorities of SDS, by which either end of TLS checks the other.

use std::fmt;
use std::sync::Arc;

use tokio_rustls::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use tokio_rustls::rustls::client::verify_server_name;
use tokio_rustls::rustls::crypto::{
    WebPkiSupportedAlgorithms, aws_lc_rs, verify_tls12_signature, verify_tls13_signature,
};
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::server::ParsedCertificate;
use tokio_rustls::rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use tokio_rustls::rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, SignatureScheme,
};
use trunkline_proto::envoy::envoy::extensions::transport_sockets::tls::v3::Secret;
use webpki::{EndEntityCert, KeyUsage};

use super::SecretError;
use super::follow::Followed;
use super::material::{self, Trust};
use crate::client::{DataSourcePolicy, Watch};

/// The authorities of a secret's validation context, which rotate as the secret
/// does: for `ClientConfig`, as a verifier of servers, and for `ServerConfig`,
/// as one of clients.
///
/// Where the context has matchers of names, a peer needs a certificate with a
/// name that one of them accepts. Where it has none, a server needs one for the
/// name that was dialled, as with any verifier of rustls, and a client any.
/// Until there are authorities nobody is trusted.
pub struct SecretVerifier {
    trust: Followed<Trust>,
    algorithms: WebPkiSupportedAlgorithms,
    /// Whether a server needs a certificate with the name that was dialled, where
    /// there is no matcher.
    checks_dialled_name: bool,
}

impl SecretVerifier {
    /// Follows a secret, in a task of the present runtime, until this value is
    /// dropped. The policy says which files the control plane may name.
    #[must_use]
    pub fn follow(secret: Watch<Secret>, policy: DataSourcePolicy) -> Self {
        Self {
            trust: Followed::start(secret, move |secret| material::read_trust(secret, &policy)),
            algorithms: aws_lc_rs::default_provider().signature_verification_algorithms,
            checks_dialled_name: true,
        }
    }

    /// Makes a verifier by authorities that do not change.
    /// `checks_dialled_name` says whether a server needs the name that was
    /// dialled where there is no matcher.
    #[cfg(feature = "channel")]
    pub(crate) fn fixed(trust: Trust, checks_dialled_name: bool) -> Self {
        Self {
            trust: Followed::fixed(trust),
            algorithms: aws_lc_rs::default_provider().signature_verification_algorithms,
            checks_dialled_name,
        }
    }

    /// Waits until there are authorities.
    ///
    /// # Errors
    /// There are none, and why. Later ones are taken all the same.
    pub async fn ready(&self) -> Result<(), SecretError> {
        self.trust.ready().await
    }

    /// Returns what is wrong with the newest state of the secret, if anything
    /// is. The last good authorities are used meanwhile.
    #[must_use]
    pub fn problem(&self) -> Option<SecretError> {
        self.trust.problem()
    }

    /// Checks that a certificate authority of the secret vouches for a
    /// certificate, for one use, and that a name of the certificate matches.
    /// Returns `false` if the secret lists no names, so that none was checked.
    fn verify(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
        usage: KeyUsage,
    ) -> Result<bool, Error> {
        let trust = self.trust.current();
        let trust: Arc<Trust> = trust.ok_or(CertificateError::UnknownIssuer)?;
        let end_entity = EndEntityCert::try_from(certificate);
        let end_entity = end_entity.map_err(|_| CertificateError::BadEncoding)?;

        let path = end_entity.verify_for_usage(
            self.algorithms.all,
            &trust.roots.roots,
            intermediates,
            now,
            usage,
            None,
            None,
        );
        path.map_err(chain_error)?;

        if trust.names.is_empty() {
            return Ok(false);
        }
        if trust.names.accept(&end_entity) {
            Ok(true)
        } else {
            Err(CertificateError::NotValidForName.into())
        }
    }
}

/// Translates an error of webpki about a chain into the error of rustls, which
/// tells the peer.
fn chain_error(error: webpki::Error) -> Error {
    let error = match error {
        webpki::Error::CertExpired { .. } => CertificateError::Expired,
        webpki::Error::CertNotValidYet { .. } => CertificateError::NotValidYet,
        webpki::Error::UnknownIssuer => CertificateError::UnknownIssuer,
        webpki::Error::InvalidSignatureForPublicKey => CertificateError::BadSignature,
        _ => CertificateError::ApplicationVerificationFailure,
    };
    error.into()
}

impl fmt::Debug for SecretVerifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecretVerifier").finish_non_exhaustive()
    }
}

impl ServerCertVerifier for SecretVerifier {
    /// Checks the name that was dialled only if the secret lists no names.
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let usage = KeyUsage::server_auth();
        if !self.verify(certificate, intermediates, now, usage)? && self.checks_dialled_name {
            verify_server_name(&ParsedCertificate::try_from(certificate)?, name)?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signature, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

impl ClientCertVerifier for SecretVerifier {
    /// None: the authorities may have changed when a client reads it.
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    /// Accepts any name if the secret lists none.
    fn verify_client_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.verify(certificate, intermediates, now, KeyUsage::client_auth())?;
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signature, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
