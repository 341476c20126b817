//! Resources of a collection as those of a server: which one each is, and what
//! a change of the collection means for the server.
//!
//! A server knows a resource by the name in its body, and its variants by their
//! constraints; a collection knows it by the name in its metadata. So what each
//! of them is in the server is remembered, but not its body.

use std::collections::{BTreeMap, BTreeSet};

use trunkline_core::change::{Change, Transaction};
use trunkline_core::mcp::Rejected;
use trunkline_core::name::Name;
use trunkline_core::params::Constraints;
use trunkline_core::resource::{Resource, TypeUrl};
use trunkline_proto::discovery::name_of;

use super::CONSTRAINTS;
use super::wire::read_resource;
use crate::ResourceMessage;
use crate::checked::Removal;

/// What a resource of a collection is in a server.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    type_url: TypeUrl,
    name: Name,
    constraints: Option<Constraints>,
}

/// A resource of a collection, read.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    key: Key,
    message: ResourceMessage,
}

impl Entry {
    /// Reads a resource whose values of `labels` are constraints.
    pub(super) fn read(resource: &Resource, labels: &[String]) -> Result<Self, Rejected> {
        let fault = |reason: String| Rejected {
            name: Some(resource.name.clone()),
            reason,
        };
        let read = read_resource(resource).map_err(|error| fault(error.to_string()))?;
        let body = read.body.ok_or_else(|| fault("body: needed".to_owned()))?;
        let metadata = read.metadata.unwrap_or_default();
        let labels = labels
            .iter()
            .filter_map(|key| metadata.labels.get_key_value(key));
        let labels = labels.map(|(key, value)| format!("{key}={value}"));
        let written = metadata.annotations.get(CONSTRAINTS).cloned();
        let terms: Vec<String> = written
            .map(|text| format!("({text})"))
            .into_iter()
            .chain(labels)
            .collect();
        let constraints = match &terms[..] {
            [] => None,
            terms => {
                let parsed = terms.join(" AND ").parse::<Constraints>();
                Some(parsed.map_err(|error| fault(format!("metadata: constraints: {error}")))?)
            }
        };

        let type_url = TypeUrl::new(&body.type_url);
        let name = Name::new(name_of(&body.value).unwrap_or_default());
        let message = ResourceMessage::encoded(&type_url, body.value);
        Ok(Self {
            message: match &constraints {
                None => message,
                Some(clients) => message.for_clients(clients),
            },
            key: Key {
                type_url,
                name,
                constraints,
            },
        })
    }
}

/// What a server holds of a collection.
#[derive(Clone, Debug, Default)]
pub(super) struct Entries {
    by_name: BTreeMap<Name, Key>,
    /// The same, by what they are in the server.
    by_key: BTreeSet<(Key, Name)>,
}

impl Entries {
    fn insert(&mut self, name: Name, key: Key) {
        self.remove(&name);
        self.by_key.insert((key.clone(), name.clone()));
        self.by_name.insert(name, key);
    }

    fn remove(&mut self, name: &Name) {
        if let Some(key) = self.by_name.remove(name) {
            self.by_key.remove(&(key, name.clone()));
        }
    }

    /// The resources that are variants of a name in the server.
    fn variants<'a>(&'a self, key: &Key) -> impl Iterator<Item = (&'a Key, &'a Name)> {
        let first = Key {
            constraints: None,
            ..key.clone()
        };
        let (type_url, name) = (key.type_url.clone(), key.name.clone());
        let from = self.by_key.range((first, Name::new(""))..);
        let same = from.take_while(move |(key, _)| key.type_url == type_url && key.name == name);
        same.map(|(key, name)| (key, name))
    }
}

/// A change of a collection, before it is made.
#[derive(Debug)]
pub(super) struct Plan {
    replaces_all: bool,
    /// By the name in the collection.
    upserts: BTreeMap<Name, Entry>,
    removed: BTreeSet<Name>,
}

