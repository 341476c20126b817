//! The activity of a connection: its open requests, and what its peer has not
//! taken. A connection on which nothing happens ends.
//!
//! | the peer | the connection | after |
//! |---|---|---|
//! | makes no request | is cut | [`CONNECTION_FIRST_REQUEST`] |
//! | has no request open any more | is closed in order | [`CONNECTION_IDLE`] |
//! | takes nothing of what waits for it | is cut | the send timeout |
//!
//! None of these is a limit that ends a stream which is up (S78). In the first
//! two there is no stream. In the last the peer is broken: a message has been
//! waiting for it so long that the client behind it would have failed to answer
//! a ping, if its transport did not answer for it.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use super::address::ClientAddress;
use super::effort::{Effort, cost};
use super::send_mark::SendMark;
use super::unsent::Unsent;
use crate::bounds::{CONNECTION_FIRST_REQUEST, CONNECTION_IDLE};

/// The longest interval of checks.
const CHECK_INTERVAL: Duration = Duration::from_secs(10);

/// How often a send is looked at before it is taken for stalled.
const CHECKS_OF_SEND: u32 = 8;

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Activity {
    /// The number of the connection in this process.
    pub(crate) number: u64,
    /// The peer's address; `None` if another server accepted the connection.
    pub(crate) address: Option<ClientAddress>,
    /// The effort of its address.
    pub(super) effort: Arc<Effort>,
    /// The messages of its streams.
    pub(crate) unsent: Arc<Unsent>,
    had_request: AtomicBool,
    open_requests: AtomicUsize,
    /// The responses of open requests. A lock for each request, none for each
    /// message.
    sends: Mutex<Vec<Arc<SendMark>>>,
    /// The bytes that the socket does not take.
    pub(super) write: SendMark,
    idle_checks: AtomicU32,
    end_now: Notify,
    close_idle: Notify,
}

/// How often connections are checked, and what is too long.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    pub(super) interval: Duration,
    send_checks: u32,
    idle_checks: u32,
}

impl Patience {
    /// Makes the checks that find a send which is stalled for longer than the
    /// timeout. Zero means no timeout: idle connections are found all the same.
    pub(super) fn new(send_timeout: Duration) -> Self {
        let has_timeout = !send_timeout.is_zero();
        let share = send_timeout / CHECKS_OF_SEND;
        let shortest = Duration::from_millis(1);
        let interval = if has_timeout {
            share.clamp(shortest, CHECK_INTERVAL)
        } else {
            CHECK_INTERVAL
        };

        let count_checks = |time: Duration| {
            let count = time.as_nanos().div_ceil(interval.as_nanos());
            u32::try_from(count).unwrap_or(u32::MAX)
        };
        Self {
            interval,
            send_checks: if has_timeout {
                count_checks(send_timeout)
            } else {
                u32::MAX
            },
            idle_checks: count_checks(CONNECTION_IDLE),
        }
    }
}

impl Activity {
    /// Makes the activity of a new connection without requests, of an address
    /// whose effort is not counted.
    pub(crate) fn new(address: Option<ClientAddress>) -> Arc<Self> {
        Self::with_address(address, Arc::default())
    }

    /// Makes the activity of a new connection without requests, whose effort
    /// counts for its address.
    pub(super) fn with_address(address: Option<ClientAddress>, effort: Arc<Effort>) -> Arc<Self> {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        Arc::new(Self {
            number: NUMBERS.fetch_add(1, Ordering::Relaxed),
            address,
            effort,
            unsent: Arc::default(),
            had_request: AtomicBool::new(false),
            open_requests: AtomicUsize::new(0),
            sends: Mutex::default(),
            write: SendMark::default(),
            idle_checks: AtomicU32::new(0),
            end_now: Notify::new(),
            close_idle: Notify::new(),
        })
    }

    /// Counts a request, until the result is dropped.
    pub(super) fn begin_request(self: &Arc<Self>) -> OpenRequest {
        self.had_request.store(true, Ordering::Relaxed);
        self.effort.charge(cost::REQUEST);
        self.open_requests.fetch_add(1, Ordering::Relaxed);
        let mark = Arc::<SendMark>::default();
        self.lock_sends().push(Arc::clone(&mark));
        OpenRequest {
            activity: Arc::clone(self),
            mark,
        }
    }

    /// Counts the effort of a message on a discovery stream, for the address.
    pub(crate) fn charge_message(&self) {
        self.effort.charge(cost::MESSAGE);
    }

