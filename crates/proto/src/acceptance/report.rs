//! What an accepted body has that is not used: parts that a rule says to
//! ignore, and fields that are not supported.

use std::fmt;

/// The most entries of one list of a report, and the most reasons of a
/// rejection. What is beyond is counted.
pub const MAX_FINDINGS: usize = 100;

/// What is not used of a body that was accepted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Parts that a rule says to ignore, such as a route with query parameters.
    pub ignored: Vec<Ignored>,
    /// The places of fields that are set and not supported (C57).
    pub unsupported: Vec<String>,
    /// The number of findings that had no room in these lists.
    pub omitted: usize,
}

impl Report {
    /// Returns whether everything in the body is used.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A part of a body that is ignored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ignored {
    /// The place of the part.
    pub path: String,
    /// Why it is ignored, and what follows.
    pub why: IgnoreReason,
}

impl fmt::Display for Ignored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.why)
    }
}

/// Why a part is ignored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IgnoreReason {
    /// A locality without a weight, or with weight 0 (C56).
    #[error("a locality without a weight is skipped")]
    NoWeight,
    /// An endpoint that is not healthy (C56).
    #[error("an endpoint that is {0} is not used")]
    Unhealthy(String),
    /// An endpoint that gets no new sessions (C56, A55).
    #[error("an endpoint that is DRAINING is used for its sessions only")]
    Draining,
    /// A route that matches query parameters, which gRPC does not have (C58).
    #[error("a route with query parameters is skipped")]
    QueryParameters,
    /// A route that names no cluster in a supported way (C58).
    #[error("a route without a supported cluster specifier is skipped")]
    ClusterSpecifier,
    /// A route to a plugin that is optional and not supported.
    #[error("a route to the optional plugin {0:?}, which is not supported, is skipped")]
    Plugin(String),
    /// A route of another action (C58, A36).
    #[error("requests that match this route fail: its action is not supported")]
    Action,
    /// A matcher of a binary header, which is as if it were absent (C58).
    #[error("the binary header {0:?} never matches")]
    BinaryHeader(String),
    /// A hash policy that gives no hash (A42).
    #[error("this kind of hash policy gives no hash")]
    HashPolicy,
    /// A cluster that gets no requests.
    #[error("a cluster of weight 0 is skipped")]
    ZeroWeight,
    /// An optional extension that is not supported (C59).
    #[error("the optional extension {0:?} is not supported")]
    Optional(String),
    /// A load balancing policy before the first that is supported (A52).
    #[error("the policy {0:?} is not supported; the next is tried")]
    Policy(String),
    /// A filter chain for connections that do not exist here (C61).
    #[error("the filter chain matches no connection")]
    Chain,
    /// A field that counts only from a trusted server (A81).
    #[error("is set by a server that is not trusted")]
    Untrusted,
}
