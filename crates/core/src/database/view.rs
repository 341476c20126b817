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
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use hashbrown::{HashMap, HashSet};

use super::log::Log;
use super::{EntryId, SubscriberId};
use crate::message::WireResource;
use crate::name::{Glob, Name, Selector};
use crate::params::{Constraints, ParamsId};
use crate::resource::Resource;
use crate::resource_list::SharedList;

/// A position in the log of a view. Zero is before everything.
pub type Seq = u64;

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
    pub fn ask(&self) -> Selector {
        match self {
            Self::All => Selector::Wildcard,
            Self::Glob(glob) => Selector::Glob(glob.clone()),
        }
    }
}

/// A version that was current from one position until before another.
#[derive(Clone, Debug)]
struct Past {
    from: Seq,
    to: Seq,
    resource: Arc<Resource>,
}

/// A name, and what it holds now; `None` if it is gone.
pub type Item = (Name, Option<Arc<Resource>>);

/// What changed between two positions of a view: made once, shared by every
/// stream that makes the same step.
#[derive(Debug)]
pub struct Batch {
    /// The position it starts from.
    pub from: Seq,
    /// The position it leads to.
    pub to: Seq,
    /// About how many bytes it takes in a response.
    pub bytes: usize,
    /// What is new, in the order of the log; `None` is gone.
    pub items: Vec<Item>,
    /// The names that are gone, sorted.
    pub gone: Vec<Name>,
    /// What was held before in the place of an item, where that refers to other
    /// resources: they stay in use for a while (S73).
    pub referring: Vec<(usize, Arc<Resource>)>,
    /// Variants that give way to others, or to nothing (TP2).
    pub left: Vec<(Name, Option<Constraints>)>,
    /// The items by name; made when somebody looks for one.
    pub(super) by_name: OnceLock<Box<[u32]>>,
    /// Parts of it as responses; streams with the same limits make the same.
    pub(super) parts: Mutex<Vec<(Range<usize>, Arc<SharedList>)>>,
}

impl Batch {
    /// Where a name stands among the items.
    #[must_use]
    pub fn find(&self, name: &Name) -> Option<usize> {
        let by_name = self.by_name.get_or_init(|| {
            let mut places: Box<[u32]> = (0..self.items.len() as u32).collect();
            places.sort_by(|a, b| self.name(*a).cmp(self.name(*b)));
            places
        });
        let found = by_name.binary_search_by(|place| self.name(*place).cmp(name));
        found.ok().map(|found| by_name[found] as usize)
    }

    /// What the items of a part bring, by name, made once for all streams that
    /// are told just that.
    #[must_use]
    pub fn brings(&self, part: &Range<usize>) -> Arc<SharedList> {
        let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, whole)) = parts.iter().find(|(range, _)| range == part) {
            return Arc::clone(whole);
        }
        let items = self.items[part.clone()].iter();
        let mut new: Vec<Arc<Resource>> = items.filter_map(|(_, item)| item.clone()).collect();
        new.sort_by(|a, b| a.name.cmp(&b.name));
        let whole = Arc::new(SharedList::new(
            new.into_iter().map(WireResource::full).collect(),
        ));
        parts.push((part.clone(), Arc::clone(&whole)));
        whole
    }

    fn name(&self, place: u32) -> &Name {
        &self.items[place as usize].0
    }
}

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct View {
    pub(super) scope: Scope,
    pub(super) params: ParamsId,
    pub(super) subscribers: HashSet<SubscriberId>,
    /// Changes were recorded of which the subscribers have not heard.
    pub(super) has_news: bool,
    head: Seq,
    /// Speaks of every member, and of what is gone but still held by a stream.
    log: Log,
    /// The last position at which the log forgot a name that is gone.
    forgot: Seq,
    members: usize,
    /// The sum of the members' fingerprints: the version of the set.
    sum: u128,
    history: HashMap<EntryId, Vec<Past>>,
    past_count: usize,
    sweep_at: usize,
    /// How many streams stand at each position.
    positions: BTreeMap<Seq, usize>,
    /// The steps being made now; forgotten with the next change.
    batches: HashMap<Seq, Weak<Batch>>,
    /// The step that every new stream makes; forgotten likewise.
    whole_batch: Option<Arc<Batch>>,
    /// Whether somebody made use of what is kept for others, since that was
    /// last asked.
    used: bool,
    /// The members as whole sets, without and with what needs a wrapper; made
    /// when somebody asks, forgotten with the next change.
    wholes: [Option<Arc<SharedList>>; 2],
}

impl View {
    pub(super) fn new(scope: Scope, params: ParamsId) -> Self {
        Self {
            scope,
            params,
            subscribers: HashSet::new(),
            has_news: false,
            head: 0,
            log: Log::default(),
            forgot: 0,
            members: 0,
            sum: 0,
            history: HashMap::new(),
            past_count: 0,
            sweep_at: 64,
            positions: BTreeMap::new(),
            batches: HashMap::new(),
            whole_batch: None,
            used: false,
            wholes: [None, None],
        }
    }

