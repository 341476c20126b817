//! What one type wants, and how much of that the source has been told.
//!
//! ```text
//!             subscribe              the request leaves
//!   wanted ──▶ added ─────────────────────▶ told
//!          ◀── removed ◀── unsubscribe ──── told
//! ```
//!
//! No message is kept here: when the transport can take one, it is made of
//! `added` and `removed` as they are then, so ten changes while it was blocked
//! become one.

use crate::interest::{Interest, InterestDiff, Wildcard};
use crate::name::{Name, Selector};
use crate::resource::Resource;

/// The asking of one type on one stream after another.
///
/// Invariants, proved by [`Asking::check`]:
/// - `wanted` is `told` without `removed` and with `added`;
/// - what is `removed` was told and is not wanted.
#[derive(Debug, Default)]
pub(super) struct Asking {
    wanted: Interest,
    told: Interest,
    added: Interest,
    removed: Interest,
    /// What the source makes of the requests so far.
    wildcard: Wildcard,
}

impl Asking {
    /// Wants one thing more. If the source was told and is about to be told
    /// otherwise, it is asked again instead, and so sends again (E9).
    pub(super) fn subscribe(&mut self, wanted: Selector) {
        if self.wanted.insert(wanted.clone()) {
            self.removed.remove(&wanted);
            self.added.insert(wanted);
        }
    }

    /// Wants one thing less.
    pub(super) fn unsubscribe(&mut self, wanted: &Selector) {
        if self.wanted.remove(wanted) {
            self.added.remove(wanted);
            if self.told.has_selector(wanted) {
                self.removed.insert(wanted.clone());
            }
        }
    }

    /// A stream began or ended: its source knows nothing.
    pub(super) fn restart(&mut self) {
        self.told = Interest::default();
        self.removed = Interest::default();
        self.added = self.wanted.clone();
        self.wildcard = Wildcard::Never;
    }

    /// A request leaves that says all that is wanted; what it settles.
    pub(super) fn commit(&mut self, wildcard: Wildcard) -> InterestDiff {
        let edges = InterestDiff {
            added: std::mem::take(&mut self.added),
            removed: std::mem::take(&mut self.removed),
        };
        for wanted in edges.removed.iter() {
            self.told.remove(&wanted);
        }
        self.told.extend(edges.added.iter());
        self.wildcard = wildcard;
        edges
    }

    /// A request leaves that is only a step towards what is wanted.
    pub(super) fn step(&mut self, wildcard: Wildcard) {
        self.wildcard = wildcard;
    }

    /// Whether this stream has asked for the type at all.
    pub(super) fn has_asked(&self) -> bool {
        self.wildcard != Wildcard::Never
    }

    /// What the source makes of the requests so far.
    pub(super) fn wildcard(&self) -> Wildcard {
        self.wildcard
    }

    pub(super) fn wanted(&self) -> &Interest {
        &self.wanted
    }

    pub(super) fn told(&self) -> &Interest {
        &self.told
    }

    pub(super) fn added(&self) -> &Interest {
        &self.added
    }

    pub(super) fn removed(&self) -> &Interest {
        &self.removed
    }

    /// Whether someone wants this name now.
    pub(super) fn wants(&self, name: &Name) -> bool {
        self.wanted.contains(name)
    }

    /// Whether someone wants this resource now, under any of its names (S36).
    pub(super) fn wants_resource(&self, resource: &Resource) -> bool {
        self.wants(&resource.name) || resource.aliases.iter().any(|alias| self.wants(alias))
    }

    /// Whether the source was told to send the name. What is about to be
    /// unsubscribed is still kept current: if it is wanted again before the
    /// request leaves, a state-of-the-world source will not notice and not send
    /// it again. What is wanted and not asked for yet will be sent when it is;
    /// what arrives before that was meant for an earlier asking.
    pub(super) fn reaches(&self, name: &Name) -> bool {
        self.told.contains(name)
    }

    /// As [`Asking::reaches`], under any of its names.
    pub(super) fn reaches_resource(&self, resource: &Resource) -> bool {
        self.reaches(&resource.name) || resource.aliases.iter().any(|alias| self.reaches(alias))
    }

    /// As [`Asking::reaches`], or it is a collection that is wanted (S61).
    pub(super) fn hears_of(&self, name: &Name) -> bool {
        self.reaches(name) || self.wanted.names_collection(name)
    }

    /// Whether the name itself is, or was until the next request, asked for.
    pub(super) fn names(&self, name: &Name) -> bool {
        self.wanted.names_exactly(name) || self.told.names_exactly(name)
    }

    #[cfg(test)]
    pub(super) fn check(&self) {
        let told = self.told.difference(&self.removed).union(&self.added);
        assert_eq!(self.wanted, told);
        assert!(self.removed.difference(&self.told).is_empty());
        assert!(self.removed.intersection(&self.wanted).is_empty());
    }
}
