//! The automaton behind "all of it": when a type is subscribed as a whole.
//!
//! ```text
//!              empty first request            "*" named
//!   Never ─────────────────────────▶ Legacy ───────────▶ Explicit
//!     │                                 │                  │  ▲
//!     │ names only                      │ names only (SotW)│  │ "*" named
//!     └──────────────▶ Dropped ◀────────┴──────────────────┘  │
//!                         │        "*" no longer named        │
//!                         └───────────────────────────────────┘
//! ```
//!
//! There is no way back to `Legacy`: once a stream has named anything, an empty
//! list means nothing (S19, S20).

/// Whether, and how, a stream subscribes to a whole type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wildcard {
    /// The stream has not asked for the type.
    #[default]
    Never,
    /// Its first request named nothing, which for some types means all (S18).
    Legacy,
    /// It named `*` (S21).
    Explicit,
    /// It names what it wants, or wants nothing.
    Dropped,
}

/// What a delta request says of wildcards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeltaStar {
    /// `*` is among the subscriptions.
    pub subscribes_star: bool,
    /// Something other than `*` is among the subscriptions.
    pub subscribes_names: bool,
    /// `*` is among the unsubscriptions.
    pub unsubscribes_star: bool,
}

impl Wildcard {
    /// Whether the whole type is subscribed.
    #[must_use]
    pub fn is_on(self) -> bool {
        matches!(self, Self::Legacy | Self::Explicit)
    }

    /// After a state-of-the-world request; `legacy` is whether the type knows
    /// the empty wildcard (S18, S19).
    #[must_use]
    pub fn after_sotw(self, lists_star: bool, lists_names: bool, legacy: bool) -> Self {
        match self {
            _ if lists_star => Self::Explicit,
            Self::Never | Self::Legacy if !lists_names && legacy => Self::Legacy,
            _ => Self::Dropped,
        }
    }

    /// After a delta request; `legacy` as above (S20, S22, S24).
    #[must_use]
    pub fn after_delta(self, says: DeltaStar, legacy: bool) -> Self {
        match self {
            _ if says.unsubscribes_star => Self::Dropped,
            _ if says.subscribes_star => Self::Explicit,
            Self::Never if !says.subscribes_names && legacy => Self::Legacy,
            Self::Never => Self::Dropped,
            unchanged => unchanged,
        }
    }
}
