//! Secrets: the files that they name, and certificates with their keys.
//!
//! ```text
//! a secret ── data sources ──▶ contents in place of relative names
//!                  │ SecretFiles reads them, where there are files
//!                  └──▶ PEM: certificates, key, and whether they are a pair
//! ```
//!
//! A relative path is read by the server, from the directory of the document.
//! An absolute path stays: it is one of the client's, which reads it there.
//! A document that is no file has no directory, so nothing is read for it.

mod fault;
mod pem;
#[cfg(test)]
mod tests;

use bytes::Bytes;
use trunkline_proto::descriptor::{self, types};
use trunkline_proto::prost_reflect::ReflectMessage as _;
use trunkline_proto::text::{self, Problem};
use trunkline_proto::{Path, canonical, data_sources};

use super::finding::Fault;
pub use fault::SecretFault;

/// Reads the files that the secrets of a document name.
///
/// ```
/// use std::io::Cursor;
/// use bytes::Bytes;
/// use trunkline::checked::{Form, SecretFault, SecretFiles, decode_with_files};
///
/// struct OneFile;
///
/// impl SecretFiles for OneFile {
///     fn read(&self, name: &str) -> Result<Bytes, SecretFault> {
///         match name {
///             "token" => Ok("swordfish".into()),
///             _ => Err(SecretFault::Missing { path: name.into() }),
///         }
///     }
/// }
///
/// let text = r#"
/// "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret
/// name: token
/// generic_secret: {secret: {filename: token}}
/// "#;
/// let options = trunkline::wire::text_options();
/// let (name, source) = ("a.yaml".into(), Cursor::new(text));
/// let decoded = decode_with_files(&name, Form::ByName, source, &options, &OneFile)?;
/// assert_eq!(decoded.errors, []);
/// # Ok::<(), std::io::Error>(())
/// ```
pub trait SecretFiles: Sync {
    /// Reads the file with this name, a relative path, from the directory of
    /// the document. The same name has the same contents as often as it is
    /// read.
    ///
    /// # Errors
    /// Why it cannot be read. No part of the contents is in the error.
    fn read(&self, name: &str) -> Result<Bytes, SecretFault>;
}

/// The faults of a secret, with the fields that have them.
#[derive(Default)]
pub(super) struct SecretFaults {
    pub(super) errors: Vec<(Path, Fault)>,
    pub(super) warnings: Vec<(Path, Fault)>,
}

/// Returns whether a resource of this type is a secret.
pub(super) fn is_secret(type_url: &str) -> bool {
    descriptor::full_name(type_url) == descriptor::full_name(types::SECRET)
}

/// Reads the files that a secret names into it, and checks its certificates and
/// keys. Without `files`, each named file is a warning. A secret that cannot be
/// encoded again keeps the body that it has.
pub(super) fn read_and_check(
    secret: &mut text::Resource,
    files: Option<&dyn SecretFiles>,
) -> SecretFaults {
    let mut faults = SecretFaults::default();
    let mut filled_paths = Vec::new();
    let is_changed = data_sources::fill(&mut secret.message, &mut |path, name| {
        let Some(files) = files else {
            let name = name.to_owned();
            faults.warn(path.clone(), SecretFault::NotRead { name });
            return None;
        };
        match files.read(name) {
            Ok(contents) => {
                filled_paths.push(path.clone());
                Some(contents)
            }
            Err(fault) => {
                faults.fail(path.clone(), fault);
                None
            }
        }
    });

    let encoded = match is_changed {
        Ok(false) => Ok(secret.body.clone()),
        Ok(true) => canonical::encode(&secret.message).map(Bytes::from),
        Err(error) => Err(error),
    };

    match encoded {
        Ok(body) => secret.body = body,
        Err(error) => {
            let problem = Problem::Encoding(error.to_string());
            faults.errors.push((Path::default(), Fault::Text(problem)));
            return faults;
        }
    }

    check_pem(secret, &filled_paths, &mut faults);
    faults
}

/// Checks the certificates and keys in a secret. Content without any is a
/// mistake if it came from a file, to a field of `filled_paths`: the file may
/// be half written, or the wrong one. Such content in the document itself is a
/// warning. A certificate and a key that do not match are a mistake in both
/// cases.
fn check_pem(secret: &text::Resource, filled_paths: &[Path], faults: &mut SecretFaults) {
    let descriptor = secret.message.descriptor();
    for (fields, fault) in pem::check(&secret.body) {
        let path = Path::of_fields(&descriptor, fields);
        let is_within = |file: &Path| file.steps().starts_with(path.steps());
        let is_mistake = match fault {
            SecretFault::Unchecked => false,
            SecretFault::Mismatch => true,
            _ => filled_paths.iter().any(is_within),
        };
        if is_mistake {
            faults.fail(path, fault);
        } else {
            faults.warn(path, fault);
        }
    }
}

impl SecretFaults {
    fn fail(&mut self, path: Path, fault: SecretFault) {
        self.errors.push((path, Fault::Secret(fault)));
    }

    fn warn(&mut self, path: Path, fault: SecretFault) {
        self.warnings.push((path, Fault::Secret(fault)));
    }
}
