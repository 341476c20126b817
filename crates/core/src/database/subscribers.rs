//! Streams and their subscribers: who is notified of a change.
//!
//! A stream has one subscriber for each type that it subscribes to. A change
//! marks a name dirty at its subscribers, and wakes the streams of a view; the
//! stream evaluates what to send when its transport can take it.

use std::collections::{BTreeMap, btree_map};

use hashbrown::HashSet;

use super::slab::Slab;
use super::view::{Position, ViewId};
use super::{Database, EntryId, TypeId, name_weight};
use crate::name::{Name, Selector};
use crate::params::ParamsId;

/// One stream, or one local watcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(u32);

impl StreamId {
    /// Returns the index of the stream among the open streams: small, and
    /// reused after the stream has ended.
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// One type on one stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SubscriberId(pub(super) u32);

impl SubscriberId {
    pub(super) const FIRST: Self = Self(0);
    pub(super) const LAST: Self = Self(u32::MAX);
}

/// One cursor of a subscriber.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CursorId {
    pub(super) subscriber: SubscriberId,
    pub(super) slot: u32,
}

/// A name, a glob or a wildcard got its first subscriber, or lost its last. A
/// relay or a client then subscribes or unsubscribes at its own source, and an
/// on-demand server fetches the resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DemandChange {
    /// The first subscriber has come.
    Started,
    /// The last subscriber has left.
    Ended,
}

/// The state of one subscriber.
#[derive(Debug)]
struct Subscriber {
    stream: StreamId,
    type_id: TypeId,
    params: ParamsId,
    /// Names that changed since the stream evaluated them; a subset of its
    /// subscriptions.
    dirty: HashSet<(EntryId, ParamsId)>,
    cursors: Vec<Option<CursorSlot>>,
}

/// One cursor: its view, and the positions that are pinned because the cursor
/// may return to them.
#[derive(Debug)]
pub(super) struct CursorSlot {
    pub(super) view: ViewId,
    pub(super) pins: Vec<Position>,
}

/// The state of one stream.
#[derive(Debug, Default)]
struct Stream {
    /// Whether the stream is in `SubscriberRegistry::woken`.
    is_woken: bool,
    /// Whether the stream has ended. It keeps its slot until that list is
    /// taken.
    is_ended: bool,
}

/// All streams and subscribers.
#[derive(Debug, Default)]
pub(super) struct SubscriberRegistry {
    streams: Slab<Stream>,
    list: Slab<Subscriber>,
    /// Streams with something to evaluate, each at most once.
    woken: Vec<StreamId>,
    /// Demand changes that were not taken yet; `None` if nobody watches.
    /// Opposites cancel out, which bounds the size by the names subscribed to
    /// now or before.
    demand_changes: Option<BTreeMap<(TypeId, Selector), DemandChange>>,
}

impl SubscriberRegistry {
    /// Adds the stream of a subscriber to those that have something to
    /// evaluate, unless it is one of them. A subscriber that was removed wakes
    /// nobody.
    pub(super) fn wake(&mut self, id: SubscriberId) {
        if let Some(subscriber) = self.list.get(id.0)
            && let Some(stream) = self.streams.get_mut(subscriber.stream.0)
            && !stream.is_woken
        {
            stream.is_woken = true;
            self.woken.push(subscriber.stream);
        }
    }

    /// Records that a selector got its first subscriber or lost its last, if
    /// somebody watches. A change and its opposite leave nothing to record.
    pub(super) fn record_demand(
        &mut self,
        type_id: TypeId,
        selector: Selector,
        change: DemandChange,
    ) {
        let Some(changes) = &mut self.demand_changes else {
            return;
        };
        match changes.entry((type_id, selector)) {
            btree_map::Entry::Vacant(vacant) => {
                vacant.insert(change);
            }
            // Demand starts and ends by turns, so two changes are opposites.
            btree_map::Entry::Occupied(opposite) => {
                opposite.remove();
            }
        }
    }

    /// Marks a name as changed for a subscription, and wakes its stream.
    /// Nothing happens if the subscriber was removed.
    pub(super) fn mark_dirty(&mut self, id: SubscriberId, entry: EntryId, params: ParamsId) {
        if let Some(subscriber) = self.list.get_mut(id.0) {
            subscriber.dirty.insert((entry, params));
        }
        self.wake(id);
    }

    /// Returns the parameters of the cursors of a subscriber.
    pub(super) fn params(&self, id: SubscriberId) -> ParamsId {
        self.get(id).params
    }

    /// Returns the type of a subscriber.
    pub(super) fn type_id(&self, id: SubscriberId) -> TypeId {
        self.get(id).type_id
    }

