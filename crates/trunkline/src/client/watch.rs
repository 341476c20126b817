//! Watches: streams that always yield the newest state.

use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::sync::{Notify, watch};
use tokio_stream::Stream;
use trunkline_core::client::WatchId;
use trunkline_core::name::Name;
use trunkline_core::resource::TypeUrl;

use super::handle::Running;
use super::state::{ErasedState, State};
use super::subscription::Lease;

/// A watch of one resource.
///
/// Whatever a reader does, it never makes others wait, and never misses the
/// last state: states that it did not look at in time are skipped. A state that
/// equals the one before is not told again (C24). Clones read on their own.
/// When the last clone is dropped, the watch ends; a watch that was made by a
/// [`Subscription`](super::Subscription) keeps that alive.
pub struct Watch<T> {
    receiver: watch::Receiver<ErasedState>,
    inner: Arc<Watching>,
    value_type: PhantomData<fn() -> T>,
}

/// One watch of the machine, which ends with its last reader.
pub(super) struct Watching {
    pub(super) id: WatchId,
    pub(super) client: Arc<Running>,
    /// The subscription that the watch keeps alive.
    pub(super) _lease: Option<Arc<Lease>>,
}

impl Drop for Watching {
    /// Ends the watch in the machine.
    fn drop(&mut self) {
        self.client.shared.change(|state, _| {
            state.machine.unwatch(self.id);
            state.cells.remove(&self.id);
        });
    }
}

impl<T: Send + Sync + 'static> Watch<T> {
    /// Makes the reader of a watch of one name.
    pub(super) fn new(receiver: watch::Receiver<ErasedState>, inner: Arc<Watching>) -> Self {
        Self {
            receiver,
            inner,
            value_type: PhantomData,
        }
    }

    /// Returns the newest state. The next call of [`Watch::changed`] waits for
    /// another.
    pub fn state(&mut self) -> State<T> {
        self.receiver.borrow_and_update().typed()
    }

    /// Waits until the state differs from the one that was read last, and
    /// returns it. The first call returns at once unless the state is pending.
    /// Can be cancelled without loss.
    pub async fn changed(&mut self) -> State<T> {
        loop {
            if self.receiver.changed().await.is_err() {
                // The sender lives as long as this watch.
                std::future::pending::<()>().await;
            }
            let state = self.state();
            if !state.is_pending() {
                return state;
            }
        }
    }

    /// Waits until there is a resource, or a definite answer that there is
    /// none. An error that may pass, such as a server out of reach, is waited
    /// out.
    pub async fn ready(&mut self) -> State<T> {
        let mut state = self.state();
        loop {
            let is_answer = match &state {
                State::Pending => false,
                State::Failed(error) => error.cause.is_definite(),
                State::Ready(_) | State::Stale(..) => true,
            };
            if is_answer {
                return state;
            }
            state = self.changed().await;
        }
    }

    /// Returns the place of the newest state in the order of all news of the
    /// client: of two watches, the one with the greater number changed later.
    #[must_use]
    pub fn order(&self) -> u64 {
        self.receiver.borrow().order
    }

    /// Returns the states as a stream, which does not end.
    pub fn into_stream(self) -> impl Stream<Item = State<T>> + Send + Unpin {
        let states = tokio_stream::wrappers::WatchStream::from_changes(self.receiver);
        States {
            states,
            _watch: self.inner,
            value_type: PhantomData,
        }
    }
}

/// A watch as a stream.
struct States<T> {
    states: tokio_stream::wrappers::WatchStream<ErasedState>,
    /// The watch ends with the stream.
    _watch: Arc<Watching>,
    value_type: PhantomData<fn() -> T>,
}

impl<T: Send + Sync + 'static> Stream for States<T> {
    type Item = State<T>;

    /// Passes over states that are pending.
    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<State<T>>> {
        loop {
            let poll = Pin::new(&mut self.states).poll_next(cx);
            let state = std::task::ready!(poll).map(|state| state.typed());
            if state.as_ref().is_none_or(|state| !state.is_pending()) {
                return Poll::Ready(state);
            }
        }
    }
}

impl<T> Clone for Watch<T> {
    fn clone(&self) -> Self {
        Self {
            receiver: self.receiver.clone(),
            inner: Arc::clone(&self.inner),
            value_type: PhantomData,
        }
    }
}

impl<T> std::fmt::Debug for Watch<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watch")
            .field("id", &self.inner.id)
            .finish_non_exhaustive()
    }
}

/// A watch of all resources that a glob or the wildcard covers.
///
/// Each call of [`WatchMany::changed`] returns the names that have changed
/// since the last one, with their newest states. A slow reader skips states,
/// and never a name.
pub struct WatchMany<T> {
    news: Arc<Notify>,
    type_url: TypeUrl,
    inner: Arc<Watching>,
    value_type: PhantomData<fn() -> T>,
}

impl<T: Send + Sync + 'static> WatchMany<T> {
    /// Makes the reader of a watch of many names.
    pub(super) fn new(news: Arc<Notify>, type_url: TypeUrl, inner: Arc<Watching>) -> Self {
        Self {
            news,
            type_url,
            inner,
            value_type: PhantomData,
        }
    }

    /// Waits for changes, and returns them by name. A removed resource is
    /// [`State::Failed`]. Can be cancelled without loss.
    pub async fn changed(&mut self) -> Vec<(Name, State<T>)> {
        loop {
            let changes = self.take();
            if !changes.is_empty() {
                return changes;
            }
            self.news.notified().await;
        }
    }

    /// Takes the changes since the last call, without waiting.
    pub fn take(&mut self) -> Vec<(Name, State<T>)> {
        let shared = &self.inner.client.shared;
        let erased_states = shared.read(|state, _| {
            let changes = state.machine.take_changes(self.inner.id).into_iter();
            let erased = changes.map(|(name, change)| {
                let erased = state.erase(&self.type_url, change, &shared.judge);
                (name, erased)
            });
            erased.collect::<Vec<_>>()
        });
        let changes = erased_states
            .into_iter()
            .map(|(name, state)| (name, state.typed()));
        changes.collect()
    }
}

impl<T> std::fmt::Debug for WatchMany<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut debug = f.debug_struct("WatchMany");
        debug.field("type", &self.type_url).finish_non_exhaustive()
    }
}
