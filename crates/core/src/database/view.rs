//! A view: a scope as seen with one set of parameters, and one log for all
//! cursors that see the same.
//!
//! The log has one item for each name, the newest. So a cursor keeps a position
//! and no list of resources: a client whose cursor is at position `p` holds the
//! view as it was at `p`.
//!
//! ```text
//!   log:   3:b   5:a   6:d   7:c        head = 7
//!                 ▲
//!          a client with a cursor at 5 holds a and b as they are, and c and d
//!          as they were at 5; an advance to the head brings 6 and 7
//! ```
//!
//! An earlier version of a resource is retired: it is kept only while a pinned
//! position lies in the range in which it was current. So the memory of a view
//! is bounded by what its clients hold, however fast it changes.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Weak};

use hashbrown::{HashMap, HashSet};

use super::log::Log;
use super::resume_point::ResumePoint;
use super::{EntryId, SubscriberId, ViewChanges};
use crate::message::InitialVersions;
use crate::name::{Glob, Name, Selector};
use crate::params::ParamsId;
use crate::resource::Resource;
use crate::resource_list::SharedList;

/// A position in the log of a view. Zero is before everything.
pub type Position = u64;

/// A view's place in its table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct ViewId(pub(super) u32);

/// The names that a wildcard or a glob covers.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scope {
    /// All of the type.
    All,
    /// The names that a glob matches.
    Glob(Glob),
}

impl Scope {
    /// Returns the selector that subscribes to the scope.
    #[must_use]
    pub fn selector(&self) -> Selector {
        match self {
            Self::All => Selector::Wildcard,
            Self::Glob(glob) => Selector::Glob(glob.clone()),
        }
    }

    /// Returns whether a name is in the scope.
    pub(super) fn covers(&self, name: &Name) -> bool {
        match self {
            Self::All => true,
            Self::Glob(glob) => glob.matches(name),
        }
    }
}

/// Resume points that are kept: most clients of a fleet hold one of two sets.
const MAX_RESUME_POINTS: usize = 4;

/// Names that a kept resume point may have beyond the number of members.
const MAX_POINT_STRAYS: usize = 1024;

/// Retired versions up to which a view is not swept.
const SWEEP_AT: usize = 64;

/// A version that was current at the positions `from..to`.
#[derive(Clone, Debug)]
struct RetiredVersion {
    from: Position,
    to: Position,
    resource: Arc<Resource>,
}

/// One log for all cursors that see the same; see the module's documentation.
#[derive(Debug)]
pub(super) struct View {
    pub(super) scope: Scope,
    pub(super) params: ParamsId,
    pub(super) subscribers: HashSet<SubscriberId>,
    /// The view is in `Database::changed_views`: its subscribers were not woken
    /// for its newest changes.
    pub(super) has_unannounced_changes: bool,
    head: Position,
    /// Has every member, and removed names that retired versions are kept of.
    log: Log,
    /// The position of the head when the log last forgot a removed name.
    last_forgotten_at: Position,
    members: usize,
    /// The sum of the members' fingerprints: the version of the set.
    fingerprint_sum: u128,
    /// The retired versions of each name.
    history: HashMap<EntryId, Vec<RetiredVersion>>,
    /// The number of versions in `history`.
    retired_count: usize,
    /// The number of retired versions beyond which they are swept.
    sweep_threshold: usize,
    /// How many pins each position has.
    pins: BTreeMap<Position, usize>,
    /// Advances that streams make now, by start; dropped with the next change,
    /// as are the lists below.
    recent_changes: HashMap<Position, Weak<ViewChanges>>,
    /// The advance of every new cursor.
    initial_changes: Option<Arc<ViewChanges>>,
    /// Whether a list was used since [`View::drop_unused_lists`].
    has_used_lists: bool,
    /// Where clients of a fleet resume.
    resume_points: Vec<Arc<ResumePoint>>,
    /// The members as whole sets, without and with wrapped resources.
    full_lists: [Option<Arc<SharedList>>; 2],
}

impl View {
    /// Makes an empty view, whose head is position zero.
    pub(super) fn new(scope: Scope, params: ParamsId) -> Self {
        Self {
            scope,
            params,
            subscribers: HashSet::new(),
            has_unannounced_changes: false,
            head: 0,
            log: Log::default(),
            last_forgotten_at: 0,
            members: 0,
            fingerprint_sum: 0,
            history: HashMap::new(),
            retired_count: 0,
            sweep_threshold: SWEEP_AT,
            pins: BTreeMap::new(),
            recent_changes: HashMap::new(),
            initial_changes: None,
            has_used_lists: false,
            resume_points: Vec::new(),
            full_lists: [None, None],
        }
    }

