//! Drives a stream: waits for requests, changes, deadlines and the end, and
//! decides nothing.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use tokio::task::JoinHandle;
use tokio::time::{Instant, Sleep};
use tonic::Status;

use super::admit::Admission;
use super::hooks::{BoxFuture, Limit};
use super::pace::Pace;
use super::requests::Requests;
use super::shared::Shared;
use super::stream::{Fault, NEWS, NextPoll, Stream};
use crate::bounds::LARGE_REQUEST;
use crate::listen::{Activity, BoxError, UnsentMessage};
use crate::wake::{BY_WAKER, WakeListener};

/// See the module's documentation.
pub(super) struct Driver<B> {
    shared: Arc<Shared>,
    stream: Arc<Stream>,
    requests: Requests<B>,
    /// Woken by changes, and by two futures that are rarely ready: the end and
    /// the timer.
    flags: WakeListener,
    /// Ready when the stream has to end.
    ending: BoxFuture<'static, Status>,
    pace: Pace,
    /// A request that is handled aside. Later ones wait for it.
    aside: Option<JoinHandle<Result<NextPoll, Fault>>>,
    /// Whether requests wait because of the rate limit, which is reported once.
    is_paced: bool,
    /// Whether there may be something to push.
    poll_due: bool,
    /// The connection of the stream.
    connection: Arc<Activity>,
    /// Ready when the client has taken enough of the earlier messages of the
    /// connection.
    room: Option<BoxFuture<'static, ()>>,
    /// The message that the transport has not taken yet.
    unsent: Option<UnsentMessage>,
    /// Fires at the next deadline, or before: deadlines are moved more often
    /// than they pass, and resetting the timer each time costs more. It comes
    /// after its own deadline, which is compared for every message.
    timer: Option<(Instant, Pin<Box<Sleep>>)>,
    /// The time at which there may be something to push although nothing
    /// happens.
    next_poll: Option<Instant>,
    _admission: Admission,
}

