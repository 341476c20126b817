//! Admission of streams, decided before the first response: a client that is
//! turned away after one reconnects at once, for ever (S78).

use std::sync::Arc;

use tonic::Status;

use super::hooks::{Call, Limit};
pub(super) use super::quotas::Admission;
use super::quotas::Full;
use super::shared::Shared;
use crate::identity::Identity;
use crate::listen::ClientAddress;

/// A stream that may begin.
pub(super) struct Admitted {
    pub(super) admission: Admission,
    /// The client's identity, if it is known.
    pub(super) identity: Option<Identity>,
}

/// Admits a stream. A refused stream is held for a while before the reason is
/// returned, so that its client does not reconnect at once, unless too many are
/// held already.
pub(super) async fn admit(shared: &Arc<Shared>, call: &Call) -> Result<Admitted, Status> {
    let address = call.connection.peer.map(ClientAddress::of);
    // A client that leaves meanwhile drops this future, and its count.
    let mut admission = Admission::ask(shared, address);
    match try_admit(shared, call, &mut admission).await {
        Ok(identity) => Ok(Admitted {
            admission,
            identity,
        }),
        Err(status) => {
            if admission.hold() {
                tokio::time::sleep(shared.options.refusal_delay).await;
            }
            Err(status)
        }
    }
}

/// Admits a stream if it is authenticated, is not one too many, there is memory
/// for it, and all contents are loaded in time: a name that is not loaded yet
/// would be taken for removed (S51). Returns the client's identity, if it is
/// known.
async fn try_admit(
    shared: &Arc<Shared>,
    call: &Call,
    admission: &mut Admission,
) -> Result<Option<Identity>, Status> {
    let by_hooks = shared.hooks.authenticate(call).await?;
    let by_hooks = by_hooks.map(Identity::Hook);
    let identity = by_hooks.or_else(|| call.connection.identity.clone());
    if let Err(full) = admission.admit(identity.as_ref().map(Identity::as_str)) {
        return Err(refuse_full(shared, full));
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
        Ok(Ok(_)) => Ok(identity),
        _ => {
            shared.hooks.limited(Limit::NotReady);
            Err(Status::unavailable("the first contents are not loaded yet"))
        }
    }
}

/// Tells the hooks that a stream is one too many, and returns its status.
fn refuse_full(shared: &Shared, full: Full) -> Status {
    let (limit, why) = match full {
        Full::Streams => (
            Limit::Streams,
            "too many streams; connect to another server, or raise the limit",
        ),
        Full::Peer => (
            Limit::StreamsPerPeer,
            "too many streams of this address or identity; close some, or raise the limit",
        ),
    };
    shared.hooks.limited(limit);
    Status::resource_exhausted(why)
}
