//! What makes a stream act: requests, changes, time, and its end. It waits for
//! the first of them, and decides nothing.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::time::{Instant, Sleep};
use tonic::Status;
use trunkline_proto::discovery::Frames;

use super::admit::Admission;
use super::flight::{self, Ticket};
use super::hooks::{BoxFuture, Limit};
use super::pace::Pace;
use super::requests::Requests;
use super::shared::Shared;
use super::stream::Stream;

/// See the module's documentation.
pub(super) struct Driver {
    shared: Arc<Shared>,
    stream: Arc<Stream>,
    requests: Requests,
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
    flying: Option<(Arc<Ticket>, Instant)>,
    timer: Option<Pin<Box<Sleep>>>,
    /// When there may be something to say although nothing happens.
    due: Option<Instant>,
    _admission: Admission,
}

impl Driver {
    pub(super) fn new(
        shared: Arc<Shared>,
        stream: Stream,
        requests: Requests,
        ending: BoxFuture<'static, Status>,
        admission: Admission,
    ) -> Self {
        Self {
            pace: Pace::new(shared.options.requests_per_second),
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

    /// The next messages, or how the stream ended. Called when the transport
    /// has taken all that was built before.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Vec<Frames>, Status>> {
        self.land();
        loop {
            if let Poll::Ready(status) = self.ending.as_mut().poll(cx) {
                return Poll::Ready(Err(status));
            }
            // What was asked counts before what is said.
            self.read(cx)?;
            self.curious |= self.stream.is_woken(cx);
            if self.curious && self.has_room(cx) {
                let messages = self.speak();
                if !messages.is_empty() {
                    return Poll::Ready(Ok(messages));
                }
            }
            if !self.passes(cx) {
                return Poll::Pending;
            }
        }
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
                    handled.map_err(|fault| Status::invalid_argument(fault.to_string()))?;
                    self.curious = true;
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

    fn speak(&mut self) -> Vec<Frames> {
        let spoken = self.stream.poll();
        self.curious = spoken.more;
        self.due = self.stream.deadline();
        let bytes: usize = spoken.messages.iter().map(Frames::len).sum();
        if bytes > 0 {
            let ticket = self.shared.flight.start(bytes);
            self.flying = Some((ticket, Instant::now() + flight::PATIENCE));
        }
        spoken.messages
    }

    /// Whether a moment has come that was waited for.
    fn passes(&mut self, cx: &mut Context<'_>) -> bool {
        let due = self.due.filter(|_| !self.curious);
        let late = self.flying.as_ref().map(|(_, until)| *until);
        let paced = self.pace.wait();
        let Some(next) = [due, late, paced].into_iter().flatten().min() else {
            self.timer = None;
            return false;
        };
        let timer = self
            .timer
            .get_or_insert_with(|| Box::pin(tokio::time::sleep_until(next)));
        if timer.deadline() != next {
            timer.as_mut().reset(next);
        }
        if timer.as_mut().poll(cx).is_pending() {
            return false;
        }
        if late == Some(next) {
            self.land();
        }
        if due == Some(next) {
            self.due = None;
            self.curious = true;
        }
        true
    }

    /// What was built counts no longer: it was taken, or takes too long.
    fn land(&mut self) {
        if let Some((ticket, _)) = self.flying.take() {
            ticket.land();
        }
    }
}

/// Whatever ends it, the stream is forgotten.
impl Drop for Driver {
    fn drop(&mut self) {
        self.stream.close();
    }
}

impl fmt::Debug for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver").finish_non_exhaustive()
    }
}
