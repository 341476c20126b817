//! Decides which edits can be accepted together.
//!
//! All edits are tried at once, so that a resource can move from one file to
//! another. An edit that is rejected leaves what it would have removed in
//! place, and that may reject another.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use trunkline_core::database::ApplyError;
use trunkline_core::facts::Reference;
use trunkline_core::name::Name;

use super::diff::{self, Diff, Typed};
use super::document::Item;
use super::edit::{Group, OpenEdit};
use super::effort::Effort;
use super::finding::{Fault, Finding, MOST_FINDINGS};
use super::index::Index;
use super::references::DanglingReference;
use super::slots::{ItemId, SlotItem};
use super::unit::UnitId;

/// Edits that are being settled.
pub(super) struct Settling<'a> {
    pub(super) index: &'a mut Index,
    pub(super) edits: Vec<OpenEdit>,
    /// The edit that adds items in a unit.
    edit_by_unit: HashMap<UnitId, usize>,
}

/// Items that cannot be inserted.
struct Clash {
    /// All items that were to be inserted.
    groups: Vec<Group>,
    /// The contradictions, each at the item that came later.
    findings: Vec<Finding>,
    /// The units with which they contradict.
    with: BTreeSet<UnitId>,
}

impl<'a> Settling<'a> {
    /// Starts to settle edits. The items that the edits remove are out of the
    /// index already.
    pub(super) fn new(index: &'a mut Index, edits: Vec<OpenEdit>) -> Self {
        let numbered = edits.iter().enumerate();
        let units =
            numbered.flat_map(|(nth, edit)| edit.units.iter().map(move |unit| (*unit, nth)));
        let edit_by_unit = units.collect();
        Self {
            index,
            edits,
            edit_by_unit,
        }
    }

    /// Inserts the items of all edits, and rejects the edits that contradict
    /// another. Of two that contradict each other, the later one is rejected.
    pub(super) fn try_edits(&mut self) {
        let mut rejected = Vec::new();
        for nth in 0..self.edits.len() {
            if !self.try_edit(nth) {
                rejected.push(nth);
            }
        }
        self.restore(rejected);
    }

    /// Inserts the items of an edit, or rejects the edit, and returns whether
    /// it is accepted. The items that a rejected edit removed are out of the
    /// index until [`Self::restore`] puts them back.
    fn try_edit(&mut self, nth: usize) -> bool {
        if self.edits[nth].is_rejected() {
            return false;
        }
        let groups = std::mem::take(&mut self.edits[nth].new);
        let inserted = self.insert(groups);
        let edit = &mut self.edits[nth];
        match inserted {
            Ok(inserted) => edit.inserted = inserted,
            Err(clash) => {
                edit.new = clash.groups;
                edit.findings = clash.findings;
            }
        }
        !edit.is_rejected()
    }

    /// Returns whether the contents of a file are unknown: its edit is
    /// rejected, and there are none from before. They may have any resource.
    pub(super) fn has_unknown_contents(&self) -> bool {
        let mut rejected = self.edits.iter().filter(|edit| edit.is_rejected());
        rejected.any(|edit| edit.is_new_file)
    }

    /// Puts back the items that rejected edits removed. An edit that
    /// contradicts these items is rejected as well, and what it removed is put
    /// back in turn. This ends, because an edit is rejected only once.
    fn restore(&mut self, mut rejected: Vec<usize>) {
        while let Some(nth) = rejected.pop() {
            let old_items = std::mem::take(&mut self.edits[nth].old);
            let Err(clash) = self.insert(old_items) else {
                continue;
            };

            let evicted = self.evict(&clash.with);
            // The old items were in the index together, so nothing else
            // contradicts these.
            let _ = self.insert(clash.groups);

            // An evicted edit is tried again, which tells why it is rejected.
            for edit_index in evicted {
                if !self.try_edit(edit_index) {
                    rejected.push(edit_index);
                }
            }
        }
    }

