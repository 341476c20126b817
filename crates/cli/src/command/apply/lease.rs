//! `trunkline apply --lease`: stays, and renews the lease of what it applied.
//!
//! ```text
//! apply ──▶ renew, renew, renew ... ──▶ a signal ──▶ end the lease
//!   ▲          │         │
//!   │ no lease │         │ not reached: again, later and later
//!   └──────────┘         └──▶ renew
//! ```

use std::hash::{BuildHasher as _, RandomState};
use std::time::{Duration, Instant, SystemTime};

use http::Method;
use tokio::time::{sleep, timeout};

use super::Applying;
use crate::admin::timestamp;
use crate::cli::LeaseTime;
use crate::client::{Call, Client};
use crate::command::{changes, encode_url};
use crate::failure::{Failure, Result};
use crate::signals::Ends;

/// A lease is renewed so many times while it lasts: two renewals may be lost.
const RENEWALS: u32 = 3;
/// The time of the first wait for a server that was not reached.
const FIRST_WAIT: Duration = Duration::from_millis(100);
/// More doublings of it than these are longer than any lease.
const MOST_DOUBLINGS: u32 = 16;
/// The shortest time after which a response is not waited for any more.
const SHORTEST_CALL: Duration = Duration::from_secs(1);
/// The longest such time.
const LONGEST_CALL: Duration = Duration::from_secs(10);

/// Applies files with a lease, and renews the lease until a signal arrives.
/// Then ends the lease, which removes the resources.
///
/// # Errors
/// The first request fails, or the lease cannot be ended. Requests between the
/// two are repeated until they succeed.
pub(super) async fn run(applying: Applying<'_>, lease: LeaseTime) -> Result<()> {
    // A signal during this request ends the program at once, and the lease ends
    // by its time.
    applying.send_files().await?;
    let mut signals = Ends::new()?;
    let mut keeper = Keeper::new(applying, lease);
    eprintln!(
        "keeping the lease of {}: {:?}, renewed every {:?}; Ctrl-C ends it, and what was applied \
         is removed",
        keeper.origin(),
        lease.get(),
        keeper.interval
    );

    tokio::select! {
        () = keeper.renew_forever() => {}
        () = signals.next() => {}
    }
    keeper.end().await
}

/// A lease that is renewed.
struct Keeper<'a> {
    applying: Applying<'a>,
    lease: LeaseTime,
    /// The path of the lease.
    path: String,
    interval: Duration,
}

impl<'a> Keeper<'a> {
    /// Makes the keeper of a lease, which renews it [`RENEWALS`] times in its
    /// duration.
    fn new(applying: Applying<'a>, lease: LeaseTime) -> Self {
        let origin = encode_url(&applying.args.change.origin);
        Self {
            applying,
            lease,
            path: format!("/api/v1/leases/{origin}"),
            interval: lease.get() / RENEWALS,
        }
    }

    /// Returns the origin whose lease is kept.
    fn origin(&self) -> &str {
        &self.applying.args.change.origin
    }

    /// Renews the lease in intervals, for ever. A failed renewal is repeated
    /// after waits that grow up to the interval.
    async fn renew_forever(&mut self) {
        let mut outage: Option<Outage> = None;
        loop {
            sleep(match &outage {
                None => self.interval,
                Some(outage) => outage.next_wait(self.interval),
            })
            .await;
            match self.renew().await {
                Ok(()) => {
                    if let Some(outage) = outage.take() {
                        outage.end();
                    }
                }
                Err(failure) => {
                    outage
                        .get_or_insert_with(Outage::new)
                        .note_failure(&failure);
                    // The failure may be due to an old token or certificate.
                    if let Ok(client) = Client::new(&self.applying.args.remote) {
                        self.applying.client = client;
                    }
                }
            }
        }
    }