    /// A view with the same past for some of the subscribers, who leave this
    /// one with their positions.
    pub(super) fn divide(
        &mut self,
        params: ParamsId,
        leaving: &[SubscriberId],
        positions: &[Seq],
    ) -> Self {
        let mut copy = Self {
            log: self.log.clone(),
            head: self.head,
            forgot: self.forgot,
            members: self.members,
            sum: self.sum,
            history: self.history.clone(),
            past_count: self.past_count,
            sweep_at: self.sweep_at,
            subscribers: leaving.iter().copied().collect(),
            ..Self::new(self.scope.clone(), params)
        };
        for subscriber in leaving {
            self.subscribers.remove(subscriber);
        }
        for position in positions {
            copy.hold(*position);
            // What this frees is freed with the next sweep.
            self.leave(*position);
        }
        copy
    }

    pub(super) fn head(&self) -> Seq {
        self.head
    }

    pub(super) fn sum(&self) -> u128 {
        self.sum
    }

    pub(super) fn len(&self) -> usize {
        self.members
    }

    /// Whether the log still speaks of this name.
    pub(super) fn knows(&self, entry: EntryId) -> bool {
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
        self.batches.clear();
        self.whole_batch = None;
        self.wholes = [None, None];
        if let Some(old) = old {
            self.members -= 1;
            self.sum = self.sum.wrapping_sub(old.fingerprint());
            self.retire(entry, old);
        }
        if let Some(new) = new {
            self.members += 1;
            self.sum = self.sum.wrapping_add(new.fingerprint());
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
            pasts.or_insert_with(|| Vec::with_capacity(1)).push(Past {
                from,
                to: self.head,
                resource: Arc::clone(old),
            });
            self.past_count += 1;
        }
    }

    /// A stream stands at this position from now on.
    pub(super) fn hold(&mut self, position: Seq) {
        *self.positions.entry(position).or_default() += 1;
    }

    fn leave(&mut self, position: Seq) {
        if let Some(count) = self.positions.get_mut(&position) {
            *count -= 1;
            if *count == 0 {
                self.positions.remove(&position);
            }
        }
    }

    /// A stream has left this position. Returns the names that nothing in the
    /// view speaks of any more.
    pub(super) fn release(&mut self, position: Seq) -> Vec<EntryId> {
        self.leave(position);
        let behind = self
            .positions
            .first_key_value()
            .is_some_and(|(first, _)| *first < self.head);
        if self.past_count > self.sweep_at || (self.past_count > 0 && !behind) {
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
        self.past_count = self.history.values().map(Vec::len).sum();
        self.sweep_at = 2 * self.past_count + 64;
        forgotten
    }

    /// Drops the last word on a name that is gone and that nobody holds.
    pub(super) fn forget(&mut self, entry: EntryId) {
        self.forgot = self.head;
        self.log.forget(entry);
    }

    /// What a stream at `position` holds under a name; `current` is what the
    /// view sees there now.
    pub(super) fn held_at(
        &self,
        entry: EntryId,
        position: Seq,
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
    pub(super) fn since(&self, position: Seq) -> impl Iterator<Item = (Seq, EntryId)> + '_ {
        self.log.since(position)
    }

    /// Forgets what was kept for others and was of no use for a while.
    pub(super) fn trim(&mut self) {
        if !std::mem::take(&mut self.used) {
            self.whole_batch = None;
            self.wholes = [None, None];
        }
    }

    /// Whether the log forgot a name that is gone behind `position`: news since
    /// then do not speak of it.
    pub(super) fn forgot_since(&self, position: Seq) -> bool {
        self.forgot > position
    }

    /// A step that another stream makes too, if one does.
    pub(super) fn shared_batch(&mut self, from: Seq) -> Option<Arc<Batch>> {
        self.used = true;
        self.batches.get(&from)?.upgrade()
    }

    /// Lets other streams share a step.
    pub(super) fn share_batch(&mut self, batch: &Arc<Batch>) {
        if batch.from == 0 {
            self.whole_batch = Some(Arc::clone(batch));
        }
        self.batches.insert(batch.from, Arc::downgrade(batch));
    }

    /// The members as a whole set, if it was made.
    pub(super) fn whole(&mut self, wrap: bool) -> Option<Arc<SharedList>> {
        self.used = true;
        self.wholes[usize::from(wrap)].clone()
    }

    /// Keeps a whole set for others.
    pub(super) fn keep_whole(&mut self, wrap: bool, whole: &Arc<SharedList>) {
        self.wholes[usize::from(wrap)] = Some(Arc::clone(whole));
    }

    /// The positions that streams hold, for checks.
    pub(super) fn positions(&self) -> impl Iterator<Item = (Seq, usize)> + '_ {
        self.positions.iter().map(|(seq, count)| (*seq, *count))
    }

    /// How many earlier versions are kept.
    pub(super) fn retired(&self) -> usize {
        self.past_count
    }

    /// How many items the log keeps.
    pub(super) fn items(&self) -> usize {
        self.log.items()
    }
}
