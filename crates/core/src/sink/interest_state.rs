//! The interest of one type, and how much of it the server was told.
//!
//! ```text
//!             subscribe              the request is sent
//!   desired ──▶ added ────────────────────▶ sent
//!           ◀── removed ◀── unsubscribe ─── sent
//! ```
//!
//! No message is kept here: when the transport can take one, it is made of
//! `added` and `removed` as they are then, so that ten changes while it was
//! blocked become one request.

use crate::interest::{Interest, InterestDiff, Wildcard};
use crate::name::{Name, Selector};
use crate::resource::Resource;

/// The interest of one type on one stream after another.
///
/// Invariants, proved by `InterestState::check`:
/// - `desired` is `sent` without `removed` and with `added`;
/// - `removed` is in `sent` and not in `desired`.
#[derive(Debug, Default)]
pub(super) struct InterestState {
    desired: Interest,
    sent: Interest,
    added: Interest,
    removed: Interest,
    /// The state of the wildcard at the server, after the requests so far.
    wildcard: Wildcard,
}

impl InterestState {
    /// Adds a selector. If an unsubscription of it was not sent yet, a
    /// subscription is sent instead, so that the server sends the resources
    /// again (E9).
    pub(super) fn subscribe(&mut self, selector: Selector) {
        if self.desired.insert(selector.clone()) {
            self.removed.remove(&selector);
            self.added.insert(selector);
        }
    }

    /// Removes a selector. An unsubscription is sent only for a selector that
    /// was sent.
    pub(super) fn unsubscribe(&mut self, selector: &Selector) {
        if self.desired.remove(selector) {
            self.added.remove(selector);
            if self.sent.has_selector(selector) {
                self.removed.insert(selector.clone());
            }
        }
    }

    /// Resets the sent state, since a new stream's server knows nothing.
    pub(super) fn restart(&mut self) {
        self.sent = Interest::default();
        self.removed = Interest::default();
        self.added = self.desired.clone();
        self.wildcard = Wildcard::Never;
    }

    /// Records that a request with all changes is sent, after which the
    /// wildcard has this state at the server. Returns the changes.
    pub(super) fn record_sent(&mut self, wildcard: Wildcard) -> InterestDiff {
        let diff = InterestDiff {
            added: std::mem::take(&mut self.added),
            removed: std::mem::take(&mut self.removed),
        };
        for selector in diff.removed.iter() {
            self.sent.remove(&selector);
        }
        self.sent.extend(diff.added.iter());
        self.wildcard = wildcard;
        diff
    }

    /// Records that a request is sent that only prepares the next change.
    pub(super) fn set_wildcard(&mut self, wildcard: Wildcard) {
        self.wildcard = wildcard;
    }

    /// Returns whether this stream has sent a request for the type.
    pub(super) fn has_sent_request(&self) -> bool {
        self.wildcard != Wildcard::Never
    }

    /// The state of the wildcard at the server, after the requests so far.
    pub(super) fn wildcard(&self) -> Wildcard {
        self.wildcard
    }

    pub(super) fn desired(&self) -> &Interest {
        &self.desired
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

    /// Returns whether this name is subscribed to now.
    pub(super) fn is_desired(&self, name: &Name) -> bool {
        self.desired.contains(name)
    }

    /// Returns whether the server was asked for the name. A name that is about
    /// to be unsubscribed is still kept current: if it is subscribed to again
    /// before the request leaves, a SotW server sees no difference and does not
    /// send it again. A name that is subscribed to and not requested yet is
    /// sent when it is; a resource that arrives before was meant for an earlier
    /// request.
    pub(super) fn is_requested(&self, name: &Name) -> bool {
        self.sent.contains(name)
    }

    /// Returns whether the server was asked for the resource under any of its
    /// names; see [`InterestState::is_requested`].
    pub(super) fn is_resource_requested(&self, resource: &Resource) -> bool {
        self.is_requested(&resource.name)
            || resource
                .aliases
                .iter()
                .any(|alias| self.is_requested(alias))
    }

    /// Returns whether an error of the server about this name counts: the
    /// server was asked for the name, or it is the name of a collection that is
    /// subscribed to (S61).
    pub(super) fn accepts_error_for(&self, name: &Name) -> bool {
        self.is_requested(name) || self.desired.names_collection(name)
    }

    /// Returns whether the name itself is subscribed to, or was in the last
    /// request.
    pub(super) fn names_exactly(&self, name: &Name) -> bool {
        self.desired.names_exactly(name) || self.sent.names_exactly(name)
    }

    /// Proves the invariants of the struct.
    #[cfg(test)]
    pub(super) fn check(&self) {
        let sent = self.sent.iter();
        let kept = sent.filter(|selector| !self.removed.has_selector(selector));
        let expected: Interest = kept.chain(self.added.iter()).collect();
        assert_eq!(self.desired, expected);
        for selector in self.removed.iter() {
            assert!(self.sent.has_selector(&selector));
            assert!(!self.desired.has_selector(&selector));
        }
    }
}
