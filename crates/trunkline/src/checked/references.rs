//! References that lead to no item.
//!
//! What dangles is kept from settlement to settlement, so that one costs as
//! much as its own items and what they concern.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use trunkline_core::facts::Reference;
use trunkline_core::kind;
use trunkline_core::resource::TypeUrl;

use super::effort::Effort;
use super::finding::{Fault, Finding, MOST_FINDINGS};
use super::index::Index;
use super::locate::join;
use super::slots::{ItemId, SlotItem};
use super::unit::UnitId;

/// Types to which references are always checked. Others, such as secrets, often
/// come from another server: references to them are checked if there are items
/// of the type.
const CHECKED_TYPES: [&str; 3] = [kind::RDS, kind::CDS, kind::EDS];

/// A reference to a name that no item has.
#[derive(Clone, Debug)]
pub(super) struct DanglingReference {
    /// The item that refers.
    pub(super) item: ItemId,
    /// Its unit.
    pub(super) unit: UnitId,
    pub(super) target: Reference,
    pub(super) finding: Finding,
    /// The finding about whoever removes the target.
    pub(super) still_needed: Fault,
    /// Whether the item that refers is added by the settlement.
    pub(super) is_added: bool,
}

/// The dangling references of all files.
#[derive(Debug, Default)]
pub(super) struct DanglingReferences {
    /// Of each file the first [`MOST_FINDINGS`].
    by_unit: BTreeMap<UnitId, Vec<DanglingReference>>,
    /// The types that had items when references were last checked; `None` if
    /// they were not checked.
    checked_with: Option<Vec<TypeUrl>>,
}

impl DanglingReferences {
    /// Returns the dangling references of a file.
    pub(super) fn of_unit(&self, unit: UnitId) -> &[DanglingReference] {
        self.by_unit.get(&unit).map_or(&[], Vec::as_slice)
    }

    /// Checks the references of the files that a settlement concerns: the
    /// `touched` ones, those that refer to the `lost` names that it removed,
    /// and those with references that are not dangling any more. All files are
    /// checked when the set of types has changed.
    pub(super) fn update(
        &mut self,
        index: &Index,
        touched: &BTreeSet<UnitId>,
        lost: &HashSet<Reference>,
    ) {
        let types = index.slots.types();
        let units: BTreeSet<UnitId> = if self.checked_with.as_ref() == Some(&types) {
            self.concerned_units(index, touched, lost)
        } else {
            index.slots.units.files().collect()
        };
        self.checked_with = Some(types);

        let mut effort = Effort::default();
        for unit in units {
            let dangling = index.dangling_of_unit(unit, &mut effort);
            if dangling.is_empty() {
                self.by_unit.remove(&unit);
            } else {
                self.by_unit.insert(unit, dangling);
            }
        }
    }

    /// Forgets all dangling references: not all contents are known, and the
    /// unknown ones may have the names.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Returns the files whose references [`Self::update`] checks again: all
    /// that are touched, that refer to a lost name, or of which a reference is
    /// not dangling any more.
    fn concerned_units(
        &self,
        index: &Index,
        touched: &BTreeSet<UnitId>,
        lost: &HashSet<Reference>,
    ) -> BTreeSet<UnitId> {
        let files: BTreeSet<UnitId> = index.slots.units.files().collect();
        if files.is_empty() {
            return files;
        }

        let mut units = touched.clone();
        for (unit, dangling) in &self.by_unit {
            if dangling
                .iter()
                .any(|reference| !index.is_dangling(&reference.target))
            {
                units.insert(*unit);
            }
        }
        units.extend(index.referrers(lost).map(|(_, item)| item.unit));
        units.intersection(&files).copied().collect()
    }
}

impl Index {
    /// Returns whether a reference counts as dangling: no item has the name,
    /// and one should have it. References to a whole collection never do, nor
    /// do those to types that may come from another server.
    pub(super) fn is_dangling(&self, to: &Reference) -> bool {
        let is_checked = CHECKED_TYPES.contains(&to.type_url.as_str())
            || self.slots.count_of_type(&to.type_url) > 0;
        // A whole collection may be empty.
        let is_collection = to.name.as_str().ends_with('*');
        is_checked && !is_collection && !self.has_name(to)
    }

    /// Returns the dangling references of an item. Their findings are at the
    /// place of the item, and name neither the field nor a similar name:
    /// [`Self::describe_dangling`] adds both.
    pub(super) fn dangling_of<'a>(
        &'a self,
        (id, item): (ItemId, SlotItem<'a>),
    ) -> impl Iterator<Item = DanglingReference> + 'a {
        let references = item.resource.facts().references.iter();
        let dangling = references.filter(|target| self.is_dangling(target));
        dangling.map(move |target| {
            let fault = Fault::Dangling {
                type_url: target.type_url.clone(),
                name: target.name.clone(),
                near: None,
                within: Box::default(),
            };
            DanglingReference {
                item: id,
                unit: item.unit,
                target: target.clone(),
                finding: self.slots.finding(item.unit, item.at, fault),
                still_needed: Fault::StillNeeded {
                    type_url: target.type_url.clone(),
                    name: target.name.clone(),
                    by_type: item.type_url.clone(),
                    by_name: item.resource.name.clone(),
                    by: self.slots.place(item),
                },
                is_added: false,
            }
        })
    }

    /// Returns the finding about a dangling reference, with the field that
    /// refers and the nearest existing name. `effort` limits the search, which
    /// walks through the resource and all names.
    pub(super) fn describe_dangling(
        &self,
        reference: &DanglingReference,
        effort: &mut Effort,
    ) -> Finding {
        let mut finding = reference.finding.clone();
        let Fault::Dangling { near, within, .. } = &mut finding.fault else {
            return finding;
        };
        *near = effort.nearest_name(self, &reference.target);

        let Some(item) = self.slots.get(reference.item) else {
            return finding;
        };
        let path = effort.referring_field(item, &reference.target);
        *within = path.map(|path| path.to_string()).unwrap_or_default().into();
        // A variant may lack items before this one, so that its indexes are not
        // those of the text.
        if item.at.is_known() && item.resource.constraints.is_none() {
            finding.field = join(&finding.field, within).into();
        }
        finding
    }

    /// Returns the first [`MOST_FINDINGS`] dangling references of a unit.
    fn dangling_of_unit(&self, unit: UnitId, effort: &mut Effort) -> Vec<DanglingReference> {
        let Some(unit) = self.slots.units.get(unit) else {
            return Vec::new();
        };
        let items = unit.items.iter();
        let items = items.filter_map(|id| Some((*id, self.slots.get(*id)?)));
        let dangling = items.flat_map(|item| self.dangling_of(item));
        let described = dangling
            .take(MOST_FINDINGS)
            .map(|reference| DanglingReference {
                finding: self.describe_dangling(&reference, effort),
                ..reference
            });
        described.collect()
    }

    /// Returns the items that refer to one of these names. Visits all items,
    /// unless there are no names.
    pub(super) fn referrers<'a>(
        &'a self,
        targets: &'a HashSet<Reference>,
    ) -> impl Iterator<Item = (ItemId, SlotItem<'a>)> {
        let items = (!targets.is_empty()).then(|| self.slots.iter());
        items.into_iter().flatten().filter(|(_, item)| {
            let references = &item.resource.facts().references;
            references.iter().any(|target| targets.contains(target))
        })
    }
}
