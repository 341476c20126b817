//! Drives a stream: requests, changes, time, and its end. It waits for the
//! first of them, and decides nothing.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use tokio::time::{Instant, Sleep};
use tonic::Status;

use super::admit::Admission;
use super::hooks::{BoxFuture, Limit};
use super::pace::Pace;
use super::push_budget::{self, PushPermit};
use super::requests::Requests;
use super::shared::Shared;
use super::stream::{Fault, NEWS, Next, Stream};
use crate::listen::BoxError;
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
    /// Whether requests wait because of the rate limit.
    paced: bool,
    /// Whether there may be something to push.
    poll_due: bool,
    /// Ready when the push budget has room.
    room: Option<BoxFuture<'static, Option<Limit>>>,
    /// The permit of the message that the transport may still have, and until
    /// when it counts.
    permit: Option<(PushPermit, Instant)>,
    /// Fires at the next deadline, or before: deadlines are moved more often
    /// than they pass, and resetting the timer each time costs more.
    timer: Option<Pin<Box<Sleep>>>,
    /// The time at which there may be something to push although nothing
    /// happens.
    due: Option<Instant>,
    _admission: Admission,
}

impl<B> Driver<B>
where
    B: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Unpin,
{
    pub(super) fn new(
        shared: Arc<Shared>,
        stream: Stream,
        requests: Requests<B>,
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
            paced: false,
            poll_due: false,
            room: None,
            permit: None,
            timer: None,
            due: None,
            _admission: admission,
        }
    }

    /// Adds the next message, or returns the status with which the stream
    /// ended. Called when the transport has taken all that was built before.
    pub(super) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        out: &mut VecDeque<Bytes>,
    ) -> Poll<Result<(), Status>> {
        // The transport has taken the message.
        self.permit = None;
        loop {
            let raised = self.flags.take(cx);
            if raised & BY_WAKER != 0 {
                self.poll_rare()?;
            }
            // Requests are handled before a response is built.
            self.read(cx)?;
            self.poll_due |= raised & NEWS != 0;
            if self.poll_due && self.has_room(cx) && self.push(out) {
                return Poll::Ready(Ok(()));
            }
            if !self.deadline_passed() {
                return Poll::Pending;
            }
        }
    }

    /// Polls the futures that are rarely ready.
    fn poll_rare(&mut self) -> Result<(), Status> {
        let mut cx = self.flags.context();
        if let Poll::Ready(status) = self.ending.as_mut().poll(&mut cx) {
            return Err(status);
        }
        let fired = |timer: &mut Pin<Box<Sleep>>| timer.as_mut().poll(&mut cx).is_ready();
        if self.timer.as_mut().is_some_and(fired) {
            self.timer = None;
        }
        Ok(())
    }

    /// Reads all requests that have arrived.
    fn read(&mut self, cx: &mut Context<'_>) -> Result<(), Status> {
        loop {
            let paced = self.pace.wait().is_some();
            if paced && !std::mem::replace(&mut self.paced, paced) {
                self.shared.hooks.limited(Limit::RequestRate);
            }
            if paced {
                return Ok(());
            }
            self.paced = false;
            match self.requests.poll(cx) {
                Poll::Ready(Some(Ok(raw))) => {
                    self.pace.take();
                    let handled = self.stream.handle(raw);
                    let refused = |fault: Fault| Status::invalid_argument(fault.to_string());
                    self.schedule(handled.map_err(refused)?);
                }
                Poll::Ready(Some(Err(status))) => return Err(status),
                Poll::Ready(None) => return Err(Status::ok("")),
                Poll::Pending => return Ok(()),
            }
        }
    }

    fn has_room(&mut self, cx: &mut Context<'_>) -> bool {
        if self.room.is_none() && self.shared.push_budget.full().is_none() {
            return true;
        }
        let room = self.room.get_or_insert_with(|| {
            let budget = Arc::clone(&self.shared.push_budget);
            Box::pin(async move { budget.room().await })
        });
        let Poll::Ready(waited) = room.as_mut().poll(cx) else {
            return false;
        };
        self.room = None;
        if let Some(limit) = waited {
            self.shared.hooks.limited(limit);
        }
        true
    }

    /// Notes when there may be something to push.
    fn schedule(&mut self, next: Next) {
        self.poll_due |= next.now;
        self.due = next.due;
    }

    /// Builds a response; false if there is nothing to push.
    fn push(&mut self, out: &mut VecDeque<Bytes>) -> bool {
        self.poll_due = false;
        let spoken = self.stream.poll();
        self.schedule(spoken.next);
        let Some(message) = spoken.message else {
            return false;
        };
        let permit = self.shared.push_budget.start(message.len());
        self.permit = Some((permit, spoken.at + push_budget::TIMEOUT));
        out.extend(message);
        true
    }

    /// Whether a deadline has passed.
    fn deadline_passed(&mut self) -> bool {
        let due = self.due.filter(|_| !self.poll_due);
        let late = self.permit.as_ref().map(|(_, until)| *until);
        let Some(next) = [due, late, self.pace.wait()].into_iter().flatten().min() else {
            return false;
        };
        if self.arm(next) {
            return false;
        }
        if late == Some(next) {
            // A message that the transport does not take in time no longer
            // counts.
            self.permit = None;
        }
        if due == Some(next) {
            self.due = None;
            self.poll_due = true;
        }
        true
    }

    /// Arms the timer for a deadline, or an earlier one; false if the deadline
    /// has passed.
    fn arm(&mut self, next: Instant) -> bool {
        if self.timer.as_ref().is_some_and(|t| t.deadline() <= next) {
            return true;
        }
        let mut timer = match self.timer.take() {
            Some(timer) => timer,
            None => Box::pin(tokio::time::sleep_until(next)),
        };
        if timer.deadline() != next {
            timer.as_mut().reset(next);
        }
        let waits = timer.as_mut().poll(&mut self.flags.context()).is_pending();
        self.timer = waits.then_some(timer);
        waits
    }
}

/// Closes the stream, whatever ends it.
impl<B> Drop for Driver<B> {
    fn drop(&mut self) {
        self.stream.close();
    }
}

impl<B> fmt::Debug for Driver<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver").finish_non_exhaustive()
    }
}
