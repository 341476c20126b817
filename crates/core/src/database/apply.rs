//! Transactions that are applied at once, and the reasons for which one is
//! refused.
//!
//! [`Commit`] applies a transaction in slices.

use std::sync::Arc;

use super::Database;
use super::commit::{Commit, Progress};
use crate::change::Change;
use crate::name::Name;
use crate::params::{ConstraintError, Params};
use crate::resource::Resource;

/// Why a transaction is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    /// A client could match two variants of one name (TP2).
    #[error(
        "{name}: a client with {witness} would match two variants, [{first}] and [{second}]; \
         make their constraints exclude each other"
    )]
    Overlap {
        /// The name.
        name: Name,
        /// The constraints of one variant.
        first: String,
        /// The constraints of the other.
        second: String,
        /// Parameters that match both.
        witness: Params,
    },
    /// It cannot be decided whether two variants exclude each other.
    #[error("{name}: {source}")]
    Undecided {
        /// The name.
        name: Name,
        /// Why.
        source: ConstraintError,
    },
    /// A client could see two virtual hosts with the same domain.
    #[error(
        "{route}: a client with {witness} would find two virtual hosts for the domain {domain}, \
         {first} and {second}; give it to one of them, or make their constraints exclude each other"
    )]
    Domain {
        /// The route configuration.
        route: String,
        /// The domain.
        domain: String,
        /// One virtual host.
        first: Name,
        /// The other.
        second: Name,
        /// Parameters that match both.
        witness: Params,
    },
    /// The check of changes does not allow it.
    #[error("{reason}")]
    Vetoed {
        /// Why.
        reason: String,
    },
    /// A resource has no body.
    #[error("{name}: a resource needs a body")]
    NoBody {
        /// The name.
        name: Name,
    },
}

impl Database {
    /// Applies all changes, or none, at once.
    ///
    /// # Errors
    /// The resulting contents would be invalid. Then nothing has changed.
    pub fn apply(&mut self, changes: Vec<Change>) -> Result<(), ApplyError> {
        let mut commit = Commit::new(changes)?;
        while commit.advance(self, usize::MAX, |_| ())? == Progress::More {}
        Ok(())
    }
}

/// Refuses variants of a name if a client could match two of them: it would not
/// be decided which one the client gets (S62). All pairs are compared.
///
/// # Errors
/// [`ApplyError::Overlap`] if a client could match two of them,
/// [`ApplyError::Undecided`] if that cannot be decided of a pair.
pub(super) fn check_overlap(name: &Name, variants: &[Arc<Resource>]) -> Result<(), ApplyError> {
    for (index, first) in variants.iter().enumerate() {
        for second in &variants[index + 1..] {
            if let Some(witness) = find_common_client(name, first, second)? {
                return Err(ApplyError::Overlap {
                    name: name.clone(),
                    first: first.clients().to_string(),
                    second: second.clients().to_string(),
                    witness,
                });
            }
        }
    }
    Ok(())
}

/// Finds a client that would see both of two resources, and returns its
/// parameters; `None` if the resources exclude each other. `name` is the name
/// in the error.
///
/// # Errors
/// [`ApplyError::Undecided`] if their constraints are too complex to decide it.
pub(super) fn find_common_client(
    name: &Name,
    first: &Resource,
    second: &Resource,
) -> Result<Option<Params>, ApplyError> {
    let overlap = first.clients().overlap(&second.clients());
    overlap.map_err(|source| ApplyError::Undecided {
        name: name.clone(),
        source,
    })
}
