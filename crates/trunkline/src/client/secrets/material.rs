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

/// Reads a certificate with its key. A secret of another kind, or one with a
/// private key provider, is an error.
pub(super) fn read_certified_key(
    secret: &Secret,
    policy: &DataSourcePolicy,
) -> Result<CertifiedKey, SecretError> {
    let Some(Type::TlsCertificate(certificate)) = &secret.r#type else {
        let wanted = "tls_certificate";
        return Err(SecretError::Other { wanted });
    };
    key_pair(certificate, policy)
}

/// Reads a certificate with its key, from a secret or from a TLS context that has
/// it inside.
pub(crate) fn key_pair(
    certificate: &TlsCertificate,
    policy: &DataSourcePolicy,
) -> Result<CertifiedKey, SecretError> {
    if certificate.private_key_provider.is_some() {
        return Err(SecretError::Unsupported("a private key provider"));
    }

    let chain = certificate.certificate_chain.as_ref();
    let (chain_path, chain) = read_data_source(chain, "certificate_chain", policy)?;
    let key = certificate.private_key.as_ref();
    let (key_path, key) = read_data_source(key, "private_key", policy)?;
    let provider = aws_lc_rs::default_provider();
    let key = pem::read_certified_key((&chain_path, &chain), (&key_path, &key), &provider)?;
    Ok(key)
}

/// Reads the certificate authorities of a secret, and the names that a peer may
/// have. A check that is not implemented is an error: without that check, more
/// peers would be trusted than the secret says.
pub(super) fn read_trust(secret: &Secret, policy: &DataSourcePolicy) -> Result<Trust, SecretError> {
    let Some(Type::ValidationContext(context)) = &secret.r#type else {
        let wanted = "validation_context";
        return Err(SecretError::Other { wanted });
    };
    validation(context, policy)
}

/// Reads a validation context, from a secret or from a TLS context that has it
/// inside.
pub(crate) fn validation(
    context: &CertificateValidationContext,
    policy: &DataSourcePolicy,
) -> Result<Trust, SecretError> {
    refuse_unsupported(context)?;
    let (path, bytes) = read_data_source(context.trusted_ca.as_ref(), "trusted_ca", policy)?;
    Ok(Trust {
        roots: pem::read_roots((&path, &bytes))?,
        names: names(context)?,
    })
}

/// Reads the matchers of names of a validation context, typed and untyped.
#[expect(deprecated, reason = "the field that gRPC reads, and servers send")]
fn names(context: &CertificateValidationContext) -> Result<Names, SecretError> {
    let typed = &context.match_typed_subject_alt_names;
    Names::read(typed, &context.match_subject_alt_names)
}

/// Refuses a validation context that asks for a check which is not made here.
fn refuse_unsupported(context: &CertificateValidationContext) -> Result<(), SecretError> {
    let checks = [
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
                .is_some_and(|flag| flag.value),
            "signed certificate timestamps",
        ),
    ];
    match checks.into_iter().find(|(is_set, _)| *is_set) {
        Some((_, check)) => Err(SecretError::Unsupported(check)),
        None => Ok(()),
    }
}

/// Reads a data source. Returns its path, which is the field for inline data,
/// for errors to name, with the bytes.
fn read_data_source(
    source: Option<&DataSource>,
    field: &'static str,
    policy: &DataSourcePolicy,
) -> Result<(PathBuf, Vec<u8>), SecretError> {
    let specifier = source.and_then(|source| source.specifier.as_ref());
    let field_path = PathBuf::from(field);
    match specifier.ok_or(SecretError::Lacks(field))? {
        Specifier::InlineBytes(bytes) => Ok((field_path, bytes.clone())),
        Specifier::InlineString(text) => Ok((field_path, text.clone().into_bytes())),
        Specifier::Filename(name) => {
            let path = Path::new(name);
            if !policy.allows_file(path) {
                return Err(SecretError::NotAllowed(name.clone()));
            }
            Ok((path.to_owned(), pem::read_file(path)?))
        }
        Specifier::EnvironmentVariable(name) => {
            if !policy.allows_variable(name) {
                return Err(SecretError::NotAllowed(name.clone()));
            }
            Ok((
                field_path,
                // A variable that is not set is empty, which is no PEM.
                std::env::var(name).unwrap_or_default().into_bytes(),
            ))
        }
    }
}
