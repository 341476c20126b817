//! Groups: updates that have to be in one response. Variants of one name form
//! one, and so do virtual hosts that hand a domain or a host to one another:
//! with one of them alone the client would have a domain twice, and NACK.
//!
//! A group is sent, deferred and tried as a whole.

use std::sync::Arc;

use hashbrown::HashMap;

use super::client_cache::{Answer, Update};
use super::{Push, TypeStream};
use crate::database::Database;
use crate::hosts::HostName;
use crate::name::Name;
use crate::resource::Resource;

/// The key that joins two updates into one group: a name, or a domain of one
/// route configuration. A domain has no slash, so it cannot be taken for a
/// name.
type GroupKey = (Box<str>, Box<str>);

impl TypeStream {
    /// Takes updates back out of a push if their group has a member that is
    /// deferred for another type (S73). Their answers go with them, and their
    /// names are deferred, too. Only virtual hosts form groups of several
    /// names.
    pub(super) fn defer_groups(&mut self, db: &mut Database, push: &mut Push) {
        if !self.kind.on_demand || self.addition_deadlines.is_empty() {
            return;
        }

        // The updates of the push go first, so that an index tells which they
        // are.
        let mut updates = std::mem::take(&mut push.updates);
        let pushed_count = updates.len();
        updates.extend(self.deferred_updates(db));
        let mut is_taken_back = vec![false; updates.len()];
        for group in self.group_updates(db, &updates) {
            // A group is a list of indexes.
            let has_deferred = group.iter().any(|index| *index >= pushed_count);
            for index in group {
                is_taken_back[index] = has_deferred;
            }
        }
        updates.truncate(pushed_count);

        let mut requested_names: Vec<Name> = Vec::new();
        for (update, is_taken_back) in updates.into_iter().zip(is_taken_back) {
            match is_taken_back {
                true => requested_names.push(update.requested_name().clone()),
                false => push.updates.push(update),
            }
        }

        let is_deferred = |answer: &Answer| requested_names.contains(&answer.name);
        push.answers.retain(|answer| !is_deferred(answer));
        self.defer_names(db, requested_names);
    }

    /// Returns updates that represent the deferred names when groups are
    /// formed: each name takes part with the resources that the client holds of
    /// it.
    fn deferred_updates(&self, db: &Database) -> Vec<Update> {
        let mut updates = Vec::new();
        for name in self.addition_deadlines.keys() {
            let subscriptions = self.subscriptions_of(db, name).into_iter();
            let resolved_names =
                subscriptions.filter_map(|(key, _)| self.subscriptions.resolved_name(key));
            let names = resolved_names.chain([name]).cloned();
            updates.extend(names.map(|name| Update::remove((name, None), None)));
        }
        updates
    }

    /// Defers names whose updates and answers were taken out of a push, and
    /// marks them for resending: they are sent in full later.
    fn defer_names(&mut self, db: &Database, requested_names: Vec<Name>) {
        for requested_name in requested_names {
            self.resend_subscriptions(db, &requested_name);
            self.deferred.insert(requested_name);
        }
    }

    /// Divides updates into groups: two updates are in one group if they share
    /// a key, directly or by way of others. A group is a list of indexes of
    /// updates.
    pub(super) fn group_updates(&self, db: &mut Database, updates: &[Update]) -> Vec<Vec<usize>> {
        let mut groups = Groups::default();
        for (index, update) in updates.iter().enumerate() {
            groups.add(index, self.group_keys(db, update));
        }
        groups.members.retain(|group| !group.is_empty());
        groups.members
    }

    /// Returns the keys of an update: its name, and for virtual hosts also the
    /// requested name and all domains, both of the new resource and of those
    /// that the client holds.
    fn group_keys(&self, db: &mut Database, update: &Update) -> Vec<GroupKey> {
        if !self.kind.on_demand {
            return vec![("".into(), update.name().as_str().into())];
        }
        let mut keys: Vec<GroupKey> = update
            .resource
            .iter()
            .flat_map(|host| host_keys(host))
            .collect();
        for record in self.client_cache.held(db, update.name()) {
            keys.extend(host_keys(&record.resource));
        }
        keys.extend([update.name(), update.requested_name()].map(name_key));
        keys
    }

    /// Merges the updates of each variant into one. A virtual host that several
    /// hosts resolved to gets the aliases of all of them: a request waits until
    /// its host is named (S36). An upsert wins over a removal. The updates must
    /// be sorted by variant.
    pub(super) fn merge_updates_of_variants(push: &mut Push) {
        push.updates.dedup_by(|second, first| {
            let is_same_variant = second.variant == first.variant;
            if is_same_variant {
                merge_update(first, second);
            }
            is_same_variant
        });
    }
}

/// Merges the second update of a variant into the first. An upsert wins over a
/// removal; two upserts have the aliases of both.
fn merge_update(first: &mut Update, second: &mut Update) {
    match (&mut first.resource, second.resource.take()) {
        (Some(first), Some(second)) => add_aliases(first, &second),
        (resource @ None, Some(upserted)) => {
            *resource = Some(upserted);
            first.requested_name = second.requested_name.take();
        }
        (_, None) => {}
    }
}

