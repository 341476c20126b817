//! What the tasks and the handles of one client share.
//!
//! The machine of the engine is behind one lock. Messages are carried, and the
//! bodies of a response decoded and judged, without it. The lock is held while
//! the bodies of a response are compared with those that are cached, while the
//! machine decides, and while the news of a change are delivered: whoever
//! changes the machine delivers them before the lock is free again, so all
//! watches of a client hear of changes in one order.
//!
//! News carry decoded messages, and those that the judgement made are cached by
//! then, each under its resource. [`ClientState::erase`] decodes a body under
//! the lock if the resource has none: one of the bootstrap, which is never
//! judged, when it is watched first; and a variant from a server without
//! locators, for the sink copies it without its constraints, and the copy is
//! another resource. Either is cached then, unless it is rejected.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hashbrown::HashMap;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use trunkline_core::Moment;
use trunkline_core::client::{self as machine, ServerId, WatchId};
use trunkline_core::tree::NodeId;

use super::judge::Judge;
use super::rejections::Rejections;
use super::state::{ErasedState, ErasedValue};
use super::tree::{Mailbox, News};
use super::values::Values;

/// What the tasks and the handles of one client share.
pub(super) struct Shared {
    state: Mutex<ClientState>,
    start: Instant,
    /// The driver has something to do: connections, deadlines.
    pub(super) driver: Notify,
    /// Something has changed.
    pub(super) progress: watch::Sender<()>,
    pub(super) judge: Judge,
}

/// The machine, and what the shell keeps beside it.
pub(super) struct ClientState {
    pub(super) machine: machine::Client,
    pub(super) values: Values,
    pub(super) rejections: Rejections,
    pub(super) cells: HashMap<WatchId, Cell>,
    /// Woken when a request may be due.
    pub(super) wakers: HashMap<ServerId, Arc<Notify>>,
    /// How much news there was: the order of all news of the client.
    order: u64,
}

/// Where the news of a watch goes.
pub(super) enum Cell {
    /// The newest state of one name.
    One(watch::Sender<ErasedState>),
    /// That names have changed, which are taken by their reader.
    Many(Arc<Notify>),
    /// The newest state of a node of a tree.
    Node(NodeId, Arc<Mailbox>),
    /// That names have changed, for a node of a tree that is a collection.
    Collection(NodeId, Arc<Mailbox>),
}

impl Shared {
    /// Puts the lock around a machine without sources, watches and tasks.
    pub(super) fn new(machine: machine::Client, judge: Judge) -> Self {
        Self {
            state: Mutex::new(ClientState {
                machine,
                values: Values::default(),
                rejections: Rejections::default(),
                cells: HashMap::new(),
                wakers: HashMap::new(),
                order: 0,
            }),
            start: Instant::now(),
            driver: Notify::new(),
            progress: watch::Sender::new(()),
            judge,
        }
    }

    /// Returns the time since the client was made, as the engine counts it.
    pub(super) fn now(&self) -> Moment {
        Moment::new(self.start.elapsed())
    }

    /// Returns the instant at which [`Shared::now`] is, or was, `moment`.
    pub(super) fn instant(&self, moment: Moment) -> Instant {
        self.start + moment.since_start()
    }

    /// Locks the machine. Ignores poison: a panic under the lock is a fault of
    /// the engine; what the lock guards is checked before it is changed, and
    /// others go on.
    fn lock(&self) -> MutexGuard<'_, ClientState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the machine, delivers the news to watches, notifies `progress`,
    /// and wakes the driver and all streams, which may have requests to send.
    ///
    /// [`Self::change_and_wake_others`], [`Self::change_and_wake_driver`] and
    /// [`Self::change_without_waking`] do the same, and wake fewer.
    pub(super) fn change<R>(&self, change: impl FnOnce(&mut ClientState, Moment) -> R) -> R {
        let result = self.change_without_waking(change);
        self.wake_streams();
        self.driver.notify_one();
        result
    }

