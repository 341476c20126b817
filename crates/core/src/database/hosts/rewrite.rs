//! Rewritten virtual hosts, for clients that request one of their hosts.
//!
//! A client that holds a wildcard domain never requests a host under it again.
//! So it gets the wildcard only if no other virtual host has a domain under it.
//! Otherwise a host that a wildcard matched gets a copy of the virtual host for
//! itself alone, and a host that is a domain itself gets the virtual host
//! without its wildcards.

use std::sync::Arc;

use hashbrown::HashMap;

use super::EntryId;
use crate::facts::Facts;
use crate::hosts::{self, Domain, Domains};
use crate::name::Name;
use crate::resource::Resource;

/// How a virtual host differs from the author's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rewrite {
    /// Without its wildcards.
    WithoutWildcards,
    /// With one alias more.
    WithAlias,
    /// For one host alone.
    OneHost,
}

#[derive(Debug)]
struct RewrittenHost {
    rewrite: Rewrite,
    source: Arc<Resource>,
    made: Arc<Resource>,
}

/// The rewritten virtual hosts for requested hosts, which many clients share.
#[derive(Debug, Default)]
pub(super) struct RewrittenHosts(HashMap<EntryId, Vec<RewrittenHost>>);

impl RewrittenHosts {
    /// Returns the virtual host that is made from `source` for an entry, which
    /// is kept for other clients; calls `make` if there is none.
    pub(super) fn get(
        &mut self,
        entry: EntryId,
        rewrite: Rewrite,
        source: &Arc<Resource>,
        make: impl FnOnce() -> Resource,
    ) -> Arc<Resource> {
        let rewrites = self.0.entry(entry).or_default();
        let same =
            |made: &&RewrittenHost| made.rewrite == rewrite && Arc::ptr_eq(&made.source, source);
        if let Some(found) = rewrites.iter().find(same) {
            return Arc::clone(&found.made);
        }
        // A source that is in use nowhere else is not sent to anybody any more.
        rewrites.retain(|made| Arc::strong_count(&made.source) > 1);
        let made = Arc::new(make());
        rewrites.push(RewrittenHost {
            rewrite,
            source: Arc::clone(source),
            made: Arc::clone(&made),
        });
        made
    }

    pub(super) fn forget(&mut self, entry: EntryId) {
        self.0.remove(&entry);
    }
}

/// Makes a copy of a virtual host without its wildcards.
pub(super) fn without_wildcards(source: &Resource) -> Resource {
    let domains = source.facts().domains.exact();
    rewritten(source, source.name.clone(), domains)
}

/// Makes a copy of a virtual host with one alias more.
pub(super) fn with_alias(source: &Resource, name: &Name) -> Resource {
    let aliases = source.aliases.iter().chain([name]).cloned();
    Resource {
        aliases: aliases.collect(),
        ..source.clone()
    }
}

/// Makes a copy of a virtual host for one host alone, under a name that is used
/// nowhere else.
pub(super) fn for_one_host(source: &Resource, name: Name, host: &str) -> Resource {
    rewritten(source, name, [host].into_iter())
}

/// Returns whether a host can be a domain that matches it alone.
pub(super) fn can_be_domain(host: &str) -> bool {
    let plain = |c: char| !c.is_control() && !c.is_whitespace();
    !host.is_empty() && !Domain::of(host).is_wildcard() && host.chars().all(plain)
}

/// Makes a copy of a virtual host with another name and other domains, in its
/// body and in its facts. It is for the same clients, and has a version of its
/// own.
fn rewritten<'a>(
    source: &Resource,
    name: Name,
    domains: impl Iterator<Item = &'a str> + Clone,
) -> Resource {
    let body = source.body.as_deref().unwrap_or_default();
    let body = hosts::with_domains(body, name.as_str(), domains.clone());
    Resource {
        constraints: source.constraints.clone(),
        ttl: source.ttl,
        facts: Some(Box::new(Facts {
            domains: Domains::new(domains),
            ..source.facts().clone()
        })),
        ..Resource::new(name, body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s84_a_virtual_host_for_one_host_is_for_the_same_clients() {
        let source = Resource {
            constraints: Some("env=prod".parse().unwrap()),
            ..Resource::new("r/web".into(), "".into())
        };
        let one = for_one_host(&source, Name::new("r/a.com"), "a.com");
        assert_eq!(one.constraints, source.constraints);
        assert_eq!(one.facts().domains, Domains::new(["a.com"]));
    }
}