    /// Returns a subscriber, which has not been removed.
    fn get(&self, id: SubscriberId) -> &Subscriber {
        #[expect(
            clippy::expect_used,
            reason = "a stream uses its subscribers until it removes them"
        )]
        self.list.get(id.0).expect("the subscriber is kept")
    }

    /// Returns a subscriber, which has not been removed, to be changed.
    fn get_mut(&mut self, id: SubscriberId) -> &mut Subscriber {
        #[expect(
            clippy::expect_used,
            reason = "a stream uses its subscribers until it removes them"
        )]
        self.list.get_mut(id.0).expect("the subscriber is kept")
    }

    /// Returns a cursor, which is open.
    pub(super) fn cursor(&self, id: CursorId) -> &CursorSlot {
        #[expect(
            clippy::expect_used,
            reason = "a stream uses a cursor until it closes it"
        )]
        self.get(id.subscriber).cursors[id.slot as usize]
            .as_ref()
            .expect("the cursor is open")
    }

    /// Returns a cursor, which is open, to be changed.
    pub(super) fn cursor_mut(&mut self, id: CursorId) -> &mut CursorSlot {
        #[expect(
            clippy::expect_used,
            reason = "a stream uses a cursor until it closes it"
        )]
        self.get_mut(id.subscriber).cursors[id.slot as usize]
            .as_mut()
            .expect("the cursor is open")
    }

    /// Adds a cursor to a subscriber, in its first free slot.
    pub(super) fn add_cursor(&mut self, subscriber: SubscriberId, cursor: CursorSlot) -> CursorId {
        let cursors = &mut self.get_mut(subscriber).cursors;
        let free_slot = cursors.iter().position(Option::is_none);
        let slot = free_slot.unwrap_or_else(|| {
            cursors.push(None);
            cursors.len() - 1
        });
        cursors[slot] = Some(cursor);
        CursorId {
            subscriber,
            slot: slot as u32,
        }
    }

    /// Removes a cursor, whose slot is free then; `None` if it is not open.
    pub(super) fn remove_cursor(&mut self, id: CursorId) -> Option<CursorSlot> {
        self.get_mut(id.subscriber).cursors[id.slot as usize].take()
    }

    /// Moves the cursors that a subscriber has in one view to another, after
    /// the view was split. Cursors in other views stay.
    pub(super) fn move_cursors(&mut self, id: SubscriberId, old_view: ViewId, new_view: ViewId) {
        for cursor in self.get_mut(id).cursors.iter_mut().flatten() {
            if cursor.view == old_view {
                cursor.view = new_view;
            }
        }
    }

    /// Returns the pinned positions of a subscriber's cursors in a view.
    pub(super) fn pins(
        &self,
        id: SubscriberId,
        view: ViewId,
    ) -> impl Iterator<Item = Position> + '_ {
        let cursors = self.get(id).cursors.iter().flatten();
        let view_cursors = cursors.filter(move |cursor| cursor.view == view);
        view_cursors.flat_map(|cursor| cursor.pins.iter().copied())
    }

    /// Returns every cursor, with its subscriber and the subscriber's type.
    pub(super) fn all_cursors(&self) -> impl Iterator<Item = (SubscriberId, TypeId, &CursorSlot)> {
        self.list.iter().flat_map(|(id, subscriber)| {
            let cursors = subscriber.cursors.iter().flatten();
            cursors.map(move |cursor| (SubscriberId(id), subscriber.type_id, cursor))
        })
    }
}

impl Database {
    /// Opens a stream, which has no subscribers yet.
    pub fn open_stream(&mut self) -> StreamId {
        StreamId(self.subscribers.streams.insert(Stream::default()))
    }

    /// Closes a stream, whose subscribers were removed before. The slot of a
    /// woken stream is freed by [`Self::take_woken_streams`].
    pub(crate) fn close_stream(&mut self, id: StreamId) {
        let streams = &mut self.subscribers.streams;
        match streams.get_mut(id.0) {
            // In a slot that is reused, another stream would count as woken.
            Some(stream) if stream.is_woken => stream.is_ended = true,
            _ => {
                streams.remove(id.0);
            }
        }
    }

    /// Takes the streams that have something to evaluate, once each. Streams
    /// that ended meanwhile are left out, and their slots are freed.
    pub fn take_woken_streams(&mut self) -> Vec<StreamId> {
        let mut woken = std::mem::take(&mut self.subscribers.woken);
        let streams = &mut self.subscribers.streams;
        woken.retain(|id| {
            let open_stream = streams.get_mut(id.0).filter(|stream| !stream.is_ended);
            if let Some(stream) = open_stream {
                stream.is_woken = false;
                return true;
            }
            streams.remove(id.0);
            false
        });
        woken
    }

    /// Starts to record demand for [`Self::take_demand_changes`]. A cache
    /// records it from the beginning.
    pub fn watch_demand(&mut self) {
        self.subscribers.demand_changes.get_or_insert_default();
    }

