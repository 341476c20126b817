//! A set of selectors: names, globs and the wildcard.
//!
//! Selectors are compared as they were subscribed to: after `*` and `a`,
//! removing `a` leaves `*`. [`Interest::contains`] tells whether any of them
//! covers a name. Iteration is in order, so that the same interest always makes
//! the same message.

use std::collections::BTreeSet;

use crate::name::{Glob, Name, Selector};

/// A set of selectors.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interest {
    wildcard: bool,
    globs: BTreeSet<Glob>,
    names: BTreeSet<Name>,
}

/// The difference between an older interest and a newer one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct InterestDiff {
    /// Selectors of the newer interest only.
    pub(crate) added: Interest,
    /// Selectors of the older interest only.
    pub(crate) removed: Interest,
}

impl Interest {
    /// Adds a selector. Returns whether it is new.
    pub(crate) fn insert(&mut self, selector: Selector) -> bool {
        match selector {
            Selector::Wildcard => !std::mem::replace(&mut self.wildcard, true),
            Selector::Glob(glob) => self.globs.insert(glob),
            Selector::Name(name) => self.names.insert(name),
        }
    }

    /// Removes a selector. Returns whether it was there.
    pub(crate) fn remove(&mut self, selector: &Selector) -> bool {
        match selector {
            Selector::Wildcard => std::mem::replace(&mut self.wildcard, false),
            Selector::Glob(glob) => self.globs.remove(glob),
            Selector::Name(name) => self.names.remove(name),
        }
    }

    /// Returns whether this very selector is in the set.
    #[must_use]
    pub(crate) fn has_selector(&self, selector: &Selector) -> bool {
        match selector {
            Selector::Wildcard => self.wildcard,
            Selector::Glob(glob) => self.globs.contains(glob),
            Selector::Name(name) => self.names.contains(name),
        }
    }

    /// Returns whether any selector covers the name.
    #[must_use]
    pub fn contains(&self, name: &Name) -> bool {
        self.wildcard || self.names.contains(name) || self.matches_glob(name)
    }

    /// Returns whether a glob covers the name; one lookup, however many globs
    /// there are.
    #[must_use]
    pub(crate) fn matches_glob(&self, name: &Name) -> bool {
        !self.globs.is_empty() && Glob::of(name).is_some_and(|glob| self.globs.contains(&glob))
    }

    /// Returns whether the text is not the name of a resource but a spelling of
    /// a collection in the set: the glob, or `*` or the empty text for the
    /// wildcard (S61).
    #[must_use]
    pub(crate) fn names_collection(&self, name: &Name) -> bool {
        match name.as_str() {
            "" | "*" => self.wildcard,
            text => Glob::parse(text).is_ok_and(|glob| self.globs.contains(&glob)),
        }
    }

    /// Returns whether the name itself is in the set.
    #[must_use]
    pub(crate) fn names_exactly(&self, name: &Name) -> bool {
        self.names.contains(name)
    }

    /// Returns whether the wildcard is in the set.
    #[must_use]
    pub fn has_wildcard(&self) -> bool {
        self.wildcard
    }

    /// Returns whether there are no selectors.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        !self.wildcard && self.globs.is_empty() && self.names.is_empty()
    }

    /// The number of selectors.
    #[must_use]
    pub(crate) fn len(&self) -> usize {
        usize::from(self.wildcard) + self.globs.len() + self.names.len()
    }

    /// The names in the set, in order.
    pub(crate) fn names(&self) -> impl Iterator<Item = &Name> {
        self.names.iter()
    }

    /// Returns all selectors: `*`, then globs, then names.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Selector> {
        let wildcard = self.wildcard.then_some(Selector::Wildcard);
        let globs = self.globs.iter().cloned().map(Selector::Glob);
        let names = self.names.iter().cloned().map(Selector::Name);
        wildcard.into_iter().chain(globs).chain(names)
    }
}