    /// Takes back the items that accepted edits added in these units, and
    /// returns the numbers of these edits.
    fn evict(&mut self, units: &BTreeSet<UnitId>) -> BTreeSet<usize> {
        let edits = units.iter().filter_map(|unit| self.edit_by_unit.get(unit));
        let edits = edits.filter(|nth| !self.edits[**nth].is_rejected());
        let evicted: BTreeSet<usize> = edits.copied().collect();
        for nth in &evicted {
            self.take_back(*nth);
        }
        evicted
    }

    /// Takes the items that an edit added out of the index. They are its new
    /// items again.
    fn take_back(&mut self, nth: usize) {
        let inserted = std::mem::take(&mut self.edits[nth].inserted);
        self.edits[nth].new = self.remove(inserted);
    }

    /// Rejects an accepted edit for these reasons, of which [`MOST_FINDINGS`]
    /// are kept, and puts the items that it removed back.
    fn reject(&mut self, nth: usize, mut findings: Vec<Finding>) {
        findings.truncate(MOST_FINDINGS);
        self.edits[nth].findings = findings;
        self.take_back(nth);
        self.restore(vec![nth]);
    }

    /// Inserts all items, or none. The error has the items again, the findings,
    /// and the units that contradict them.
    fn insert(&mut self, groups: Vec<Group>) -> Result<Vec<ItemId>, Clash> {
        let mut inserted = Vec::new();
        let mut refused_groups: Vec<Group> = Vec::new();
        let mut findings = Vec::new();
        let mut contradicting_units = BTreeSet::new();
        for (unit, items) in groups {
            self.index.reserve(&items);
            inserted.reserve(items.len());
            let mut refused_items = Vec::new();
            for item in items {
                match self.index.insert(unit, item) {
                    Ok(id) => inserted.push(id),
                    Err(contradiction) => {
                        let item = contradiction.item;
                        let slots = &self.index.slots;
                        let finding = slots.finding(unit, &item.at, contradiction.fault);
                        add_finding(&mut findings, finding);
                        contradicting_units.extend(contradiction.other);
                        refused_items.push(item);
                    }
                }
            }
            if !refused_items.is_empty() {
                refused_groups.push((unit, refused_items));
            }
        }

        if findings.is_empty() {
            return Ok(inserted);
        }
        let mut groups = self.remove(inserted);
        groups.append(&mut refused_groups);
        Err(Clash {
            groups,
            findings,
            with: contradicting_units,
        })
    }

    /// Takes items out of the index, and returns them by unit, in the order in
    /// which they were inserted.
    fn remove(&mut self, ids: Vec<ItemId>) -> Vec<Group> {
        let mut groups: Vec<Group> = Vec::new();
        // From the last to the first, so that the others keep their positions.
        for id in ids.into_iter().rev() {
            let Some((unit, item)) = self.index.remove(id) else {
                continue;
            };
            match groups.last_mut().filter(|(last, _)| *last == unit) {
                Some((_, items)) => items.push(item),
                None => groups.push((unit, vec![item])),
            }
        }

        groups.reverse();
        for (_, items) in &mut groups {
            items.reverse();
        }
        groups
    }

    /// Rejects the edits that make references dangle: the edit that adds the
    /// reference, or else the edit that removes the resource. Repeats until no
    /// reference dangles, because a rejected edit may leave other references
    /// dangling.
    pub(super) fn reject_dangling(&mut self) {
        let mut effort = Effort::default();
        loop {
            let lost = self.lost_names();
            let mut findings_by_edit: HashMap<usize, Vec<Finding>> = HashMap::new();
            for reference in self.dangling(&lost) {
                let referrer = self.edit_by_unit.get(&reference.unit).copied();
                let referrer = referrer.filter(|_| reference.is_added);
                let at_fault = referrer.or_else(|| self.remover_of(&reference.target));
                let Some(nth) = at_fault else {
                    continue;
                };
                let findings = findings_by_edit.entry(nth).or_default();
                if findings.len() < MOST_FINDINGS {
                    findings.push(match referrer {
                        Some(_) => self.index.describe_dangling(&reference, &mut effort),
                        None => self.still_needed(nth, reference),
                    });
                }
            }
            if findings_by_edit.is_empty() {
                return;
            }

            let mut findings_by_edit: Vec<_> = findings_by_edit.into_iter().collect();
            findings_by_edit.sort_by_key(|(nth, _)| *nth);
            for (nth, findings) in findings_by_edit {
                // Another one that was rejected may have evicted it.
                if !self.edits[nth].is_rejected() {
                    self.reject(nth, findings);
                }
            }
        }
    }

