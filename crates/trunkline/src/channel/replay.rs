//! The body of a call, which can be sent again: what was sent is kept, until the
//! call is committed to one attempt or the body is too long (A6).

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body as _, Frame};
use tonic::Status;
use tonic::body::Body;

/// The most bytes of a body that are kept: gRPC's default.
const MAX_KEPT: usize = 256 << 10;

/// See the module's documentation.
#[derive(Clone, Debug)]
pub(super) struct Replay {
    shared: Arc<Mutex<Shared>>,
}

#[derive(Debug)]
struct Shared {
    source: Body,
    /// The data that was read of the source so far. None is added once the call
    /// is committed.
    pieces: Vec<Bytes>,
    size: usize,
    is_committed: bool,
    is_over: bool,
    /// The attempt that may read.
    attempt: u64,
}

/// The body of one attempt.
struct Attempt {
    shared: Arc<Mutex<Shared>>,
    attempt: u64,
    next: usize,
}

impl Replay {
    /// Makes the body of a call, of which nothing was read yet.
    pub(super) fn new(source: Body) -> Self {
        let shared = Shared {
            is_over: source.is_end_stream(),
            source,
            pieces: Vec::new(),
            size: 0,
            is_committed: false,
            attempt: 0,
        };
        Self {
            shared: Arc::new(Mutex::new(shared)),
        }
    }

    /// Returns the body from its beginning, for another attempt. The body of
    /// the attempt before cannot be read any more. Must not be called once it
    /// is [committed](Self::is_committed).
    pub(super) fn attempt(&self) -> Body {
        let mut shared = lock(&self.shared);
        shared.attempt += 1;
        let attempt = Attempt {
            attempt: shared.attempt,
            shared: Arc::clone(&self.shared),
            next: 0,
        };
        drop(shared);
        Body::new(attempt)
    }

    /// Commits the call to its present attempt: nothing more is kept.
    pub(super) fn commit(&self) {
        lock(&self.shared).is_committed = true;
    }

    /// Returns whether there can be no other attempt: the call is committed, or
    /// too much of its body was sent to be kept.
    pub(super) fn is_committed(&self) -> bool {
        lock(&self.shared).is_committed
    }
}

impl http_body::Body for Attempt {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let shared = Arc::clone(&self.shared);
        let mut shared = lock(&shared);
        if shared.attempt != self.attempt {
            let status = Status::cancelled("another attempt is made");
            return Poll::Ready(Some(Err(status)));
        }
        if let Some(piece) = shared.pieces.get(self.next) {
            let piece = piece.clone();
            self.next += 1;
            return Poll::Ready(Some(Ok(Frame::data(piece))));
        }
        if shared.is_over {
            return Poll::Ready(None);
        }

        let frame = std::task::ready!(Pin::new(&mut shared.source).poll_frame(cx));
        match &frame {
            Some(Ok(frame)) => {
                if shared.keep(frame) {
                    self.next += 1;
                }
            }
            // A body that fails ends the call.
            Some(Err(_)) => shared.is_committed = true,
            None => shared.is_over = true,
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        let shared = lock(&self.shared);
        shared.is_over && self.next >= shared.pieces.len()
    }
}

impl Shared {
    /// Keeps a frame for later attempts, if there is room. Returns whether it
    /// is kept; if not, the call is committed to its attempt.
    fn keep(&mut self, frame: &Frame<Bytes>) -> bool {
        let data = frame.data_ref();
        self.size += data.map_or(0, Bytes::len);
        self.is_committed |= self.size > MAX_KEPT || data.is_none();
        if let Some(data) = data.filter(|_| !self.is_committed) {
            self.pieces.push(data.clone());
            return true;
        }
        false
    }
}

/// Locks the body of a call. Ignores poison: a call that panicked ends alone.
fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use http_body_util::{BodyExt as _, Full, StreamBody};

    use super::*;

    async fn read(body: Body) -> Result<Bytes, Status> {
        Ok(body.collect().await?.to_bytes())
    }

    #[tokio::test]
    async fn a_body_is_sent_again_from_its_beginning() {
        let frames = ["a", "b", "c"].map(|text| Ok::<_, Status>(Frame::data(Bytes::from(text))));
        let source = Body::new(StreamBody::new(tokio_stream::iter(frames)));
        let replay = Replay::new(source);
        let mut first = replay.attempt();
        let frame = first.frame().await.unwrap().unwrap();
        assert_eq!(frame.into_data().unwrap(), "a");
        let second = replay.attempt();
        assert!(read(first).await.is_err(), "it is superseded");
        assert_eq!(read(second).await.unwrap(), "abc");
        assert_eq!(read(replay.attempt()).await.unwrap(), "abc");
    }

    #[tokio::test]
    async fn a_long_body_is_sent_once() {
        let long = Bytes::from(vec![0; MAX_KEPT + 1]);
        let replay = Replay::new(Body::new(Full::new(long).map_err(|never| match never {})));
        assert!(!replay.is_committed());
        assert_eq!(read(replay.attempt()).await.unwrap().len(), MAX_KEPT + 1);
        assert!(replay.is_committed());
    }
}
