//! What a wildcard or glob subscriber sees: one log for all that see the same.
//!
//! A view is a type (or a glob in it) as seen with one set of parameters. Its
//! log has one item for each name, the newest, so a stream that follows it
//! remembers a position and not what it holds: what a stream at position `p`
//! holds is the view as it was at `p`.
//!
//! ```text
//!   log:   3:b   5:a   6:d   7:c        head = 7
//!                 ▲
//!          a stream at position 5 holds a, b and the c and d of its time;
//!          6 and 7 are news to it
//! ```
//!
//! Earlier versions of a resource are kept only while a stream stands at a
//! position in which they were current ("retired bodies"), so the memory of a
//! view is bounded by what its streams hold, however fast it changes.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use hashbrown::{HashMap, HashSet};

use super::log::Log;
use super::resume_point::ResumePoint;
use super::{EntryId, SubscriberId, ViewChanges};
use crate::message::InitialVersions;
use crate::name::{Glob, Selector};
use crate::params::ParamsId;
use crate::resource::Resource;
use crate::resource_list::SharedList;

/// A position in the log of a view. Zero is before everything.
pub type Position = u64;

/// A view's place in its table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct ViewId(pub(super) u32);

/// Which names a view is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scope {
    /// All of the type.
    All,
    /// What a glob matches.
    Glob(Glob),
}

impl Scope {
    /// As something that is asked for.
    #[must_use]
    pub fn selector(&self) -> Selector {
        match self {
            Self::All => Selector::Wildcard,
            Self::Glob(glob) => Selector::Glob(glob.clone()),
        }
    }
}

/// Resume points that are kept for others: a fleet holds one set or two.
const MAX_RESUME_POINTS: usize = 4;

/// Names that a kept resume point may have beyond those of the view.
const MAX_POINT_STRAYS: usize = 1024;

/// A version that was current from one position until before another.
#[derive(Clone, Debug)]
struct RetiredVersion {
    from: Position,
    to: Position,
    resource: Arc<Resource>,
}

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct View {
    pub(super) scope: Scope,
    pub(super) params: ParamsId,
    pub(super) subscribers: HashSet<SubscriberId>,
    /// Changes were recorded of which the subscribers have not heard.
    pub(super) has_unannounced_changes: bool,
    head: Position,
    /// Speaks of every member, and of what is gone but still held by a stream.
    log: Log,
    /// The last position at which the log forgot a name that is gone.
    forgot_at: Position,
    members: usize,
    /// The sum of the members' fingerprints: the version of the set.
    fingerprint_sum: u128,
    history: HashMap<EntryId, Vec<RetiredVersion>>,
    retired_count: usize,
    sweep_at: usize,
    /// How many streams stand at each position.
    positions: BTreeMap<Position, usize>,
    /// The steps being made now; forgotten with the next change.
    recent_changes: HashMap<Position, Weak<ViewChanges>>,
    /// The step that every new stream makes; forgotten likewise.
    initial_changes: Option<Arc<ViewChanges>>,
    /// Whether somebody made use of what is kept for others, since that was
    /// last asked.
    lists_used: bool,
    /// Where clients of a fleet resume; forgotten likewise.
    resume_points: Vec<Arc<ResumePoint>>,
    /// The members as whole sets, without and with what needs a wrapper; made
    /// when somebody asks, forgotten with the next change.
    full_lists: [Option<Arc<SharedList>>; 2],
}

impl View {
    pub(super) fn new(scope: Scope, params: ParamsId) -> Self {
        Self {
            scope,
            params,
            subscribers: HashSet::new(),
            has_unannounced_changes: false,
            head: 0,
            log: Log::default(),
            forgot_at: 0,
            members: 0,
            fingerprint_sum: 0,
            history: HashMap::new(),
            retired_count: 0,
            sweep_at: 64,
            positions: BTreeMap::new(),
            recent_changes: HashMap::new(),
            initial_changes: None,
            lists_used: false,
            resume_points: Vec::new(),
            full_lists: [None, None],
        }
    }

