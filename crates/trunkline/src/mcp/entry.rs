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
    /// Reads a resource. Its constraints are those of its annotation and, for
    /// each of `labels` that it has, that the label has the value.
    pub(super) fn read(resource: &Resource, labels: &[String]) -> Result<Self, Rejected> {
        let fault = |reason: String| Rejected {
            name: Some(resource.name.clone()),
            reason,
        };
        let mcp_resource = read_resource(resource).map_err(|error| fault(error.to_string()))?;
        let body = mcp_resource
            .body
            .ok_or_else(|| fault("body: needed".to_owned()))?;
        let metadata = mcp_resource.metadata.unwrap_or_default();

        let labels = labels
            .iter()
            .filter_map(|key| metadata.labels.get_key_value(key));
        let labels = labels.map(|(key, value)| format!("{key}={value}"));

        let annotation = metadata.annotations.get(CONSTRAINTS);
        let constraints = parse_constraints(annotation, labels)
            .map_err(|error| fault(format!("metadata: constraints: {error}")))?;

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

/// Parses the constraints of an annotation and of labels, all of which a client
/// has to meet. Returns `None` if there is neither an annotation nor a label.
fn parse_constraints(
    annotation: Option<&String>,
    labels: impl Iterator<Item = String>,
) -> Result<Option<Constraints>, <Constraints as std::str::FromStr>::Err> {
    let annotation_term = annotation.map(|text| format!("({text})"));
    let terms: Vec<String> = annotation_term.into_iter().chain(labels).collect();
    match terms.is_empty() {
        true => Ok(None),
        false => terms.join(" AND ").parse().map(Some),
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
    /// Adds a resource of the collection, or replaces it.
    fn insert(&mut self, name: Name, key: Key) {
        self.remove(&name);
        self.by_key.insert((key.clone(), name.clone()));
        self.by_name.insert(name, key);
    }

    /// Removes a resource of the collection, if there is one with the name.
    fn remove(&mut self, name: &Name) {
        if let Some(key) = self.by_name.remove(name) {
            self.by_key.remove(&(key, name.clone()));
        }
    }

    /// Returns the resources that are variants of a name in the server.
    fn variants<'a>(&'a self, key: &Key) -> impl Iterator<Item = (&'a Key, &'a Name)> {
        let first = Key {
            constraints: None,
            ..key.clone()
        };
        let (type_url, name) = (key.type_url.clone(), key.name.clone());
        let tail = self.by_key.range((first, Name::new(""))..);
        let variants =
            tail.take_while(move |(key, _)| key.type_url == type_url && key.name == name);
        variants.map(|(key, name)| (key, name))
    }
}

/// A change of a collection, before it is made.
#[derive(Debug)]
pub(super) struct Plan {
    replaces_all: bool,
    /// By the name in the collection.
    upserts: BTreeMap<Name, Entry>,
    removals: BTreeSet<Name>,
}

impl Plan {
    /// Reads a change of a collection.
    ///
    /// # Errors
    /// A resource cannot be read, or two would be the same in the server.
    pub(super) fn make(
        old_entries: &Entries,
        changes: Transaction,
        read: impl Fn(&Resource) -> Result<Entry, Rejected>,
    ) -> Result<Self, Rejected> {
        let mut plan = Self {
            replaces_all: false,
            upserts: BTreeMap::new(),
            removals: BTreeSet::new(),
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
                    plan.removals.insert(name);
                }
                // No sink delivers a failure.
                Change::Fail(..) => {}
            }
        }
        if !plan.replaces_all {
            plan.check_apart(old_entries)?;
        } else if plan.has_never() {
            plan.check_apart(&Entries::default())?;
        }
        Ok(plan)
    }

    /// Returns whether a resource that is upserted is for no client.
    fn has_never(&self) -> bool {
        let mut constraints = self.upserts.values().map(|entry| &entry.key.constraints);
        constraints.any(|constraints| constraints.as_ref().is_some_and(Constraints::is_never))
    }

    /// Checks that no two resources of the collection would replace each other
    /// in the server. In a full state the server finds that itself, except for a
    /// resource for no client beside one for all, which it takes if they come
    /// together. An incremental update that has only one of them would replace
    /// the other.
    fn check_apart(&self, old_entries: &Entries) -> Result<(), Rejected> {
        let mut new_entries = Entries::default();
        for (name, entry) in &self.upserts {
            for (key, other) in old_entries.variants(&entry.key) {
                if !self.upserts.contains_key(other) && !self.removals.contains(other) {
                    new_entries.insert(other.clone(), key.clone());
                }
            }
            new_entries.insert(name.clone(), entry.key.clone());
        }

        for (name, entry) in &self.upserts {
            let mut other_variants = new_entries
                .variants(&entry.key)
                .filter(|(_, other)| *other != name);
            let is_same = |key: &Key| {
                let is_whole = key.constraints.is_none() || entry.key.constraints.is_none();
                is_whole || key.constraints == entry.key.constraints
            };
            if let Some((_, other)) = other_variants.find(|(key, _)| is_same(key)) {
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

    /// Returns whether all other resources of the collection are gone.
    pub(super) fn replaces_all(&self) -> bool {
        self.replaces_all
    }

    /// Returns the names in the collection of the resources that are upserted.
    pub(super) fn names(&self) -> impl Iterator<Item = &Name> {
        self.upserts.keys()
    }

    /// Returns the resources that are upserted as messages, in the order of
    /// their names.
    pub(super) fn messages(&self) -> impl Iterator<Item = ResourceMessage> {
        self.upserts.values().map(|entry| entry.message.clone())
    }

    /// Returns what the server has to remove: resources whose names in the
    /// collection are gone, or stand for another resource now.
    pub(super) fn removals(&self, old_entries: &Entries) -> Vec<Removal> {
        if self.replaces_all {
            return Vec::new();
        }
        let new_keys: BTreeSet<&Key> = self.upserts.values().map(|entry| &entry.key).collect();
        let names = self.removals.iter().chain(self.upserts.keys());
        let old_keys = names.filter_map(|name| old_entries.by_name.get(name));
        let gone_keys =
            old_keys.filter(|key| !new_keys.contains(key) && !is_replaced(key, &new_keys));
        gone_keys
            .map(|key| Removal {
                type_url: key.type_url.clone(),
                name: key.name.clone(),
                variant: key.constraints.clone().map(Some),
            })
            .collect()
    }

    /// Makes the change in `entries`. The server must have taken it.
    pub(super) fn apply(self, entries: &mut Entries) {
        if self.replaces_all {
            *entries = Entries::default();
        }
        for name in &self.removals {
            entries.remove(name);
        }
        for (name, entry) in self.upserts {
            entries.insert(name, entry.key);
        }
    }
}

/// Returns whether a resource without constraints is upserted under the same
/// name: it replaces all variants.
fn is_replaced(key: &Key, new_keys: &BTreeSet<&Key>) -> bool {
    let whole = Key {
        constraints: None,
        ..key.clone()
    };
    new_keys.contains(&whole)
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
    fn tp2_a_resource_for_no_client_is_apart_from_one_for_all() {
        let mut never = resource("ns/a", kind::CDS, &b"\x0a\x01a"[..]);
        let metadata = never.metadata.get_or_insert_default();
        metadata.labels.insert("env".to_owned(), "prod".to_owned());
        let annotations = &mut metadata.annotations;
        annotations.insert(CONSTRAINTS.to_owned(), "NOT env=prod".to_owned());
        let never = Arc::new(to_core(never));

        let changes = vec![
            Change::Upsert("A".into(), never.clone()),
            upsert("ns/b = a"),
        ];
        let incremental = plan(&Entries::default(), changes).unwrap_err();
        let Change::Upsert(_, for_all) = upsert("ns/b = a") else {
            unreachable!();
        };
        let change = Change::ReplaceAll("A".into(), vec![never, for_all]);
        let full_state = plan(&Entries::default(), vec![change]).unwrap_err();
        assert_eq!(full_state, incremental);
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
