//! Streams and their subscriptions: who is told when something changes.
//!
//! A stream has one subscriber for each type that it asks for. A change marks
//! names at the subscribers of a name, and wakes the streams of a view; what a
//! stream is then told is worked out when it can be told.

use std::collections::{BTreeMap, btree_map};

use hashbrown::HashSet;

use super::view::{Seq, ViewId};
use super::{Database, EntryId, TypeId};
use crate::name::{Ask, Name};
use crate::params::ParamsId;

/// One stream, or one local watcher of everything it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(u32);

/// One type on one stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SubscriberId(pub(super) u32);

/// One view that a subscriber follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FollowId {
    pub(super) subscriber: SubscriberId,
    pub(super) slot: u32,
}

/// A name, a glob or a whole type got its first subscriber, or lost its last:
/// what a relay or a client has to ask its own source for, and what an
/// on-demand server has to fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    /// Somebody asks, and nobody did before.
    First,
    /// Nobody asks any more.
    Last,
}

#[derive(Debug)]
struct Subscriber {
    stream: StreamId,
    type_id: TypeId,
    params: ParamsId,
    /// Names that changed since the stream looked. At most what it asks for.
    dirty: HashSet<(EntryId, ParamsId)>,
    following: Vec<Option<Following>>,
}

/// One view that a subscriber follows, and the positions in it that the
/// subscriber may have to come back to.
#[derive(Debug)]
pub(super) struct Following {
    pub(super) view: ViewId,
    pub(super) held: Vec<Seq>,
}

#[derive(Debug, Default)]
struct Stream {
    woken: bool,
}

/// See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct Subscribers {
    streams: Vec<Option<Stream>>,
    list: Vec<Option<Subscriber>>,
    free: Vec<SubscriberId>,
    /// Streams that have something to look at; each at most once.
    woken: Vec<StreamId>,
    /// What has not been taken yet. Opposites cancel out, so this is never more
    /// than what is asked for and what was.
    edges: BTreeMap<(TypeId, Ask), Edge>,
}

impl Subscribers {
    pub(super) fn wake(&mut self, id: SubscriberId) {
        if let Some(subscriber) = &self.list[id.0 as usize] {
            let stream = subscriber.stream;
            if let Some(state) = &mut self.streams[stream.0 as usize]
                && !state.woken
            {
                state.woken = true;
                self.woken.push(stream);
            }
        }
    }

    pub(super) fn edge(&mut self, type_id: TypeId, ask: Ask, edge: Edge) {
        match self.edges.entry((type_id, ask)) {
            btree_map::Entry::Vacant(place) => {
                place.insert(edge);
            }
            btree_map::Entry::Occupied(opposite) => {
                opposite.remove();
            }
        }
    }

    pub(super) fn mark(&mut self, id: SubscriberId, entry: EntryId, params: ParamsId) {
        if let Some(subscriber) = &mut self.list[id.0 as usize] {
            subscriber.dirty.insert((entry, params));
        }
        self.wake(id);
    }

    pub(super) fn params(&self, id: SubscriberId) -> ParamsId {
        self.get(id).params
    }

    pub(super) fn type_id(&self, id: SubscriberId) -> TypeId {
        self.get(id).type_id
    }

    fn get(&self, id: SubscriberId) -> &Subscriber {
        #[expect(
            clippy::expect_used,
            reason = "a stream uses its subscribers until it removes them"
        )]
        self.list[id.0 as usize]
            .as_ref()
            .expect("the subscriber is kept")
    }

    fn get_mut(&mut self, id: SubscriberId) -> &mut Subscriber {
        #[expect(
            clippy::expect_used,
            reason = "a stream uses its subscribers until it removes them"
        )]
        self.list[id.0 as usize]
            .as_mut()
            .expect("the subscriber is kept")
    }

    pub(super) fn following(&self, id: FollowId) -> &Following {
        #[expect(
            clippy::expect_used,
            reason = "a stream follows a view until it leaves it"
        )]
        self.get(id.subscriber).following[id.slot as usize]
            .as_ref()
            .expect("the view is followed")
    }

    pub(super) fn following_mut(&mut self, id: FollowId) -> &mut Following {
        #[expect(
            clippy::expect_used,
            reason = "a stream follows a view until it leaves it"
        )]
        self.get_mut(id.subscriber).following[id.slot as usize]
            .as_mut()
            .expect("the view is followed")
    }

    pub(super) fn add_following(&mut self, subscriber: SubscriberId, new: Following) -> FollowId {
        let following = &mut self.get_mut(subscriber).following;
        let slot = following
            .iter()
            .position(Option::is_none)
            .unwrap_or_else(|| {
                following.push(None);
                following.len() - 1
            });
        following[slot] = Some(new);
        FollowId {
            subscriber,
            slot: slot as u32,
        }
    }

    pub(super) fn remove_following(&mut self, id: FollowId) -> Option<Following> {
        self.get_mut(id.subscriber).following[id.slot as usize].take()
    }

    /// A view was divided: the subscriber now follows another. Returns the
    /// positions that it takes along.
    pub(super) fn move_view(&mut self, id: SubscriberId, from: ViewId, to: ViewId) {
        for following in self.get_mut(id).following.iter_mut().flatten() {
            if following.view == from {
                following.view = to;
            }
        }
    }

    /// The positions that a subscriber holds in a view.
    pub(super) fn positions(
        &self,
        id: SubscriberId,
        view: ViewId,
    ) -> impl Iterator<Item = Seq> + '_ {
        let following = self.get(id).following.iter().flatten();
        following
            .filter(move |f| f.view == view)
            .flat_map(|f| f.held.iter().copied())
    }

    /// Every subscriber there is, with what it follows.
    pub(super) fn all(&self) -> impl Iterator<Item = (SubscriberId, TypeId, &Following)> {
        self.list
            .iter()
            .enumerate()
            .flat_map(|(index, subscriber)| {
                let id = SubscriberId(index as u32);
                subscriber.iter().flat_map(move |s| {
                    s.following
                        .iter()
                        .flatten()
                        .map(move |f| (id, s.type_id, f))
                })
            })
    }
}

