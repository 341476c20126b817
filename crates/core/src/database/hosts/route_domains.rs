//! Counts the domains of a route configuration, and its wildcards by length: a
//! host is compared only with wildcards of lengths that occur.

use std::collections::BTreeMap;

use crate::hosts::Domain;

/// Counts of the domains of a route configuration.
#[derive(Debug, Default)]
pub(super) struct RouteDomains {
    /// All domains.
    pub(super) domains: usize,
    /// How many of them are `*`.
    pub(super) any: usize,
    /// Wildcards by the length of the text that a host ends with.
    pub(super) suffixes: BTreeMap<usize, usize>,
    /// Wildcards by the length of the text that a host begins with.
    pub(super) prefixes: BTreeMap<usize, usize>,
}

impl RouteDomains {
    /// Counts a domain.
    pub(super) fn add(&mut self, domain: Domain<'_>) {
        self.domains += 1;
        self.any += usize::from(domain == Domain::Any);
        if let Some((counts, length)) = self.counts_by_length(domain) {
            *counts.entry(length).or_default() += 1;
        }
    }

    /// Removes a domain that was counted. A length that no wildcard has any
    /// more is dropped.
    pub(super) fn remove(&mut self, domain: Domain<'_>) {
        self.domains -= 1;
        self.any -= usize::from(domain == Domain::Any);
        if let Some((counts, length)) = self.counts_by_length(domain)
            && let Some(count) = counts.get_mut(&length)
        {
            *count -= 1;
            if *count == 0 {
                counts.remove(&length);
            }
        }
    }

    /// Returns the counts in which a suffix or a prefix is counted, and its
    /// length; `None` for other domains.
    fn counts_by_length(
        &mut self,
        domain: Domain<'_>,
    ) -> Option<(&mut BTreeMap<usize, usize>, usize)> {
        match domain {
            Domain::Suffix(text) => Some((&mut self.suffixes, text.len())),
            Domain::Prefix(text) => Some((&mut self.prefixes, text.len())),
            Domain::Exact(_) | Domain::Any => None,
        }
    }
}