    /// Renews the lease. If the server has no lease of the origin, applies the
    /// files again.
    async fn renew(&self) -> Result<()> {
        let longest_call = self.interval.clamp(SHORTEST_CALL, LONGEST_CALL);
        match self.call(Method::POST, &self.path, longest_call).await? {
            Some(_) => Ok(()),
            None => {
                eprintln!(
                    "the server has no lease of {} any more; applying again",
                    self.origin()
                );
                self.applying.send_files().await.map(drop)
            }
        }
    }

    /// Ends the lease, and prints what became of its resources.
    async fn end(&self) -> Result<()> {
        let yes_flag = if self.applying.args.yes {
            "?yes=true"
        } else {
            ""
        };
        let path = format!("{}{yes_flag}", self.path);
        match self.call(Method::DELETE, &path, LONGEST_CALL).await {
            Ok(Some(body)) => {
                eprintln!("the lease of {} has ended", self.origin());
                changes::print_outcome_without_file(&body).map(drop)
            }
            Ok(None) => {
                eprintln!("the server had no lease of {} any more", self.origin());
                Ok(())
            }
            Err(failure) if failure.is_unreachable() => Err(Failure::unreachable(format!(
                "the lease of {} ends by itself, within {:?}: {failure}",
                self.origin(),
                self.lease.get()
            ))),
            Err(failure) => Err(failure),
        }
    }

    /// Makes a call about the lease. Returns `None` if the server has no such
    /// lease.
    ///
    /// # Errors
    /// The request is refused, or the server does not respond within `time_limit`.
    async fn call(
        &self,
        method: Method,
        path: &str,
        time_limit: Duration,
    ) -> Result<Option<bytes::Bytes>> {
        let late_failure = |_| {
            let admin = &self.applying.args.remote.admin;
            Failure::unreachable(format!(
                "the server at {admin} does not answer within {time_limit:?}"
            ))
        };
        let call = Call::bare(method, path);
        let response = self.applying.client.call_if_found(call);
        timeout(time_limit, response).await.map_err(late_failure)?
    }
}

/// A time in which renewals fail.
struct Outage {
    /// The start for people; `start` is the clock for durations.
    wall_start: SystemTime,
    start: Instant,
    attempts: u32,
}

impl Outage {
    /// Begins an outage, now.
    fn new() -> Self {
        Self {
            wall_start: SystemTime::now(),
            start: Instant::now(),
            attempts: 0,
        }
    }

    /// Counts a failure. Prints the failure if the count is a power of two: a
    /// long outage prints fewer and fewer lines.
    fn note_failure(&mut self, failure: &Failure) {
        self.attempts = self.attempts.saturating_add(1);
        if self.attempts.is_power_of_two() {
            let since = timestamp(self.wall_start);
            eprintln!(
                "{}the lease is not renewed since {since}, and is tried again: {failure}",
                failure.findings()
            );
        }
    }

    /// Returns how long to wait before the next attempt: twice as long as before
    /// the last, up to `longest`. Up to half of it is left out at random, so that
    /// writers that lost a server do not come back all at once. The randomness is
    /// that of a hasher's key, which each process draws anew.
    fn next_wait(&self, longest: Duration) -> Duration {
        let doublings = self.attempts.saturating_sub(1).min(MOST_DOUBLINGS);
        let wait = (FIRST_WAIT * 2_u32.pow(doublings)).min(longest);
        let random = RandomState::new().hash_one(self.attempts) % 512;
        wait.mul_f64(1.0 - random as f64 / 1024.0)
    }

    /// Prints that it is over.
    fn end(self) {
        let seconds = self.start.elapsed().as_secs();
        eprintln!("the lease is renewed again, after {seconds}s");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_the_interval_and_are_not_all_alike() {
        let longest = Duration::from_secs(10);
        let mut outage = Outage::new();
        outage.attempts = 1;
        assert!(outage.next_wait(longest) <= FIRST_WAIT);
        outage.attempts = u32::MAX;
        let waits: Vec<Duration> = (0..20).map(|_| outage.next_wait(longest)).collect();
        let range = longest / 2..=longest;
        assert!(waits.iter().all(|wait| range.contains(wait)), "{waits:?}");
        assert!(waits.iter().any(|wait| *wait != waits[0]));
    }
}
