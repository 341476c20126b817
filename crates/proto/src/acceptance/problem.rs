//! The reasons for which a body is rejected, each a sentence with its remedy.

use crate::validate::{Broken, RegexFault};

/// What is wrong with a part of a body. The rule behind it is at its variant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The bytes are not of the type (C27).
    #[error("the body is not a valid {message}: {source}")]
    Malformed {
        /// The full name of the message.
        message: String,
        /// The decoder's error.
        source: prost::DecodeError,
    },
    /// There is no such type here.
    #[error("the type {0} is not known")]
    UnknownType(String),
    /// A rule on a field, or what Envoy could not build.
    #[error(transparent)]
    Rule(#[from] Broken),
    /// A field that is set and not supported, under
    /// [`Unsupported::Strict`](super::Unsupported::Strict).
    #[error("is set and not supported; remove it")]
    Unsupported,
    /// A field, or one of a group, is not set.
    #[error("is required and missing; set it")]
    Missing,
    /// A value that is not supported (C57), or out of range.
    #[error("is {found}, must be {allowed}")]
    Value {
        /// The beginning of the value.
        found: String,
        /// The values that are allowed.
        allowed: &'static str,
    },
    /// Another number of entries than there must be (A37).
    #[error("has {found} entries, must have {allowed}")]
    Count {
        /// The number.
        found: usize,
        /// The numbers that are allowed.
        allowed: &'static str,
    },
    /// An extension that is not supported.
    #[error("the extension {0:?} is not supported")]
    Extension(String),
    /// An extension of another kind, or where it may not stand.
    #[error("the extension {0:?} may not stand here")]
    Misplaced(String),
    /// A field that must not be ignored (A29).
    #[error("is not supported, and to ignore it would be less secure; remove it")]
    Insecure,
    /// A part that exists before (C56, C59, C61).
    #[error("{what} is that of {first} too; remove one")]
    Duplicate {
        /// What both have.
        what: String,
        /// The place of the first.
        first: String,
    },
    /// A priority without a locality, below one with a locality (C56).
    #[error("no locality has the priority {0}, and one has a higher number; leave no gap")]
    PriorityGap(u32),
    /// Weights that do not fit (C56, C58).
    #[error("the weights sum to {0}, more than 4294967295; make them smaller")]
    LargeWeights(u64),
    /// Weights of which none is used.
    #[error("the weights sum to 0; give one cluster a weight")]
    ZeroWeights,
    /// No IP address (C56).
    #[error("is {0:?}, must be an IPv4 or IPv6 address")]
    NotIp(String),
    /// A duration out of range.
    #[error("is no valid duration, or a negative one")]
    Duration,
    /// An expression that RE2 cannot read.
    #[error("{0}")]
    Regex(RegexFault),
    /// A cluster without a name for its endpoints (C13).
    #[error("is missing, and a cluster with an xdstp name needs it; set it")]
    ServiceName,
    /// A certificate provider that the bootstrap has not (C60).
    #[error("{0:?} is no certificate provider of the bootstrap")]
    Provider(String),
    /// No root certificates (C60).
    #[error("there is nothing to verify the peer with; set ca_certificate_provider_instance")]
    NoRoots,
    /// A terminal filter before others (C59, C61).
    #[error("{0:?} is terminal, and others follow; put it last")]
    NotLast(String),
    /// A last filter that is not terminal (C59, C61).
    #[error("{0:?} is the last one and not terminal; add {1}")]
    NotTerminal(String, &'static str),
    /// No filter (C59).
    #[error("has no filter that is supported; add {0}")]
    NoFilter(&'static str),
    /// No supported load balancing policy (C57).
    #[error("has no policy that is supported; add one such as RoundRobin")]
    NoPolicy,
    /// A plugin that the route configuration does not declare.
    #[error("{0:?} is none of cluster_specifier_plugins; declare it")]
    UndeclaredPlugin(String),
    /// A listener without filter chains (C61).
    #[error("has neither filter_chains nor default_filter_chain; add one")]
    NoChain,
    /// Too many of something to look at.
    #[error("has more than {0} combinations to compare; match on less")]
    TooMany(usize),
    /// Messages nest too deep.
    #[error("nests deeper than {0} levels")]
    TooDeep(usize),
    /// What a type or a filter of the user's own says.
    #[error("{0}")]
    Other(String),
}

impl Problem {
    /// Makes the problem of a value that is not allowed.
    pub(super) fn value(value: impl ToString, expectation: &'static str) -> Self {
        let value = super::place::clip(&value.to_string(), MAX_VALUE).to_owned();
        Self::Value {
            found: value,
            allowed: expectation,
        }
    }
}

/// The most bytes of a value that a problem shows.
pub(super) const MAX_VALUE: usize = 128;
