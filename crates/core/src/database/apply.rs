//! Transactions: how contents change.
//!
//! First the whole transaction is worked out and checked, then it takes effect:
//! a transaction that is refused changes nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::content::Content;
use super::entry::EntryId;
use super::follow::same_listing;
use super::{Database, TypeId};
use crate::change::Change;
use crate::name::Name;
use crate::params::{ConstraintError, Params};
use crate::resource::{Resource, ResourceError};

/// Why a transaction is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    /// A client could match two variants of one name (TP2).
    #[error(
        "{name}: a client with {witness} would match two variants, [{first}] and [{second}]; \
         make their constraints exclude each other"
    )]
    Overlap {
        /// The name.
        name: Name,
        /// The constraints of one variant.
        first: String,
        /// The constraints of the other.
        second: String,
        /// Parameters that match both.
        witness: Params,
    },
    /// It cannot be decided whether two variants exclude each other.
    #[error("{name}: {source}")]
    Undecided {
        /// The name.
        name: Name,
        /// Why.
        source: ConstraintError,
    },
    /// A client could find two virtual hosts by one domain.
    #[error(
        "{route}: a client with {witness} would find two virtual hosts for the domain {domain}, \
         {first} and {second}; give it to one of them, or make their constraints exclude each other"
    )]
    Domain {
        /// The route configuration.
        route: String,
        /// The domain.
        domain: String,
        /// One virtual host.
        first: Name,
        /// The other.
        second: Name,
        /// Parameters that match both.
        witness: Params,
    },
    /// A resource was given without a body.
    #[error("{name}: a resource needs a body")]
    NoBody {
        /// The name.
        name: Name,
    },
}

/// What a name will hold.
#[derive(Default)]
pub(super) struct Draft {
    pub(super) resources: Vec<Arc<Resource>>,
    failed: Option<Arc<ResourceError>>,
}

pub(super) type Drafts = BTreeMap<(TypeId, Name), Draft>;

impl Database {
    /// Makes all changes, or none.
    ///
    /// # Errors
    /// If the contents that would result are not sound; nothing has changed.
    pub fn apply(&mut self, changes: Vec<Change>) -> Result<(), ApplyError> {
        let mut drafts = Drafts::new();
        for change in changes {
            self.draft(&mut drafts, change)?;
        }
        for ((_, name), draft) in &drafts {
            check_overlap(name, &draft.resources)?;
        }
        self.check_domains(&drafts)?;
        for ((type_id, name), draft) in drafts {
            let resources = Content::of(draft.resources);
            let content = match draft.failed {
                None => resources,
                Some(error) => Content::Failed(error, Box::new(resources)),
            };
            self.put(type_id, &name, content);
        }
        Ok(())
    }

    fn draft(&mut self, drafts: &mut Drafts, change: Change) -> Result<(), ApplyError> {
        match change {
            Change::Upsert(url, resource) => {
                let type_id = self.type_id(&url);
                self.draft_upsert(drafts, type_id, resource)?;
            }
            Change::Remove(url, name) => {
                let type_id = self.type_id(&url);
                drafts.insert((type_id, name), Draft::default());
            }
            Change::RemoveVariant(url, name, constraints) => {
                let type_id = self.type_id(&url);
                let draft = self.drafted(drafts, type_id, &name);
                draft.resources.retain(|r| r.constraints != constraints);
            }
            Change::ReplaceAll(url, resources) => {
                let type_id = self.type_id(&url);
                for name in self.names_with_contents(type_id) {
                    drafts.insert((type_id, name), Draft::default());
                }
                drafts
                    .range_mut((type_id, Name::new(""))..)
                    .take_while(|((t, _), _)| *t == type_id)
                    .for_each(|(_, draft)| *draft = Draft::default());
                for resource in resources {
                    self.draft_upsert(drafts, type_id, resource)?;
                }
            }
            Change::Fail(url, name, error) => {
                let type_id = self.type_id(&url);
                let draft = self.drafted(drafts, type_id, &name);
                if error.code.is_data_error() {
                    draft.resources.clear();
                }
                // Otherwise what there is stays in use (S61).
                draft.failed = Some(error);
            }
        }
        Ok(())
    }