/// Groups of indexes, found by the keys of their members.
#[derive(Default)]
struct Groups {
    /// A group that was joined to another is empty.
    members: Vec<Vec<usize>>,
    by_key: HashMap<GroupKey, usize>,
}

impl Groups {
    /// Adds an index to the group that has one of its keys; if several have,
    /// they become one. If none has, the index begins a new group.
    fn add(&mut self, index: usize, keys: Vec<GroupKey>) {
        let found_groups = keys.iter().filter_map(|key| self.by_key.get(key).copied());
        let mut groups: Vec<usize> = found_groups.collect();
        groups.sort_unstable();
        groups.dedup();

        let group = groups.first().copied().unwrap_or_else(|| {
            self.members.push(Vec::new());
            self.members.len() - 1
        });
        for other in groups.into_iter().skip(1) {
            self.join(group, other);
        }
        self.members[group].push(index);
        self.by_key.extend(keys.into_iter().map(|key| (key, group)));
    }

    /// Moves all members of one group into another.
    fn join(&mut self, target: usize, absorbed: usize) {
        let members = std::mem::take(&mut self.members[absorbed]);
        self.members[target].extend(members);
        let keys = self.by_key.values_mut();
        keys.filter(|group| **group == absorbed)
            .for_each(|group| *group = target);
    }
}

/// Adds to a resource the aliases that it lacks of another one of the same
/// variant. Of two versions the first is sent, with its own aliases only.
fn add_aliases(first: &mut Arc<Resource>, second: &Resource) {
    if first.aliases == second.aliases || first.version != second.version {
        return;
    }
    let missing_aliases = second
        .aliases
        .iter()
        .filter(|alias| !first.aliases.contains(alias));
    let aliases = first
        .aliases
        .iter()
        .chain(missing_aliases)
        .cloned()
        .collect();
    *first = Arc::new(Resource {
        aliases,
        ..Resource::clone(first)
    });
}

/// Returns the key of a host or virtual host, by its name.
fn name_key(name: &Name) -> GroupKey {
    let route = HostName::split(name.as_str()).map_or("", |name| name.route);
    (route.into(), name.as_str().into())
}

/// Returns the keys of a virtual host: its domains, and its name.
fn host_keys(host: &Resource) -> impl Iterator<Item = GroupKey> + '_ {
    let route = HostName::split(host.name.as_str()).map_or("", |name| name.route);
    let domains = host.facts().domains.iter();
    let domain_texts = domains.map(|domain| domain.to_string());
    let texts = domain_texts.chain([host.name.to_string()]);
    texts.map(move |text| (route.into(), text.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(texts: &[&str]) -> Vec<GroupKey> {
        let key = |text: &&str| ("r".into(), (*text).into());
        texts.iter().map(key).collect()
    }

    #[test]
    fn groups_that_share_a_key_with_one_more_become_one() {
        let mut groups = Groups::default();
        groups.add(0, keys(&["a"]));
        groups.add(1, keys(&["b"]));
        groups.add(2, keys(&["x"]));
        groups.add(3, keys(&["a", "b"]));
        groups.add(4, keys(&["b"]));
        groups.add(5, keys(&["x"]));
        groups.members.retain(|group| !group.is_empty());
        for group in &mut groups.members {
            group.sort_unstable();
        }
        assert_eq!(groups.members, [vec![0, 1, 3, 4], vec![2, 5]]);
    }

    /// A virtual host that two hosts resolved to.
    fn merged(first: (&str, &'static str), again: (&str, &'static str)) -> Resource {
        let updates = [first, again].map(|(alias, body)| {
            let host = Resource {
                aliases: Box::new([alias.into()]),
                ..Resource::new("r/web".into(), body.into())
            };
            Update::upsert(&Arc::new(host), Some(alias.into()))
        });
        let mut push = Push {
            updates: updates.into(),
            ..Push::default()
        };
        TypeStream::merge_updates_of_variants(&mut push);
        assert_eq!(push.updates.len(), 1);
        Resource::clone(push.updates[0].resource.as_ref().unwrap())
    }

    #[test]
    fn s36_a_virtual_host_of_two_hosts_has_the_aliases_of_both_once() {
        let aliases = |resource: Resource| resource.aliases.to_vec();
        let both = merged(("r/a", "v1"), ("r/b", "v1"));
        assert_eq!(aliases(both), ["r/a".into(), "r/b".into()]);
        let same = merged(("r/a", "v1"), ("r/a", "v1"));
        assert_eq!(aliases(same), ["r/a".into()]);
    }

    #[test]
    fn s36_of_two_versions_the_first_is_sent_with_its_own_aliases() {
        let first = merged(("r/a", "v1"), ("r/b", "v2"));
        assert_eq!(first.body.as_deref(), Some(&b"v1"[..]));
        assert_eq!(first.aliases.to_vec(), ["r/a".into()]);
    }
}
