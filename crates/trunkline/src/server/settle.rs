//! Contents of all origins, settled with each other, on their way to the
//! database.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::ops::AddAssign;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Instant;

use trunkline_core::change::Change;
use trunkline_core::database::{ApplyError, Database, SLICE};
use trunkline_core::kind::Kind;
use trunkline_core::name::Name;
use trunkline_core::params::Constraints;
use trunkline_core::resource::{TypeUrl, Version};

use super::contents::Changed;
use super::keeping::{self, Context, Terms};
use super::lease::Lifetime;
use super::precondition::Conflict;
use super::queue::Slot;
use super::shared::Shared;
use super::store::LeaseChange;
use crate::checked::{
    AcceptedChanges, ContentSet, Effect, Fault, Finding, Keeping, Proposal, Rejection, Settlement,
};

/// The number of changes in one part of a first load.
pub(super) const PART: usize = 100_000;

/// The effect of the changes of a proposal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// The variants that became different, in order of type and name. Of a
    /// million they are not listed: more than 100 000 are counted only.
    pub changed: Vec<Changed>,
    /// The number of all variants that became different.
    pub counts: ChangeCounts,
    /// The revision that the last of the changes made; `None` if there were
    /// none, or if they were not made.
    pub revision: Option<u64>,
}

/// The number of each kind of change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChangeCounts {
    /// Variants that were not there before.
    pub created: usize,
    /// Variants that have other contents.
    pub changed: usize,
    /// Variants that are not there any more.
    pub deleted: usize,
}

impl ChangeCounts {
    /// Counts changes by their kind.
    pub(crate) fn of(changed: &[Changed]) -> Self {
        let mut counts = Self::default();
        for change in changed {
            match (&change.from, &change.to) {
                (None, _) => counts.created += 1,
                (Some(_), Some(_)) => counts.changed += 1,
                (Some(_), None) => counts.deleted += 1,
            }
        }
        counts
    }

    /// Returns the number of all changes.
    #[must_use]
    pub fn total(self) -> usize {
        self.created + self.changed + self.deleted
    }
}

impl AddAssign for ChangeCounts {
    fn add_assign(&mut self, more: Self) {
        self.created += more.created;
        self.changed += more.changed;
        self.deleted += more.deleted;
    }
}

impl Applied {
    /// Adds changes: to the counts, and to the list. The list is dropped when
    /// there are more than [`PART`] in all.
    fn add(&mut self, changed: Vec<Changed>) {
        self.counts += ChangeCounts::of(&changed);
        match self.counts.total() <= PART {
            true => self.changed.extend(changed),
            false => self.changed = Vec::new(),
        }
    }
}

impl From<Vec<Changed>> for Applied {
    /// Returns the effect of changes that were not made.
    fn from(changed: Vec<Changed>) -> Self {
        let mut applied = Self::default();
        applied.add(changed);
        applied
    }
}

impl From<(Vec<Changed>, u64)> for Applied {
    /// Returns the effect of changes that made this revision.
    fn from((changed, revision): (Vec<Changed>, u64)) -> Self {
        Self {
            revision: Some(revision),
            ..changed.into()
        }
    }
}

impl Shared {
    /// Settles a proposal, and applies its changes if it says so. One proposal
    /// waits for the one before.
    pub(super) fn settle(
        self: &Arc<Self>,
        author: &str,
        proposal: Proposal<'_>,
        lifetime: Lifetime,
    ) -> Settlement<Applied> {
        let terms = Terms {
            lifetime,
            ..Terms::default()
        };
        let set = self.lock_set();
        self.settle_for(set, author, proposal, &terms)
    }

    /// Settles a proposal on some terms.
    pub(super) fn settle_on(
        self: &Arc<Self>,
        author: &str,
        proposal: Proposal<'_>,
        terms: &Terms,
    ) -> Result<Settlement<Applied>, Conflict> {
        let mut set = self.lock_set();
        if terms.compare_contents() {
            self.drain_queue(&mut set);
        }
        self.check_repeated(terms)?;
        self.check_precondition(&terms.precondition, &proposal)?;
        Ok(self.settle_for(set, author, proposal, terms))
    }

    /// Settles a proposal, and changes the lease of its origin in the same
    /// step: the contents are locked until both are done. A change that waits
    /// for the store with others does so without the lock.
    fn settle_for(
        self: &Arc<Self>,
        mut set: MutexGuard<'_, ContentSet>,
        author: &str,
        proposal: Proposal<'_>,
        terms: &Terms,
    ) -> Settlement<Applied> {
        let (origin, effect) = (proposal.origin, proposal.effect);
        let lifetime = terms.lifetime;
        if let Lifetime::Leased(_) = lifetime
            && let Some(fault) = self.leases.refuse(origin)
        {
            return reject_all(fault);
        }
        let context = Context {
            author,
            origin,
            lease: self.leases.difference(origin, lifetime),
            terms,
            is_kept: true,
        };
        if self.may_queue(context, &proposal) {
            return self.settle_and_wait(set, context, proposal);
        }

        let mut settlement = self.settle_in(&mut set, context, proposal);
        if effect == Effect::Applied && settlement.rejections.is_empty() {
            let is_kept = settlement.applied.is_some();
            if !is_kept
                && context.lease != LeaseChange::Kept
                && let Err(error) = self.keep_lease(context)
            {
                return reject_all(Fault::Refused(keeping::refused(&error)));
            }
            let warning = self.set_lifetime(origin, lifetime);
            settlement.warnings.extend(warning);
        }
        settlement
    }

