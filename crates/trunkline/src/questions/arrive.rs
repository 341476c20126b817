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
    /// The limits of a body of at most so many bytes.
    #[must_use]
    pub fn of(bytes: usize) -> Self {
        Self {
            bytes,
            silence: Duration::from_secs(10),
            patience: Duration::from_secs(60),
            rate: 64 << 10,
        }
    }

    /// The time at which a body has to be there, of which so many bytes are.
    fn deadline(&self, begun: Instant, bytes: usize) -> Instant {
        let seconds = bytes / self.rate.max(1);
        let for_bytes = Duration::from_secs(seconds as u64);
        begun + self.patience + for_bytes
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

/// Reads a body. `grow` is asked before so many more bytes are kept; if it
/// returns false, there is no room.
///
/// # Errors
/// The body is too long or too slow, it breaks off, or there is no room.
pub async fn arrive<B>(
    mut body: B,
    limits: BodyLimits,
    mut grow: impl FnMut(usize) -> bool,
) -> Result<Bytes, ArriveError>
where
    B: Body<Data = Bytes> + Unpin,
{
    let begun = Instant::now();
    let max = limits.bytes;
    if body.size_hint().lower() > max as u64 {
        return Err(ArriveError::TooLong { max });
    }
    let mut whole = BytesMut::new();
    loop {
        let silent = Instant::now() + limits.silence;
        let deadline = silent.min(limits.deadline(begun, whole.len()));
        let frame = timeout_at(deadline, body.frame()).await;
        let frame = match frame.map_err(|_| ArriveError::TooSlow)? {
            None => return Ok(whole.freeze()),
            Some(frame) => frame.map_err(|_| ArriveError::Broken)?,
        };
        let Ok(data) = frame.into_data() else {
            continue;
        };
        if whole.len() + data.len() > max {
            return Err(ArriveError::TooLong { max });
        }
        if !grow(data.len()) {
            return Err(ArriveError::NoRoom);
        }
        whole.extend_from_slice(&data);
    }
}
