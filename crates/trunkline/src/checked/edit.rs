//! Edits: changes of an origin that are accepted or rejected as one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use trunkline_core::name::Name;
use trunkline_core::params::Constraints;
use trunkline_core::resource::TypeUrl;

use super::document::{Document, Item};
use super::finding::Finding;
use super::index::Index;
use super::plan::{Groups, Plan};
use super::rows::RowEdit;
use super::slots::ItemId;
use super::unit::{OriginId, UnitId, UnitKey};

/// A change of an origin, which is accepted or rejected as one.
#[derive(Debug)]
pub enum Edit {
    /// A file has this document from now on; `None` if it does not exist any
    /// more.
    File {
        /// The position of the configured path that it was found below.
        root: usize,
        /// Its path, as findings show it.
        name: Arc<str>,
        /// Its contents.
        document: Option<Document>,
    },
    /// Resources are written and removed one by one.
    Resources(ResourceEdit),
    /// Rows of any origins get other contents.
    Rows(RowEdit),
}

/// Resources that are written and removed one by one. A resource that is
/// written again replaces what was written before:
///
/// - without constraints in its wrapper, all of its name; with constraints,
///   that variant, and all that conditions inside it made;
/// - virtual hosts that came with a route configuration, and that it no longer
///   lists. If it lists none at all, they stay.
#[derive(Debug)]
pub struct ResourceEdit {
    /// The resources that are written.
    pub document: Document,
    /// The resources that are removed. A route configuration takes the virtual
    /// hosts with it that came with it.
    pub removals: Vec<Removal>,
    /// Whether all other resources of the origin are removed.
    pub replaces_origin: bool,
    /// Whether names that belong to other origins are taken over.
    pub takes_over: bool,
}

impl ResourceEdit {
    /// Returns an edit that writes the resources of a document.
    #[must_use]
    pub fn of_document(document: Document) -> Self {
        Self {
            document,
            removals: Vec::new(),
            replaces_origin: false,
            takes_over: false,
        }
    }
}

/// A resource that is removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Removal {
    /// Its type.
    pub type_url: TypeUrl,
    /// Its name.
    pub name: Name,
    /// The one variant that is removed, by its constraints, with all that
    /// conditions inside it made; `None` is all of the name.
    pub variant: Option<Option<Constraints>>,
}

/// Items of one unit, which are not in the index.
pub(super) type Group = (UnitId, Vec<Item>);

/// An edit that is being settled. The items that it removes are taken out of
/// the index; those that it adds are inserted, or wait to be.
#[derive(Debug, Default)]
pub(super) struct OpenEdit {
    /// The items that it removed.
    pub(super) old: Vec<Group>,
    /// The items that it adds, as long as they are not in the index.
    pub(super) new: Vec<Group>,
    /// The items that it added.
    pub(super) inserted: Vec<ItemId>,
    /// The units in which it adds items.
    pub(super) units: BTreeSet<UnitId>,
    /// The document of a file, without its items.
    pub(super) document: Option<Document>,
    /// Whether it is about a file.
    pub(super) is_file: bool,
    /// Whether it is about a file that had no contents before.
    pub(super) is_new_file: bool,
    /// Why it is rejected; empty if it is not.
    pub(super) findings: Vec<Finding>,
    pub(super) warnings: Vec<Finding>,
}

impl OpenEdit {
    /// Returns whether the edit is rejected.
    pub(super) fn is_rejected(&self) -> bool {
        !self.findings.is_empty()
    }

    /// Returns whether its document says that it may remove as much as it does.
    pub(super) fn allows_removal(&self) -> bool {
        let document = self.document.as_ref();
        document.is_some_and(|document| document.allow_removal)
    }

    /// Adds items that an origin writes, each to the unit that it is written
    /// in. Units that do not exist are added to the index; the items are not.
    pub(super) fn add_new(&mut self, index: &mut Index, origin: OriginId, groups: Groups) {
        let Groups { units, alone } = groups;
        self.units.insert(UnitId::alone(origin));
        self.new.push((UnitId::alone(origin), alone));
        for (key, items) in units {
            let key = UnitKey::Resource(key);
            let unit = index.slots.units.find_or_add(origin, key);
            self.units.insert(unit);
            self.new.push((unit, items));
        }
    }

    /// Takes items out of the index, and keeps them as the old items of the
    /// edit.
    pub(super) fn take_out(&mut self, index: &mut Index, ids: impl IntoIterator<Item = ItemId>) {
        let mut groups: BTreeMap<UnitId, Vec<Item>> = BTreeMap::new();
        for id in ids {
            if let Some((unit, item)) = index.remove(id) {
                groups.entry(unit).or_default().push(item);
            }
        }
        self.old.extend(groups);
    }
}

impl Edit {
    /// Opens an edit of an origin: takes the items that it removes out of the
    /// index. Those that it adds are not inserted yet.
    pub(super) fn open(self, index: &mut Index, origin: OriginId) -> OpenEdit {
        match self {
            Self::File {
                root,
                name,
                document,
            } => open_file(index, origin, UnitKey::File { root, name }, document),
            Self::Resources(edit) => Plan::new(index, origin).open(edit),
            Self::Rows(edit) => edit.open(index),
        }
    }
}

/// Opens the edit of a file, whose old items are all replaced. An edit without
/// a document removes the file.
fn open_file(
    index: &mut Index,
    origin: OriginId,
    key: UnitKey,
    document: Option<Document>,
) -> OpenEdit {
    let is_new_file = index.slots.units.find(origin, &key).is_none();
    let unit_id = index.slots.units.find_or_add(origin, key);
    let unit = index.slots.units.get(unit_id);
    let old_items = unit.map(|unit| unit.items.clone()).unwrap_or_default();

    let mut open = OpenEdit {
        units: BTreeSet::from([unit_id]),
        is_file: true,
        is_new_file,
        ..OpenEdit::default()
    };
    // From the last to the first, so that those that stay keep their positions.
    open.take_out(index, old_items.into_iter().rev());
    for (_, items) in &mut open.old {
        items.reverse();
    }

    if let Some(mut document) = document {
        let items = std::mem::take(&mut document.items);
        open.new.push((unit_id, items));
        open.document = Some(document);
    }
    open
}
