//! Rewritten virtual hosts, for clients that request one of their hosts.
//!
//! A client that holds a wildcard domain never requests a host under it again.
//! So it gets the wildcard only if no other virtual host has a domain under it.
//! Otherwise a host that a wildcard matched gets a copy of the virtual host for
//! itself alone, and a host that is a domain itself gets the virtual host
//! without its wildcards.

use std::sync::{Arc, Weak};

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

/// One rewritten virtual host, and what it was made from.
#[derive(Debug)]
struct RewrittenHost {
    rewrite: Rewrite,
    source: Weak<Resource>,
    resource: Arc<Resource>,
}

/// The rewritten virtual hosts for requested hosts, which many clients share.
#[derive(Debug, Default)]
pub(super) struct RewrittenHosts(HashMap<EntryId, Vec<RewrittenHost>>);

impl RewrittenHosts {
    /// Returns the virtual host that was rewritten from `source` for an entry.
    /// If there is none, calls `make` and keeps the result for other clients.
    pub(super) fn get_or_make(
        &mut self,
        entry: EntryId,
        rewrite: Rewrite,
        source: &Arc<Resource>,
        make: impl FnOnce() -> Resource,
    ) -> Arc<Resource> {
        let rewrites = self.0.entry(entry).or_default();
        let is_same_rewrite = |rewritten: &&RewrittenHost| {
            let is_same_source = rewritten.source.as_ptr() == Arc::as_ptr(source);
            rewritten.rewrite == rewrite && is_same_source
        };
        if let Some(rewritten) = rewrites.iter().find(is_same_rewrite) {
            return Arc::clone(&rewritten.resource);
        }

        // A source that is in use nowhere else is not sent to anybody any more.
        rewrites.retain(|rewritten| rewritten.source.strong_count() > 0);
        let resource = Arc::new(make());
        rewrites.push(RewrittenHost {
            rewrite,
            source: Arc::downgrade(source),
            resource: Arc::clone(&resource),
        });
        resource
    }

    /// Forgets the virtual hosts that were rewritten for an entry.
    pub(super) fn forget(&mut self, entry: EntryId) {
        self.0.remove(&entry);
    }
}

/// Makes a copy of a virtual host without its wildcards.
pub(super) fn remove_wildcards(source: &Resource) -> Resource {
    let domains = source.facts().domains.exact();
    copy_with(source, source.name.clone(), domains)
}

/// Makes a copy of a virtual host with one alias more.
pub(super) fn add_alias(source: &Resource, alias: &Name) -> Resource {
    let aliases = source.aliases.iter().chain([alias]);
    Resource {
        aliases: aliases.cloned().collect(),
        ..source.clone()
    }
}

/// Makes a copy of a virtual host for one host alone, under a name that is used
/// nowhere else.
pub(super) fn narrow_to_host(source: &Resource, name: Name, host: &str) -> Resource {
    copy_with(source, name, [host].into_iter())
}

/// Returns whether a host can be a domain that matches it alone.
pub(super) fn can_be_domain(host: &str) -> bool {
    let is_plain = |c: char| !c.is_control() && !c.is_whitespace();
    !host.is_empty() && !Domain::of(host).is_wildcard() && host.chars().all(is_plain)
}

/// Makes a copy of a virtual host with another name and other domains, in its
/// body and in its facts. It is for the same clients, and has a version of its
/// own and no aliases.
fn copy_with<'a>(
    source: &Resource,
    name: Name,
    domains: impl Iterator<Item = &'a str> + Clone,
) -> Resource {
    let source_body = source.body.as_deref().unwrap_or_default();
    let body = hosts::rewrite_body(source_body, name.as_str(), domains.clone());
    let facts = Facts {
        domains: Domains::new(domains),
        ..source.facts().clone()
    };
    Resource {
        constraints: source.constraints.clone(),
        ttl: source.ttl,
        facts: Some(Box::new(facts)),
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
        let one = narrow_to_host(&source, Name::new("r/a.com"), "a.com");
        assert_eq!(one.constraints, source.constraints);
        assert_eq!(one.facts().domains, Domains::new(["a.com"]));
    }

    #[test]
    fn a_rewritten_virtual_host_keeps_its_ttl() {
        let ttl = Some(std::time::Duration::from_secs(5));
        let facts = Facts {
            domains: Domains::new(["a.com", "*.a.com"]),
            ..Facts::default()
        };
        let source = Resource {
            ttl,
            facts: Some(Box::new(facts)),
            ..Resource::new("r/web".into(), "".into())
        };
        let bare = remove_wildcards(&source);
        assert_eq!((bare.ttl, &bare.name), (ttl, &source.name));
        assert_eq!(bare.facts().domains, Domains::new(["a.com"]));
        let aliased = add_alias(&source, &"r/b.a.com".into());
        assert_eq!(*aliased.aliases, [Name::new("r/b.a.com")]);
        assert_eq!(aliased.facts(), source.facts());
    }

    #[test]
    fn a_host_can_be_a_domain_if_it_matches_itself_alone() {
        for host in ["a.com", "a.com:80", "a*b", "[::1]"] {
            assert!(can_be_domain(host), "{host}");
        }
        for host in ["", "*", "*.com", "a.*", "a b", "a\tb", "a\u{7}"] {
            assert!(!can_be_domain(host), "{host:?}");
        }
    }

    #[test]
    fn rewritten_virtual_hosts_are_shared_while_their_source_is_in_use() {
        let mut rewritten = RewrittenHosts::default();
        let (entry, other) = (EntryId(1), EntryId(2));
        let source = || Arc::new(Resource::new("r/web".into(), "x".into()));
        let (one, two) = (source(), source());
        let make = || Resource::new("made".into(), "x".into());
        let mut get = |entry, rewrite, source: &Arc<Resource>| {
            rewritten.get_or_make(entry, rewrite, source, make)
        };
        let first = get(entry, Rewrite::OneHost, &one);
        let others = [
            get(entry, Rewrite::WithAlias, &one),
            get(entry, Rewrite::OneHost, &two),
            get(other, Rewrite::OneHost, &one),
        ];
        assert!(others.iter().all(|made| !Arc::ptr_eq(made, &first)));
        assert!(Arc::ptr_eq(&first, &get(entry, Rewrite::OneHost, &one)));
        assert!(Arc::ptr_eq(&others[1], &get(entry, Rewrite::OneHost, &two)));
        // The first source goes: the next rewrite frees what was made of it.
        let kept = Arc::downgrade(&first);
        drop((first, others, two));
        rewritten.forget(other);
        drop(one);
        assert!(kept.upgrade().is_some());
        rewritten.get_or_make(entry, Rewrite::WithAlias, &source(), make);
        assert!(kept.upgrade().is_none());
        rewritten.forget(entry);
        assert!(rewritten.0.is_empty());
    }
}
