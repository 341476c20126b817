//! Errors of parameters and constraints: a limit, or the text.

use thiserror::Error;

/// Why a set of parameters is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ParamsError {
    /// More pairs than one set may have.
    #[error("more than {limit} dynamic parameters")]
    TooManyKeys {
        /// Pairs allowed.
        limit: usize,
    },
    /// The text is not in the readable form.
    #[error("at byte {at}: expected {expected}; parameters are written as env=prod,version=v1")]
    Syntax {
        /// A byte of the text.
        at: usize,
        /// The tokens that are possible there.
        expected: &'static str,
    },
    /// More bytes than one set may have.
    #[error("dynamic parameters of more than {limit} bytes")]
    TooManyBytes {
        /// Bytes allowed in all keys and values.
        limit: usize,
    },
}

/// Why constraints are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ConstraintError {
    /// Expressions nested too deep.
    #[error("constraints nested more than {limit} deep")]
    TooDeep {
        /// Levels allowed.
        limit: usize,
    },
    /// More expressions than allowed.
    #[error("constraints of more than {limit} expressions")]
    TooLarge {
        /// Expressions allowed.
        limit: usize,
    },
    /// More bytes in keys and values than allowed.
    #[error("constraints with keys and values of more than {limit} bytes")]
    TooManyBytes {
        /// Bytes allowed.
        limit: usize,
    },
    /// More keys than allowed.
    #[error("constraints on more than {limit} keys")]
    TooManyKeys {
        /// Keys allowed.
        limit: usize,
    },
    /// Small to write, but too complex to decide, or to write key by key,
    /// within the limits.
    #[error(
        "constraints too complex to decide exactly, in {limit} steps: \
         combine fewer alternatives over fewer keys"
    )]
    TooComplex {
        /// The number of branches of decision diagrams that are followed at
        /// most.
        limit: usize,
    },
    /// The text is not in the readable form.
    #[error("at byte {at}: expected {expected}")]
    Syntax {
        /// A byte of the text.
        at: usize,
        /// The tokens that are possible there.
        expected: &'static str,
    },
}
