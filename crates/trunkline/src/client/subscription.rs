//! Subscriptions: what a client asks control planes for.

use std::marker::PhantomData;
use std::sync::Arc;

use trunkline_core::client::{SourceId, Watched};
use trunkline_core::resource::TypeUrl;
use trunkline_core::sink::{self, WatchError};

use super::handle::Running;
use super::watch::{Watch, WatchMany};

/// A subscription at one source. It ends when it and all watches that it made
/// are dropped; the control plane is told with the last one of its kind (C25).
pub struct Subscription<T> {
    lease: Arc<Lease>,
    value_type: PhantomData<fn() -> T>,
}

/// One subscription of the machine.
pub(super) struct Lease {
    pub(super) client: Arc<Running>,
    pub(super) source: SourceId,
    pub(super) type_url: TypeUrl,
    pub(super) subscription: sink::Subscription,
}

impl Drop for Lease {
    /// Unsubscribes at the source.
    fn drop(&mut self) {
        self.client.shared.change(|state, now| {
            let (source, url) = (self.source, &self.type_url);
            state
                .machine
                .unsubscribe(source, url, &self.subscription, now);
        });
    }
}

impl<T: Send + Sync + 'static> Subscription<T> {
    /// Makes a subscription that lasts as long as its lease has owners.
    pub(super) fn new(lease: Lease) -> Self {
        Self {
            lease: Arc::new(lease),
            value_type: PhantomData,
        }
    }

    /// Watches the resource as this source has it.
    #[must_use]
    pub fn watch(&self) -> Watch<T> {
        let lease = Some(Arc::clone(&self.lease));
        self.lease.client.watch_one(self.subject(), lease)
    }

    /// Watches all resources that the subscription covers: those of a wildcard
    /// or a glob.
    #[must_use]
    pub fn watch_many(&self) -> WatchMany<T> {
        let lease = Some(Arc::clone(&self.lease));
        self.lease.client.watch_many(self.subject(), lease)
    }

    /// Waits until the source has answered for all of the subscription: each
    /// name that is covered has a state.
    pub async fn complete(&self) {
        self.wait_for(|is_answered, _| is_answered.then_some(()))
            .await;
    }

    /// Waits as [`complete`](Self::complete) does, but gives up as soon as no
    /// server of the source can be reached.
    ///
    /// # Errors
    /// No server of the source can be reached (C49).
    pub async fn answered(&self) -> Result<(), WatchError> {
        let answer = self.wait_for(|is_answered, error| match is_answered {
            true => Some(Ok(())),
            false => error.cloned().map(Err),
        });
        answer.await
    }

    /// Waits until `check` returns a value. `check` learns whether the source
    /// has answered for all of the subscription, and the error of a source
    /// whose servers cannot be reached.
    async fn wait_for<R>(&self, check: impl Fn(bool, Option<&WatchError>) -> Option<R>) -> R {
        let lease = &self.lease;
        let mut progress = lease.client.shared.progress.subscribe();
        loop {
            let outcome = lease.client.shared.read(|state, _| {
                let source = lease.source;
                let machine = &mut state.machine;
                let is_answered = machine.is_answered(source, &lease.type_url, &lease.subscription);
                check(is_answered, machine.unreachable(source))
            });
            if let Some(outcome) = outcome {
                return outcome;
            }
            if progress.changed().await.is_err() {
                // The sender lives as long as the subscription.
                std::future::pending::<()>().await;
            }
        }
    }

    /// Returns the subject of a watch that sees what this source has, with the
    /// parameters of the subscription.
    fn subject(&self) -> Watched {
        Watched {
            type_url: self.lease.type_url.clone(),
            selector: self.lease.subscription.selector.clone(),
            params: self.lease.subscription.params.clone(),
            source: Some(self.lease.source),
        }
    }
}

impl<T> Clone for Subscription<T> {
    fn clone(&self) -> Self {
        Self {
            lease: Arc::clone(&self.lease),
            value_type: PhantomData,
        }
    }
}

impl<T> std::fmt::Debug for Subscription<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Subscription")
            .field("type", &self.lease.type_url)
            .field("selector", &self.lease.subscription.selector)
            .finish_non_exhaustive()
    }
}
