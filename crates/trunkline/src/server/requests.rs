//! The requests of a stream: messages cut out of the body of an HTTP request.
//!
//! A message that arrives in one piece is a slice of it, not a copy; a stream
//! that is silent keeps no buffer.
//!
//! ```text
//!   opened ── 30 s ──▶ ends: no request
//!   a message is incomplete ── takes a share of memory, or is not read on
//!     read on ── too slow ──▶ ends: the request did not arrive
//! ```
//!
//! Both ends are for a broken peer: one that opens a stream and says nothing,
//! or that stops in the middle of a word. No limit ends a stream here but the
//! length of a message.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::Body;
use tokio::time::Instant;
use tonic::Status;

use super::arrived::{Arrived, PREFIX};
use super::hooks::Limit;
use super::request_bounds::RequestBounds;
use super::unfinished::Share;
use crate::bounds::{FIRST_REQUEST, LEAST_RATE, NEXT_PIECE};
use crate::listen::{Activity, BoxError};

/// How long a message waits for its share before it tries again: at first, and
/// at most.
const RETRY: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(1));

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Requests<B> {
    body: B,
    bounds: RequestBounds,
    connection: Arc<Activity>,
    /// The most bytes that a message may have.
    limit: usize,
    arrived: Arrived,
    state: State,
    /// The share of the message that was taken last, until the next one is
    /// asked for: the message is read meanwhile.
    last_share: Option<Share>,
}

/// What the next message waits for.
#[derive(Debug)]
enum State {
    /// Nothing was polled.
    New,
    /// No message was there yet.
    First { deadline: Instant },
    /// A message begins with the next piece.
    Between,
    /// A message is incomplete, and has no share: nothing more is read.
    Waiting { retry: Instant, delay: Duration },
    /// A message is incomplete and has its share.
    Reading {
        share: Share,
        /// With its prefix.
        length: usize,
        deadline: Instant,
    },
}

impl<B> Requests<B>
where
    B: Body<Data = Bytes, Error: Into<BoxError>> + Unpin,
{
    /// Returns the messages of a stream on a connection. One with more than
    /// `limit` bytes is an error.
    pub(super) fn new(
        body: B,
        bounds: RequestBounds,
        connection: Arc<Activity>,
        limit: usize,
    ) -> Self {
        Self {
            body,
            bounds,
            connection,
            limit,
            arrived: Arrived::default(),
            state: State::New,
            last_share: None,
        }
    }

    /// Lets the first message take as long as it likes: the other end speaks
    /// when there is news.
    #[cfg(feature = "mcp")]
    pub(super) fn without_first_deadline(mut self) -> Self {
        self.state = State::Between;
        self
    }

    /// Polls for the next message; `None` if the client has closed its half of
    /// the stream. After an error the stream has to end: nothing says where the
    /// next message begins. Pending until [`Self::due`] at most, after which it
    /// has to be polled again.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Status>>> {
        self.last_share = None;
        loop {
            match self.next_message().transpose() {
                Some(message) => return Poll::Ready(Some(message)),
                None if matches!(self.state, State::Waiting { .. }) => return Poll::Pending,
                None => {}
            }

            match Pin::new(&mut self.body).poll_frame(cx) {
                Poll::Ready(Some(Ok(frame))) => {
                    if let Ok(data) = frame.into_data() {
                        self.add(data);
                    }
                }
                Poll::Ready(Some(Err(error))) => {
                    return Poll::Ready(Some(Err(Status::from_error(error.into()))));
                }
                Poll::Ready(None) if self.arrived.as_slice().is_empty() => {
                    return Poll::Ready(None);
                }
                Poll::Ready(None) => {
                    let status = Status::invalid_argument("the stream ended within a message");
                    return Poll::Ready(Some(Err(status)));
                }
                Poll::Pending => return self.poll_time().map(|status| Some(Err(status))),
            }
        }
    }

    /// Returns when [`Self::poll`] has to be called although nothing arrives.
    pub(super) fn due(&self) -> Option<Instant> {
        match &self.state {
            State::New | State::Between => None,
            State::First { deadline } | State::Reading { deadline, .. } => Some(*deadline),
            State::Waiting { retry, .. } => Some(*retry),
        }
    }

    /// Returns the status of a stream whose client has brought nothing for too
    /// long; pending until then. The first call starts the time of the first
    /// message.
    fn poll_time(&mut self) -> Poll<Status> {
        let (deadline, reason) = match &self.state {
            State::Between | State::Waiting { .. } => return Poll::Pending,
            State::New => {
                let deadline = Instant::now() + FIRST_REQUEST;
                self.state = State::First { deadline };
                return Poll::Pending;
            }
            State::First { deadline } => (*deadline, "the stream was opened and made no request"),
            State::Reading { deadline, .. } => (*deadline, "a request began and did not arrive"),
        };
        if Instant::now() < deadline {
            return Poll::Pending;
        }
        self.bounds.report_limit(Limit::RequestTimeout);
        Poll::Ready(Status::deadline_exceeded(reason))
    }

    /// Adds a piece of the body. It gives an incomplete message more time to
    /// arrive, by its length.
    fn add(&mut self, piece: Bytes) {
        let mut max_length = usize::MAX;
        if let State::Reading {
            deadline, length, ..
        } = &mut self.state
        {
            max_length = *length;
            let now = Instant::now();
            let time_for_piece =
                Duration::from_secs_f64(piece.len() as f64 / f64::from(LEAST_RATE));
            // Later than that, it was not read in time.
            *deadline = match now > *deadline {
                true => now + NEXT_PIECE,
                false => (*deadline + time_for_piece).min(now + NEXT_PIECE),
            };
        }
        self.arrived.add(piece, max_length);
    }

    /// Takes the first message off the bytes that arrived; `None` while it is
    /// incomplete. Then the part that is there is kept as a copy: a slice would
    /// keep all that arrived with it. Takes a share for the rest, or waits for
    /// one.
    fn next_message(&mut self) -> Result<Option<Bytes>, Status> {
        let arrived = self.arrived.as_slice();
        let Some(length) = message_length(arrived, self.limit)? else {
            self.arrived.copy();
            return Ok(None);
        };
        if arrived.len() - PREFIX >= length {
            if let State::Reading { share, .. } = std::mem::replace(&mut self.state, State::Between)
            {
                self.last_share = Some(share);
            }
            return Ok(Some(self.arrived.take_message(length)));
        }
        self.arrived.copy();
        self.take_share(length);
        Ok(None)
    }

    /// Takes the share of an incomplete message with `length` bytes after its
    /// prefix. Does nothing if the message has its share, or if it is too early
    /// to try again. Reports the limit when the message begins to wait.
    fn take_share(&mut self, length: usize) {
        let delay = match &self.state {
            State::Reading { .. } => return,
            State::Waiting { retry, .. } if Instant::now() < *retry => return,
            State::Waiting { delay, .. } => Some(*delay),
            State::New | State::First { .. } | State::Between => None,
        };
        let now = Instant::now();
        let shares = self.bounds.shares();
        let length = PREFIX + length;
        if let Some(share) = shares.try_share(&self.connection, length) {
            self.state = State::Reading {
                share,
                length,
                deadline: now + NEXT_PIECE,
            };
            return;
        }

        if delay.is_none() {
            self.bounds.report_limit(Limit::UnfinishedRequests);
        }
        let (shortest, longest) = RETRY;
        let delay = delay.map_or(shortest, |delay| (2 * delay).min(longest));
        let retry = now + delay;
        self.state = State::Waiting { retry, delay };
    }
}

