//! A peer that is dead is noticed: pings on a silent connection.

use std::time::Duration;

use h2::{Ping, PingPong};
use tokio::time::{sleep, timeout};

use super::options::Keepalive;
use super::watched::Activity;

/// The longest interval that doubling leads to.
const LONGEST: Duration = Duration::from_secs(3600);

impl Keepalive {
    /// Returns the same keepalive with its interval doubled `doublings` times, but
    /// not beyond an hour.
    pub(super) fn slower(self, doublings: u32) -> Self {
        let factor = 2_u32.saturating_pow(doublings);
        let interval = self.interval.saturating_mul(factor);
        Self {
            interval: interval.min(LONGEST.max(self.interval)),
            ..self
        }
    }
}

/// Sends a ping whenever the connection was silent for an interval. Returns
/// when one is not answered in time; it never does while the peer lives.
pub(super) async fn watch(mut pings: PingPong, keepalive: Keepalive, activity: &Activity) {
    loop {
        sleep(keepalive.interval).await;
        if activity.take_heard() {
            continue;
        }
        match timeout(keepalive.timeout, pings.ping(Ping::opaque())).await {
            Ok(Ok(_)) => {}
            // The connection ended, and its own task knows how.
            Ok(Err(_)) => std::future::pending().await,
            Err(_) => return,
        }
    }
}
