//! A transaction that is applied to the database in slices.
//!
//! Those who share a database behind a lock let others have it between two
//! slices (S85). A transaction that fits into one slice is applied in one.
//!
//! ```text
//!   new ──▶ list ──▶ check ──▶ apply ──▶ remove ──▶ done
//!            │         │        │           └ names to remove, last rank first
//!            │         │        └ names to add or change, first rank first
//!            │         └ may refuse the transaction: nothing has changed yet
//!            └ names of a replaced type that have no edit
//! ```
//!
//! Every state between two slices is one that an operator could have made step
//! by step: a resource is there before those that refer to it (S52), nothing is
//! removed before everything is added, the variants of a name change together,
//! and so do virtual hosts that take domains from one another.
//!
//! There may be only one commit at a time, and nothing else may change contents
//! before it is done. Streams may open, subscribe, poll and close meanwhile.

mod domains;
mod edits;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use super::apply::{ApplyError, check_overlap};
use super::content::Content;
use super::{Database, TypeId};
use crate::change::Change;
use crate::name::Name;
use crate::resource::{Resource, TypeUrl};
use domains::DomainCheck;
use edits::{Edit, TypeEdits};

/// Names that one slice touches at most. Beyond that, a name brings along the
/// virtual hosts that it exchanges domains with, and the requested hosts that
/// its domains match.
pub const SLICE: usize = 1024;

/// Whether a commit is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// There is more to do.
    More,
    /// All changes have taken effect.
    Done,
}

/// A name whose contents have changed.
#[derive(Clone, Copy, Debug)]
pub struct ChangedName<'a> {
    /// Its type.
    pub type_url: &'a TypeUrl,
    /// The name.
    pub name: &'a Name,
    /// All variants before the change.
    pub before: &'a [Arc<Resource>],
    /// All variants after it.
    pub after: &'a [Arc<Resource>],
}

/// A transaction that is being applied.
#[derive(Debug)]
pub struct Commit {
    /// By rank.
    types: Vec<TypeCommit>,
    stage: Stage,
    /// Whether everything fits into one slice.
    is_one_slice: bool,
}

/// One type of a commit.
#[derive(Debug)]
struct TypeCommit {
    edits: TypeEdits,
    type_id: TypeId,
    domains: DomainCheck,
    /// Edits that remove their name, applied last.
    removals: Vec<u32>,
    /// Whether the commit has several slices.
    is_sliced: bool,
    /// The old contents of the names that were changed in this slice.
    replaced_contents: Vec<Content>,
}

/// The next step: the index of the type, and the index in it.
#[derive(Clone, Copy, Debug)]
enum Stage {
    New,
    List(usize, usize),
    Check(usize, usize),
    Apply(usize, usize),
    /// Types are counted from the last.
    Remove(usize, usize),
    Done,
}

impl Commit {
    /// Sorts changes by type and name. This may take long, and needs no
    /// database.
    ///
    /// # Errors
    /// If a resource has no body.
    pub fn new(changes: Vec<Change>) -> Result<Self, ApplyError> {
        let type_commit = |edits: TypeEdits| TypeCommit {
            domains: DomainCheck::with_capacity_for(&edits),
            edits,
            type_id: TypeId(u32::MAX),
            removals: Vec::new(),
            is_sliced: false,
            replaced_contents: Vec::new(),
        };
        let edits = TypeEdits::from_changes(changes)?;
        Ok(Self {
            types: edits.into_iter().map(type_commit).collect(),
            stage: Stage::New,
            is_one_slice: false,
        })
    }

    /// Frees memory that is not needed any more. This may take long, and needs
    /// no database: call it between two slices.
    pub fn free_memory(&mut self) {
        let is_checked = matches!(self.stage, Stage::Apply(..) | Stage::Remove(..));
        for type_commit in &mut self.types {
            type_commit.replaced_contents = Vec::new();
            if is_checked {
                type_commit.domains.free_memory();
            }
        }
        if let Stage::Remove(removed_types, _) = self.stage {
            for type_commit in self.types.iter_mut().rev().take(removed_types) {
                type_commit.edits.edits = Vec::new();
            }
        }
    }

