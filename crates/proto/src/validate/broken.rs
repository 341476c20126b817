//! The ways to break a rule, each a sentence with its remedy.

use super::construction::Rejected;
use crate::redact::REDACTED;

/// A broken rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    /// The field must be set.
    #[error("is required and missing; set it")]
    Required,
    /// One field of a group must be set.
    #[error("one of {fields} is required; set one")]
    Oneof {
        /// The group.
        oneof: String,
        /// Its fields.
        fields: String,
    },
    /// Outside of a range.
    #[error("is {found}, must be {bound}")]
    Range {
        /// The value.
        found: String,
        /// The range.
        bound: String,
    },
    /// Too long or too short.
    #[error("has {found} {unit}, must have {bound}")]
    Length {
        /// The number found.
        found: u64,
        /// The unit.
        unit: &'static str,
        /// The number allowed.
        bound: String,
    },
    /// Not in a list of allowed values, or in one of forbidden values.
    #[error("is {found}, must {}be one of {list}", if *.negated { "not " } else { "" })]
    In {
        /// The value.
        found: String,
        /// The list.
        list: String,
        /// Whether the list is of forbidden values.
        negated: bool,
    },
    /// Text of the wrong form.
    #[error("is {found:?}, must {rule}")]
    Text {
        /// The beginning of the value.
        found: String,
        /// The required form, such as `begin with "%"`.
        rule: String,
    },
    /// A number that the enum does not define.
    #[error("is {number}, which {of} does not define; use one of {known}")]
    UndefinedEnum {
        /// The number.
        number: i32,
        /// The enum.
        of: String,
        /// Its names.
        known: String,
    },
    /// Two equal items in a list of different ones.
    #[error("the items must differ, and number {0} occurs before; remove one")]
    Duplicate(usize),
    /// A duration out of the range of protobuf.
    #[error("is not a valid duration: seconds or nanos are out of range")]
    InvalidDuration,
    /// A duration below zero, which Envoy refuses everywhere.
    #[error("is {0}, must not be negative; use 0s or more")]
    NegativeDuration(String),
    /// The body of an `Any` is not of its type.
    #[error("the body is not a valid {type_url}: {reason}")]
    Body {
        /// The type.
        type_url: String,
        /// The decoder's error.
        reason: String,
    },
    /// Envoy cannot build what the message describes.
    #[error(transparent)]
    Rejected(#[from] Rejected),
    /// Bodies nest too deep.
    #[error("nests deeper than {0} messages")]
    TooDeep(usize),
}

impl Broken {
    /// Returns the broken rule with the value redacted, for a value in a
    /// secret.
    pub(super) fn redact_value(mut self) -> Self {
        match &mut self {
            Self::Range { found, .. }
            | Self::In { found, .. }
            | Self::Text { found, .. }
            | Self::Rejected(Rejected::Regex { found, .. } | Rejected::NoIp { found, .. }) => {
                REDACTED.clone_into(found);
            }
            _ => {}
        }
        self
    }
}
