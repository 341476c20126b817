//! Admission of streams, decided before the first response: a client that is
//! turned away after one reconnects at once, for ever (S78).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tonic::Status;

use super::hooks::{Call, Limit};
use super::shared::Shared;

/// Refused streams that are held open at once; one more ends at once.
const HELD: usize = 10_000;

static HOLDING: AtomicUsize = AtomicUsize::new(0);

/// Counts a stream for as long as it lives.
#[derive(Debug)]
pub(super) struct Admission(Arc<Shared>);

impl Drop for Admission {
    fn drop(&mut self) {
        self.0.admitted.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Admits a stream and returns the client's identity, or the reason why not,
/// after a delay.
pub(super) async fn admit(
    shared: &Arc<Shared>,
    call: &Call,
) -> Result<(Admission, Option<String>), Status> {
    match try_admit(shared, call).await {
        Ok(admitted) => Ok(admitted),
        Err(status) => {
            hold(shared).await;
            Err(status)
        }
    }
}

async fn try_admit(
    shared: &Arc<Shared>,
    call: &Call,
) -> Result<(Admission, Option<String>), Status> {
    let identity = shared.hooks.authenticate(call).await?;
    let identity = identity.or_else(|| call.connection.identity.clone());
    let open = shared.admitted.fetch_add(1, Ordering::Relaxed);
    let admission = Admission(Arc::clone(shared));
    if open >= shared.options.streams {
        shared.hooks.limited(Limit::Streams);
        return Err(Status::resource_exhausted(
            "too many streams; connect to another server, or raise the limit",
        ));
    }
    let mut ready = shared.ready();
    let loaded = ready.wait_for(|ready| *ready);
    match tokio::time::timeout(shared.options.ready_patience, loaded).await {
        Ok(Ok(_)) => Ok((admission, identity)),
        _ => {
            shared.hooks.limited(Limit::NotReady);
            Err(Status::unavailable("the first contents are not loaded yet"))
        }
    }
}

async fn hold(shared: &Shared) {
    if HOLDING.fetch_add(1, Ordering::Relaxed) < HELD {
        tokio::time::sleep(shared.options.refusal_delay).await;
    }
    HOLDING.fetch_sub(1, Ordering::Relaxed);
}
