//! The subscriptions of a source, or of a server, and how often each was made.

use std::collections::BTreeMap;

use crate::name::{Glob, Name, Selector};
use crate::params::Params;
use crate::resource::TypeUrl;
use crate::sink::Subscription;

/// A subscription to a type.
pub(super) type TypedSubscription = (TypeUrl, Subscription);

/// Counted subscriptions. Of each type, wildcards come first, then globs, then
/// names.
#[derive(Debug, Default)]
pub(super) struct Subscriptions {
    counts: BTreeMap<TypedSubscription, usize>,
}

impl Subscriptions {
    /// Adds a subscription. Returns whether it is the first of its kind (C23).
    pub(super) fn add(&mut self, key: &TypedSubscription) -> bool {
        let count = self.counts.entry(key.clone()).or_insert(0);
        *count += 1;
        *count == 1
    }

    /// Removes a subscription once. Returns whether it was the last of its kind
    /// (C25); `false` if there was none.
    pub(super) fn remove(&mut self, key: &TypedSubscription) -> bool {
        let Some(count) = self.counts.get_mut(key) else {
            return false;
        };
        *count -= 1;
        let is_last = *count == 0;
        if is_last {
            self.counts.remove(key);
        }
        is_last
    }

    /// Returns whether there are no subscriptions.
    pub(super) fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// Returns all subscriptions, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &TypedSubscription> {
        self.counts.keys()
    }

    /// Returns the wildcards and globs.
    pub(super) fn scopes(&self) -> impl Iterator<Item = &TypedSubscription> {
        let is_scope = |(_, subscription): &&TypedSubscription| {
            !matches!(subscription.selector, Selector::Name(_))
        };
        self.iter().filter(is_scope)
    }

    /// Returns the names that are subscribed to one by one.
    pub(super) fn names(&self) -> impl Iterator<Item = (&TypeUrl, &Name)> {
        self.iter()
            .filter_map(|(url, subscription)| match &subscription.selector {
                Selector::Name(name) => Some((url, name)),
                Selector::Wildcard | Selector::Glob(_) => None,
            })
    }

    /// Returns whether a subscription covers the name.
    pub(super) fn covers(&self, type_url: &TypeUrl, name: &Name) -> bool {
        self.params_covering(type_url, name).next().is_some()
    }

    /// Returns the parameters of all subscriptions that cover the name.
    pub(super) fn params_covering(
        &self,
        type_url: &TypeUrl,
        name: &Name,
    ) -> impl Iterator<Item = &Params> {
        let glob = Glob::of(name).map(Selector::Glob);
        let selectors = [
            Some(Selector::Name(name.clone())),
            glob,
            Some(Selector::Wildcard),
        ];
        let selectors = selectors.into_iter().flatten();
        selectors.flat_map(|selector| self.params_of(type_url, selector))
    }

    /// Returns the parameters of the subscriptions with this very selector.
    fn params_of(&self, type_url: &TypeUrl, selector: Selector) -> impl Iterator<Item = &Params> {
        let first_key = (type_url.clone(), Subscription::from(selector));
        let later_entries = self.counts.range(first_key.clone()..);
        let is_same = move |(url, subscription): &&TypedSubscription| {
            *url == first_key.0 && subscription.selector == first_key.1.selector
        };
        let matching_keys = later_entries.map(|(key, _)| key).take_while(is_same);
        matching_keys.map(|(_, subscription)| &subscription.params)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(selector: &str, env: &str) -> TypedSubscription {
        let pairs = (!env.is_empty()).then_some(("env", env));
        let selector = Selector::parse(selector, 100).unwrap();
        let params = Params::new(pairs).unwrap();
        ("t".into(), Subscription::new(selector, params))
    }

    #[test]
    fn c23_c25_a_subscription_counts_from_the_first_to_the_last() {
        let mut all = Subscriptions::default();
        assert!(all.add(&key("a", "")) && !all.add(&key("a", "")));
        assert!(!all.remove(&key("a", "")) && all.remove(&key("a", "")));
        assert!(!all.remove(&key("a", "")) && all.is_empty());
    }

    #[test]
    fn wildcards_globs_and_names_cover_a_name_each_with_its_parameters() {
        let mut all = Subscriptions::default();
        let name = Name::new("xdstp://x/T/d/1");
        let urls = ["t", "u"].map(TypeUrl::from);
        for (selector, covers) in [
            ("xdstp://x/T/d/2", false),
            ("xdstp://x/T/e/*", false),
            ("xdstp://x/T/d/1", true),
            ("xdstp://x/T/d/*", true),
            ("*", true),
        ] {
            let key = key(selector, "prod");
            all.add(&key);
            assert_eq!(all.covers(&urls[0], &name), covers, "{selector}");
            assert!(!all.covers(&urls[1], &name), "another type");
            if covers {
                let params: Vec<_> = all.params_covering(&urls[0], &name).collect();
                assert_eq!(params, [&key.1.params], "{selector}");
                all.remove(&key);
            }
        }
        assert_eq!((all.names().count(), all.scopes().count()), (1, 1));
    }
}
