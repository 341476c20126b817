//! The state of the wildcard: whether a stream is subscribed to a whole type.
//!
//! ```text
//!              empty first request            "*" named
//!   Never ─────────────────────────▶ Legacy ───────────▶ Explicit
//!     │                                 │                  │  ▲
//!     │ names only                      │ names only (SotW)│  │ "*" named
//!     └────────────────▶ Off ◀──────────┴──────────────────┘  │
//!                         │        "*" no longer named        │
//!                         └───────────────────────────────────┘
//! ```
//!
//! There is no way back to `Legacy`: once a stream has named anything, an empty
//! list is not a wildcard (S19, S20).

/// Whether, and how, a stream is subscribed to a whole type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Wildcard {
    /// The stream has not subscribed to the type.
    #[default]
    Never,
    /// The first request named nothing, which is a wildcard for some types
    /// (S18).
    Legacy,
    /// The stream named `*` (S21).
    Explicit,
    /// The stream subscribes to names, or to nothing.
    Off,
}

/// The wildcard in a delta request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DeltaWildcard {
    /// `*` is among the subscriptions.
    pub(crate) subscribes_star: bool,
    /// A selector other than `*` is among the subscriptions.
    pub(crate) subscribes_names: bool,
    /// `*` is among the unsubscriptions.
    pub(crate) unsubscribes_star: bool,
}

impl Wildcard {
    /// Returns whether the stream is subscribed to the whole type.
    #[must_use]
    pub(crate) fn is_on(self) -> bool {
        matches!(self, Self::Legacy | Self::Explicit)
    }

    /// Returns the state after a SotW request, whose list has `*`, other
    /// selectors, or nothing. An empty list is a wildcard if the stream never
    /// listed anything, and the type `allows_legacy` wildcards (S18, S19).
    #[must_use]
    pub(crate) fn after_sotw(
        self,
        lists_star: bool,
        lists_names: bool,
        allows_legacy: bool,
    ) -> Self {
        if lists_star {
            return Self::Explicit;
        }
        match self {
            Self::Never | Self::Legacy if !lists_names && allows_legacy => Self::Legacy,
            Self::Never | Self::Legacy | Self::Explicit | Self::Off => Self::Off,
        }
    }

    /// Returns the state after a delta request, which lists changes. An empty
    /// first request is a wildcard if the type `allows_legacy` wildcards, and a
    /// later one changes nothing (S20). Unsubscribing from `*` ends every
    /// wildcard (S22), even in the request that subscribes to it (S24).
    #[must_use]
    pub(crate) fn after_delta(self, request: DeltaWildcard, allows_legacy: bool) -> Self {
        if request.unsubscribes_star {
            return Self::Off;
        }
        if request.subscribes_star {
            return Self::Explicit;
        }
        match self {
            Self::Never if !request.subscribes_names && allows_legacy => Self::Legacy,
            Self::Never => Self::Off,
            Self::Legacy | Self::Explicit | Self::Off => self,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Wildcard::{Explicit, Legacy, Never, Off};
    use super::*;

    /// Runs SotW name lists; the state after each.
    fn sotw(legacy: bool, requests: &[&[&str]]) -> Vec<Wildcard> {
        let mut mode = Never;
        let mut step = |names: &&[&str]| {
            let lists_star = names.contains(&"*");
            let lists_names = names.iter().any(|name| *name != "*");
            mode = mode.after_sotw(lists_star, lists_names, legacy);
            mode
        };
        requests.iter().map(&mut step).collect()
    }

    /// Runs delta requests written `+a -*`; the state after each.
    fn delta(legacy: bool, requests: &[&str]) -> Vec<Wildcard> {
        let mut mode = Never;
        let mut step = |request: &&str| {
            let says = DeltaWildcard {
                subscribes_star: request.contains("+*"),
                subscribes_names: request.replace("+*", "").contains('+'),
                unsubscribes_star: request.contains("-*"),
            };
            mode = mode.after_delta(says, legacy);
            mode
        };
        requests.iter().map(&mut step).collect()
    }

    #[test]
    fn s18_a_list_that_never_named_anything_is_a_wildcard() {
        assert_eq!(sotw(true, &[&[], &[]]), [Legacy, Legacy]);
        assert_eq!(delta(true, &["", ""]), [Legacy, Legacy]);
    }

    #[test]
    fn s18_the_empty_wildcard_is_a_matter_of_the_type() {
        assert_eq!(sotw(false, &[&[], &[]]), [Off, Off]);
        assert_eq!(delta(false, &["", ""]), [Off, Off]);
        assert_eq!(sotw(false, &[&["*"]]), [Explicit]);
        assert_eq!(delta(false, &["+*"]), [Explicit]);
    }

    #[test]
    fn s19_sotw_from_all_to_named_to_nothing() {
        assert_eq!(
            sotw(true, &[&[], &["*", "A"], &["A"], &[]]),
            [Legacy, Explicit, Off, Off]
        );
        assert_eq!(sotw(true, &[&["A"], &[]]), [Off, Off]);
        assert_eq!(sotw(true, &[&[], &["A"], &[]]), [Legacy, Off, Off]);
        assert_eq!(sotw(true, &[&["*"], &[]]), [Explicit, Off]);
        assert_eq!(sotw(true, &[&["A"], &["*"]]), [Off, Explicit]);
    }

    #[test]
    fn s20_delta_from_all_to_named_to_nothing() {
        assert_eq!(
            delta(true, &["", "+A", "-*", "-A"]),
            [Legacy, Legacy, Off, Off]
        );
        assert_eq!(delta(true, &["+A", "-A", ""]), [Off, Off, Off]);
        assert_eq!(delta(true, &["+A", "+*"]), [Off, Explicit]);
    }

    #[test]
    fn s21_a_star_first_is_a_wildcard() {
        assert_eq!(sotw(true, &[&["*"]]), [Explicit]);
        assert_eq!(delta(true, &["+*"]), [Explicit]);
        for (mode, on) in [
            (Never, false),
            (Legacy, true),
            (Explicit, true),
            (Off, false),
        ] {
            assert_eq!(mode.is_on(), on);
        }
    }

    #[test]
    fn s22_unsubscribing_the_star_ends_the_wildcard_only() {
        assert_eq!(delta(true, &["+* +A", "-*", "-A"]), [Explicit, Off, Off]);
    }

    #[test]
    fn s23_unsubscribing_a_name_leaves_the_wildcard() {
        assert_eq!(delta(true, &["+* +A", "-A"]), [Explicit, Explicit]);
        assert_eq!(delta(true, &["", "+A", "-A"]), [Legacy, Legacy, Legacy]);
    }

    #[test]
    fn s24_subscribing_and_unsubscribing_the_star_at_once_is_nothing() {
        assert_eq!(delta(true, &["+* -*", ""]), [Off, Off]);
    }
}
