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
/// Invariants, proved by [`InterestState::check`]:
/// - `wanted` is `told` without `removed` and with `added`;
/// - what is `removed` was told and is not wanted.
#[derive(Debug, Default)]
pub(super) struct InterestState {
    wanted: Interest,
    sent: Interest,
    added: Interest,
    removed: Interest,
    /// What the source makes of the requests so far.
    wildcard: Wildcard,
}

impl InterestState {
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
            if self.sent.has_selector(wanted) {
                self.removed.insert(wanted.clone());
            }
        }
    }

    /// A stream began or ended: its source knows nothing.
    pub(super) fn restart(&mut self) {
        self.sent = Interest::default();
        self.removed = Interest::default();
        self.added = self.wanted.clone();
        self.wildcard = Wildcard::Never;
    }

    /// A request leaves that says all that is wanted; what it settles.
    pub(super) fn record_sent(&mut self, wildcard: Wildcard) -> InterestDiff {
        let edges = InterestDiff {
            added: std::mem::take(&mut self.added),
            removed: std::mem::take(&mut self.removed),
        };
        for wanted in edges.removed.iter() {
            self.sent.remove(&wanted);
        }
        self.sent.extend(edges.added.iter());
        self.wildcard = wildcard;
        edges
    }

    /// A request leaves that is only a step towards what is wanted.
    pub(super) fn set_wildcard(&mut self, wildcard: Wildcard) {
        self.wildcard = wildcard;
    }

    /// Whether this stream has asked for the type at all.
    pub(super) fn has_sent_request(&self) -> bool {
        self.wildcard != Wildcard::Never
    }

    /// What the source makes of the requests so far.
    pub(super) fn wildcard(&self) -> Wildcard {
        self.wildcard
    }

    pub(super) fn wanted(&self) -> &Interest {
        &self.wanted
    }

    pub(super) fn sent(&self) -> &Interest {
        &self.sent
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

    /// Whether the server was asked for the name. A name that is about to be
    /// unsubscribed is still kept current: if it is subscribed to again before
    /// the request leaves, a SotW server sees no difference and does not send
    /// it again. A name that is subscribed to and not requested yet is sent
    /// when it is; a resource that arrives before was meant for an earlier
    /// request.
    pub(super) fn is_requested(&self, name: &Name) -> bool {
        self.sent.contains(name)
    }

    /// As [`InterestState::is_requested`], under any of its names.
    pub(super) fn is_resource_requested(&self, resource: &Resource) -> bool {
        self.is_requested(&resource.name)
            || resource
                .aliases
                .iter()
                .any(|alias| self.is_requested(alias))
    }

    /// As [`InterestState::is_requested`], or it is a collection that is wanted (S61).
    pub(super) fn accepts_error_for(&self, name: &Name) -> bool {
        self.is_requested(name) || self.wanted.names_collection(name)
    }

    /// Whether the name itself is, or was until the next request, asked for.
    pub(super) fn names_exactly(&self, name: &Name) -> bool {
        self.wanted.names_exactly(name) || self.sent.names_exactly(name)
    }

    #[cfg(test)]
    pub(super) fn check(&self) {
        let told = self.sent.difference(&self.removed).union(&self.added);
        assert_eq!(self.wanted, told);
        assert!(self.removed.difference(&self.sent).is_empty());
        assert!(self.removed.intersection(&self.wanted).is_empty());
    }
}