    /// Settles a proposal whose changes wait for the store with others, and
    /// waits without the lock until they are kept and made. A proposal that
    /// changes nothing waits for the changes before it, because it may rest on
    /// them.
    fn settle_and_wait(
        self: &Arc<Self>,
        mut set: MutexGuard<'_, ContentSet>,
        context: Context<'_>,
        proposal: Proposal<'_>,
    ) -> Settlement<Applied> {
        let (mut settlement, slot) = self.settle_queued(&mut set, context, proposal);
        if settlement.rejections.is_empty() {
            let warning = self.set_lifetime(context.origin, context.terms.lifetime);
            settlement.warnings.extend(warning);
        } else if slot.is_none() {
            return settlement;
        }

        let follows = slot.is_none();
        let slot = slot.unwrap_or_else(|| self.queue.follow());
        drop(set);
        match self.await_kept(&slot) {
            Err(error) => reject_all(Fault::Refused(error)),
            // Nothing had to change, and what that rests on is kept.
            Ok(_) if follows => settlement,
            Ok(applied) => Settlement {
                applied: Some(applied),
                ..settlement
            },
        }
    }

    /// Settles a proposal with the contents, which the caller has locked, and
    /// makes its changes.
    pub(super) fn settle_in(
        self: &Arc<Self>,
        set: &mut ContentSet,
        context: Context<'_>,
        proposal: Proposal<'_>,
    ) -> Settlement<Applied> {
        self.drain_queue(set);
        let effect = proposal.effect;
        let apply = |accepted: AcceptedChanges| match effect {
            Effect::Applied => self.apply_accepted(context, accepted),
            Effect::Rehearsed => Ok(self.preview(&accepted.changes).into()),
            Effect::Held => Ok(Applied::default()),
        };
        set.settle_rows(proposal, self.keeping(context, effect), apply)
    }

    /// Settles a proposal with the contents, which the caller has locked, and
    /// adds its changes to the queue for the store. Returns the slot in which
    /// they get their result; `None` if there are none.
    fn settle_queued(
        self: &Arc<Self>,
        set: &mut ContentSet,
        context: Context<'_>,
        proposal: Proposal<'_>,
    ) -> (Settlement<Applied>, Option<Arc<Slot>>) {
        let mut slot = None;
        let add = |accepted: AcceptedChanges| {
            let transaction = context.transaction(0, accepted.rows);
            slot = Some(self.queue.add(transaction, accepted.changes)?);
            Ok(Applied::default())
        };
        let settlement = set.settle_rows(proposal, Keeping::Rows, add);
        (settlement, slot)
    }

    /// Applies all resources of an origin, whose proposals were held so far.
    /// Nothing of them is in the database yet.
    pub(super) fn apply_held(
        self: &Arc<Self>,
        author: &str,
        origin: &str,
    ) -> Result<(), ApplyError> {
        let resources = {
            let mut set = self.lock_set();
            self.drain_queue(&mut set);
            set.resources(origin).into_iter()
        };
        let upserts = resources.map(|(type_url, resource)| Change::Upsert(type_url, resource));
        self.apply_first(author, upserts.collect()).map(drop)
    }

    /// Returns whether there are many changes, and all of them are upserts of
    /// types that the database has nothing of.
    pub(super) fn is_first_load(&self, changes: &[Change]) -> bool {
        let is_upsert = |change: &Change| matches!(change, Change::Upsert(..));
        if changes.len() <= PART || !changes.iter().all(is_upsert) {
            return false;
        }
        let types = changes.iter().map(Change::type_url);
        let types: BTreeSet<&TypeUrl> = types.collect();
        self.with(|db| {
            let mut ids = types.iter().filter_map(|type_url| db.find_type(type_url));
            ids.all(|id| db.len(id) == 0)
        })
    }

    /// Applies upserts of resources of which the database has none, in parts,
    /// dependencies first. If the hooks or the database refuse a part, the
    /// parts before it are removed again.
    pub(super) fn apply_first(
        self: &Arc<Self>,
        author: &str,
        upserts: Vec<Change>,
    ) -> Result<Applied, ApplyError> {
        let apply = |part| self.apply(author, part);
        // A removal contradicts nothing, so it is not refused.
        let undo = |removals| _ = self.apply_unasked(author, removals);
        in_parts(upserts, apply, undo)
    }