    fn draft_upsert(
        &self,
        drafts: &mut Drafts,
        type_id: TypeId,
        resource: Arc<Resource>,
    ) -> Result<(), ApplyError> {
        if resource.body.is_none() {
            let name = resource.name.clone();
            return Err(ApplyError::NoBody { name });
        }
        let draft = self.drafted(drafts, type_id, &resource.name);
        let others = |r: &Arc<Resource>| r.constraints != resource.constraints;
        draft.resources.retain(others);
        draft.resources.push(resource);
        Ok(())
    }

    /// What a name will hold, as far as is known. What arrives ends a failure.
    fn drafted<'d>(&self, drafts: &'d mut Drafts, type_id: TypeId, name: &Name) -> &'d mut Draft {
        let draft = drafts.entry((type_id, name.clone()));
        let draft = draft.or_insert_with(|| Draft {
            resources: self.variants(type_id, name).to_vec(),
            failed: None,
        });
        draft.failed = None;
        draft
    }

    fn names_with_contents(&self, type_id: TypeId) -> Vec<Name> {
        self.table(type_id)
            .entries()
            .filter(|(_, e)| !matches!(e.content, Content::Absent | Content::Unknown))
            .map(|(_, e)| e.name.clone())
            .collect()
    }

    /// Drops what is known of a name: in a cache, nothing is known of it again.
    pub fn forget(&mut self, type_id: TypeId, name: &Name) {
        let blank = self.table(type_id).blank();
        self.put(type_id, name, blank);
    }

    /// Gives a name its contents and tells those whom it concerns.
    fn put(&mut self, type_id: TypeId, name: &Name, content: Content) {
        if let Some(keys) = content.keys()
            && keys
                .iter()
                .any(|key| !self.table(type_id).keys.contains(key))
        {
            let keys = self.table(type_id).keys.union(keys);
            self.table_mut(type_id).keys = keys;
            self.split_views(type_id);
        }
        let table = self.table_mut(type_id);
        let entry = table.intern(name);
        let new_aliases = aliases(&content);
        if let Some(resource) = content.resources().first() {
            // The same text, but in memory that the resource keeps anyway.
            table.entry_mut(entry).name = resource.name.clone();
        }
        let held = &mut table.entry_mut(entry).content;
        let mut old = std::mem::replace(held, content);
        held.learn_from(&old);
        let was = exists(&old);
        let is = exists(&table.entry(entry).content);
        match (was, is) {
            (false, true) => {
                table.len += 1;
                table.tombstones.raise(name);
            }
            (true, false) => {
                table.len -= 1;
                table.tombstones.bury(name);
            }
            _ => {}
        }
        self.tell_views(type_id, entry, &mut old);
        self.tell_named(type_id, entry, &mut old);
        for host in self.table_mut(type_id).move_domains(entry, &old) {
            self.tell_asking(type_id, host);
        }
        self.note_ports(type_id, entry);
        self.move_aliases(type_id, entry, aliases(&old), new_aliases);
        self.table_mut(type_id).tidy(entry);
    }

    fn tell_views(&mut self, type_id: TypeId, entry: EntryId, old: &mut Content) {
        let table = &mut self.tables[type_id.0 as usize];
        let name = table.entry(entry).name.clone();
        for view_id in table.views_on(&name) {
            self.work.views += 1;
            let params = table.view(view_id).params;
            let before = old.choose(params, &mut self.params, &mut self.work.evaluations);
            let after = table.own_choice(entry, params, &mut self.params, &mut self.work);
            let (before, after) = (before.resource(), after.resource());
            if same_listing(before, after) {
                continue;
            }
            table.view_mut(view_id).record(entry, before, after);
            for subscriber in &table.view(view_id).subscribers {
                self.work.subscribers += 1;
                self.subscribers.wake(*subscriber);
            }
        }
    }

    fn tell_named(&mut self, type_id: TypeId, entry: EntryId, old: &mut Content) {
        let table = &mut self.tables[type_id.0 as usize];
        self.work.entries += 1;
        for params in table.entry(entry).subscribers.params() {
            let before = old.choose(params, &mut self.params, &mut self.work.evaluations);
            let after = table.own_choice(entry, params, &mut self.params, &mut self.work);
            if before.same(&after) {
                continue;
            }
            for subscriber in table.entry(entry).subscribers.with(params) {
                self.work.subscribers += 1;
                self.subscribers.mark(subscriber, entry, params);
            }
        }
    }

    /// Moves the names under which a resource also answers (S36), and tells
    /// those who ask for one of them.
    fn move_aliases(&mut self, type_id: TypeId, owner: EntryId, old: Vec<Name>, new: Vec<Name>) {
        for alias in &old {
            let Some(entry) = self.find(type_id, alias) else {
                continue;
            };
            self.tell_asking(type_id, entry);
            if !new.contains(alias) {
                self.table_mut(type_id).remove_owner(entry, owner);
            }
        }
        for alias in new.iter().filter(|alias| !old.contains(alias)) {
            let table = self.table_mut(type_id);
            let entry = table.intern(alias);
            table.add_owner(entry, owner);
            self.tell_asking(type_id, entry);
        }
    }

    /// Tells all who ask for a name, for something else may answer to it now.
    pub(super) fn tell_asking(&mut self, type_id: TypeId, alias: EntryId) {
        self.work.entries += 1;
        let asking: Vec<_> = self
            .table(type_id)
            .entry(alias)
            .subscribers
            .iter()
            .collect();
        for (subscriber, params) in asking {
            self.work.subscribers += 1;
            self.subscribers.mark(subscriber, alias, params);
        }
    }

    /// A key that did not matter before matters now: followers that differ in
    /// it need views of their own. Each begins as a copy, so nobody hears of it.
    fn split_views(&mut self, type_id: TypeId) {
        let table = &mut self.tables[type_id.0 as usize];
        let ids: Vec<_> = table.views().map(|(id, _)| id).collect();
        for id in ids {
            let Some(first) = table.view(id).subscribers.iter().min().copied() else {
                continue;
            };
            let stays = self
                .params
                .project(self.subscribers.params(first), &table.keys);
            let mut leaving: BTreeMap<_, Vec<_>> = BTreeMap::new();
            for subscriber in &table.view(id).subscribers {
                let params = self.subscribers.params(*subscriber);
                let category = self.params.project(params, &table.keys);
                if category != stays {
                    leaving.entry(category).or_default().push(*subscriber);
                }
            }
            table.view_mut(id).params = stays;
            for (category, subscribers) in leaving {
                let positions: Vec<_> = subscribers
                    .iter()
                    .flat_map(|s| self.subscribers.positions(*s, id))
                    .collect();
                let part = table
                    .view_mut(id)
                    .divide(category, &subscribers, &positions);
                let new_id = table.add_view(part);
                for subscriber in subscribers {
                    self.subscribers.move_view(subscriber, id, new_id);
                }
            }
        }
    }
}

fn exists(content: &Content) -> bool {
    !content.resources().is_empty()
}

fn aliases(content: &Content) -> Vec<Name> {
    let mut all: Vec<_> = content
        .resources()
        .iter()
        .flat_map(|r| r.aliases.iter().filter(|a| **a != r.name).cloned())
        .collect();
    all.sort();
    all.dedup();
    all
}

/// Refuses variants of which a client could match two (S62).
fn check_overlap(name: &Name, variants: &[Arc<Resource>]) -> Result<(), ApplyError> {
    for (i, a) in variants.iter().enumerate() {
        for b in &variants[i + 1..] {
            if let Some(witness) = seen_together(name, a, b)? {
                return Err(ApplyError::Overlap {
                    name: name.clone(),
                    first: a.clients().to_string(),
                    second: b.clients().to_string(),
                    witness,
                });
            }
        }
    }
    Ok(())
}

/// Parameters of a client that would see both of two resources.
pub(super) fn seen_together(
    name: &Name,
    a: &Resource,
    b: &Resource,
) -> Result<Option<Params>, ApplyError> {
    let overlap = a.clients().overlap(&b.clients());
    overlap.map_err(|source| ApplyError::Undecided {
        name: name.clone(),
        source,
    })
}