    /// Applies the next slice, of about `budget` names. Calls `on_change` with
    /// each name that has changed, and wakes the subscribers of the views that
    /// list one.
    ///
    /// # Errors
    /// If the resulting contents would be invalid; nothing has changed, and the
    /// commit is to be dropped.
    pub fn advance(
        &mut self,
        db: &mut Database,
        budget: usize,
        mut on_change: impl FnMut(ChangedName<'_>),
    ) -> Result<Progress, ApplyError> {
        if matches!(self.stage, Stage::New) {
            self.begin(db, budget);
        }
        for type_commit in &mut self.types {
            type_commit.replaced_contents.clear();
        }

        let limit = db.work.entries.saturating_add(budget as u64);
        let mut is_first_step = true;
        while !matches!(self.stage, Stage::Done) {
            let room = limit.saturating_sub(db.work.entries) as usize;
            if room == 0 && !self.is_one_slice {
                break;
            }
            if !self.step(db, room, is_first_step, &mut on_change)? {
                break;
            }
            is_first_step = false;
        }

        db.wake_view_subscribers();
        Ok(match self.stage {
            Stage::Done => Progress::Done,
            _ => Progress::More,
        })
    }

    /// Finds or adds the types of the commit, and decides whether it fits into
    /// one slice of `budget` names.
    fn begin(&mut self, db: &mut Database, budget: usize) {
        let mut name_count = 0;
        for type_commit in &mut self.types {
            type_commit.type_id = db.type_id(&type_commit.edits.url);
            name_count += type_commit.edits.edits.len();
            if type_commit.edits.replaces {
                name_count += db.table(type_commit.type_id).entries.len();
            }
        }

        self.is_one_slice = name_count <= budget;
        for type_commit in &mut self.types {
            type_commit.is_sliced = !self.is_one_slice;
        }
        self.stage = Stage::List(0, 0);
    }

    /// Does one step. Returns false if the step has to wait for the next slice:
    /// a group of edits is applied as a whole, and this slice has `room` for
    /// fewer names. The first step of a slice never waits, or a large group
    /// would wait for ever.
    fn step(
        &mut self,
        db: &mut Database,
        room: usize,
        is_first_step: bool,
        on_change: &mut impl FnMut(ChangedName<'_>),
    ) -> Result<bool, ApplyError> {
        self.stage = match self.stage {
            Stage::List(nth, slot) => self.list_next(db, nth, slot),
            Stage::Check(nth, edit) => self.check_next(db, nth, edit)?,
            Stage::Apply(nth, edit) => {
                let must_fit = !self.is_one_slice && !is_first_step;
                if must_fit && self.group_size(nth, edit) > room {
                    return Ok(false);
                }
                self.apply_next(db, nth, edit, on_change)
            }
            Stage::Remove(nth, index) => self.remove_next(db, nth, index, on_change),
            stage @ (Stage::New | Stage::Done) => stage,
        };
        Ok(true)
    }

    /// Visits one slot of the `nth` type, whose name is removed if the type is
    /// replaced without it. Returns the next stage.
    fn list_next(&mut self, db: &mut Database, nth: usize, slot: usize) -> Stage {
        let Some(type_commit) = self.types.get_mut(nth) else {
            return Stage::Check(0, 0);
        };
        match type_commit.list_removal(db, slot, self.is_one_slice) {
            true => Stage::List(nth, slot + 1),
            false => Stage::List(nth + 1, 0),
        }
    }

    /// Checks one edit of the `nth` type. Returns the next stage; fails if the
    /// transaction is refused.
    fn check_next(
        &mut self,
        db: &mut Database,
        nth: usize,
        edit: usize,
    ) -> Result<Stage, ApplyError> {
        let Some(type_commit) = self.types.get_mut(nth) else {
            return Ok(Stage::Apply(0, 0));
        };
        if edit == type_commit.edits.named_count() {
            return Ok(Stage::Check(nth + 1, 0));
        }
        // In one slice with its edit, a name counts once.
        db.work.entries += u64::from(!self.is_one_slice);
        type_commit.check(db, edit)?;
        Ok(Stage::Check(nth, edit + 1))
    }

    /// Returns how many edits are applied together with one of the `nth` type,
    /// itself included.
    fn group_size(&self, nth: usize, edit: usize) -> usize {
        let type_commit = self.types.get(nth);
        type_commit.map_or(1, |commit| commit.domains.group_size(edit))
    }

    /// Applies one edit of the `nth` type and its group. Returns the next
    /// stage.
    fn apply_next(
        &mut self,
        db: &mut Database,
        nth: usize,
        edit: usize,
        on_change: &mut impl FnMut(ChangedName<'_>),
    ) -> Stage {
        let Some(type_commit) = self.types.get_mut(nth) else {
            return Stage::Remove(0, 0);
        };
        if edit == type_commit.edits.edits.len() {
            return Stage::Apply(nth + 1, 0);
        }
        type_commit.apply(db, edit, on_change);
        Stage::Apply(nth, edit + 1)
    }

    /// Applies one removal of the `nth` type from the last. Returns the next
    /// stage.
    fn remove_next(
        &mut self,
        db: &mut Database,
        nth: usize,
        index: usize,
        on_change: &mut impl FnMut(ChangedName<'_>),
    ) -> Stage {
        let Some(type_commit) = self.types.iter_mut().rev().nth(nth) else {
            return Stage::Done;
        };
        match type_commit.removals.get(index) {
            Some(edit) => {
                type_commit.apply_edit(db, *edit as usize, on_change);
                Stage::Remove(nth, index + 1)
            }
            None => Stage::Remove(nth + 1, 0),
        }
    }
}

impl TypeCommit {
    /// Adds a removal for the name in a slot, if it has contents and no edit.
    /// Returns whether there may be more: false if the type is not replaced, or
    /// has no such slot.
    fn list_removal(&mut self, db: &mut Database, slot: usize, is_one_slice: bool) -> bool {
        let table = &db.tables[self.type_id.0 as usize];
        if !self.edits.replaces || slot >= table.entries.slots() {
            return false;
        }
        // In one slice with its removal, a name counts once.
        db.work.entries += u64::from(!is_one_slice);

        let slot = slot as u32;
        if let Some(entry) = table.entries.get(slot) {
            let has_contents = !matches!(entry.content, Content::Absent | Content::Unknown);
            if has_contents && self.edits.find_by_name(&entry.name).is_none() {
                self.edits.add_removal(super::EntryId(slot));
            }
        }
        true
    }

    /// Refuses an edit if a client could match two variants of its name, or see
    /// two virtual hosts with the same domain (S62).
    fn check(&mut self, db: &Database, edit: usize) -> Result<(), ApplyError> {
        let Some(name) = self.edits.edits[edit].name() else {
            return Ok(());
        };
        let table = db.table(self.type_id);
        let entry = table.find(name.as_str());
        let old_variants = entry.map_or(&[][..], |id| table.entry(id).content.resources());
        if table.hosts.is_none() && self.edits.is_plain(edit, old_variants) {
            return Ok(());
        }

        let contents = self.edits.contents(edit, old_variants);
        check_overlap(name, &contents)?;
        let host = domains::CheckedHost {
            edit,
            entry,
            contents: &contents,
        };
        self.domains.check(table, &self.edits, &host)
    }

    /// Applies an edit and its group. An edit that removes its name is put off
    /// until everything is added, unless its group needs it now.
    fn apply(
        &mut self,
        db: &mut Database,
        edit: usize,
        on_change: &mut impl FnMut(ChangedName<'_>),
    ) {
        let group = self.domains.take_group(edit);
        if !group.is_empty() {
            for member in group {
                self.apply_edit(db, member as usize, on_change);
            }
        } else if self.is_removal(db, edit) {
            self.removals.push(edit as u32);
        } else {
            self.apply_edit(db, edit, on_change);
        }
    }

    /// Returns whether an edit leaves its name without contents.
    fn is_removal(&self, db: &Database, edit: usize) -> bool {
        match &self.edits.edits[edit] {
            Edit::Put(_) | Edit::Applied => false,
            Edit::Remove(_) => true,
            Edit::Rework(rework) => {
                let old_variants = db.variants(self.type_id, &rework.name);
                self.edits.contents(edit, old_variants).is_empty()
            }
        }
    }

    /// Returns the contents of a name after its edit, an error included if the
    /// edit has one. The edit counts as applied from then on.
    fn take_content(&mut self, db: &Database, edit: usize, name: &Name) -> Content {
        let old_variants = db.variants(self.type_id, name);
        let resources = Content::from_variants(self.edits.contents(edit, old_variants));
        let applied_edit = std::mem::replace(&mut self.edits.edits[edit], Edit::Applied);
        match applied_edit.failure() {
            None => resources,
            Some(error) => Content::Failed(error, Box::new(resources)),
        }
    }

    /// Applies an edit, and calls `on_change` with the changed name. Does
    /// nothing if the edit was applied with its group.
    fn apply_edit(
        &mut self,
        db: &mut Database,
        edit: usize,
        on_change: &mut impl FnMut(ChangedName<'_>),
    ) {
        let name = match &self.edits.edits[edit] {
            Edit::Remove(entry) => Some(&db.table(self.type_id).entry(*entry).name),
            edit => edit.name(),
        };
        let Some(name) = name.cloned() else {
            return;
        };

        let content = self.take_content(db, edit, &name);
        let old_content = db.put(self.type_id, &name, content);
        on_change(ChangedName {
            type_url: &self.edits.url,
            name: &name,
            before: old_content.resources(),
            after: db.variants(self.type_id, &name),
        });
        // They are freed between two slices, when nobody waits for the
        // database.
        if self.is_sliced {
            self.replaced_contents.push(old_content);
        }
    }
}