    /// Returns whether no request is open.
    pub(super) fn is_silent(&self) -> bool {
        self.open_requests.load(Ordering::Relaxed) == 0
    }

    /// Ends the connection at once.
    pub(super) fn cut(&self) {
        self.end_now.notify_one();
    }

    /// Waits until the connection has to end at once.
    pub(super) async fn wait_until_cut(&self) {
        self.end_now.notified().await;
    }

    /// Waits until the first request should have come, and did not. Waits for
    /// ever if it did.
    pub(super) async fn wait_without_request(&self) {
        tokio::time::sleep(CONNECTION_FIRST_REQUEST).await;
        if self.had_request.load(Ordering::Relaxed) {
            std::future::pending().await
        }
    }

    /// Waits until the connection has been idle for too long.
    pub(super) async fn wait_until_idle(&self) {
        self.close_idle.notified().await;
    }

    /// Checks the connection; to be called once in each interval of the
    /// patience. Cuts a connection whose peer has taken nothing for too long,
    /// and returns whether it did. One that is idle for too long is told to
    /// close.
    pub(super) fn check(&self, patience: Patience) -> bool {
        self.check_idle(patience.idle_checks);
        let is_stalled = |mark: &SendMark| mark.is_stalled(patience.send_checks);
        // A check counts for each mark, so none may be skipped.
        let mut has_stalled_send = is_stalled(&self.write);
        for mark in self.lock_sends().iter() {
            has_stalled_send |= is_stalled(mark);
        }
        if has_stalled_send {
            self.cut();
        }
        has_stalled_send
    }

    /// Counts a check without an open request, and tells the connection to
    /// close after more than `most_checks` of them in a row.
    fn check_idle(&self, most_checks: u32) {
        if !self.is_silent() {
            self.idle_checks.store(0, Ordering::Relaxed);
        } else if self.idle_checks.fetch_add(1, Ordering::Relaxed) >= most_checks {
            self.close_idle.notify_one();
        }
    }

    /// Locks the marks. Ignores poison: a request that panicked ends alone.
    fn lock_sends(&self) -> MutexGuard<'_, Vec<Arc<SendMark>>> {
        self.sends.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request that is open until this is dropped.
#[derive(Debug)]
pub(super) struct OpenRequest {
    activity: Arc<Activity>,
    /// What its peer has not taken of the response.
    pub(super) mark: Arc<SendMark>,
}

impl Drop for OpenRequest {
    /// Ends the request: nothing of it is to be sent any more.
    fn drop(&mut self) {
        let mut sends = self.activity.lock_sends();
        let index = sends.iter().position(|mark| Arc::ptr_eq(mark, &self.mark));
        if let Some(index) = index {
            sends.swap_remove(index);
        }
        self.activity.open_requests.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_stalled_if_one_of_its_sends_is() {
        let patience = Patience::new(Duration::from_secs(60));
        assert!(patience.interval <= Duration::from_secs(10));
        let activity = Activity::new(None);
        let requests = [(); 3].map(|()| activity.begin_request());
        requests[1].mark.note_new();
        let checks = (0..100).take_while(|_| {
            requests[0].mark.note_new();
            !activity.check(patience)
        });
        let took = patience.interval * u32::try_from(checks.count()).unwrap();
        assert!(took >= Duration::from_secs(60), "{took:?}");
        assert!(took <= Duration::from_secs(80), "{took:?}");
        drop(requests);
        assert!(!activity.check(patience));
    }

    #[test]
    fn without_a_timeout_nothing_is_stalled() {
        let patience = Patience::new(Duration::ZERO);
        let activity = Activity::new(None);
        let request = activity.begin_request();
        request.mark.note_new();
        assert!(!(0..1000).any(|_| activity.check(patience)));
    }

    #[tokio::test]
    async fn a_connection_that_has_been_idle_for_long_ends() {
        let patience = Patience::new(Duration::from_secs(60));
        let activity = Activity::new(None);
        let request = activity.begin_request();
        for _ in 0..1000 {
            activity.check(patience);
        }
        drop(request);
        let mut idle = std::pin::pin!(activity.wait_until_idle());
        let cx = &mut std::task::Context::from_waker(std::task::Waker::noop());
        let mut checks = 0;
        while idle.as_mut().poll(cx).is_pending() {
            activity.check(patience);
            checks += 1;
        }
        assert!(patience.interval * checks >= CONNECTION_IDLE);
    }
}
