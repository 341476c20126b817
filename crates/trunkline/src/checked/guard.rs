//! Holds changes that remove so much that they are hardly intended.
//!
//! A generator that fails, a mount that is gone, a slip in a command: each looks
//! like a wish to remove a fleet's configuration. Such a change is rejected, and
//! can be confirmed by its hash, which is the same on every replica.

use std::collections::{BTreeMap, HashSet, VecDeque};

use trunkline_core::change::Change;
use trunkline_core::name::Name;
use trunkline_core::params::Constraints;
use trunkline_core::resource::{TypeUrl, Version};

use super::edit::OpenEdit;
use super::finding::Fault;
use super::settle::Settling;
use super::unit::{OriginId, UnitKey};

/// Whether changes that remove much are held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Guard {
    /// No change is held.
    #[default]
    Off,
    /// Changes that remove much are held, unless they are
    /// [confirmed](super::ContentSet::confirm).
    On,
}

/// The hashes of changes that were confirmed and not made yet.
#[derive(Debug, Default)]
pub(super) struct Confirmed(VecDeque<String>);

/// Confirmations that are kept; the oldest is dropped.
const MOST_CONFIRMED: usize = 64;

impl Confirmed {
    /// Adds the hash of a change.
    pub(super) fn add(&mut self, hash: &str) {
        self.0.push_back(hash.to_owned());
        if self.0.len() > MOST_CONFIRMED {
            self.0.pop_front();
        }
    }

    /// Forgets the hash of a change that was made.
    pub(super) fn remove(&mut self, hash: &str) {
        self.0.retain(|confirmed| confirmed != hash);
    }

    /// Returns whether the change with this hash was confirmed and not made
    /// yet.
    fn has(&self, hash: &str) -> bool {
        self.0.iter().any(|confirmed| confirmed == hash)
    }
}

/// What the guard says of some changes.
pub(super) enum Judgement {
    /// They are let through. If they had to be confirmed, this is their hash.
    Pass(Option<String>),
    /// They are held for this reason. The edits that it is about are rejected.
    Hold(Fault),
}

/// Of fewer resources of a type all may be removed.
const FEWEST: usize = 10;

