//! Errors of names. A name with an error is refused, never the client that sent
//! it.

use thiserror::Error;

/// Why a text is not a name of the expected form. `at` is a byte of that text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum NameError {
    /// The empty text names nothing; it is not the wildcard either (S27).
    #[error("the name is empty")]
    Empty,
    /// Longer than the limit.
    #[error("the name has {bytes} bytes, and {limit} are allowed")]
    TooLong {
        /// Bytes in the name.
        bytes: usize,
        /// Bytes allowed.
        limit: usize,
    },
    /// Another scheme, or none.
    #[error("the name does not begin with xdstp://")]
    NotXdstp,
    /// There is nothing between the authority and the id.
    #[error("the name has no resource type after its authority")]
    NoResourceType,
    /// A resource type is letters, digits, `.`, `_` and `-`.
    #[error("the resource type has a character at byte {at} that no type has")]
    BadResourceType {
        /// Where that character is.
        at: usize,
    },
    /// Nothing follows the resource type.
    #[error("the name has no id after its resource type")]
    NoId,
    /// A `%` without two hexadecimal digits.
    #[error("the % at byte {at} is not followed by two hexadecimal digits")]
    BadEscape {
        /// Where the `%` is.
        at: usize,
    },
    /// Percent-encoded bytes that are not UTF-8: TP1's messages could not hold
    /// them.
    #[error("the part at byte {at} is not UTF-8 once it is decoded")]
    NotUtf8 {
        /// Where the part begins.
        at: usize,
    },
    /// A context parameter without a key.
    #[error("the context parameter at byte {at} has no key")]
    NoKey {
        /// Where the parameter begins.
        at: usize,
    },
    /// Processing directives are part of locators, and never on the wire.
    #[error("the name has processing directives, from byte {at}")]
    Directives {
        /// Where the `#` is.
        at: usize,
    },
    /// A well-formed name of one resource, where a collection is expected.
    #[error("the name does not end in /*")]
    NotGlob,
}