impl Plan {
    /// Reads a change of a collection.
    ///
    /// # Errors
    /// A resource cannot be read, or two would be the same in the server.
    pub(super) fn make(
        before: &Entries,
        changes: Transaction,
        read: impl Fn(&Resource) -> Result<Entry, Rejected>,
    ) -> Result<Self, Rejected> {
        let mut plan = Self {
            replaces_all: false,
            upserts: BTreeMap::new(),
            removed: BTreeSet::new(),
        };
        for change in changes {
            match change {
                Change::ReplaceAll(_, all) => {
                    plan.replaces_all = true;
                    for resource in &all {
                        plan.upserts.insert(resource.name.clone(), read(resource)?);
                    }
                }
                Change::Upsert(_, resource) => {
                    plan.upserts.insert(resource.name.clone(), read(&resource)?);
                }
                Change::Remove(_, name) | Change::RemoveVariant(_, name, _) => {
                    plan.removed.insert(name);
                }
                // No sink delivers one.
                Change::Fail(..) => {}
            }
        }
        if !plan.replaces_all {
            plan.check_apart(before)?;
        }
        Ok(plan)
    }

    /// Checks that no two resources of the collection would replace each other
    /// in the server. Of a full state the server finds that itself.
    fn check_apart(&self, before: &Entries) -> Result<(), Rejected> {
        let mut after = Entries::default();
        for (name, entry) in &self.upserts {
            for (key, other) in before.variants(&entry.key) {
                if !self.upserts.contains_key(other) && !self.removed.contains(other) {
                    after.insert(other.clone(), key.clone());
                }
            }
            after.insert(name.clone(), entry.key.clone());
        }
        for (name, entry) in &self.upserts {
            let mut others = after
                .variants(&entry.key)
                .filter(|(_, other)| *other != name);
            let is_same = |key: &Key| {
                let is_whole = key.constraints.is_none() || entry.key.constraints.is_none();
                is_whole || key.constraints == entry.key.constraints
            };
            if let Some((_, other)) = others.find(|(key, _)| is_same(key)) {
                let reason = format!(
                    "{:?} is in the collection already, as {other}",
                    entry.key.name.as_str()
                );
                return Err(Rejected {
                    name: Some(name.clone()),
                    reason,
                });
            }
        }
        Ok(())
    }

    /// Whether all other resources of the collection are gone.
    pub(super) fn replaces_all(&self) -> bool {
        self.replaces_all
    }

    /// The resources that are written, by their names in the collection.
    pub(super) fn names(&self) -> impl Iterator<Item = &Name> {
        self.upserts.keys()
    }

    /// The same as messages, in the same order.
    pub(super) fn messages(&self) -> impl Iterator<Item = ResourceMessage> {
        self.upserts.values().map(|entry| entry.message.clone())
    }

    /// What the server has to remove: what the names were that are gone, or that
    /// are something else now.
    pub(super) fn removals(&self, before: &Entries) -> Vec<Removal> {
        if self.replaces_all {
            return Vec::new();
        }
        let written: BTreeSet<&Key> = self.upserts.values().map(|entry| &entry.key).collect();
        let names = self.removed.iter().chain(self.upserts.keys());
        let gone = names.filter_map(|name| before.by_name.get(name));
        let gone = gone.filter(|key| !written.contains(key) && !is_replaced(key, &written));
        gone.map(|key| Removal {
            type_url: key.type_url.clone(),
            name: key.name.clone(),
            variant: key.constraints.clone().map(Some),
        })
        .collect()
    }

    /// Makes the change, which the server has taken.
    pub(super) fn apply(self, entries: &mut Entries) {
        if self.replaces_all {
            *entries = Entries::default();
        }
        for name in &self.removed {
            entries.remove(name);
        }
        for (name, entry) in self.upserts {
            entries.insert(name, entry.key);
        }
    }
}

