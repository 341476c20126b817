//! The end of a stream by the server.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tonic::Status;

use super::shared::Shared;
use crate::listen::Closing;

/// Waits until a stream has to end, and returns its status. A server that
/// drains, and a connection that is too old, end their streams one by one
/// (S79); a server that stops ends all at once. `closing` is of the stream's
/// connection; `None` if another server accepted it. `number` is the stream's.
pub(super) async fn wait_for_end(
    shared: Arc<Shared>,
    closing: Option<Closing>,
    number: u64,
) -> Status {
    let closing = closing.map_or_else(CancellationToken::new, |Closing(token)| token);
    let orderly = async {
        tokio::select! {
            () = shared.draining.cancelled() => {}
            () = closing.cancelled() => {}
        }
        tokio::time::sleep(drain_delay(&shared, number)).await;
    };

    tokio::select! {
        () = orderly => Status::unavailable("this server asks its clients to connect again"),
        () = shared.stopped.cancelled() => Status::unavailable("the server is stopping"),
    }
}

/// The part of the draining time in which streams end; in the rest of it the
/// transport can close.
const ENDING_PART: f64 = 0.9;

/// Returns the delay after which a stream of this number ends: streams are
/// spread evenly over the draining time.
fn drain_delay(shared: &Shared, number: u64) -> Duration {
    let part = ENDING_PART * crate::listen::spread(number);
    shared.options.drain.mul_f64(part)
}
