//! Admission of streams, decided before the first response: a client that is
//! turned away after one reconnects at once, for ever (S78).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tonic::Status;

use super::hooks::{Call, Limit};
use super::shared::Shared;
use crate::identity::Identity;

/// The maximum of refused streams that are held open; one more ends at once.
const MAX_HELD: usize = 10_000;

/// Counts a refused stream for as long as it is held, in all servers of the
/// process.
struct Hold {
    is_within_limit: bool,
}

static HELD: AtomicUsize = AtomicUsize::new(0);

impl Hold {
    /// Counts one more stream.
    fn new() -> Self {
        let held = HELD.fetch_add(1, Ordering::Relaxed);
        Self {
            is_within_limit: held < MAX_HELD,
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        HELD.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Counts a stream for as long as it lives.
#[derive(Debug)]
pub(super) struct Admission(Arc<Shared>);

impl Drop for Admission {
    fn drop(&mut self) {
        self.0.admitted.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A stream that may begin.
pub(super) struct Admitted {
    pub(super) admission: Admission,
    /// The client's identity, if it is known.
    pub(super) identity: Option<Identity>,
}

/// Admits a stream. A refused stream is held for a while before the reason is
/// returned, so that its client does not reconnect at once.
pub(super) async fn admit(shared: &Arc<Shared>, call: &Call) -> Result<Admitted, Status> {
    match try_admit(shared, call).await {
        Ok(admitted) => Ok(admitted),
        Err(status) => {
            hold_refused(shared).await;
            Err(status)
        }
    }
}

/// Admits a stream if it is authenticated, is not one too many, there is memory
/// for it, and all contents are loaded in time: a name that is not loaded yet
/// would be taken for removed (S51).
async fn try_admit(shared: &Arc<Shared>, call: &Call) -> Result<Admitted, Status> {
    let by_hooks = shared.hooks.authenticate(call).await?;
    let by_hooks = by_hooks.map(Identity::Hook);
    let identity = by_hooks.or_else(|| call.connection.identity.clone());

    let open_streams = shared.admitted.fetch_add(1, Ordering::Relaxed);
    // A refusal below drops it, and the stream no longer counts.
    let admission = Admission(Arc::clone(shared));
    if open_streams >= shared.options.streams {
        shared.hooks.limited(Limit::Streams);
        return Err(Status::resource_exhausted(
            "too many streams; connect to another server, or raise the limit",
        ));
    }

    if shared.memory.is_near_limit() {
        shared.hooks.limited(Limit::Memory);
        return Err(Status::resource_exhausted(
            "the server is near its memory limit; connect to another server, or raise the limit",
        ));
    }

    let mut ready = shared.watch_ready();
    let loaded = ready.wait_for(|is_ready| *is_ready);
    match tokio::time::timeout(shared.options.ready_patience, loaded).await {
        Ok(Ok(_)) => Ok(Admitted {
            admission,
            identity,
        }),
        _ => {
            shared.hooks.limited(Limit::NotReady);
            Err(Status::unavailable("the first contents are not loaded yet"))
        }
    }
}

/// Waits for the delay of a refusal, unless [`MAX_HELD`] streams wait already.
async fn hold_refused(shared: &Shared) {
    // A client that leaves meanwhile drops this future, and its count.
    let hold = Hold::new();
    if hold.is_within_limit {
        tokio::time::sleep(shared.options.refusal_delay).await;
    }
}
