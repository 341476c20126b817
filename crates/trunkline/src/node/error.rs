//! Mistakes in rules, for their author to mend.

/// Why a part of a rule cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// There is no such field of a node.
    #[error(
        "a node has no field {found:?}; there are id, cluster, locality.region, locality.zone, \
         locality.sub_zone, user_agent, listener and metadata.KEY"
    )]
    Field {
        /// The text as written.
        found: String,
    },
    /// Not a path into metadata.
    #[error(
        "{found:?} is no path into metadata; write keys with dots between them, and a key that \
         has dots itself in quotes: labels.'app.example.com/name'"
    )]
    Path {
        /// The text as written.
        found: String,
    },
    /// A path with too many keys.
    #[error("{found:?} has more than {max} keys")]
    Deep {
        /// The text as written.
        found: String,
        /// The limit.
        max: usize,
    },
    /// A brace has no partner.
    #[error(
        "{found:?} has a brace without a partner; a placeholder is {{id}}, a brace itself is \
         written twice"
    )]
    Brace {
        /// The text as written.
        found: String,
    },
    /// A host is not under a route configuration.
    #[error("{found:?} names no host; write <route configuration>/<host>")]
    Host {
        /// The text as written.
        found: String,
    },
    /// Rules set too many parameters.
    #[error("the rules set more than {max} keys, which is what a client may have")]
    Keys {
        /// The limit.
        max: usize,
    },
    /// Nothing was written.
    #[error("nothing is written here")]
    Empty,
}
