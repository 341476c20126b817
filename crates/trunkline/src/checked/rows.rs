//! Contents as rows: what a store keeps of them, and what it gives back.
//!
//! A row is one variant of a name, under the origin that wrote it, with what is
//! needed to write it again as it was written. Files keep themselves, so their
//! resources are in no row.

use std::collections::BTreeMap;
use std::sync::Arc;

use trunkline_core::change::Change;
use trunkline_core::name::Name;
use trunkline_core::params::Constraints;
use trunkline_core::resource::{Resource, TypeUrl};

use super::document::{Document, Item};
use super::edit::{Edit, OpenEdit};
use super::guard::Guard;
use super::index::Index;
use super::place::At;
use super::plan::Groups;
use super::set::{ContentSet, Dangling, Effect, Proposal};
use super::settle::Settling;
use super::slots::ItemId;
use super::unit::{OriginId, UnitId, UnitKey};

/// The key of a row.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowKey {
    /// The origin that wrote it.
    pub origin: Arc<str>,
    /// Its type.
    pub type_url: TypeUrl,
    /// Its name.
    pub name: Name,
    /// The constraints of the variant.
    pub constraints: Option<Constraints>,
}

/// One variant of a name, as an origin wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The resource.
    pub resource: Arc<Resource>,
    /// The constraints in its wrapper, or in that of the route configuration in
    /// which it is written.
    pub wrapper_constraints: Option<Constraints>,
    /// Whether it is a virtual host that is written in a route configuration.
    pub is_inline_host: bool,
}

/// A row before a change and after it. The two are never equal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowChange {
    /// Its key.
    pub key: RowKey,
    /// The row before; `None` if there was none.
    pub before: Option<Row>,
    /// The row after; `None` if it is removed.
    pub after: Option<Row>,
}

impl RowChange {
    /// Returns the change that undoes this one.
    #[must_use]
    pub fn inverse(&self) -> Self {
        Self {
            key: self.key.clone(),
            before: self.after.clone(),
            after: self.before.clone(),
        }
    }
}

/// Whether the rows that a proposal changes are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keeping {
    /// A store keeps them. They may change although no resource does: with
    /// another origin.
    Rows,
    /// Nobody does.
    Nothing,
}

/// The changes of the edits that were accepted.
#[derive(Debug)]
pub(crate) struct AcceptedChanges {
    /// Those of the database.
    pub(crate) changes: Vec<Change>,
    /// Those of the rows, if they are kept.
    pub(crate) rows: Vec<RowChange>,
}

/// An edit that gives rows of any origins other contents: those of a store, or
/// of an earlier revision.
#[derive(Debug)]
pub struct RowEdit {
    /// The rows; `None` removes one.
    pub rows: Vec<(RowKey, Option<Row>)>,
}

impl RowEdit {
    /// Opens the edit: takes the existing rows out of the index, and groups the
    /// new ones into units by their origins.
    pub(super) fn open(self, index: &mut Index) -> OpenEdit {
        let mut open = OpenEdit {
            document: Some(Document::empty(&Arc::default())),
            ..OpenEdit::default()
        };
        let mut replaced = Vec::new();
        let mut new_items: BTreeMap<OriginId, Vec<Item>> = BTreeMap::new();
        for (key, row) in self.rows {
            let origin = index.slots.origins.find_or_add(&key.origin);
            replaced.extend(find_item(index, origin, &key));
            if let Some(row) = row {
                let items = new_items.entry(origin).or_default();
                items.push(Item {
                    type_url: key.type_url,
                    resource: row.resource,
                    at: At::default(),
                    wrapper_constraints: row.wrapper_constraints,
                    is_inline_host: row.is_inline_host,
                });
            }
        }
        open.take_out(index, replaced);

        for (origin, items) in new_items {
            open.add_new(index, origin, Groups::of(items));
        }
        open
    }
}