    /// Returns the references that dangle because of the accepted edits: those
    /// of the items that they add, and those of other items to `lost` names.
    /// There may be a million.
    pub(super) fn dangling<'s>(
        &'s self,
        lost: &'s HashSet<Reference>,
    ) -> impl Iterator<Item = DanglingReference> + 's {
        let added = self.accepted().flat_map(|(_, edit)| &edit.inserted);
        let added = added.filter_map(|id| Some((*id, self.index.slots.get(*id)?)));
        let added_references = added.flat_map(|item| self.index.dangling_of(item));
        let added_references = added_references.map(|reference| DanglingReference {
            is_added: true,
            ..reference
        });

        let added = self.accepted().flat_map(|(_, edit)| &edit.inserted);
        // The set is needed only to leave added items out of the referrers.
        let added: HashSet<&ItemId> = if lost.is_empty() {
            HashSet::new()
        } else {
            added.collect()
        };
        let referrers = self.index.referrers(lost);
        let referrers = referrers.filter(move |(id, _)| !added.contains(id));
        let lost_references = referrers.flat_map(|item| self.index.dangling_of(item));
        added_references.chain(lost_references.filter(|reference| lost.contains(&reference.target)))
    }

    /// Returns the names that accepted edits remove, that no item has any more,
    /// and that an item still refers to.
    pub(super) fn lost_names(&self) -> HashSet<Reference> {
        let mut lost = HashSet::new();
        for item in self.removed_items() {
            for name in names_of(item) {
                let target = Reference {
                    type_url: item.type_url.clone(),
                    name: name.clone(),
                };
                if self.index.is_referred_to(&target) && self.index.is_dangling(&target) {
                    lost.insert(target);
                }
            }
        }
        lost
    }

    /// Returns the number of the accepted edit that removes a name; `None` if
    /// no edit does.
    fn remover_of(&self, target: &Reference) -> Option<usize> {
        let removes = |edit: &OpenEdit| {
            let items = edit.old.iter().flat_map(|(_, items)| items);
            items
                .filter(|item| item.type_url == target.type_url)
                .any(|item| names_of(item).any(|name| *name == target.name))
        };
        let is_remover = |edit: &OpenEdit| !edit.is_rejected() && removes(edit);
        self.edits.iter().position(is_remover)
    }

    /// Makes the finding about an edit that removes the name to which a
    /// reference leads.
    fn still_needed(&self, nth: usize, reference: DanglingReference) -> Finding {
        let file = self.file_of(nth);
        Finding::whole(&file, reference.still_needed)
    }

    /// Returns the name of the file that an edit is about; empty if it is about
    /// resources.
    fn file_of(&self, nth: usize) -> Arc<str> {
        let unit = self.edits[nth].units.first();
        let file = unit.map(|unit| self.index.slots.file_of(*unit));
        file.unwrap_or_default()
    }

    /// Rejects the edits that the database refuses: those that add a resource
    /// with a name of the error, or all, if no edit does. Returns whether there
    /// was one.
    pub(super) fn reject_refused(&mut self, error: &ApplyError) -> bool {
        let names = names_of_error(error);
        let accepted: Vec<usize> = self.accepted().map(|(nth, _)| nth).collect();
        let has_name = |nth: &usize| {
            let ids = self.edits[*nth].inserted.iter();
            let mut items = ids.filter_map(|id| self.index.slots.get(*id));
            items.any(|item| names.contains(&&item.resource.name))
        };
        let named: Vec<usize> = accepted.iter().copied().filter(has_name).collect();
        let refused = if named.is_empty() { accepted } else { named };

        let any_refused = !refused.is_empty();
        for nth in refused {
            let fault = Fault::Refused(error.clone());
            let finding = Finding::whole(&self.file_of(nth), fault);
            if !self.edits[nth].is_rejected() {
                self.reject(nth, vec![finding]);
            }
        }
        any_refused
    }

    /// Rejects the edits that a held change is about. Returns whether there was
    /// one: without one, the same changes would be held again and again.
    pub(super) fn reject_held(&mut self, fault: &Fault) -> bool {
        let held_edits = self.held_edits(fault);
        let any_held = !held_edits.is_empty();
        for nth in held_edits {
            // Another one that was rejected may have evicted it.
            if !self.edits[nth].is_rejected() {
                let finding = Finding::whole(&self.file_of(nth), fault.clone());
                self.reject(nth, vec![finding]);
            }
        }
        any_held
    }

    /// Undoes the accepted edits: takes the items that they added out of the
    /// index, and puts the items that they removed back.
    pub(super) fn undo(&mut self) {
        let accepted: Vec<usize> = self.accepted().map(|(nth, _)| nth).collect();
        for nth in &accepted {
            self.take_back(*nth);
        }
        for nth in accepted {
            let old_items = std::mem::take(&mut self.edits[nth].old);
            // The old items were in the index together.
            let _ = self.insert(old_items);
        }
    }

    /// Returns the edits that are not rejected, with their numbers.
    pub(super) fn accepted(&self) -> impl Iterator<Item = (usize, &OpenEdit)> {
        let edits = self.edits.iter().enumerate();
        edits.filter(|(_, edit)| !edit.is_rejected())
    }

    /// Returns the items that accepted edits add.
    pub(super) fn added_items(&self) -> impl Iterator<Item = SlotItem<'_>> {
        let ids = self.accepted().flat_map(|(_, edit)| &edit.inserted);
        ids.filter_map(|id| self.index.slots.get(*id))
    }

    /// Returns the items that accepted edits remove.
    pub(super) fn removed_items(&self) -> impl Iterator<Item = &Item> {
        let groups = self.accepted().flat_map(|(_, edit)| &edit.old);
        groups.flat_map(|(_, items)| items)
    }

    /// Returns the units that any edit, rejected ones too, adds items in or
    /// removes items from.
    pub(super) fn touched_units(&self) -> BTreeSet<UnitId> {
        let mut touched = BTreeSet::new();
        for edit in &self.edits {
            touched.extend(&edit.units);
            touched.extend(edit.old.iter().map(|(unit, _)| *unit));
        }
        touched
    }

    /// Compares the items that the accepted edits remove with those that they
    /// add.
    pub(super) fn diff(&self) -> Diff {
        let removed_items = self.removed_items();
        let removed_items: Vec<Typed<'_>> = removed_items
            .map(|item| (&item.type_url, &item.resource))
            .collect();
        let ids = self.accepted().flat_map(|(_, edit)| &edit.inserted);
        let added_items = ids.filter_map(|id| {
            let item = self.index.slots.get(*id)?;
            Some((*id, (item.type_url, item.resource)))
        });
        diff::compare(removed_items, added_items.collect())
    }
}

/// Adds a contradiction, up to [`MOST_FINDINGS`]. The variants of one resource
/// have one place, and only the first of them is reported.
fn add_finding(findings: &mut Vec<Finding>, finding: Finding) {
    let last_finding = findings.last();
    let is_at_last_place = last_finding.is_some_and(|last_finding| {
        last_finding.place == finding.place && last_finding.field == finding.field
    });
    if !is_at_last_place && findings.len() < MOST_FINDINGS {
        findings.push(finding);
    }
}

/// Returns the name of an item, and its aliases.
fn names_of(item: &Item) -> impl Iterator<Item = &Name> {
    std::iter::once(&item.resource.name).chain(&item.resource.aliases)
}

/// Returns the names of the resources for which the database refused changes;
/// none if it is not about resources.
fn names_of_error(error: &ApplyError) -> Vec<&Name> {
    match error {
        ApplyError::Overlap { name, .. }
        | ApplyError::Undecided { name, .. }
        | ApplyError::NoBody { name } => vec![name],
        ApplyError::Domain { first, second, .. } => vec![first, second],
        ApplyError::Vetoed { .. } => Vec::new(),
    }
}