impl FromIterator<Selector> for Interest {
    fn from_iter<I: IntoIterator<Item = Selector>>(all: I) -> Self {
        let mut interest = Self::default();
        interest.extend(all);
        interest
    }
}

impl Extend<Selector> for Interest {
    fn extend<I: IntoIterator<Item = Selector>>(&mut self, all: I) {
        for selector in all {
            self.insert(selector);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Naive = BTreeSet<Selector>;

    fn selector(text: &str) -> Selector {
        Selector::parse(text, 100).unwrap()
    }

    /// Few enough that random sets overlap, and some of each kind.
    const TEXTS: [&str; 7] = [
        "*",
        "a",
        "b",
        "xdstp://x/T/d/*",
        "xdstp://x/T/d/1",
        "xdstp://x/T/e/*",
        "xdstp://x/T/e/1",
    ];

    fn naive() -> impl Strategy<Value = Naive> {
        proptest::sample::subsequence(TEXTS.to_vec(), 0..=TEXTS.len())
            .prop_map(|texts| texts.into_iter().map(selector).collect())
    }

    fn interest(naive: &Naive) -> Interest {
        naive.iter().cloned().collect()
    }

    fn naive_reaches(naive: &Naive, name: &Name) -> bool {
        naive.iter().any(|selector| match selector {
            Selector::Wildcard => true,
            Selector::Glob(glob) => name
                .as_str()
                .starts_with(glob.as_str().trim_end_matches('*')),
            Selector::Name(exact) => exact == name,
        })
    }

    proptest! {
        #[test]
        fn iteration_is_that_of_a_set(a in naive()) {
            let x = interest(&a);
            prop_assert_eq!(x.len(), a.len());
            prop_assert_eq!(x.is_empty(), a.is_empty());
            prop_assert!(x.iter().eq(a), "order is that of `Selector`");
        }

        #[test]
        fn one_at_a_time_is_the_same(mut a in naive(), b in naive(), c in naive()) {
            let mut x = interest(&a);
            for selector in b {
                prop_assert_eq!(x.insert(selector.clone()), a.insert(selector));
            }
            for selector in c {
                prop_assert_eq!(x.has_selector(&selector), a.contains(&selector));
                prop_assert_eq!(x.remove(&selector), a.remove(&selector));
            }
            prop_assert_eq!(x, interest(&a));
        }

        #[test]
        fn reach_is_that_of_any_member(a in naive()) {
            let x = interest(&a);
            for name in TEXTS.map(Name::new).iter().filter(|n| !n.as_str().ends_with('*')) {
                prop_assert_eq!(x.contains(name), naive_reaches(&a, name));
                prop_assert_eq!(x.names_exactly(name), a.contains(&Selector::Name(name.clone())));
            }
            prop_assert_eq!(x.has_wildcard(), a.contains(&Selector::Wildcard));
        }
    }

    #[test]
    fn a_glob_reaches_one_level() {
        let interest: Interest = [selector("xdstp://x/T/d/*?k=v")].into_iter().collect();
        for (name, reached) in [
            ("xdstp://x/T/d/1?k=v", true),
            ("xdstp://x/T/d/1", false),
            ("xdstp://x/T/d/1?k=w", false),
            ("xdstp://x/T/d/e/1?k=v", false),
            ("1", false),
        ] {
            assert_eq!(interest.contains(&Name::new(name)), reached, "{name}");
            assert_eq!(interest.matches_glob(&Name::new(name)), reached, "{name}");
        }
        let names: Interest = [selector("n")].into_iter().collect();
        assert!(!names.matches_glob(&Name::new("n")));
        assert!(!names.names_collection(&Name::new("n")));
        for text in ["xdstp://x/T/d/*?k=v", "*", ""] {
            let glob = text.starts_with('x');
            assert_eq!(interest.names_collection(&Name::new(text)), glob);
            let star: Interest = [Selector::Wildcard].into_iter().collect();
            assert_eq!(star.names_collection(&Name::new(text)), !glob);
        }
        assert!(names.names().eq([&Name::new("n")]));
    }
}