    /// Applies upserts of resources of which the database has none, as
    /// [`Self::apply_first`] does, after the hooks have allowed them. The
    /// caller has locked out other changes.
    pub(super) fn apply_parts(
        self: &Arc<Self>,
        author: &str,
        upserts: Vec<Change>,
        accepted: Instant,
    ) -> Result<Applied, ApplyError> {
        let apply = |part| self.apply_allowed(author, part, accepted);
        // A removal contradicts nothing, so it is not refused.
        let undo = |removals| _ = self.apply_allowed(author, removals, accepted);
        in_parts(upserts, apply, undo)
    }

    /// Returns the effect that changes would have, in order of type and name.
    /// The database is locked for a slice at a time (S85).
    pub(super) fn preview(&self, changes: &[Change]) -> Vec<Changed> {
        let mut changed = Vec::new();
        for slice in changes.chunks(SLICE) {
            self.with(|db| {
                let previews = slice.iter().flat_map(|change| preview(db, change));
                changed.extend(previews);
            });
            self.hub.give_way();
        }
        changed.sort_by(|a, b| (&a.type_url, &a.name).cmp(&(&b.type_url, &b.name)));
        changed
    }

    /// Locks the contents of all origins. What was not kept is taken back.
    pub(super) fn lock_set(&self) -> MutexGuard<'_, ContentSet> {
        let mut set = self.set.lock().unwrap_or_else(PoisonError::into_inner);
        self.take_back_failed(&mut set);
        set
    }
}

/// Applies upserts of new resources in parts, dependencies first, because the
/// changes of one part are freed before the next is applied. If a part is
/// refused, those before it are removed again, with `undo`.
pub(super) fn in_parts(
    mut upserts: Vec<Change>,
    apply: impl Fn(Vec<Change>) -> Result<(Vec<Changed>, u64), ApplyError>,
    undo: impl FnOnce(Vec<Change>),
) -> Result<Applied, ApplyError> {
    // The list is reversed, because it can be cut short at its end only.
    upserts.sort_by_key(|upsert| Reverse(Kind::of(upsert.type_url()).rank));
    let mut applied = Applied::default();
    let mut removals = Vec::new();
    while !upserts.is_empty() {
        let rest = upserts.len().saturating_sub(PART);
        let part = upserts.split_off(rest);
        upserts.shrink_to_fit();
        let part_removals: Vec<Change> = part.iter().filter_map(removal_of).collect();
        match apply(part) {
            Ok((changed, revision)) => {
                applied.add(changed);
                applied.revision = Some(revision);
            }
            Err(error) => {
                undo(removals);
                return Err(error);
            }
        }
        removals.extend(part_removals);
    }
    Ok(applied)
}

/// Returns the settlement of a proposal that is rejected for one reason.
pub(super) fn reject_all(fault: Fault) -> Settlement<Applied> {
    Settlement {
        applied: None,
        unchanged: 0,
        rejections: vec![Rejection {
            edit: 0,
            findings: vec![Finding::whole(&Arc::default(), fault)],
            document: None,
        }],
        warnings: Vec::new(),
    }
}

/// Returns the removal that undoes an upsert; `None` for another change.
fn removal_of(change: &Change) -> Option<Change> {
    match change {
        Change::Upsert(type_url, resource) => Some(Change::RemoveVariant(
            type_url.clone(),
            resource.name.clone(),
            resource.constraints.clone(),
        )),
        _ => None,
    }
}

/// Returns the effect that a change would have; nothing, if it would have none,
/// or is not about one name.
fn preview(db: &Database, change: &Change) -> Vec<Changed> {
    let (type_url, name, constraints, to) = match change {
        Change::Upsert(type_url, resource) => (
            type_url,
            &resource.name,
            resource.constraints.clone(),
            Some(resource.version.clone()),
        ),
        Change::RemoveVariant(type_url, name, constraints) => {
            (type_url, name, constraints.clone(), None)
        }
        Change::Remove(type_url, name) => return preview_removal(db, type_url, name),
        Change::ReplaceAll(..) | Change::Fail(..) => return Vec::new(),
    };
    let from = current_version(db, type_url, name, &constraints);
    if from == to {
        return Vec::new();
    }
    vec![Changed {
        type_url: type_url.clone(),
        name: name.clone(),
        constraints,
        from,
        to,
    }]
}

/// Returns the effect of a removal of all variants of a name.
fn preview_removal(db: &Database, type_url: &TypeUrl, name: &Name) -> Vec<Changed> {
    let Some(type_id) = db.find_type(type_url) else {
        return Vec::new();
    };
    let variants = db.variants(type_id, name);
    let removed = variants.iter().map(|variant| Changed {
        type_url: type_url.clone(),
        name: name.clone(),
        constraints: variant.constraints.clone(),
        from: Some(variant.version.clone()),
        to: None,
    });
    removed.collect()
}

/// Returns the version of a variant in the database.
fn current_version(
    db: &Database,
    type_url: &TypeUrl,
    name: &Name,
    constraints: &Option<Constraints>,
) -> Option<Version> {
    let variants = db.variants(db.find_type(type_url)?, name);
    let variant = variants
        .iter()
        .find(|variant| variant.constraints == *constraints);
    variant.map(|variant| variant.version.clone())
}