impl Database {
    /// A stream begins.
    pub fn open_stream(&mut self) -> StreamId {
        let streams = &mut self.subscribers.streams;
        let index = streams.iter().position(Option::is_none).unwrap_or_else(|| {
            streams.push(None);
            streams.len() - 1
        });
        streams[index] = Some(Stream::default());
        StreamId(index as u32)
    }

    /// A stream has ended. Its subscribers are removed before.
    pub fn close_stream(&mut self, id: StreamId) {
        self.subscribers.streams[id.0 as usize] = None;
        self.subscribers.woken.retain(|other| *other != id);
    }

    /// The streams that have something to look at, once each.
    pub fn take_woken(&mut self) -> Vec<StreamId> {
        let woken = std::mem::take(&mut self.subscribers.woken);
        for id in &woken {
            if let Some(stream) = &mut self.subscribers.streams[id.0 as usize] {
                stream.woken = false;
            }
        }
        woken
    }

    /// The names that got their first or lost their last subscriber.
    pub fn take_edges(&mut self) -> impl Iterator<Item = (TypeId, Ask, Edge)> + use<> {
        let edges = std::mem::take(&mut self.subscribers.edges);
        edges
            .into_iter()
            .map(|((type_id, ask), edge)| (type_id, ask, edge))
    }

    /// A stream begins to ask for a type.
    pub fn add_subscriber(
        &mut self,
        stream: StreamId,
        type_id: TypeId,
        params: ParamsId,
    ) -> SubscriberId {
        let subscribers = &mut self.subscribers;
        let id = subscribers.free.pop().unwrap_or_else(|| {
            subscribers.list.push(None);
            SubscriberId(subscribers.list.len() as u32 - 1)
        });
        subscribers.list[id.0 as usize] = Some(Subscriber {
            stream,
            type_id,
            params,
            dirty: HashSet::new(),
            following: Vec::new(),
        });
        id
    }

    /// A stream asks for a type no longer. Its names and views are left before.
    pub fn remove_subscriber(&mut self, id: SubscriberId) {
        self.subscribers.list[id.0 as usize] = None;
        self.subscribers.free.push(id);
    }

    /// Subscribes to one name, whether it exists or not (S34).
    pub fn subscribe(&mut self, id: SubscriberId, name: &Name, params: ParamsId) -> EntryId {
        let type_id = self.subscribers.type_id(id);
        let table = self.table_mut(type_id);
        let entry = table.intern(name);
        let asked = &mut table.entry_mut(entry).subscribers;
        let first = asked.is_empty();
        asked.insert((id, params));
        if first {
            self.subscribers
                .edge(type_id, Ask::Name(name.clone()), Edge::First);
        }
        entry
    }

    /// Ends a subscription to one name.
    pub fn unsubscribe(&mut self, id: SubscriberId, entry: EntryId, params: ParamsId) {
        let subscriber = self.subscribers.get_mut(id);
        subscriber.dirty.remove(&(entry, params));
        let type_id = subscriber.type_id;
        let table = self.table_mut(type_id);
        let kept = table.entry_mut(entry);
        kept.subscribers.remove((id, params));
        if kept.subscribers.is_empty() {
            let name = kept.name.clone();
            table.tidy(entry);
            self.subscribers.edge(type_id, Ask::Name(name), Edge::Last);
        }
    }

    /// The names that changed since this was last asked.
    pub fn take_dirty(&mut self, id: SubscriberId) -> Vec<(EntryId, ParamsId)> {
        let dirty = std::mem::take(&mut self.subscribers.get_mut(id).dirty);
        dirty.into_iter().collect()
    }

    /// The same without forgetting them.
    pub fn dirty(&self, id: SubscriberId) -> impl Iterator<Item = (EntryId, ParamsId)> + '_ {
        self.subscribers.get(id).dirty.iter().copied()
    }
}
