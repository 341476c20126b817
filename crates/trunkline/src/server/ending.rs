//! The end of a stream by the server.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tonic::Status;

use super::shared::Shared;
use crate::listen::Closing;

/// Waits until the stream has to end. A server that drains, and a connection
/// that is too old, end their streams one by one (S79).
pub(super) async fn ending(shared: Arc<Shared>, closing: Option<Closing>, number: u64) -> Status {
    let closing = closing.map_or_else(CancellationToken::new, |Closing(token)| token);
    let orderly = async {
        tokio::select! {
            () = shared.draining.cancelled() => {}
            () = closing.cancelled() => {}
        }
        tokio::time::sleep(delay(&shared, number)).await;
    };
    tokio::select! {
        () = orderly => Status::unavailable("this server asks its clients to connect again"),
        () = shared.stopped.cancelled() => Status::unavailable("the server is stopping"),
    }
}

/// The delay within the draining time after which a stream ends: streams are
/// spread evenly.
fn delay(shared: &Shared, number: u64) -> Duration {
    // Some time is left for the transport to close.
    shared
        .options
        .drain
        .mul_f64(0.9 * crate::listen::spread(number))
}
