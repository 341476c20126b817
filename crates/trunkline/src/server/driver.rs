//! What makes a stream act: requests, changes, time, and its end. It waits for
//! the first of them, and decides nothing.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use tokio::time::{Instant, Sleep};
use tonic::Status;

use super::admit::Admission;
use super::flight::{self, Ticket};
use super::hooks::{BoxFuture, Limit};
use super::pace::Pace;
use super::requests::Requests;
use super::shared::Shared;
use super::stream::{Fault, NEWS, Next, Stream};
use crate::bell::{BY_WAKER, Listener};
use crate::listen::BoxError;

/// See the module's documentation.
pub(super) struct Driver<B> {
    shared: Arc<Shared>,
    stream: Arc<Stream>,
    requests: Requests<B>,
    /// Hears of news, and of what is seldom ready: the end and the timer.
    listener: Listener,
    /// Ready when the stream has to end.
    ending: BoxFuture<'static, Status>,
    pace: Pace,
    /// Whether requests wait because there were too many.
    paced: bool,
    /// Whether there may be something to say.
    curious: bool,
    /// Ready when others leave room for what there is to say.
    room: Option<BoxFuture<'static, Option<Limit>>>,
    /// What the transport may still have, and until when that counts.
    flying: Option<(Ticket, Instant)>,
    /// Fires when the next moment has come, or before: moments pass more often
    /// than they come, and setting it anew each time costs more.
    timer: Option<Pin<Box<Sleep>>>,
    /// When there may be something to say although nothing happens.
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
            listener: Listener::new(Arc::clone(&stream.bell)),
            shared,
            stream: Arc::new(stream),
            requests,
            ending,
            paced: false,
            curious: false,
            room: None,
            flying: None,
            timer: None,
            due: None,
            _admission: admission,
        }
    }

    /// Adds the next message, or says how the stream ended. Called when the
    /// transport has taken all that was built before.
    pub(super) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        out: &mut VecDeque<Bytes>,
    ) -> Poll<Result<(), Status>> {
        // What was built counts no longer.
        self.flying = None;
        loop {
            let heard = self.listener.heard(cx);
            if heard & BY_WAKER != 0 {
                self.look()?;
            }
            // What was asked counts before what is said.
            self.read(cx)?;
            self.curious |= heard & NEWS != 0;
            if self.curious && self.has_room(cx) && self.speak(out) {
                return Poll::Ready(Ok(()));
            }
            if !self.passes() {
                return Poll::Pending;
            }
        }
    }

    /// Looks at what is seldom ready.
    fn look(&mut self) -> Result<(), Status> {
        let mut cx = self.listener.context();
        if let Poll::Ready(status) = self.ending.as_mut().poll(&mut cx) {
            return Err(status);
        }
        let fired = |timer: &mut Pin<Box<Sleep>>| timer.as_mut().poll(&mut cx).is_ready();
        if self.timer.as_mut().is_some_and(fired) {
            self.timer = None;
        }
        Ok(())
    }

    /// Reads requests as far as there are any.
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
                    self.expect(handled.map_err(refused)?);
                }
                Poll::Ready(Some(Err(status))) => return Err(status),
                Poll::Ready(None) => return Err(Status::ok("")),
                Poll::Pending => return Ok(()),
            }
        }
    }

    fn has_room(&mut self, cx: &mut Context<'_>) -> bool {
        if self.room.is_none() && self.shared.flight.full().is_none() {
            return true;
        }
        let room = self.room.get_or_insert_with(|| {
            let flight = Arc::clone(&self.shared.flight);
            Box::pin(async move { flight.room().await })
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

    /// Takes note of when there may be something to say.
    fn expect(&mut self, next: Next) {
        self.curious |= next.now;
        self.due = next.due;
    }

    /// Says something; false if there is nothing.
    fn speak(&mut self, out: &mut VecDeque<Bytes>) -> bool {
        self.curious = false;
        let spoken = self.stream.poll();
        self.expect(spoken.next);
        let Some(message) = spoken.message else {
            return false;
        };
        let ticket = self.shared.flight.start(message.len());
        self.flying = Some((ticket, spoken.at + flight::PATIENCE));
        out.extend(message);
        true
    }

    /// Whether a moment has come that was waited for.
    fn passes(&mut self) -> bool {
        let due = self.due.filter(|_| !self.curious);
        let late = self.flying.as_ref().map(|(_, until)| *until);
        let Some(next) = [due, late, self.pace.wait()].into_iter().flatten().min() else {
            return false;
        };
        if self.waits_for(next) {
            return false;
        }
        if late == Some(next) {
            // What takes too long counts no longer.
            self.flying = None;
        }
        if due == Some(next) {
            self.due = None;
            self.curious = true;
        }
        true
    }

    /// Sees to it that the timer fires at a moment, or before; false if the
    /// moment has come.
    fn waits_for(&mut self, next: Instant) -> bool {
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
        let waits = timer
            .as_mut()
            .poll(&mut self.listener.context())
            .is_pending();
        self.timer = waits.then_some(timer);
        waits
    }
}

/// Whatever ends it, the stream is forgotten.
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