    /// Changes the machine, delivers the news, and wakes the driver and all
    /// streams but that to `own_id`. The caller is that stream, and polls for
    /// its own requests next.
    pub(super) fn change_and_wake_others<R>(
        &self,
        own_id: ServerId,
        change: impl FnOnce(&mut ClientState, Moment) -> R,
    ) -> R {
        let result = self.change_and_wake_driver(change);
        let state = self.lock();
        let other_wakers = state.wakers.iter().filter(|(id, _)| **id != own_id);
        other_wakers.for_each(|(_, waker)| waker.notify_one());
        result
    }

    /// Changes the machine, delivers the news, and wakes the driver, but no
    /// stream: the caller is a running stream that takes its next request, or
    /// hands over a response that is still to be judged.
    pub(super) fn change_and_wake_driver<R>(
        &self,
        change: impl FnOnce(&mut ClientState, Moment) -> R,
    ) -> R {
        let result = self.change_without_waking(change);
        self.driver.notify_one();
        result
    }

    /// Changes the machine, delivers the news, and notifies `progress`, but
    /// wakes neither the driver nor a stream. It is right where neither has
    /// anything new to do, as after a watch was added, and on the task of the
    /// driver itself, which polls for actions next.
    pub(super) fn change_without_waking<R>(
        &self,
        change: impl FnOnce(&mut ClientState, Moment) -> R,
    ) -> R {
        let mut state = self.lock();
        let result = change(&mut state, self.now());
        state.deliver(&self.judge);
        drop(state);
        self.progress.send_replace(());
        result
    }

    /// Wakes all streams, polls and files: a request may be due.
    pub(super) fn wake_streams(&self) {
        let state = self.lock();
        state.wakers.values().for_each(|waker| waker.notify_one());
    }

    /// Reads the machine, or changes what no watch is told of: nothing is
    /// delivered, and nobody is woken.
    pub(super) fn read<R>(&self, read: impl FnOnce(&mut ClientState, Moment) -> R) -> R {
        let mut state = self.lock();
        let now = self.now();
        read(&mut state, now)
    }
}

impl ClientState {
    /// Passes the news of all watches on to their cells, in the order in which
    /// they came.
    fn deliver(&mut self, judge: &Judge) {
        while let Some(id) = self.machine.poll_watch() {
            self.order += 1;
            match self.cells.get(&id) {
                Some(Cell::One(_) | Cell::Node(..)) => self.deliver_state(id, judge),
                Some(Cell::Many(notify)) => notify.notify_one(),
                Some(Cell::Collection(node, mailbox)) => mailbox.put(*node, News::Names),
                // A watch begins and ends together with its cell.
                None => {}
            }
        }
    }

    /// Passes the newest state of a watch of one name on to its cell. Does
    /// nothing if the watch has ended.
    fn deliver_state(&mut self, id: WatchId, judge: &Judge) {
        let Some(subject) = self.machine.watched(id) else {
            return;
        };
        let type_url = subject.type_url.clone();
        // The machine has the state of every watch whose subject it has.
        let state = self.machine.state(id).cloned().unwrap_or_default();
        let state = self.erase(&type_url, state, judge);
        match self.cells.get(&id) {
            Some(Cell::One(sender)) => {
                sender.send_replace(state);
            }
            Some(Cell::Node(node, mailbox)) => mailbox.put(*node, News::State(state)),
            Some(Cell::Many(_) | Cell::Collection(..)) | None => {}
        }
    }

    /// Joins a state of the machine with the decoded message of its resource.
    /// If no message is cached, it decodes the body, under the lock that the
    /// caller holds, and caches the message; the head of the file says when. A
    /// body that is rejected gives a state without a value.
    pub(super) fn erase(
        &mut self,
        type_url: &trunkline_core::resource::TypeUrl,
        state: machine::State,
        judge: &Judge,
    ) -> ErasedState {
        let origin = state.origin;
        let value = state.value.zip(origin).and_then(|(resource, origin)| {
            let cached_value = self.values.get(&resource);
            let value: ErasedValue = match cached_value {
                Some(value) => value,
                None => {
                    let message = judge.decode(type_url, &resource).ok()?;
                    let value = Arc::clone(&message.value);
                    self.values.insert(type_url, &resource, message, None);
                    value
                }
            };
            Some((resource, value, origin))
        });
        ErasedState {
            value,
            error: state.error,
            order: self.order,
        }
    }
}