impl Settling<'_> {
    /// Decides whether the changes of the accepted edits may be applied.
    /// Changes that remove most of a type, empty a file or come from a file
    /// that is cut short are held, unless their hash was confirmed.
    pub(super) fn judge(
        &self,
        changes: &[Change],
        origin: OriginId,
        guard: Guard,
        confirmed: &Confirmed,
    ) -> Judgement {
        if guard == Guard::Off {
            return Judgement::Pass(None);
        }
        let allowed_removals = self.allowed_removals();
        let removed_counts = count_removed(changes, &allowed_removals);
        let worst = self.find_worst_removal(&removed_counts, origin);

        let has_removals = !removed_counts.is_empty();
        let is_cut = has_removals && self.accepted().any(|(_, edit)| self.is_cut_short(edit));
        let is_empty = has_removals && self.accepted().any(|(_, edit)| self.empties_file(edit));
        if worst.is_none() && !is_cut && !is_empty {
            return Judgement::Pass(None);
        }

        let hash = hash_of(changes);
        if confirmed.has(&hash) {
            return Judgement::Pass(Some(hash));
        }
        Judgement::Hold(match worst {
            Some((type_url, removed, total)) => Fault::HeldRemoval {
                type_url: type_url.clone(),
                removed,
                total,
                hash,
            },
            None if is_empty => Fault::HeldEmpty { hash },
            None => Fault::HeldCut { hash },
        })
    }

    /// Finds the type of which an origin loses more than half of its resources,
    /// with the number of those that it loses and of those that it had. Of
    /// several types it is the one with the most removals. Types with fewer
    /// than [`FEWEST`] resources do not count.
    fn find_worst_removal<'c>(
        &self,
        removed_counts: &BTreeMap<&'c TypeUrl, usize>,
        origin: OriginId,
    ) -> Option<(&'c TypeUrl, usize, usize)> {
        // Counting the old resources takes long, and few removals are never
        // most of them.
        let large_counts = removed_counts.iter();
        let large_counts = large_counts.filter(|(_, removed)| **removed * 2 > FEWEST);
        let totals = large_counts.map(|(type_url, removed)| {
            let total = self.count_before(type_url, origin);
            (*type_url, *removed, total)
        });
        let majorities =
            totals.filter(|(_, removed, total)| *total >= FEWEST && removed * 2 > *total);
        majorities.max_by_key(|(_, removed, _)| *removed)
    }

    /// Returns the variants that are removed by edits which allow removals.
    fn allowed_removals(&self) -> HashSet<VariantKey<'_>> {
        let allowing = self.accepted().filter(|(_, edit)| edit.allows_removal());
        let items = allowing.flat_map(|(_, edit)| edit.old.iter().flat_map(|(_, items)| items));
        let keys = items.map(|item| {
            let resource = &item.resource;
            (&item.type_url, &resource.name, &resource.constraints)
        });
        keys.collect()
    }

    /// Returns the numbers of the edits that a held change is about, by the
    /// `fault` for which it is held: those that remove resources of the type,
    /// that are cut short, or that empty a file. Edits that allow removals are
    /// left out.
    pub(super) fn held_edits(&self, fault: &Fault) -> Vec<usize> {
        let is_about = |edit: &OpenEdit| match fault {
            Fault::HeldRemoval { type_url, .. } => {
                !edit.allows_removal() && self.removes_any(edit, Some(type_url))
            }
            Fault::HeldCut { .. } => self.is_cut_short(edit),
            _ => self.empties_file(edit),
        };
        let edits = self.accepted().filter(|(_, edit)| is_about(edit));
        edits.map(|(nth, _)| nth).collect()
    }

    /// Returns whether an edit removes a resource that no accepted edit adds
    /// again. With a `type_url`, only resources of that type count. The items
    /// of accepted edits are in the index.
    fn removes_any(&self, edit: &OpenEdit, type_url: Option<&TypeUrl>) -> bool {
        let items = edit.old.iter().flat_map(|(_, items)| items);
        let mut items = items.filter(|item| type_url.is_none_or(|url| item.type_url == *url));
        items.any(|item| {
            let mut variants = self.index.variants(&item.type_url, &item.resource.name);
            !variants.any(|(_, variant)| variant.resource.constraints == item.resource.constraints)
        })
    }

    /// Returns whether the text of an edit seems to end early, and resources
    /// are gone with its end.
    fn is_cut_short(&self, edit: &OpenEdit) -> bool {
        let document = edit.document.as_ref();
        document.is_some_and(|document| document.is_cut)
            && !edit.allows_removal()
            && self.removes_any(edit, None)
    }

    /// Counts the resources of a type that an origin had before the accepted
    /// edits.
    fn count_before(&self, type_url: &TypeUrl, origin: OriginId) -> usize {
        let slots = &self.index.slots;
        let items = slots.iter().map(|(_, item)| item);
        let origin_items = items.filter(|item| slots.units.origin_of(item.unit) == Some(origin));
        let current = origin_items
            .filter(|item| item.type_url == type_url)
            .count();
        let added = self.added_items().filter(|item| item.type_url == type_url);
        let removed = self
            .removed_items()
            .filter(|item| item.type_url == *type_url);
        (current + removed.count()).saturating_sub(added.count())
    }

    /// Returns whether an edit leaves no resources of a file that had some, or
    /// removes the last file below a configured path.
    fn empties_file(&self, edit: &OpenEdit) -> bool {
        let had_items = edit.old.iter().any(|(_, items)| !items.is_empty());
        let is_emptied = edit.is_file && had_items && edit.inserted.is_empty();
        let is_emptied = is_emptied && !edit.allows_removal();
        let is_removed = edit.document.is_none();
        is_emptied && (!is_removed || !self.has_files_beside(edit))
    }

    /// Returns whether files with resources remain below the configured path of
    /// an edit.
    fn has_files_beside(&self, edit: &OpenEdit) -> bool {
        let units = &self.index.slots.units;
        let root_of = |unit| match units.get(unit).map(|unit| &unit.key) {
            Some(UnitKey::File { root, .. }) => Some(*root),
            _ => None,
        };
        let edit_root = edit.units.first().and_then(|unit| root_of(*unit));
        let mut files = units.files();
        files.any(|file| {
            let has_items = units.get(file).is_some_and(|unit| !unit.items.is_empty());
            has_items && root_of(file) == edit_root
        })
    }
}

/// The key of a variant.
type VariantKey<'a> = (&'a TypeUrl, &'a Name, &'a Option<Constraints>);

/// Counts the removals of each type, without the allowed ones.
fn count_removed<'a>(
    changes: &'a [Change],
    allowed_removals: &HashSet<VariantKey<'_>>,
) -> BTreeMap<&'a TypeUrl, usize> {
    let mut counts = BTreeMap::new();
    for change in changes {
        if let Change::RemoveVariant(type_url, name, constraints) = change
            && !allowed_removals.contains(&(type_url, name, constraints))
        {
            *counts.entry(type_url).or_default() += 1;
        }
    }
    counts
}

/// Returns the hash of the variants that changes remove. The order of the
/// changes does not matter, nor what they add.
fn hash_of(changes: &[Change]) -> String {
    let keys = changes.iter().filter_map(|change| match change {
        Change::RemoveVariant(type_url, name, constraints) => {
            let clients = constraints.as_ref().map(ToString::to_string);
            Some(format!(
                "{type_url}\n{name}\n{}\n",
                clients.unwrap_or_default()
            ))
        }
        _ => None,
    });
    let mut keys: Vec<String> = keys.collect();
    keys.sort();
    Version::of_body(keys.concat().as_bytes()).to_string()
}
