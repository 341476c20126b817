//! What a client knows of one resource, in four bytes: clients and resources
//! are many.

/// The last change that a client saw of a resource, and what that left it with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Known(u32);

/// It does not have it.
const ABSENT: u32 = 1 << 31;
/// It rejected the revision that it saw last.
const REFUSED: u32 = 1 << 30;

impl Known {
    /// It has this revision.
    pub(super) fn held(revision: u32) -> Self {
        Self(revision)
    }

    /// It was told by this revision, or after it, that there is none.
    pub(super) fn gone(revision: u32) -> Self {
        Self(revision | ABSENT)
    }

    /// It rejected this revision, and has what it had before.
    pub(super) fn refused(self, revision: u32) -> Self {
        let absent = if self.is_held() { 0 } else { ABSENT };
        Self(revision | REFUSED | absent)
    }

    /// The last revision that it saw; zero is none.
    pub(crate) fn revision(self) -> u32 {
        self.0 & !(ABSENT | REFUSED)
    }

    /// Whether it has the resource, be it an older revision than it saw.
    pub(crate) fn is_held(self) -> bool {
        self.0 != 0 && self.0 & ABSENT == 0
    }

    /// Whether it rejected the revision that it saw last.
    pub(super) fn is_refused(self) -> bool {
        self.0 & REFUSED != 0
    }
}
