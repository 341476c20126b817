//! A set of subscriptions to names, globs and the wildcard.
//!
//! Subscriptions are compared as they were made: after `*` and `a`, removing
//! `a` leaves `*`. [`Interest::contains`] tells whether any of them covers a
//! name. Iteration is in order, so that the same interest always makes the same
//! message.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use super::Subscription;
use super::param_sets::ParamSets;
use crate::name::{Glob, Name, Selector};
use crate::params::Params;

/// A set of subscriptions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interest {
    wildcard: Option<ParamSets>,
    globs: BTreeMap<Glob, ParamSets>,
    names: BTreeMap<Name, ParamSets>,
}

/// The difference between an older interest and a newer one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct InterestDiff {
    /// Subscriptions of the newer interest only.
    pub(crate) added: Interest,
    /// Subscriptions of the older interest only.
    pub(crate) removed: Interest,
}

impl Interest {
    /// Adds a subscription. Returns whether it is new.
    pub(crate) fn insert(&mut self, subscription: Subscription) -> bool {
        let Subscription { selector, params } = subscription;
        match selector {
            Selector::Wildcard => match &mut self.wildcard {
                Some(sets) => sets.insert(params),
                None => {
                    self.wildcard = Some(ParamSets::new(params));
                    true
                }
            },
            Selector::Glob(glob) => insert(&mut self.globs, glob, params),
            Selector::Name(name) => insert(&mut self.names, name, params),
        }
    }

    /// Removes this very subscription: others that cover the same names stay.
    /// Returns whether there was one.
    pub(crate) fn remove(&mut self, subscription: &Subscription) -> bool {
        let Subscription { selector, params } = subscription;
        let is_subscribed = self.has(subscription);
        if is_subscribed {
            match selector {
                Selector::Wildcard => {
                    let sets = self.wildcard.take();
                    self.wildcard = sets.and_then(|sets| sets.remove(params));
                }
                Selector::Glob(glob) => remove(&mut self.globs, glob, params),
                Selector::Name(name) => remove(&mut self.names, name, params),
            }
        }
        is_subscribed
    }

    /// Returns whether this very subscription is in the set.
    #[must_use]
    pub(crate) fn has(&self, subscription: &Subscription) -> bool {
        let sets = self.sets_of(&subscription.selector);
        sets.is_some_and(|sets| sets.contains(&subscription.params))
    }

    /// Returns whether the selector is in the set, with any parameters.
    #[must_use]
    pub(crate) fn has_selector(&self, selector: &Selector) -> bool {
        self.sets_of(selector).is_some()
    }

    /// Returns the sets of parameters of a selector; `None` if it is not in the
    /// interest.
    fn sets_of(&self, selector: &Selector) -> Option<&ParamSets> {
        match selector {
            Selector::Wildcard => self.wildcard.as_ref(),
            Selector::Glob(glob) => self.globs.get(glob),
            Selector::Name(name) => self.names.get(name),
        }
    }

    /// Returns whether any selector covers the name.
    #[must_use]
    pub fn contains(&self, name: &Name) -> bool {
        self.wildcard.is_some() || self.names.contains_key(name) || self.matches_glob(name)
    }

    /// Returns the parameters of all subscriptions that cover the name; one
    /// lookup for all globs.
    pub(crate) fn params_covering(&self, name: &Name) -> impl Iterator<Item = &Params> {
        let has_globs = !self.globs.is_empty();
        let glob = has_globs.then(|| Glob::of(name)).flatten();
        let glob_sets = glob.and_then(|glob| self.globs.get(&glob));
        let sets = [self.names.get(name), glob_sets, self.wildcard.as_ref()];
        sets.into_iter().flatten().flat_map(ParamSets::iter)
    }

    /// Returns the parameters of the subscriptions to this very name.
    pub(crate) fn params_of_name(&self, name: &Name) -> impl Iterator<Item = &Params> {
        self.names.get(name).into_iter().flat_map(ParamSets::iter)
    }