/// Whether a resource without constraints is written, which replaces all of its
/// name.
fn is_replaced(key: &Key, written: &BTreeSet<&Key>) -> bool {
    let whole = Key {
        constraints: None,
        ..key.clone()
    };
    written.contains(&whole)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use prost::Message as _;
    use trunkline_core::kind;

    use super::*;
    use crate::envoy::config::cluster::v3::Cluster;
    use crate::mcp::{resource, wire::to_core};

    /// A resource `ns/a = a` or `ns/a = a env=prod`.
    fn upsert(text: &str) -> Change {
        let (name, rest) = text.split_once(" = ").unwrap();
        let (cluster, label) = rest.split_once(' ').unwrap_or((rest, ""));
        let body = Cluster {
            name: cluster.to_owned(),
            ..Cluster::default()
        };
        let mut made = resource(name, kind::CDS, body.encode_to_vec());
        if let Some((key, value)) = label.split_once('=') {
            let metadata = made.metadata.get_or_insert_default();
            metadata.labels.insert(key.to_owned(), value.to_owned());
        }
        Change::Upsert("A".into(), Arc::new(to_core(made)))
    }

    fn remove(name: &str) -> Change {
        Change::Remove("A".into(), name.into())
    }

    fn plan(before: &Entries, changes: Vec<Change>) -> Result<Plan, Rejected> {
        let labels = ["env".to_owned()];
        Plan::make(before, changes, |resource| Entry::read(resource, &labels))
    }

    fn entries(texts: &[&str]) -> Entries {
        let mut entries = Entries::default();
        let changes = texts.iter().map(|text| upsert(text)).collect();
        plan(&Entries::default(), changes)
            .unwrap()
            .apply(&mut entries);
        entries
    }

    fn removed(plan: &Plan, before: &Entries) -> Vec<String> {
        let removals = plan.removals(before).into_iter();
        let shown = removals.map(|removal| match removal.variant.flatten() {
            None => removal.name.to_string(),
            Some(clients) => format!("{} {clients}", removal.name),
        });
        shown.collect()
    }

    #[test]
    fn a_name_that_is_another_resource_now_removes_the_one_before() {
        let before = entries(&["ns/a = a", "ns/b = b", "ns/c = c"]);
        let plan = plan(
            &before,
            vec![upsert("ns/a = x"), upsert("ns/b = b"), remove("ns/c")],
        );
        assert_eq!(removed(&plan.unwrap(), &before), ["c", "a"]);
    }

    #[test]
    fn two_names_may_exchange_their_resources() {
        let before = entries(&["ns/a = a", "ns/b = b"]);
        let plan = plan(&before, vec![upsert("ns/a = b"), upsert("ns/b = a")]).unwrap();
        assert_eq!(removed(&plan, &before), [""; 0]);
    }

    #[test]
    fn two_names_for_one_resource_are_a_mistake() {
        let before = entries(&["ns/a = a"]);
        let rejected = plan(&before, vec![upsert("ns/b = a")]).unwrap_err();
        let expected = "ns/b: \"a\" is in the collection already, as ns/a";
        assert_eq!(rejected.to_string(), expected);
        assert!(plan(&before, vec![upsert("ns/b = a"), remove("ns/a")]).is_ok());
        // Nor may a resource for all clients stand beside one for some.
        assert!(plan(&before, vec![upsert("ns/b = a env=prod")]).is_err());
    }

    #[test]
    fn tp2_labels_make_variants_of_one_resource() {
        let before = entries(&["ns/a = a env=prod", "ns/b = a env=test"]);
        let same = plan(&before, vec![upsert("ns/c = a env=prod")]).unwrap_err();
        assert!(same.to_string().ends_with("as ns/a"), "{same}");
        let other = plan(&before, vec![upsert("ns/b = a env=dev")]).unwrap();
        assert_eq!(removed(&other, &before), ["a env=test"]);
    }
}