    /// Takes the changes of demand since the last call; none without
    /// [`Self::watch_demand`].
    pub fn take_demand_changes(
        &mut self,
    ) -> impl Iterator<Item = (TypeId, Selector, DemandChange)> + use<> {
        let recorded_changes = self.subscribers.demand_changes.as_mut();
        // Most requests are ACKs, which change no demand.
        let some_changes = recorded_changes.filter(|changes| !changes.is_empty());
        let taken_changes = some_changes.map(std::mem::take).into_iter().flatten();
        taken_changes.map(|((type_id, selector), change)| (type_id, selector, change))
    }

    /// Adds a subscriber for one type of a stream. It has no subscriptions yet;
    /// `params` are those of the cursors that it opens.
    pub fn add_subscriber(
        &mut self,
        stream: StreamId,
        type_id: TypeId,
        params: ParamsId,
    ) -> SubscriberId {
        self.table_mut(type_id).subscriber_count += 1;
        SubscriberId(self.subscribers.list.insert(Subscriber {
            stream,
            type_id,
            params,
            dirty: HashSet::new(),
            cursors: Vec::new(),
        }))
    }

    /// Sets the parameters for the cursors that a subscriber opens from now on.
    pub(crate) fn set_params(&mut self, id: SubscriberId, params: ParamsId) {
        self.subscribers.get_mut(id).params = params;
    }

    /// Removes a subscriber. Its subscriptions and cursors have to end before.
    /// With its last one, a type that only subscribers brought is idle.
    pub fn remove_subscriber(&mut self, id: SubscriberId) {
        if let Some(subscriber) = self.subscribers.list.remove(id.0) {
            self.table_mut(subscriber.type_id).subscriber_count -= 1;
            self.note_idle_type(subscriber.type_id);
        }
    }

    /// Returns whether changes of demand of a type are not taken yet.
    pub(super) fn has_demand_changes(&self, type_id: TypeId) -> bool {
        let changes = self.subscribers.demand_changes.as_ref();
        // Changes are sorted by type, and the wildcard is the first selector.
        let first_change =
            changes.and_then(|changes| changes.range((type_id, Selector::Wildcard)..).next());
        first_change.is_some_and(|((changed_type, _), _)| *changed_type == type_id)
    }

    /// Subscribes to one name, whether it exists or not (S34). With its first
    /// subscriber, demand for the name starts. Returns its entry, which lives
    /// until the subscription ends.
    pub fn subscribe(&mut self, id: SubscriberId, name: &Name, params: ParamsId) -> EntryId {
        let type_id = self.subscribers.type_id(id);
        let table = self.table_mut(type_id);
        let entry_id = table.intern(name);
        let entry = table.entry_mut(entry_id);
        let is_first = entry.subscribers.is_empty();
        let is_new = entry.subscribers.insert((id, params));
        let is_missing = entry.content.resources().is_empty();

        if is_first {
            if let Some(hosts) = &mut table.hosts {
                hosts.add_requested(name.as_str(), entry_id);
            }
            let selector = Selector::Name(name.clone());
            self.subscribers
                .record_demand(type_id, selector, DemandChange::Started);
        }
        if is_new && is_missing {
            self.missing_weight += name_weight(name);
        }
        entry_id
    }

    /// Ends a subscription to one name. With its last subscriber, demand for
    /// the name ends; with its last use, its entry is freed.
    pub fn unsubscribe(&mut self, id: SubscriberId, entry_id: EntryId, params: ParamsId) {
        let subscriber = self.subscribers.get_mut(id);
        subscriber.dirty.remove(&(entry_id, params));
        let type_id = subscriber.type_id;

        let table = self.table_mut(type_id);
        let entry = table.entry_mut(entry_id);
        let was_subscribed = entry.subscribers.remove((id, params));
        let is_missing = entry.content.resources().is_empty();
        let weight = name_weight(&entry.name);
        let name = entry.subscribers.is_empty().then(|| entry.name.clone());
        if was_subscribed && is_missing {
            self.missing_weight -= weight;
        }

        let table = self.table_mut(type_id);
        if let Some(name) = name {
            if let Some(hosts) = &mut table.hosts {
                hosts.remove_requested(name.as_str(), entry_id);
            }
            table.remove_unused(entry_id);
            self.subscribers
                .record_demand(type_id, Selector::Name(name), DemandChange::Ended);
        }
    }

    /// Takes at most `limit` dirty names of a subscriber, in no order. The
    /// others stay dirty.
    pub fn take_dirty(&mut self, id: SubscriberId, limit: usize) -> Vec<(EntryId, ParamsId)> {
        let dirty = &mut self.subscribers.get_mut(id).dirty;
        if dirty.is_empty() {
            return Vec::new();
        }
        if dirty.len() <= limit {
            return std::mem::take(dirty).into_iter().collect();
        }
        dirty.extract_if(|_| true).take(limit).collect()
    }

    /// Returns all dirty names of a subscriber, which stay dirty.
    pub(crate) fn dirty(&self, id: SubscriberId) -> impl Iterator<Item = (EntryId, ParamsId)> + '_ {
        self.subscribers.get(id).dirty.iter().copied()
    }
}

#[cfg(test)]
mod tests;