    /// Returns the parameters of the subscriptions with this very selector.
    pub(crate) fn params_of_selector(&self, selector: &Selector) -> impl Iterator<Item = &Params> {
        self.sets_of(selector).into_iter().flat_map(ParamSets::iter)
    }

    /// Returns the parameters of a wildcard or glob, if one has its own.
    pub(crate) fn scope_params(&self) -> Option<&Params> {
        let scopes = self.wildcard.iter().chain(self.globs.values());
        let mut sets = scopes.flat_map(ParamSets::iter);
        sets.find(|params| !params.is_empty())
    }

    /// Returns whether a glob covers the name; one lookup, however many globs
    /// there are.
    #[must_use]
    pub(crate) fn matches_glob(&self, name: &Name) -> bool {
        !self.globs.is_empty() && Glob::of(name).is_some_and(|glob| self.globs.contains_key(&glob))
    }

    /// Returns whether the text is not the name of a resource but a spelling of
    /// a collection in the set: the glob, or `*` or the empty text for the
    /// wildcard (S61).
    #[must_use]
    pub(crate) fn names_collection(&self, name: &Name) -> bool {
        match name.as_str() {
            "" | "*" => self.wildcard.is_some(),
            text => Glob::parse(text).is_ok_and(|glob| self.globs.contains_key(&glob)),
        }
    }

    /// Returns whether the name itself is in the set.
    #[must_use]
    pub(crate) fn names_exactly(&self, name: &Name) -> bool {
        self.names.contains_key(name)
    }

    /// Returns whether the wildcard is in the set.
    #[must_use]
    pub fn has_wildcard(&self) -> bool {
        self.wildcard.is_some()
    }

    /// Returns whether there are no subscriptions.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.wildcard.is_none() && self.globs.is_empty() && self.names.is_empty()
    }

    /// Returns whether the wildcard is the only selector.
    #[must_use]
    pub(crate) fn is_wildcard_only(&self) -> bool {
        self.has_wildcard() && self.globs.is_empty() && self.names.is_empty()
    }

    /// Returns whether the plain wildcard is the only subscription.
    #[must_use]
    pub(crate) fn is_plain_wildcard(&self) -> bool {
        self.is_wildcard_only() && self.wildcard == Some(ParamSets::Plain)
    }

    /// Returns the subscriptions to names, in order.
    pub(crate) fn names(&self) -> impl Iterator<Item = (&Name, &Params)> {
        let names = self.names.iter();
        names.flat_map(|(name, sets)| sets.iter().map(move |params| (name, params)))
    }

    /// Returns the subscriptions to wildcards and globs.
    pub(crate) fn scopes(&self) -> impl Iterator<Item = Subscription> {
        let wildcard = self.wildcard.iter().map(|sets| (Selector::Wildcard, sets));
        let globs = self
            .globs
            .iter()
            .map(|(glob, sets)| (Selector::Glob(glob.clone()), sets));
        wildcard.chain(globs).flat_map(|(selector, sets)| {
            let subscription = move |params: &Params| Subscription {
                selector: selector.clone(),
                params: params.clone(),
            };
            sets.iter().map(subscription)
        })
    }

    /// Returns all subscriptions: `*`, then globs, then names.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Subscription> {
        let names = self.names().map(|(name, params)| Subscription {
            selector: Selector::Name(name.clone()),
            params: params.clone(),
        });
        self.scopes().chain(names)
    }
}

/// Adds a set of parameters to those of a key. Returns whether it is new.
fn insert<K: Ord>(map: &mut BTreeMap<K, ParamSets>, key: K, params: Params) -> bool {
    match map.entry(key) {
        Entry::Occupied(mut entry) => entry.get_mut().insert(params),
        Entry::Vacant(entry) => {
            entry.insert(ParamSets::new(params));
            true
        }
    }
}

/// Removes a set of parameters from those of a key, and the key with the last.
fn remove<K: Ord + Clone>(map: &mut BTreeMap<K, ParamSets>, key: &K, params: &Params) {
    if let Some((key, sets)) = map.remove_entry(key)
        && let Some(remaining_sets) = sets.remove(params)
    {
        map.insert(key, remaining_sets);
    }
}