impl<B> Driver<B>
where
    B: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Unpin,
{
    /// Returns a driver that has polled nothing yet. `ending` is ready when the
    /// stream has to end, with its status.
    pub(super) fn new(
        shared: Arc<Shared>,
        stream: Stream,
        requests: Requests<B>,
        connection: Arc<Activity>,
        ending: BoxFuture<'static, Status>,
        admission: Admission,
    ) -> Self {
        Self {
            pace: Pace::new(shared.options.requests_per_second),
            flags: WakeListener::new(Arc::clone(&stream.wake_flags)),
            shared,
            stream: Arc::new(stream),
            requests,
            ending,
            aside: None,
            is_paced: false,
            poll_due: false,
            connection,
            room: None,
            unsent: None,
            timer: None,
            next_poll: None,
            _admission: admission,
        }
    }

    /// Adds the next message to `frames`, or returns the status with which the
    /// stream ended. Pending while there is nothing to send; the task is woken
    /// when there may be. To be called when the transport has taken all earlier
    /// messages.
    pub(super) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        frames: &mut VecDeque<Bytes>,
    ) -> Poll<Result<(), Status>> {
        self.unsent = None;
        loop {
            let flags = self.flags.take_raised(cx);
            if flags & BY_WAKER != 0 {
                self.poll_ending_and_timer()?;
            }
            // Requests are handled before a response is built.
            self.handle_requests(cx)?;

            self.poll_due |= flags & NEWS != 0;
            if self.poll_due && self.has_room(cx) && self.push_next(frames) {
                return Poll::Ready(Ok(()));
            }
            // A deadline that has passed may have made a poll due.
            if !self.handle_deadline() {
                return Poll::Pending;
            }
        }
    }

    /// Polls the futures that are rarely ready. Returns the status of a stream
    /// that has to end; drops a timer that fired.
    fn poll_ending_and_timer(&mut self) -> Result<(), Status> {
        let mut cx = self.flags.context();
        if let Poll::Ready(status) = self.ending.as_mut().poll(&mut cx) {
            return Err(status);
        }
        if let Some((_, timer)) = &mut self.timer
            && timer.as_mut().poll(&mut cx).is_ready()
        {
            self.timer = None;
        }
        Ok(())
    }

    /// Handles all requests that have arrived, as far as the rate limit allows
    /// and none is handled aside. An error is the status of a stream that has
    /// to end: the client has closed it, which is no fault, or broke the
    /// protocol.
    fn handle_requests(&mut self, cx: &mut Context<'_>) -> Result<(), Status> {
        while self.poll_aside(cx)? && !self.must_wait() {
            let raw = match self.requests.poll(cx) {
                Poll::Ready(Some(request)) => request?,
                Poll::Ready(None) => return Err(Status::ok("")),
                Poll::Pending => break,
            };
            self.pace.take();
            self.connection.charge_message();
            self.handle_request(raw)?;
        }
        Ok(())
    }

    /// Handles a request. A long one, and the rest of one with many names, is
    /// handled aside, and later ones wait for it.
    fn handle_request(&mut self, raw: Bytes) -> Result<(), Status> {
        let stream = Arc::clone(&self.stream);
        if raw.len() > LARGE_REQUEST {
            self.aside = Some(tokio::spawn(stream.handle_aside(raw)));
            return Ok(());
        }
        let next = stream.handle(raw).map_err(fault_status)?;
        match next.is_busy {
            true => {
                let finishing = async move { Ok(stream.finish_aside(next).await) };
                self.aside = Some(tokio::spawn(finishing));
            }
            false => self.schedule(next),
        }
        Ok(())
    }

    /// Returns whether no request is being handled aside, so that the next one
    /// may be. What a request that is done has left is scheduled; while one is
    /// not done, the task of `cx` is woken when it is.
    fn poll_aside(&mut self, cx: &mut Context<'_>) -> Result<bool, Status> {
        let Some(aside) = &mut self.aside else {
            return Ok(true);
        };
        let Poll::Ready(result) = Pin::new(aside).poll(cx) else {
            return Ok(false);
        };
        self.aside = None;
        let result = result.map_err(|_| Status::internal("a request was not handled"))?;
        self.schedule(result.map_err(fault_status)?);
        Ok(true)
    }

    /// Returns whether the next request has to wait because of the rate limit.
    /// Reports the limit once for each time that requests begin to wait.
    fn must_wait(&mut self) -> bool {
        let is_paced = self.pace.next_request_at().is_some();
        if is_paced && !self.is_paced {
            self.shared.hooks.limited(Limit::RequestRate);
        }
        self.is_paced = is_paced;
        is_paced
    }

    /// Returns whether the client has taken enough of the earlier messages of
    /// its connection for one more. If not, the task of `cx` is woken when it
    /// has, and the limit is reported.
    fn has_room(&mut self, cx: &mut Context<'_>) -> bool {
        let max_bytes = self.shared.options.unsent_bytes;
        if self.room.is_none() && self.connection.unsent.has_room(max_bytes) {
            return true;
        }

        let room = self.room.get_or_insert_with(|| {
            self.shared.hooks.limited(Limit::Bytes);
            let unsent = Arc::clone(&self.connection.unsent);
            Box::pin(async move { unsent.wait_for_room(max_bytes).await })
        });
        if room.as_mut().poll(cx).is_pending() {
            return false;
        }
        self.room = None;
        true
    }

    /// Notes when there may be something to push: now, or at a time that
    /// replaces the one before.
    fn schedule(&mut self, next: NextPoll) {
        self.poll_due |= next.is_due_now;
        self.next_poll = next.due;
    }

    /// Adds the next message to `frames`, and counts it among those of the
    /// connection. Returns false if there is nothing to push.
    fn push_next(&mut self, frames: &mut VecDeque<Bytes>) -> bool {
        self.poll_due = false;
        let outcome = self.stream.poll();
        self.schedule(outcome.next);
        let Some(message) = outcome.message else {
            return false;
        };
        self.unsent = Some(self.connection.unsent.add_message(message.len()));
        frames.extend(message);
        true
    }

    /// Finds the earliest deadline: that of the next poll, of a request, or of
    /// the rate limit. If it has passed, returns true, and a poll may be due;
    /// if not, arms the timer for it and returns false. Returns false also
    /// without any deadline.
    fn handle_deadline(&mut self) -> bool {
        let next_poll = self.next_poll.filter(|_| !self.poll_due);
        let rate_deadline = self.pace.next_request_at();
        // Requests that wait because of the rate limit are not polled.
        let request = self.requests.due().filter(|_| rate_deadline.is_none());
        let deadlines = [next_poll, request, rate_deadline];
        let Some(earliest) = deadlines.into_iter().flatten().min() else {
            return false;
        };
        if self.arm_timer(earliest) {
            return false;
        }

        if next_poll == Some(earliest) {
            self.next_poll = None;
            self.poll_due = true;
        }
        true
    }

    /// Arms the timer for a deadline, unless it is armed for an earlier one.
    /// Returns false if the deadline has passed, and then the timer is not
    /// armed.
    fn arm_timer(&mut self, deadline: Instant) -> bool {
        if self
            .timer
            .as_ref()
            .is_some_and(|(timer_deadline, _)| *timer_deadline <= deadline)
        {
            return true;
        }

        let mut timer = match self.timer.take() {
            Some((_, mut timer)) => {
                timer.as_mut().reset(deadline);
                timer
            }
            None => Box::pin(tokio::time::sleep_until(deadline)),
        };
        // The poll registers the waker of the flags, and tells whether the
        // deadline has passed.
        let is_pending = timer.as_mut().poll(&mut self.flags.context()).is_pending();
        self.timer = is_pending.then_some((deadline, timer));
        is_pending
    }
}

/// Returns the status of a stream whose client broke the protocol.
fn fault_status(fault: Fault) -> Status {
    Status::invalid_argument(fault.to_string())
}

/// Closes the stream, whatever ends it.
impl<B> Drop for Driver<B> {
    fn drop(&mut self) {
        if let Some(aside) = &self.aside {
            aside.abort();
        }
        self.stream.close();
    }
}

impl<B> fmt::Debug for Driver<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver").finish_non_exhaustive()
    }
}
