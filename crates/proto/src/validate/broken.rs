//! The ways to break a rule, each a sentence with its remedy.

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
        /// How many there are.
        found: u64,
        /// Of what.
        unit: &'static str,
        /// How many there may be.
        bound: String,
    },
    /// Not, or wrongly, one of a list.
    #[error("is {found}, must {}be one of {list}", if *.negated { "not " } else { "" })]
    In {
        /// The value.
        found: String,
        /// The list.
        list: String,
        /// Whether the list is of what is forbidden.
        negated: bool,
    },
    /// Text that does not look right.
    #[error("is {found:?}, must {rule}")]
    Text {
        /// The beginning of the value.
        found: String,
        /// What it must do, such as `begin with "%"`.
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
    /// A duration outside of what protobuf allows.
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
        /// What the decoder says.
        reason: String,
    },
    /// Bodies nest in bodies.
    #[error("nests deeper than {0} messages")]
    TooDeep(usize),
}