    /// Makes a copy of the view, with its log and its retired versions, for
    /// subscribers that leave this one: they differ from the others in a
    /// parameter that decides from now on. `positions` are their pins, which
    /// move to the copy.
    pub(super) fn split_off(
        &mut self,
        params: ParamsId,
        leaving_subscribers: &[SubscriberId],
        positions: &[Position],
    ) -> Self {
        let mut copy = Self {
            log: self.log.clone(),
            head: self.head,
            last_forgotten_at: self.last_forgotten_at,
            members: self.members,
            fingerprint_sum: self.fingerprint_sum,
            history: self.history.clone(),
            retired_count: self.retired_count,
            subscribers: leaving_subscribers.iter().copied().collect(),
            ..Self::new(self.scope.clone(), params)
        };

        for subscriber in leaving_subscribers {
            self.subscribers.remove(subscriber);
        }
        for position in positions {
            copy.pin(*position);
            // The versions that this pin kept go with the next sweep.
            self.drop_pin(*position);
        }
        copy
    }

    /// Returns the position of the newest change; zero if there was none.
    pub(super) fn head(&self) -> Position {
        self.head
    }

    /// Returns the sum of the fingerprints of all listed resources.
    pub(super) fn fingerprint_sum(&self) -> u128 {
        self.fingerprint_sum
    }

    /// Returns the number of listed resources.
    pub(super) fn len(&self) -> usize {
        self.members
    }

    /// Returns whether the log has an item of this name.
    pub(super) fn has_entry(&self, entry: EntryId) -> bool {
        self.log.contains(entry)
    }

    /// Records that the resource that the view lists under a name changed from
    /// `old` to `new`; `None` is no resource, and not both are. The head moves,
    /// and lists that streams share are dropped.
    pub(super) fn record(
        &mut self,
        entry: EntryId,
        old: Option<&Arc<Resource>>,
        new: Option<&Arc<Resource>>,
    ) {
        self.head += 1;
        self.recent_changes.clear();
        self.drop_lists();

        if let Some(old) = old {
            self.members -= 1;
            self.fingerprint_sum = self.fingerprint_sum.wrapping_sub(old.fingerprint());
            self.retire(entry, old);
        }
        if let Some(new) = new {
            self.members += 1;
            self.fingerprint_sum = self.fingerprint_sum.wrapping_add(new.fingerprint());
        }

        // A removed name is in the log while a cursor may return to a version
        // of it.
        if new.is_some() || self.history.contains_key(&entry) {
            self.log.push(self.head, entry);
        } else {
            self.forget(entry);
        }
    }

    /// Keeps a version that is current up to the head, if a position at which
    /// it was is pinned. Otherwise no cursor returns to it.
    fn retire(&mut self, entry: EntryId, old: &Arc<Resource>) {
        let from = self.log.position(entry).unwrap_or_default();
        if !has_pin(&self.pins, from..self.head) {
            return;
        }
        // Most names have one retired version; a vector would begin with room
        // for four.
        let versions = self.history.entry(entry);
        let versions = versions.or_insert_with(|| Vec::with_capacity(1));
        versions.push(RetiredVersion {
            from,
            to: self.head,
            resource: Arc::clone(old),
        });
        self.retired_count += 1;
    }

    /// Pins a position: versions that are current there are kept until it is
    /// unpinned.
    pub(super) fn pin(&mut self, position: Position) {
        *self.pins.entry(position).or_default() += 1;
    }

    /// Removes one pin of a position. The versions that it kept stay until the
    /// next sweep.
    fn drop_pin(&mut self, position: Position) {
        if let Some(count) = self.pins.get_mut(&position) {
            *count -= 1;
            if *count == 0 {
                self.pins.remove(&position);
            }
        }
    }

    /// Unpins a position. Retired versions are swept when there are many, or
    /// when no pin can keep one. Returns the names that have none left: the
    /// caller forgets those that were removed ([`View::forget`]).
    pub(super) fn unpin(&mut self, position: Position) -> Vec<EntryId> {
        self.drop_pin(position);
        let has_many = self.retired_count > self.sweep_threshold;
        let is_every_pin_at_head = !has_pin(&self.pins, 0..self.head);
        if has_many || is_every_pin_at_head {
            return self.sweep();
        }
        Vec::new()
    }

    /// Frees the retired versions that no pin keeps. Returns the names that
    /// have none left. The next sweep waits until there are twice as many as
    /// now, so that each pays for itself.
    fn sweep(&mut self) -> Vec<EntryId> {
        let pins = &self.pins;
        let mut freed_names = Vec::new();
        self.history.retain(|entry, versions| {
            versions.retain(|version| has_pin(pins, version.from..version.to));
            if versions.is_empty() {
                freed_names.push(*entry);
            }
            !versions.is_empty()
        });

        self.history.shrink_to_fit();
        self.retired_count = self.history.values().map(Vec::len).sum();
        self.sweep_threshold = 2 * self.retired_count + SWEEP_AT;
        freed_names
    }