impl ContentSet {
    /// Takes back changes that were settled but could not be kept: each row
    /// becomes what it was before. The caller has taken back all later changes
    /// already.
    pub(crate) fn take_back(&mut self, changes: &[RowChange]) {
        let rows = changes.iter();
        let rows = rows.map(|change| (change.key.clone(), change.before.clone()));
        let proposal = Proposal {
            origin: "store",
            edits: vec![Edit::Rows(RowEdit {
                rows: rows.collect(),
            })],
            dangling: Dangling::Warn,
            is_complete: true,
            effect: Effect::Applied,
            guard: Guard::Off,
        };
        // These rows were there together, so nothing contradicts them.
        let _ = self.settle(proposal, |_| Ok(()));
    }
}

/// Finds the item of a row; `None` if the set does not have it.
fn find_item(index: &Index, origin: OriginId, key: &RowKey) -> Option<ItemId> {
    let mut variants = index.variants(&key.type_url, &key.name);
    let variant = variants.find(|(_, item)| {
        item.resource.constraints == key.constraints
            && index.slots.units.origin_of(item.unit) == Some(origin)
    });
    variant.map(|(id, _)| id)
}

impl Settling<'_> {
    /// Returns the rows that the accepted edits change, by key. Items of files
    /// are no rows, and are left out.
    pub(super) fn row_changes(&self) -> Vec<RowChange> {
        let mut changes: Vec<RowChange> = Vec::new();
        for (_, edit) in self.accepted() {
            for (unit, items) in &edit.old {
                let Some(origin) = self.origin_of_rows(*unit) else {
                    continue;
                };
                changes.extend(items.iter().map(|item| RowChange {
                    key: key_of(&origin, &item.type_url, &item.resource),
                    before: Some(Row {
                        resource: Arc::clone(&item.resource),
                        wrapper_constraints: item.wrapper_constraints.clone(),
                        is_inline_host: item.is_inline_host,
                    }),
                    after: None,
                }));
            }
            for id in &edit.inserted {
                changes.extend(self.inserted_row(*id));
            }
        }
        merge(changes)
    }

    /// Returns an added item as the change of a row that was not there before;
    /// `None` if the item is of a file. [`merge`] joins it with the removal of
    /// an old row.
    fn inserted_row(&self, id: ItemId) -> Option<RowChange> {
        let slots = &self.index.slots;
        let item = slots.get(id)?;
        let origin = self.origin_of_rows(item.unit)?;
        let (wrapper_constraints, is_inline_host) = slots.written_as(item);
        Some(RowChange {
            key: key_of(&origin, item.type_url, item.resource),
            before: None,
            after: Some(Row {
                resource: Arc::clone(item.resource),
                wrapper_constraints,
                is_inline_host,
            }),
        })
    }

    /// Returns the name of the origin whose rows the items of a unit are;
    /// `None` for a file.
    fn origin_of_rows(&self, unit: UnitId) -> Option<Arc<str>> {
        let slots = &self.index.slots;
        let is_file = |key: &UnitKey| matches!(key, UnitKey::File { .. });
        if slots.units.get(unit).is_some_and(|unit| is_file(&unit.key)) {
            return None;
        }
        Some(slots.origins.name(slots.units.origin_of(unit)?))
    }
}

/// Returns the key of the row that a resource is.
fn key_of(origin: &Arc<str>, type_url: &TypeUrl, resource: &Resource) -> RowKey {
    RowKey {
        origin: Arc::clone(origin),
        type_url: type_url.clone(),
        name: resource.name.clone(),
        constraints: resource.constraints.clone(),
    }
}

/// Joins the removal and the addition of each key into one change, and drops
/// changes that leave the row as it was.
fn merge(mut changes: Vec<RowChange>) -> Vec<RowChange> {
    changes.sort_by(|a, b| a.key.cmp(&b.key));
    let mut merged: Vec<RowChange> = Vec::with_capacity(changes.len());
    for change in changes {
        match merged
            .last_mut()
            .filter(|last_change| last_change.key == change.key)
        {
            Some(last_change) => {
                last_change.before = last_change.before.take().or(change.before);
                last_change.after = last_change.after.take().or(change.after);
            }
            None => merged.push(change),
        }
    }
    merged.retain(|change| change.before != change.after);
    merged
}
