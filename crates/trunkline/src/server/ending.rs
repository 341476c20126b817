//! When a stream has to end although its peer does not want it to.

use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tonic::Status;

use super::shared::{Phase, Shared};

/// In the extensions of a request: its connection is about to end.
#[derive(Clone, Debug)]
pub(super) struct Closing(pub(super) CancellationToken);

/// Waits until the stream has to end. A server that drains, and a connection
/// that is too old, end their streams one by one (S79).
pub(super) async fn ending(
    mut phase: watch::Receiver<Phase>,
    closing: Option<Closing>,
    delay: Duration,
) -> Status {
    let mut stopped = phase.clone();
    let orderly = async {
        tokio::select! {
            () = reached(&mut phase, Phase::Draining) => {}
            () = closed(closing) => {}
        }
        tokio::time::sleep(delay).await;
    };
    tokio::select! {
        () = orderly => Status::unavailable("this server asks its clients to connect again"),
        () = reached(&mut stopped, Phase::Stopped) => Status::unavailable("the server is stopping"),
    }
}

async fn closed(closing: Option<Closing>) {
    match closing {
        Some(Closing(token)) => token.cancelled().await,
        None => std::future::pending().await,
    }
}

/// Waits for a phase, or a later one.
pub(super) async fn reached(phase: &mut watch::Receiver<Phase>, wanted: Phase) {
    // A sender that is gone is a server that is gone.
    let _ = phase.wait_for(|now| *now as u8 >= wanted as u8).await;
}

/// When within the time for draining a stream ends: streams are spread evenly.
pub(super) fn delay(shared: &Shared, number: u64) -> Duration {
    let spread = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    // Some time is left for the transport to say goodbye.
    let share = 0.9 * spread as f64 / f64::from(1u32 << 24);
    shared.options.drain.mul_f64(share)
}