    /// Drops a removed name from the log, once no cursor may return to a
    /// position that lists it.
    pub(super) fn forget(&mut self, entry: EntryId) {
        self.last_forgotten_at = self.head;
        self.log.forget(entry);
    }

    /// Returns the resource that a client whose cursor is at `position` holds
    /// under a name, if it holds one. `listed_resource` is the one that the
    /// view lists now. The position must be pinned, or the head.
    pub(super) fn resource_at(
        &self,
        entry: EntryId,
        position: Position,
        listed_resource: Option<&Arc<Resource>>,
    ) -> Option<Arc<Resource>> {
        if self.log.position(entry)? <= position {
            return listed_resource.cloned();
        }
        let mut versions = self.history.get(&entry)?.iter();
        let retired_version =
            versions.find(|version| (version.from..version.to).contains(&position))?;
        Some(Arc::clone(&retired_version.resource))
    }

    /// Returns the names whose newest item is after `position`, in the order of
    /// the log.
    pub(super) fn entries_since(
        &self,
        position: Position,
    ) -> impl Iterator<Item = (Position, EntryId)> + '_ {
        self.log.entries_since(position)
    }

    /// Drops shared lists that no stream used since the last call.
    pub(super) fn drop_unused_lists(&mut self) {
        if !std::mem::take(&mut self.has_used_lists) {
            self.drop_lists();
        }
    }

    /// Drops the lists that streams share. Those that a stream still sends from
    /// live until it is done.
    fn drop_lists(&mut self) {
        self.initial_changes = None;
        self.resume_points = Vec::new();
        self.full_lists = [None, None];
    }

    /// Returns whether the log forgot a removed name after `position`:
    /// [`View::entries_since`] does not list it.
    pub(super) fn has_forgotten_since(&self, position: Position) -> bool {
        self.last_forgotten_at > position
    }

    /// Returns the advance from a position to the head, if a stream makes the
    /// same now.
    pub(super) fn shared_changes(&mut self, from: Position) -> Option<Arc<ViewChanges>> {
        self.has_used_lists = true;
        self.recent_changes.get(&from)?.upgrade()
    }

    /// Lets other streams share an advance. The one from zero is kept for new
    /// cursors until the view changes.
    pub(super) fn share_changes(&mut self, changes: &Arc<ViewChanges>) {
        if changes.from == 0 {
            self.initial_changes = Some(Arc::clone(changes));
        }
        self.recent_changes
            .insert(changes.from, Arc::downgrade(changes));
    }

    /// Returns the point at which a client with these versions resumes, if one
    /// with the same versions did before.
    pub(super) fn resume_point(&mut self, versions: &InitialVersions) -> Option<Arc<ResumePoint>> {
        self.has_used_lists = true;
        let mut points = self.resume_points.iter();
        points.find(|point| point.is_for(versions)).cloned()
    }

    /// Lets other clients that hold the same resources resume at a point. The
    /// oldest point makes room; a point that is much larger than the view is
    /// not kept.
    pub(super) fn share_resume_point(&mut self, point: &Arc<ResumePoint>) {
        if point.len() > self.members + MAX_POINT_STRAYS {
            return;
        }
        if self.resume_points.len() == MAX_RESUME_POINTS {
            self.resume_points.remove(0);
        }
        self.resume_points.push(Arc::clone(point));
    }

    /// Returns the members as a whole set, if it was made since the last
    /// change; `wrap` as in [`View::keep_full_list`].
    pub(super) fn full_list(&mut self, wrap: bool) -> Option<Arc<SharedList>> {
        self.has_used_lists = true;
        self.full_lists[usize::from(wrap)].clone()
    }

    /// Keeps a whole set for other streams; `wrap` is whether resources may be
    /// wrapped in it.
    pub(super) fn keep_full_list(&mut self, wrap: bool, list: &Arc<SharedList>) {
        self.full_lists[usize::from(wrap)] = Some(Arc::clone(list));
    }

    /// Returns the pinned positions with their counts, for checks.
    pub(super) fn pins(&self) -> impl Iterator<Item = (Position, usize)> + '_ {
        self.pins
            .iter()
            .map(|(position, count)| (*position, *count))
    }

    /// Returns the number of retired versions.
    pub(super) fn retired_versions(&self) -> usize {
        self.retired_count
    }

    /// Returns the number of items in the log, stale ones included.
    pub(super) fn items(&self) -> usize {
        self.log.items()
    }
}

/// Returns whether a position of a range is pinned.
fn has_pin(pins: &BTreeMap<Position, usize>, range: Range<Position>) -> bool {
    pins.range(range).next().is_some()
}

#[cfg(test)]
mod tests;