    /// A view with the same past for some of the subscribers, who leave this
    /// one with their positions.
    pub(super) fn split_off(
        &mut self,
        params: ParamsId,
        leaving: &[SubscriberId],
        positions: &[Position],
    ) -> Self {
        let mut copy = Self {
            log: self.log.clone(),
            head: self.head,
            forgot_at: self.forgot_at,
            members: self.members,
            fingerprint_sum: self.fingerprint_sum,
            history: self.history.clone(),
            retired_count: self.retired_count,
            sweep_at: self.sweep_at,
            subscribers: leaving.iter().copied().collect(),
            ..Self::new(self.scope.clone(), params)
        };
        for subscriber in leaving {
            self.subscribers.remove(subscriber);
        }
        for position in positions {
            copy.pin(*position);
            // What this frees is freed with the next sweep.
            self.drop_pin(*position);
        }
        copy
    }

    pub(super) fn head(&self) -> Position {
        self.head
    }

    pub(super) fn fingerprint_sum(&self) -> u128 {
        self.fingerprint_sum
    }

    pub(super) fn len(&self) -> usize {
        self.members
    }

    /// Whether the log still speaks of this name.
    pub(super) fn has_entry(&self, entry: EntryId) -> bool {
        self.log.contains(entry)
    }

    /// Takes note of a change of what this view sees under a name.
    pub(super) fn record(
        &mut self,
        entry: EntryId,
        old: Option<&Arc<Resource>>,
        new: Option<&Arc<Resource>>,
    ) {
        self.head += 1;
        self.recent_changes.clear();
        self.initial_changes = None;
        self.resume_points.clear();
        self.full_lists = [None, None];
        if let Some(old) = old {
            self.members -= 1;
            self.fingerprint_sum = self.fingerprint_sum.wrapping_sub(old.fingerprint());
            self.retire(entry, old);
        }
        if let Some(new) = new {
            self.members += 1;
            self.fingerprint_sum = self.fingerprint_sum.wrapping_add(new.fingerprint());
        }
        if new.is_some() || self.history.contains_key(&entry) {
            self.log.push(self.head, entry);
        } else {
            self.forget(entry);
        }
    }

    /// Keeps a version that is no longer current if a stream holds it.
    fn retire(&mut self, entry: EntryId, old: &Arc<Resource>) {
        let from = self.log.position(entry).unwrap_or_default();
        if self.positions.range(from..self.head).next().is_some() {
            // Most have one; room for four would be three wasted.
            let pasts = self.history.entry(entry);
            pasts
                .or_insert_with(|| Vec::with_capacity(1))
                .push(RetiredVersion {
                    from,
                    to: self.head,
                    resource: Arc::clone(old),
                });
            self.retired_count += 1;
        }
    }

    /// A stream stands at this position from now on.
    pub(super) fn pin(&mut self, position: Position) {
        *self.positions.entry(position).or_default() += 1;
    }

    fn drop_pin(&mut self, position: Position) {
        if let Some(count) = self.positions.get_mut(&position) {
            *count -= 1;
            if *count == 0 {
                self.positions.remove(&position);
            }
        }
    }

    /// A stream has left this position. Returns the names that nothing in the
    /// view speaks of any more.
    pub(super) fn unpin(&mut self, position: Position) -> Vec<EntryId> {
        self.drop_pin(position);
        let behind = self
            .positions
            .first_key_value()
            .is_some_and(|(first, _)| *first < self.head);
        if self.retired_count > self.sweep_at || (self.retired_count > 0 && !behind) {
            return self.sweep();
        }
        Vec::new()
    }

    /// Forgets earlier versions that no stream holds.
    fn sweep(&mut self) -> Vec<EntryId> {
        let positions = &self.positions;
        let mut forgotten = Vec::new();
        self.history.retain(|entry, pasts| {
            pasts.retain(|past| positions.range(past.from..past.to).next().is_some());
            if pasts.is_empty() {
                forgotten.push(*entry);
            }
            !pasts.is_empty()
        });
        if self.history.len() < self.history.capacity() / 4 {
            self.history.shrink_to_fit();
        }
        self.retired_count = self.history.values().map(Vec::len).sum();
        self.sweep_at = 2 * self.retired_count + 64;
        forgotten
    }

