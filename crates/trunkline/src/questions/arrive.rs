//! Bodies of requests: bounded in length, and in the time that they take to
//! arrive.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body::Body;
use http_body_util::BodyExt as _;
use tokio::time::{Instant, timeout_at};

/// Bounds on a body that arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodyLimits {
    /// Its bytes.
    pub bytes: usize,
    /// How long nothing of it may come.
    pub silence: Duration,
    /// How long all of it may take, beside the time for its bytes.
    pub patience: Duration,
    /// Bytes that have to come in a second, once that is over.
    pub rate: usize,
}

impl BodyLimits {
    /// Returns the limits of a body of at most `bytes` bytes.
    #[must_use]
    pub fn of(bytes: usize) -> Self {
        Self {
            bytes,
            silence: Duration::from_secs(10),
            patience: Duration::from_secs(60),
            rate: 64 << 10,
        }
    }

    /// Returns the time by which the next piece of a body has to come, of which
    /// `bytes` bytes are there.
    fn deadline(&self, start: Instant, bytes: usize) -> Instant {
        let seconds = bytes / self.rate.max(1);
        let time_for_bytes = Duration::from_secs(seconds as u64);
        start + self.patience + time_for_bytes
    }
}

/// Why a body is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArriveError {
    /// It is too long.
    #[error("the body has more than {max} bytes")]
    TooLong {
        /// The limit.
        max: usize,
    },
    /// It comes too slowly.
    #[error("the body did not arrive in time; send it faster, or less of it")]
    TooSlow,
    /// The client broke off.
    #[error("the body broke off")]
    Broken,
    /// There is no room for it, by the word of the caller.
    #[error("too many bodies are arriving; send it again in a moment")]
    NoRoom,
}

/// Reads a body. `grow` is called with the number of bytes before they are
/// kept, and returns false if there is no room for them.
///
/// The bytes stay in blocks until all have arrived: a buffer that grows would
/// have them twice, and copy all of them each time.
///
/// # Errors
/// The body is too long or too slow, it breaks off, or there is no room.
pub async fn read_body<B>(
    mut body: B,
    limits: BodyLimits,
    mut grow: impl FnMut(usize) -> bool,
) -> Result<Bytes, ArriveError>
where
    B: Body<Data = Bytes> + Unpin,
{
    let start = Instant::now();
    let max = limits.bytes;
    if body.size_hint().lower() > max as u64 {
        return Err(ArriveError::TooLong { max });
    }
    let mut blocks = Blocks::default();
    loop {
        let silence_deadline = Instant::now() + limits.silence;
        let deadline = silence_deadline.min(limits.deadline(start, blocks.len));
        let frame = timeout_at(deadline, body.frame()).await;
        let frame = match frame.map_err(|_| ArriveError::TooSlow)? {
            None => return blocks.join().await,
            Some(frame) => frame.map_err(|_| ArriveError::Broken)?,
        };

        let Ok(data) = frame.into_data() else {
            continue;
        };
        if blocks.len + data.len() > max {
            return Err(ArriveError::TooLong { max });
        }
        if !grow(data.len()) {
            return Err(ArriveError::NoRoom);
        }
        blocks.add(&data);
    }
}

/// The bytes of a block; the first ones of a body grow to it.
const BLOCK: usize = 256 << 10;

/// What has arrived of a body.
#[derive(Default)]
struct Blocks {
    full: Vec<BytesMut>,
    last: BytesMut,
    len: usize,
}

impl Blocks {
    /// Copies data to the end of the last block, and to new blocks after it.
    fn add(&mut self, mut data: &[u8]) {
        self.len += data.len();
        while !data.is_empty() {
            if self.last.len() == BLOCK {
                let new_block = BytesMut::with_capacity(BLOCK);
                self.full.push(std::mem::replace(&mut self.last, new_block));
            }
            let (head, tail) = data.split_at(data.len().min(BLOCK - self.last.len()));
            self.last.extend_from_slice(head);
            data = tail;
        }
    }

    /// Returns all bytes. Several blocks are joined on a blocking thread,
    /// because that may take long.
    async fn join(self) -> Result<Bytes, ArriveError> {
        if self.full.is_empty() {
            return Ok(self.last.freeze());
        }
        let joining = tokio::task::spawn_blocking(move || {
            let mut whole = BytesMut::with_capacity(self.len);
            for block in self.full.into_iter().chain([self.last]) {
                whole.extend_from_slice(&block);
            }
            whole.freeze()
        });
        // The task fails only if the runtime shuts down.
        joining.await.map_err(|_| ArriveError::Broken)
    }
}
