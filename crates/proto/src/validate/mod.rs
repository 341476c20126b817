//! Validation: the rules that Envoy's `.proto` files put on their fields, and
//! what Envoy could not build, checked before anything is served.
//!
//! Envoy rejects a whole response, good siblings included, when one field of
//! one resource breaks such a rule (S12), so a source checks first. The rules
//! are the `validate.rules` options of protoc-gen-validate: 1195 fields and 126
//! required oneofs in this version. They are read from the descriptors once
//! (`table`), and then applied to any message (`walk`), through every `Any`
//! whose type is known.
//!
//! Envoy also rejects resources that these rules allow, because it cannot build
//! what they describe: two virtual hosts with one domain, an address that is no
//! IP. The same walk finds the commonest of these (`construction`).
//!
//! Rules that need a clock (`lt_now`, `gt_now`, `within`) are not evaluated; no
//! field has one.

mod broken;
mod checker;
mod construction;
mod format;
mod rules;
mod scalar;
mod table;
#[cfg(test)]
mod tests;
mod walk;

use bytes::Bytes;
use prost_reflect::DynamicMessage;

pub use broken::Broken;
pub(crate) use checker::{Checker, breaks};
pub(crate) use construction::{Quick, find_regex_fault};
pub use construction::{RegexFault, Rejected};
pub(crate) use rules::{Check, Lists, Maps, NANOS_OF_SECOND, Number, Rules};
pub(crate) use table::rules;

use crate::{
    Path, descriptor,
    text::{self, TextError},
};

/// Violations that are reported for one message.
pub const MAX_VIOLATIONS: usize = 100;

/// A field that breaks a rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {broken}")]
pub struct Violation {
    /// The field.
    pub path: Path,
    /// The broken rule, the value, and the remedy.
    pub broken: Broken,
}

/// Why a body could not be validated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ValidateError {
    /// The type is not known here.
    #[error("the type {0} is not known")]
    UnknownType(String),
    /// The bytes are not of the type.
    #[error("not a valid {type_url}: {source}")]
    Malformed {
        /// The type.
        type_url: String,
        /// The decoder's error.
        source: prost::DecodeError,
    },
}

/// Finds the violations of a message, at most [`MAX_VIOLATIONS`].
#[must_use]
pub fn validate(message: &DynamicMessage) -> Vec<Violation> {
    walk::find_violations(message)
}

/// Returns the violations of rules in an encoded message, at most
/// [`MAX_VIOLATIONS`].
///
/// # Errors
/// The type is unknown, or the bytes are not of the type.
pub fn validate_bytes(type_url: &str, body: &Bytes) -> Result<Vec<Violation>, ValidateError> {
    let descriptor = descriptor::message(type_url)
        .ok_or_else(|| ValidateError::UnknownType(type_url.to_owned()))?;
    let message = DynamicMessage::decode(descriptor, body.clone()).map_err(|source| {
        let type_url = type_url.to_owned();
        ValidateError::Malformed { type_url, source }
    })?;
    Ok(validate(&message))
}

impl text::Resource {
    /// Returns the violations of rules in the resource, with their positions in
    /// the file; at most [`MAX_VIOLATIONS`].
    #[must_use]
    pub fn validate(&self) -> Vec<TextError> {
        let to_error = |violation: Violation| TextError {
            file: self.file().to_owned(),
            at: self.position(&violation.path),
            path: self.path.join(&violation.path).to_string(),
            problem: text::Problem::Rule(violation.broken),
        };
        validate(&self.message).into_iter().map(to_error).collect()
    }
}
