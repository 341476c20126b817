//! Preconditions of a change: that nobody else has changed the contents
//! meanwhile.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use trunkline_core::name::Name;
use trunkline_core::resource::{TypeUrl, Version};

use super::contents::Changed;
use super::keeping::Terms;
use super::shared::Shared;
use crate::checked::{Edit, Proposal, ResourceEdit};

/// Revisions whose changes are remembered.
const MOST_REVISIONS: usize = 256;
/// Names that are remembered of each.
const MOST_NAMES: usize = 16;

/// What must hold when a proposal is settled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Precondition {
    /// The revision of the contents.
    pub revision: Option<u64>,
    /// The version of every resource that is written or removed.
    pub version: Option<Version>,
}

/// Why a proposal was not settled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Conflict {
    /// The contents have another revision.
    #[error("the contents are at revision {current}, not at {expected}")]
    Revision {
        /// The revision that was expected.
        expected: u64,
        /// The revision of the contents.
        current: u64,
        /// What has changed since the expected revision, as far as it is
        /// remembered.
        changes: Vec<RecentChange>,
    },
    /// A change with the same idempotency key was made before.
    #[error("revision {revision} was made with the same idempotency key")]
    Repeated {
        /// The revision that it made.
        revision: u64,
        /// Whether its request was the same.
        is_same: bool,
    },
    /// The store cannot tell whether the change was made before.
    #[error("the store cannot be read: {reason}")]
    Store {
        /// Why.
        reason: String,
    },
    /// A resource has another version.
    #[error("{name:?} is at {}, not at version {expected}", describe(current))]
    Version {
        /// The name of the resource.
        name: Name,
        /// The version that was expected.
        expected: Version,
        /// The version of the resource; `None` if it does not exist.
        current: Option<Version>,
    },
}

/// Writes the version of a resource for the end of a sentence.
fn describe(version: &Option<Version>) -> String {
    match version {
        Some(version) => format!("version {version}"),
        None => "no version: it does not exist".to_owned(),
    }
}

/// A name that was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecentChange {
    /// The revision of the change.
    pub revision: u64,
    /// Whoever made it.
    pub author: Arc<str>,
    /// The type of the resource.
    pub type_url: TypeUrl,
    /// Its name.
    pub name: Name,
}

impl fmt::Display for RecentChange {
    /// Says who changed which name, and in which revision.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            revision,
            author,
            type_url,
            name,
        } = self;
        let kind = trunkline_core::kind::Kind::of(type_url).short;
        write!(
            f,
            "{kind}/{name} was changed in revision {revision} by {author}"
        )
    }
}

/// The last changes, a bounded number of them.
#[derive(Debug, Default)]
pub(super) struct RecentChanges(VecDeque<Vec<RecentChange>>);

impl RecentChanges {
    /// Remembers the names of a change, the first [`MOST_NAMES`], and forgets
    /// the oldest change of more than [`MOST_REVISIONS`].
    pub(super) fn note(&mut self, revision: u64, author: &str, variants: &[Changed]) {
        let author: Arc<str> = author.into();
        let changes = variants
            .iter()
            .take(MOST_NAMES)
            .map(|variant| RecentChange {
                revision,
                author: Arc::clone(&author),
                type_url: variant.type_url.clone(),
                name: variant.name.clone(),
            });
        self.0.push_back(changes.collect());
        if self.0.len() > MOST_REVISIONS {
            self.0.pop_front();
        }
    }

    /// Returns what has changed since a revision, as far as it is remembered.
    fn changes_since(&self, revision: u64) -> Vec<RecentChange> {
        let changes = self.0.iter().flatten();
        let later_changes = changes.filter(|change| change.revision > revision);
        later_changes.cloned().collect()
    }
}

impl Shared {
    /// Checks a precondition of a proposal. The caller has locked the contents
    /// of all origins.
    pub(super) fn check_precondition(
        &self,
        precondition: &Precondition,
        proposal: &Proposal<'_>,
    ) -> Result<(), Conflict> {
        if let Some(expected) = precondition.revision {
            let current = self.revision();
            if current != expected {
                let changes = self.lock_recent().changes_since(expected);
                return Err(Conflict::Revision {
                    expected,
                    current,
                    changes,
                });
            }
        }
        if let Some(expected) = &precondition.version {
            for edit in &proposal.edits {
                if let Edit::Resources(edit) = edit {
                    self.check_versions(edit, expected)?;
                }
            }
        }
        Ok(())
    }

    /// Checks that every resource that an edit writes or removes has this
    /// version. An inline virtual host counts with its route configuration.
    fn check_versions(&self, edit: &ResourceEdit, expected: &Version) -> Result<(), Conflict> {
        let items = edit.document.items.iter();
        let upserts = items
            .filter(|item| !item.is_inline_host)
            .map(|item| (&item.type_url, &item.resource.name));
        let removals = edit.removals.iter();
        let removals = removals.map(|removal| (&removal.type_url, &removal.name));
        for (type_url, name) in upserts.chain(removals) {
            self.check_version(type_url, name, expected)?;
        }
        Ok(())
    }

    /// Checks that no change was made with the idempotency key of these terms;
    /// passes without a key or a store. The caller has locked the contents of
    /// all origins.
    pub(super) fn check_repeated(&self, terms: &Terms) -> Result<(), Conflict> {
        let (Some(store), Some((key, request))) = (&self.store, &terms.idempotency) else {
            return Ok(());
        };
        let earlier = store.find_key(key).map_err(|error| Conflict::Store {
            reason: error.to_string(),
        })?;
        match earlier {
            None => Ok(()),
            Some(earlier) => Err(Conflict::Repeated {
                revision: earlier.revision,
                is_same: earlier.request == *request,
            }),
        }
    }

    /// Checks that a name has a variant of this version.
    fn check_version(
        &self,
        type_url: &TypeUrl,
        name: &Name,
        expected: &Version,
    ) -> Result<(), Conflict> {
        let versions: Vec<Version> = self.with(|db| {
            let id = db.find_type(type_url).into_iter();
            let variants = id.flat_map(|id| db.variants(id, name));
            variants.map(|variant| variant.version.clone()).collect()
        });
        match versions.contains(expected) {
            true => Ok(()),
            false => Err(Conflict::Version {
                name: name.clone(),
                expected: expected.clone(),
                current: versions.into_iter().next(),
            }),
        }
    }

    /// Returns the revision of the contents: the number of transactions that
    /// they are from.
    pub(super) fn revision(&self) -> u64 {
        self.hub.with_revision(|_| ()).1
    }
}
