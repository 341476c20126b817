//! What the tasks and the handles of one client share.
//!
//! The machine of the engine is behind one lock, which is held for decisions
//! only: bodies are decoded, and messages carried, without it. Whoever has
//! changed the machine tells watches in the same turn, so all watches of a
//! client hear of changes in one order.

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
    started: Instant,
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
    /// Makes the state around a machine.
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
            started: Instant::now(),
            driver: Notify::new(),
            progress: watch::Sender::new(()),
            judge,
        }
    }

    /// The time since the client was made, as the engine counts it.
    pub(super) fn now(&self) -> Moment {
        Moment::new(self.started.elapsed())
    }

    /// The instant of a moment.
    pub(super) fn instant(&self, moment: Moment) -> Instant {
        self.started + moment.since_start()
    }

    fn lock(&self) -> MutexGuard<'_, ClientState> {
        // A panic while it was held is a fault of the engine; what it holds is
        // checked before it is changed, and others go on.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the machine, tells watches of it, and wakes all tasks, which may
    /// have something to do.
    pub(super) fn change<R>(&self, change: impl FnOnce(&mut ClientState, Moment) -> R) -> R {
        let result = self.change_and_deliver(change);
        self.wake_streams();
        self.driver.notify_one();
        result
    }

    /// Changes the machine for a stream that is running: tells watches, and
    /// wakes the driver and all streams but its own, which may have requests to
    /// send.
    pub(super) fn change_and_wake_others<R>(
        &self,
        own_id: ServerId,
        change: impl FnOnce(&mut ClientState, Moment) -> R,
    ) -> R {
        let result = self.change_and_wake_driver(change);
        let state = self.lock();
        let others = state.wakers.iter().filter(|(id, _)| **id != own_id);
        others.for_each(|(_, waker)| waker.notify_one());
        result
    }

    /// Changes the machine for a stream that is running: tells watches, wakes
    /// the driver, and wakes no stream.
    pub(super) fn change_and_wake_driver<R>(
        &self,
        change: impl FnOnce(&mut ClientState, Moment) -> R,
    ) -> R {
        let result = self.change_and_deliver(change);
        self.driver.notify_one();
        result
    }

    /// Changes the machine and tells watches, without waking the driver or a
    /// stream.
    pub(super) fn change_and_deliver<R>(
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

    /// Wakes all streams: requests may be due.
    pub(super) fn wake_streams(&self) {
        let state = self.lock();
        state.wakers.values().for_each(|waker| waker.notify_one());
    }

    /// Reads the machine, or takes from it what nobody else waits for.
    pub(super) fn read<R>(&self, read: impl FnOnce(&mut ClientState, Moment) -> R) -> R {
        let mut state = self.lock();
        let now = self.now();
        read(&mut state, now)
    }
}

impl ClientState {
    /// Passes the news of all watches on to their cells, in order.
    fn deliver(&mut self, judge: &Judge) {
        while let Some(id) = self.machine.poll_watch() {
            self.order += 1;
            match self.cells.get(&id) {
                Some(Cell::One(_) | Cell::Node(..)) => self.deliver_state(id, judge),
                Some(Cell::Many(notify)) => notify.notify_one(),
                Some(Cell::Collection(node, mailbox)) => mailbox.put(*node, News::Names),
                None => {}
            }
        }
    }

    /// Passes the state of a watch of one name on to its cell. Does nothing if
    /// the watch has been dropped.
    fn deliver_state(&mut self, id: WatchId, judge: &Judge) {
        let Some(watched) = self.machine.watched(id) else {
            return;
        };
        let type_url = watched.type_url.clone();
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

    /// Joins a state of the machine with the decoded message of its resource,
    /// and decodes the body if no message is cached. A body that cannot be
    /// decoded gives a state without a value.
    pub(super) fn erase(
        &mut self,
        type_url: &trunkline_core::resource::TypeUrl,
        state: machine::State,
        judge: &Judge,
    ) -> ErasedState {
        let origin = state.origin;
        let value = state.value.zip(origin).and_then(|(resource, origin)| {
            let cached = self.values.get(&resource);
            let value: ErasedValue = match cached {
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