    /// Drops the last word on a name that is gone and that nobody holds.
    pub(super) fn forget(&mut self, entry: EntryId) {
        self.forgot_at = self.head;
        self.log.forget(entry);
    }

    /// What a stream at `position` holds under a name; `current` is what the
    /// view sees there now.
    pub(super) fn resource_at(
        &self,
        entry: EntryId,
        position: Position,
        current: Option<&Arc<Resource>>,
    ) -> Option<Arc<Resource>> {
        if self.log.position(entry)? <= position {
            return current.cloned();
        }
        let pasts = self.history.get(&entry)?;
        let past = pasts
            .iter()
            .find(|p| p.from <= position && position < p.to)?;
        Some(Arc::clone(&past.resource))
    }

    /// The names whose newest item lies behind `position`, in order.
    pub(super) fn since(
        &self,
        position: Position,
    ) -> impl Iterator<Item = (Position, EntryId)> + '_ {
        self.log.since(position)
    }

    /// Forgets what was kept for others and was of no use for a while.
    pub(super) fn drop_unused_lists(&mut self) {
        if !std::mem::take(&mut self.lists_used) {
            self.initial_changes = None;
            self.resume_points = Vec::new();
            self.full_lists = [None, None];
        }
    }

    /// Whether the log forgot a name that is gone behind `position`: news since
    /// then do not speak of it.
    pub(super) fn has_forgotten_since(&self, position: Position) -> bool {
        self.forgot_at > position
    }

    /// A step that another stream makes too, if one does.
    pub(super) fn shared_changes(&mut self, from: Position) -> Option<Arc<ViewChanges>> {
        self.lists_used = true;
        self.recent_changes.get(&from)?.upgrade()
    }

    /// Lets other streams share a step.
    pub(super) fn share_changes(&mut self, changes: &Arc<ViewChanges>) {
        if changes.from == 0 {
            self.initial_changes = Some(Arc::clone(changes));
        }
        self.recent_changes
            .insert(changes.from, Arc::downgrade(changes));
    }

    /// Where a client that holds these versions resumes, if one did before.
    pub(super) fn resume_point(&mut self, versions: &InitialVersions) -> Option<Arc<ResumePoint>> {
        self.lists_used = true;
        let mut points = self.resume_points.iter();
        points.find(|point| point.is_for(versions)).cloned()
    }

    /// Lets other clients that hold the same resume at the same point.
    pub(super) fn share_resume_point(&mut self, point: &Arc<ResumePoint>) {
        if point.len() > self.members + MAX_POINT_STRAYS {
            return;
        }
        if self.resume_points.len() == MAX_RESUME_POINTS {
            self.resume_points.remove(0);
        }
        self.resume_points.push(Arc::clone(point));
    }

    /// The members as a whole set, if it was made.
    pub(super) fn full_list(&mut self, wrap: bool) -> Option<Arc<SharedList>> {
        self.lists_used = true;
        self.full_lists[usize::from(wrap)].clone()
    }

    /// Keeps a whole set for others.
    pub(super) fn keep_full_list(&mut self, wrap: bool, whole: &Arc<SharedList>) {
        self.full_lists[usize::from(wrap)] = Some(Arc::clone(whole));
    }

    /// The positions that streams hold, for checks.
    pub(super) fn positions(&self) -> impl Iterator<Item = (Position, usize)> + '_ {
        self.positions.iter().map(|(seq, count)| (*seq, *count))
    }

    /// How many earlier versions are kept.
    pub(super) fn retired_versions(&self) -> usize {
        self.retired_count
    }

    /// How many items the log keeps.
    pub(super) fn items(&self) -> usize {
        self.log.items()
    }
}