/// Reads the prefix of a message and returns the length of what follows it;
/// `None` while the prefix is incomplete. Refuses a message that is compressed
/// or longer than the limit before the rest of it arrives.
fn message_length(arrived: &[u8], limit: usize) -> Result<Option<usize>, Status> {
    let Some((prefix, _)) = arrived.split_first_chunk::<PREFIX>() else {
        return Ok(None);
    };
    let [compressed, length @ ..] = *prefix;
    if compressed != 0 {
        return Err(Status::unimplemented("compressed requests are not read"));
    }
    let length = u32::from_be_bytes(length) as usize;
    if length > limit {
        return Err(Status::resource_exhausted(format!(
            "a request of {length} bytes; the limit is {limit}"
        )));
    }
    Ok(Some(length))
}

#[cfg(test)]
mod tests {
    use super::super::Server;
    use super::*;
    use http_body::Frame;
    use std::convert::Infallible;
    use tokio::sync::mpsc;

    /// What arrives in these pieces.
    struct Pieces(Vec<Bytes>);

    impl Body for Pieces {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            Poll::Ready(self.0.pop().map(|piece| Ok(Frame::data(piece))))
        }
    }

    fn bounds(limit: usize) -> RequestBounds {
        let options = |options: &mut super::super::Options| options.request_bytes = limit;
        Server::builder()
            .options(options)
            .build()
            .shared
            .request_bounds()
    }

    fn requests(pieces: &[&[u8]], limit: usize) -> Requests<Pieces> {
        let backwards = pieces.iter().rev().copied();
        let pieces = backwards.map(Bytes::copy_from_slice).collect();
        Requests::new(Pieces(pieces), bounds(limit), Activity::new(None), limit)
    }

    async fn all(mut requests: Requests<Pieces>) -> Result<Vec<Bytes>, Status> {
        let mut messages = Vec::new();
        while let Some(message) = std::future::poll_fn(|cx| requests.poll(cx)).await {
            messages.push(message?);
        }
        Ok(messages)
    }

    #[tokio::test]
    async fn messages_are_cut_wherever_the_pieces_end() {
        let text = b"\0\0\0\0\x03one\0\0\0\0\0\0\0\0\0\x05three";
        for at in 0..text.len() {
            for then in at..text.len() {
                let pieces = [&text[..at], &text[at..then], &text[then..]];
                let messages = all(requests(&pieces, 5)).await.unwrap();
                assert_eq!(messages, ["one", "", "three"], "{at} {then}");
            }
        }
    }

    #[tokio::test]
    async fn what_is_too_long_or_cut_off_or_compressed_is_told() {
        let code = async |pieces: &[&[u8]]| all(requests(pieces, 3)).await.unwrap_err().code();
        use tonic::Code;
        assert_eq!(code(&[b"\0\0\0\0\x04"]).await, Code::ResourceExhausted);
        assert_eq!(code(&[b"\0\0\0\0\x03on"]).await, Code::InvalidArgument);
        assert_eq!(code(&[b"\0\0"]).await, Code::InvalidArgument);
        assert_eq!(code(&[b"\x01\0\0\0\x03one"]).await, Code::Unimplemented);
    }

    /// What a test sends.
    struct Piped(mpsc::Receiver<Bytes>);

    impl Body for Piped {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            self.0
                .poll_recv(cx)
                .map(|piece| piece.map(|piece| Ok(Frame::data(piece))))
        }
    }

    /// Returns a stream whose client sends what a test says.
    fn channel(
        bounds: &RequestBounds,
        connection: &Arc<Activity>,
    ) -> (mpsc::Sender<Bytes>, Requests<Piped>) {
        let (sender, body) = mpsc::channel(8);
        let connection = Arc::clone(connection);
        let requests = Requests::new(Piped(body), bounds.clone(), connection, 1 << 20);
        (sender, requests)
    }

    /// Polls as a driver does: when something arrives, and when it is due.
    async fn next<B>(requests: &mut Requests<B>) -> Option<Result<Bytes, Status>>
    where
        B: Body<Data = Bytes, Error: Into<BoxError>> + Unpin,
    {
        loop {
            let polled = std::future::poll_fn(|cx| match requests.poll(cx) {
                Poll::Pending => Poll::Ready(Err(())),
                Poll::Ready(message) => Poll::Ready(Ok(message)),
            });
            match polled.await {
                Ok(message) => return message,
                Err(()) => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
    }

    fn code(message: Option<Result<Bytes, Status>>) -> tonic::Code {
        message.unwrap().unwrap_err().code()
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_without_a_request_ends() {
        let (bounds, connection) = (bounds(100), Activity::new(None));
        let (sender, mut requests) = channel(&bounds, &connection);
        sender
            .send(Bytes::from_static(b"\0\0\0\0\0"))
            .await
            .unwrap();
        assert_eq!(next(&mut requests).await.unwrap().unwrap(), "");
        // After its first request a stream may be silent for ever.
        let silence = tokio::time::timeout(Duration::from_secs(300), next(&mut requests));
        assert!(silence.await.is_err());

        let (_sender, mut requests) = channel(&bounds, &connection);
        assert_eq!(
            code(next(&mut requests).await),
            tonic::Code::DeadlineExceeded
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_stops_in_the_middle_ends_its_stream() {
        let (bounds, connection) = (bounds(1000), Activity::new(None));
        let (sender, mut requests) = channel(&bounds, &connection);
        let dripping = tokio::spawn(async move {
            sender
                .send(Bytes::from_static(b"\0\0\0\x02\0"))
                .await
                .unwrap();
            // A byte a second would keep the memory for minutes.
            while sender.send(Bytes::from_static(b"x")).await.is_ok() {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        });
        assert_eq!(
            code(next(&mut requests).await),
            tonic::Code::DeadlineExceeded
        );
        drop(requests);
        dripping.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_long_request_waits_for_others_of_its_connection_and_arrives() {
        const LENGTH: usize = 200_000;
        let (bounds, connection) = (bounds(LENGTH + PREFIX), Activity::new(None));
        let prefix = Bytes::from([&[0][..], &(LENGTH as u32).to_be_bytes()].concat());
        let body = Bytes::from(vec![7; LENGTH]);
        let mut open = [(); 2].map(|()| channel(&bounds, &connection));
        for (sender, requests) in &mut open {
            sender.send(prefix.clone()).await.unwrap();
            let cx = &mut Context::from_waker(std::task::Waker::noop());
            assert!(requests.poll(cx).is_pending());
        }
        let [(first, mut reading), (second, mut waiting)] = open;
        second.send(body.clone()).await.unwrap();
        let waited = tokio::time::timeout(Duration::from_secs(20), next(&mut waiting));
        assert!(waited.await.is_err(), "there is memory for one");

        first.send(body.clone()).await.unwrap();
        assert_eq!(next(&mut reading).await.unwrap().unwrap(), body);
        // The message is being read until the next one is asked for.
        let cx = &mut Context::from_waker(std::task::Waker::noop());
        assert!(reading.poll(cx).is_pending());
        assert_eq!(next(&mut waiting).await.unwrap().unwrap(), body);
    }
}
