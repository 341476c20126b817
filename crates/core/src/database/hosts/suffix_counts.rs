//! Counts the domains under each suffix that begins at a label: `.foo.com` has
//! `a.foo.com` and `*.b.foo.com` under it.
//!
//! The counts are kept by the hashes of the suffixes. Two suffixes with the
//! same hash are counted together; then a wildcard counts as hiding another
//! domain when it does not, which costs a request and is never wrong.

use std::hash::BuildHasher;

use hashbrown::DefaultHashBuilder;

use super::super::shards::Shards;
use crate::hosts::Domain;

/// Counts of domains by suffix.
#[derive(Debug, Default)]
pub(super) struct SuffixCounts {
    hasher: DefaultHashBuilder,
    /// Hashes, and how often each occurs.
    counts: Shards<(u64, u32)>,
}

impl SuffixCounts {
    /// Counts a domain under each of its suffixes.
    pub(super) fn add(&mut self, route: &str, domain: Domain<'_>) {
        for suffix in suffixes(domain) {
            let hash = self.hasher.hash_one((route, suffix));
            match self.counts.find_mut(hash, |(key, _)| *key == hash) {
                Some((_, count)) => *count += 1,
                None => self.counts.insert(hash, (hash, 1), |(key, _)| *key),
            }
        }
    }

    /// Removes a domain that was added from the counts of its suffixes. A count
    /// of zero is dropped.
    pub(super) fn remove(&mut self, route: &str, domain: Domain<'_>) {
        for suffix in suffixes(domain) {
            let hash = self.hasher.hash_one((route, suffix));
            if let Some((_, count)) = self.counts.find_mut(hash, |(key, _)| *key == hash) {
                *count -= 1;
                if *count == 0 {
                    self.counts.remove(hash, |(key, _)| *key == hash);
                }
            }
        }
    }

    /// Returns the number of domains of a route configuration under a suffix.
    pub(super) fn count(&self, route: &str, suffix: &str) -> usize {
        let hash = self.hasher.hash_one((route, suffix));
        let entry = self.counts.find(hash, |(key, _)| *key == hash);
        entry.map_or(0, |(_, count)| *count as usize)
    }
}

/// Returns whether a domain counts as being under a suffix.
pub(super) fn is_under(domain: Domain<'_>, suffix: &str) -> bool {
    suffixes(domain).any(|other| other == suffix)
}

/// Returns the suffixes of a domain that begin at a label. A prefix is under
/// none: every suffix has precedence over it.
fn suffixes(domain: Domain<'_>) -> impl Iterator<Item = &str> {
    let text = match domain {
        Domain::Exact(text) | Domain::Suffix(text) => text,
        Domain::Prefix(_) | Domain::Any => "",
    };
    text.match_indices('.').map(|(dot, _)| &text[dot..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn domains_are_counted_under_their_labels() {
        let mut counts = SuffixCounts::default();
        for text in [
            "a.foo.com",
            "*.b.foo.com",
            "*.foo.com",
            "*-x.foo.com",
            "foo.*",
            "*",
        ] {
            counts.add("r", Domain::of(text));
        }
        assert_eq!(counts.count("r", ".foo.com"), 4);
        assert_eq!(counts.count("r", ".b.foo.com"), 1);
        assert_eq!(counts.count("r", "-x.foo.com"), 0);
        assert_eq!(counts.count("other", ".foo.com"), 0);
        counts.remove("r", Domain::of("*.b.foo.com"));
        assert_eq!(counts.count("r", ".foo.com"), 3);
        assert_eq!(counts.count("r", ".b.foo.com"), 0);
        for text in ["a.foo.com", "*.foo.com", "*-x.foo.com", "foo.*", "*"] {
            counts.remove("r", Domain::of(text));
        }
        assert_eq!(counts.counts.len(), 0);
        assert!(is_under(Domain::of("a.foo.com"), ".com"));
        assert!(!is_under(Domain::of("foo.*"), "."));
    }
}
