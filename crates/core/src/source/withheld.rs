//! Resources that the client may not have: they have a private key in them, and
//! the connection is not one for secrets.
//!
//! To the client such a resource is one that it NACKed: it keeps what it
//! accepted of the name, or is told that there is nothing. So a resource that
//! gets a key is not removed.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::TypeStream;
use crate::database::{CursorId, Database};
use crate::name::Name;
use crate::resource::{Resource, Version};

/// The names of which a resource is withheld; `None` for a client that may have
/// everything, as most may.
#[derive(Debug)]
pub(crate) struct Withheld(Option<Box<Names>>);

#[derive(Debug, Default)]
struct Names {
    /// By requested name, the version that is withheld.
    versions: BTreeMap<Name, Version>,
    /// Names and versions that were not reported yet.
    unreported: Vec<(Name, Version)>,
}

impl Withheld {
    /// Makes the state of a stream on which nothing is withheld yet. Unless it
    /// `is_on`, nothing ever is.
    pub(super) fn new(is_on: bool) -> Self {
        Self(is_on.then(Box::default))
    }

    /// Returns whether a resource of a name is withheld.
    pub(super) fn contains(&self, name: &Name) -> bool {
        let names = self.0.as_ref();
        names.is_some_and(|names| names.versions.contains_key(name))
    }

    /// Returns the names of which a resource is withheld.
    pub(crate) fn names(&self) -> impl Iterator<Item = &Name> {
        self.0.iter().flat_map(|names| names.versions.keys())
    }

    /// Forgets a name in which the client has no interest any more.
    pub(super) fn forget(&mut self, name: &Name) {
        if let Some(names) = &mut self.0 {
            names.versions.remove(name);
        }
    }

    /// Takes the withheld names and versions that were not reported to the
    /// owner of the session yet.
    pub(crate) fn take_unreported(&mut self) -> Vec<(Name, Version)> {
        let names = self.0.as_mut();
        names.map_or_else(Vec::new, |names| std::mem::take(&mut names.unreported))
    }
}

impl TypeStream {
    /// Returns whether the client may not have a resource.
    pub(crate) fn is_withheld(&self, resource: &Resource) -> bool {
        self.withheld.0.is_some() && resource.facts().holds_keys()
    }

    /// Returns whether a resource is not sent, however long the client waits:
    /// it was rejected, by a NACK of it alone in this version (S12,
    /// [`Self::is_quarantined`]), or is withheld.
    pub(crate) fn is_undeliverable(&self, resource: &Resource) -> bool {
        self.is_withheld(resource) || self.is_quarantined(resource)
    }

    /// Records that one of the `desired` resources of a name is withheld, or
    /// that none is. Each version of a name is reported once.
    pub(super) fn note_withheld(&mut self, name: &Name, desired: &[Arc<Resource>]) {
        let Some(names) = &mut self.withheld.0 else {
            return;
        };
        let Some(resource) = desired
            .iter()
            .find(|resource| resource.facts().holds_keys())
        else {
            names.versions.remove(name);
            return;
        };
        let version = resource.version.clone();
        let previous_version = names.versions.insert(name.clone(), version.clone());
        if previous_version.as_ref() != Some(&version) {
            names.unreported.push((name.clone(), version));
        }
    }

    /// Returns whether the view of a cursor lists a resource that is withheld.
    pub(super) fn withholds_any_of(&self, db: &mut Database, cursor: CursorId) -> bool {
        self.withheld.0.is_some()
            && db
                .list(cursor)
                .iter()
                .any(|resource| self.is_withheld(resource))
    }
}
