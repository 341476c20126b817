//! Certificates and keys in PEM: whether there are any, and whether they are a
//! pair.
//!
//! Clients read more kinds than this server does. One that is not known here is
//! never a mistake.

use std::sync::LazyLock;

use prost::Message as _;
use tokio_rustls::rustls::crypto::{CryptoProvider, aws_lc_rs};
use tokio_rustls::rustls::pki_types::pem::{self, PemObject as _};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::sign::CertifiedKey;
use tokio_rustls::rustls::{Error, InconsistentKeys};
use trunkline_proto::envoy::envoy::config::core::v3::DataSource;
use trunkline_proto::envoy::envoy::config::core::v3::data_source::Specifier;
use trunkline_proto::envoy::envoy::extensions::transport_sockets::tls::v3::secret::Type;
use trunkline_proto::envoy::envoy::extensions::transport_sockets::tls::v3::{
    Secret, TlsCertificate,
};

use super::fault::SecretFault;

/// The fields of a fault, from the outside in.
type Fields = &'static [&'static str];

const CHAIN: Fields = &["tls_certificate", "certificate_chain"];
const KEY: Fields = &["tls_certificate", "private_key"];
const TRUSTED_CA: Fields = &["validation_context", "trusted_ca"];

/// Sections with a certificate that clients read and this server does not.
const OTHER_CERTIFICATES: [&str; 2] = ["X509 CERTIFICATE", "TRUSTED CERTIFICATE"];
/// The end of the names of all sections with a private key.
const PRIVATE_KEY: &str = "PRIVATE KEY";
/// The section of a private key that is encrypted.
const ENCRYPTED_KEY: &str = "ENCRYPTED PRIVATE KEY";
/// A line in a section of the older form of an encrypted private key.
const ENCRYPTED_LINE: &[u8] = b"Proc-Type: 4,ENCRYPTED";

static PROVIDER: LazyLock<CryptoProvider> = LazyLock::new(aws_lc_rs::default_provider);

/// Checks the certificates and keys in an encoded secret, and returns each
/// fault with the field that has it. Data that a client reads from elsewhere is
/// skipped.
pub(super) fn check(secret: &[u8]) -> Vec<(Fields, SecretFault)> {
    // The caller has encoded it from a message of this type, so it decodes.
    let Ok(secret) = Secret::decode(secret) else {
        return Vec::new();
    };
    match secret.r#type {
        Some(Type::TlsCertificate(certificate)) => check_certificate(&certificate),
        Some(Type::ValidationContext(context)) => {
            let authorities = inline(context.trusted_ca.as_ref()).map(read_certificates);
            let fault = authorities.and_then(Result::err);
            fault.map(|fault| (TRUSTED_CA, fault)).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

/// A certificate chain or a key.
enum Read<T> {
    Known(T),
    /// Of a kind that is not known here.
    Unknown,
    /// Encrypted with a password: nothing can be told of it.
    Encrypted,
}

type Chain = Vec<CertificateDer<'static>>;
type Key = PrivateKeyDer<'static>;

/// Checks a certificate and its key: as a pair, if both can be read, or else
/// each by itself.
fn check_certificate(certificate: &TlsCertificate) -> Vec<(Fields, SecretFault)> {
    let chain = inline(certificate.certificate_chain.as_ref()).map(read_certificates);
    let has_password = certificate.password.is_some();
    let key = inline(certificate.private_key.as_ref()).map(|pem| read_key(pem, has_password));

    match (chain, key) {
        (Some(Ok(chain)), Some(Ok(key))) => {
            let fault = compare(chain, key);
            fault.map(|fault| (KEY, fault)).into_iter().collect()
        }
        (chain, key) => {
            let chain_fault = chain.and_then(Result::err).map(|fault| (CHAIN, fault));
            let key_fault = key.and_then(Result::err).map(|fault| (KEY, fault));
            chain_fault.into_iter().chain(key_fault).collect()
        }
    }
}

/// Returns the contents of a data source that has them inline; `None` if a
/// client reads them from elsewhere.
pub(super) fn inline(source: Option<&DataSource>) -> Option<&[u8]> {
    match source?.specifier.as_ref()? {
        Specifier::InlineBytes(bytes) => Some(bytes),
        Specifier::InlineString(text) => Some(text.as_bytes()),
        Specifier::Filename(_) | Specifier::EnvironmentVariable(_) => None,
    }
}

/// Parses the certificates in PEM. Returns an error if there is none.
fn read_certificates(pem: &[u8]) -> Result<Read<Chain>, SecretFault> {
    let chain: Result<Chain, _> = CertificateDer::pem_slice_iter(pem).collect();
    match chain {
        Err(_) => Err(SecretFault::Malformed),
        Ok(chain) if !chain.is_empty() => Ok(Read::Known(chain)),
        Ok(_) if sections(pem).any(|name| OTHER_CERTIFICATES.contains(&name)) => Ok(Read::Unknown),
        Ok(_) => Err(SecretFault::NoCertificate),
    }
}

/// Parses the first private key in PEM. An encrypted key is an error, unless
/// the secret has a password for it.
fn read_key(pem: &[u8], has_password: bool) -> Result<Read<Key>, SecretFault> {
    let has_line = |line: &[u8]| line.starts_with(ENCRYPTED_LINE);
    let is_encrypted =
        sections(pem).any(|name| name == ENCRYPTED_KEY) || pem.split(|b| *b == b'\n').any(has_line);
    if is_encrypted && has_password {
        return Ok(Read::Encrypted);
    }
    if is_encrypted {
        return Err(SecretFault::Encrypted);
    }

    match PrivateKeyDer::from_pem_slice(pem) {
        Ok(key) => Ok(Read::Known(key)),
        // A section of a kind of key that the parser does not know.
        Err(pem::Error::NoItemsFound) if sections(pem).any(|name| name.ends_with(PRIVATE_KEY)) => {
            Ok(Read::Unknown)
        }
        Err(pem::Error::NoItemsFound) => Err(SecretFault::NoKey),
        Err(_) => Err(SecretFault::Malformed),
    }
}

/// Returns the names of the sections of PEM, such as `CERTIFICATE`.
fn sections(pem: &[u8]) -> impl Iterator<Item = &str> {
    let lines = pem.split(|byte| *byte == b'\n');
    let lines = lines.filter_map(|line| std::str::from_utf8(line).ok());
    lines.filter_map(|line| {
        let name = line.trim().strip_prefix("-----BEGIN ")?;
        name.strip_suffix("-----")
    })
}

/// Returns the fault of a certificate and key that do not belong together, or
/// of which this cannot be told. Returns `None` if they belong together, and
/// also if the key is encrypted or cannot derive its public half.
fn compare(chain: Read<Chain>, key: Read<Key>) -> Option<SecretFault> {
    let (chain, key) = match (chain, key) {
        (Read::Known(chain), Read::Known(key)) => (chain, key),
        (_, Read::Encrypted) => return None,
        _ => return Some(SecretFault::Unchecked),
    };
    let Ok(key) = PROVIDER.key_provider.load_private_key(key) else {
        return Some(SecretFault::Unchecked);
    };
    match CertifiedKey::new(chain, key).keys_match() {
        // Not every key can derive its public half, which is no fault of it.
        Ok(()) | Err(Error::InconsistentKeys(InconsistentKeys::Unknown)) => None,
        Err(Error::InconsistentKeys(_)) => Some(SecretFault::Mismatch),
        Err(_) => Some(SecretFault::Unchecked),
    }
}
