//! What a client knows of one resource, in four bytes: clients and resources
//! are many.

/// The last change that a client saw of a resource, and what that left it with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Known(u32);

/// It was told that there is none.
const GONE: u32 = 1 << 31;

impl Known {
    /// It has this revision.
    pub(super) fn held(revision: u32) -> Self {
        Self(revision)
    }

    /// It was told by this revision, or after it, that there is none.
    pub(super) fn gone(revision: u32) -> Self {
        Self(revision | GONE)
    }

    /// The last revision that it saw; zero is none.
    pub(crate) fn revision(self) -> u32 {
        self.0 & !GONE
    }

    /// Whether it has the resource.
    pub(crate) fn is_held(self) -> bool {
        self.0 != 0 && self.0 & GONE == 0
    }

    /// Whether it had it.
    pub(super) fn is_gone(self) -> bool {
        self.0 & GONE != 0
    }
}
