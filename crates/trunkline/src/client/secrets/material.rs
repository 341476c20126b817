//! From a secret to what rustls needs.

use std::path::{Path, PathBuf};

use tokio_rustls::rustls::RootCertStore;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::sign::CertifiedKey;
use trunkline_proto::envoy::envoy::config::core::v3::DataSource;
use trunkline_proto::envoy::envoy::config::core::v3::data_source::Specifier;
use trunkline_proto::envoy::envoy::extensions::transport_sockets::tls::v3::secret::Type;
use trunkline_proto::envoy::envoy::extensions::transport_sockets::tls::v3::{
    CertificateValidationContext, Secret, TlsCertificate,
};

use super::SecretError;
use super::names::Names;
use crate::client::DataSourcePolicy;
use crate::pem;

/// Authorities, and the names that a peer may have.
pub(crate) struct Trust {
    pub(super) roots: RootCertStore,
    pub(super) names: Names,
}

/// Reads a certificate with its key.
pub(super) fn certified_key(
    secret: &Secret,
    policy: &DataSourcePolicy,
) -> Result<CertifiedKey, SecretError> {
    let Some(Type::TlsCertificate(certificate)) = &secret.r#type else {
        let wanted = "tls_certificate";
        return Err(SecretError::Other { wanted });
    };
    key_pair(certificate, policy)
}

/// Reads a certificate with its key, wherever it is.
pub(crate) fn key_pair(
    certificate: &TlsCertificate,
    policy: &DataSourcePolicy,
) -> Result<CertifiedKey, SecretError> {
    if certificate.private_key_provider.is_some() {
        return Err(SecretError::Unsupported("a private key provider"));
    }
    let chain = certificate.certificate_chain.as_ref();
    let chain = read(chain, "certificate_chain", policy)?;
    let key = read(certificate.private_key.as_ref(), "private_key", policy)?;
    let provider = aws_lc_rs::default_provider();
    Ok(pem::certified_key(
        (&chain.0, &chain.1),
        (&key.0, &key.1),
        &provider,
    )?)
}

/// Reads authorities, and the names that they may vouch for. A check that is
/// not made here is refused: without it, more peers would be trusted than the
/// secret says.
pub(super) fn trust(secret: &Secret, policy: &DataSourcePolicy) -> Result<Trust, SecretError> {
    let Some(Type::ValidationContext(context)) = &secret.r#type else {
        let wanted = "validation_context";
        return Err(SecretError::Other { wanted });
    };
    validation(context, policy)
}

/// Reads a validation context, wherever it is.
pub(crate) fn validation(
    context: &CertificateValidationContext,
    policy: &DataSourcePolicy,
) -> Result<Trust, SecretError> {
    refuse_unsupported(context)?;
    let (path, bytes) = read(context.trusted_ca.as_ref(), "trusted_ca", policy)?;
    Ok(Trust {
        roots: pem::roots((&path, &bytes))?,
        names: names(context)?,
    })
}

#[expect(deprecated, reason = "the field that gRPC reads, and servers send")]
fn names(context: &CertificateValidationContext) -> Result<Names, SecretError> {
    let typed = &context.match_typed_subject_alt_names;
    Names::read(typed, &context.match_subject_alt_names)
}

fn refuse_unsupported(context: &CertificateValidationContext) -> Result<(), SecretError> {
    let unsupported = [
        (
            !context.verify_certificate_hash.is_empty(),
            "hashes of certificates",
        ),
        (
            !context.verify_certificate_spki.is_empty(),
            "hashes of public keys",
        ),
        (context.crl.is_some(), "a revocation list"),
        (
            context.custom_validator_config.is_some(),
            "a validator of its own",
        ),
        (
            context
                .require_signed_certificate_timestamp
                .is_some_and(|required| required.value),
            "signed certificate timestamps",
        ),
    ];
    match unsupported.into_iter().find(|(is_set, _)| *is_set) {
        Some((_, what)) => Err(SecretError::Unsupported(what)),
        None => Ok(()),
    }
}

/// Reads a data source: where it is, for errors, and what is there.
fn read(
    source: Option<&DataSource>,
    field: &'static str,
    policy: &DataSourcePolicy,
) -> Result<(PathBuf, Vec<u8>), SecretError> {
    let specifier = source.and_then(|source| source.specifier.as_ref());
    let here = PathBuf::from(field);
    match specifier.ok_or(SecretError::Lacks(field))? {
        Specifier::InlineBytes(bytes) => Ok((here, bytes.clone())),
        Specifier::InlineString(text) => Ok((here, text.clone().into_bytes())),
        Specifier::Filename(name) => {
            let path = Path::new(name);
            match policy.allows_file(path) {
                true => Ok((path.to_owned(), pem::read_file(path)?)),
                false => Err(SecretError::NotAllowed(name.clone())),
            }
        }
        Specifier::EnvironmentVariable(name) => match policy.allows_variable(name) {
            true => Ok((here, std::env::var(name).unwrap_or_default().into_bytes())),
            false => Err(SecretError::NotAllowed(name.clone())),
        },
    }
}