impl FromIterator<Subscription> for Interest {
    fn from_iter<I: IntoIterator<Item = Subscription>>(subscriptions: I) -> Self {
        let mut interest = Self::default();
        interest.extend(subscriptions);
        interest
    }
}

impl Extend<Subscription> for Interest {
    fn extend<I: IntoIterator<Item = Subscription>>(&mut self, subscriptions: I) {
        for subscription in subscriptions {
            self.insert(subscription);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use proptest::prelude::*;

    type Naive = BTreeSet<Subscription>;

    fn selector(text: &str) -> Selector {
        Selector::parse(text, 100).unwrap()
    }

    /// A selector, or `env=prod` and a selector.
    fn subscription(text: &str) -> Subscription {
        match text.split_once(' ') {
            None => selector(text).into(),
            Some((params, text)) => {
                let pair = params.split_once('=').unwrap();
                Subscription::new(selector(text), Params::new([pair]).unwrap())
            }
        }
    }

    /// Few enough that random sets overlap, and some of each kind.
    const TEXTS: [&str; 12] = [
        "*",
        "k=1 *",
        "a",
        "k=1 a",
        "k=2 a",
        "b",
        "k=1 b",
        "k=1 xdstp://x/T/d/*",
        "xdstp://x/T/d/*",
        "xdstp://x/T/d/1",
        "xdstp://x/T/e/*",
        "xdstp://x/T/e/1",
    ];

    fn naive() -> impl Strategy<Value = Naive> {
        proptest::sample::subsequence(TEXTS.to_vec(), 0..=TEXTS.len())
            .prop_map(|texts| texts.into_iter().map(subscription).collect())
    }

    fn interest(naive: &Naive) -> Interest {
        naive.iter().cloned().collect()
    }

    fn naive_reaches(naive: &Naive, name: &Name) -> bool {
        naive.iter().any(|one| match &one.selector {
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
                prop_assert_eq!(x.has(&selector), a.contains(&selector));
                prop_assert_eq!(x.remove(&selector), a.remove(&selector));
            }
            prop_assert_eq!(x, interest(&a));
        }

        #[test]
        fn reach_is_that_of_any_member(a in naive()) {
            let x = interest(&a);
            let has = |selector: &Selector| a.iter().any(|one| one.selector == *selector);
            for name in TEXTS.map(Name::new).iter().filter(|n| !n.as_str().ends_with('*')) {
                prop_assert_eq!(x.contains(name), naive_reaches(&a, name));
                prop_assert_eq!(x.names_exactly(name), has(&Selector::Name(name.clone())));
                let covering: Naive = a.iter().filter(|one| {
                    naive_reaches(&Naive::from([(*one).clone()]), name)
                }).cloned().collect();
                let params: BTreeSet<_> = covering.iter().map(|one| &one.params).collect();
                prop_assert_eq!(x.params_covering(name).collect::<BTreeSet<_>>(), params);
            }
            prop_assert_eq!(x.has_wildcard(), has(&Selector::Wildcard));
            let scopes = a.iter().filter(|one| !matches!(one.selector, Selector::Name(_)));
            prop_assert!(x.scopes().eq(scopes.clone().cloned()));
            let located = scopes.map(|one| &one.params).find(|params| !params.is_empty());
            prop_assert_eq!(x.scope_params(), located);
        }
    }

    #[test]
    fn a_glob_reaches_one_level() {
        let interest: Interest = [subscription("xdstp://x/T/d/*?k=v")].into_iter().collect();
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
        let names: Interest = [subscription("n")].into_iter().collect();
        assert!(!names.matches_glob(&Name::new("n")));
        assert!(!names.names_collection(&Name::new("n")));
        for text in ["xdstp://x/T/d/*?k=v", "*", ""] {
            let glob = text.starts_with('x');
            assert_eq!(interest.names_collection(&Name::new(text)), glob);
            let star: Interest = [Selector::Wildcard.into()].into_iter().collect();
            assert_eq!(star.names_collection(&Name::new(text)), !glob);
        }
        assert!(names.names().eq([(&Name::new("n"), &Params::default())]));
    }
}
