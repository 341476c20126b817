//! What a client knows of one resource, in four bytes: clients and resources
//! are many.

/// The last change that a client saw of a resource, and what that left it with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Known(u32);

/// It does not have it.
const ABSENT: u32 = 1 << 31;
/// It rejected the revision that it saw last.
const REJECTED: u32 = 1 << 30;

impl Known {
    /// Returns that the client has this revision.
    pub(super) fn held(revision: u32) -> Self {
        Self(revision)
    }

    /// Returns that the client was told by this revision, or after it, that
    /// there is none.
    pub(super) fn absent(revision: u32) -> Self {
        Self(revision | ABSENT)
    }

    /// Returns that the client rejected this revision, and has what it had
    /// before.
    pub(super) fn rejected(self, revision: u32) -> Self {
        let absent = if self.is_held() { 0 } else { ABSENT };
        Self(revision | REJECTED | absent)
    }

    /// Returns the last revision that the client saw; zero if it saw none.
    pub(crate) fn revision(self) -> u32 {
        self.0 & !(ABSENT | REJECTED)
    }

    /// Returns whether the client has the resource, even if that is an older
    /// revision than it saw.
    pub(crate) fn is_held(self) -> bool {
        self.0 != 0 && self.0 & ABSENT == 0
    }

    /// Returns whether the client rejected the revision that it saw last.
    pub(super) fn is_rejected(self) -> bool {
        self.0 & REJECTED != 0
    }
}
