//! Questions: requests that are answered once and change nothing, such as CSDS,
//! polls, reflection, and the lists of an admin API. A question costs its asker
//! nothing, so the work on all of them, and the memory of answers that are not
//! read, are bounded, for each address and in all.
//!
//! ```text
//!  ask ──▶ work (few at once, aside from streams) ──▶ hold (bytes of the answer)
//!                 │ too many wait: Busy                  │ too many bytes: Busy
//!                 ▼                                      ▼
//!             [`stream`]: a piece at a time      [`stream_body`]: whole, dropped
//!             as the asker reads                 if the asker takes nothing
//! ```
//!
//! Whoever asks too much is refused, and nobody waits for an answer that
//! another does not read. Near the memory limit of the process every question
//! is refused but the light ones.

mod arrive;
mod body;
mod table;
#[cfg(test)]
mod tests;

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

pub use self::arrive::{ArriveError, BodyLimits, read_body};
pub use self::body::{AnswerBody, stream, stream_body};
use self::table::Table;
use crate::memory::Memory;
use crate::server::{Connection, Limit};

/// Bounds on questions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuestionLimits {
    /// Questions that are worked on at once.
    pub at_once: usize,
    /// The same of one address.
    pub peer_at_once: usize,
    /// Questions of one address that wait for that; one more is refused.
    pub peer_waiting: usize,
    /// How long a question waits before it is refused.
    pub patience: Duration,
    /// Bytes of answers that are not read yet.
    pub bytes: usize,
    /// The same of one address.
    pub peer_bytes: usize,
    /// How long the asker may take nothing of an answer before it is dropped.
    pub stall: Duration,
}

impl Default for QuestionLimits {
    /// Returns the limits of a server: all addresses together may have all
    /// processors, and one address half of them. Two questions are worked on even
    /// where there is one processor, so that one address cannot have it alone.
    fn default() -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let at_once = processors.max(2);
        Self {
            at_once,
            peer_at_once: at_once / 2,
            peer_waiting: 64,
            patience: Duration::from_secs(10),
            bytes: 256 << 20,
            peer_bytes: 96 << 20,
            stall: Duration::from_secs(30),
        }
    }
}

/// Why a question is not answered now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Busy {
    /// Too many questions wait, or this one has waited too long.
    #[error("too many questions are being answered; ask again in a moment")]
    Work,
    /// Too many bytes of answers are not read yet.
    #[error("too many bytes of answers are not read yet; read those, or ask for less")]
    Bytes,
    /// The process is near its memory limit.
    #[error(
        "the server is near its memory limit; ask another server, ask for less, or raise the limit"
    )]
    Memory,
}

impl Busy {
    /// Returns the limit that was met, as hooks and metrics are told of it.
    fn limit(self) -> Limit {
        match self {
            Self::Work => Limit::Questions,
            Self::Bytes => Limit::AnswerBytes,
            Self::Memory => Limit::Memory,
        }
    }
}

/// An asker: an address, or none if it is not known, and how much its questions
/// take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Peer {
    address: Option<IpAddr>,
    /// Light questions have a line of their own, so that they do not wait for
    /// heavy ones of the same address.
    is_light: bool,
}

/// The questions of a server. Clones share their bounds.
#[derive(Clone)]
pub struct Questions {
    inner: Arc<Inner>,
}

struct Inner {
    limits: QuestionLimits,
    table: Table,
    at_once: Arc<Semaphore>,
    /// Its limit is the last bound of all answers.
    memory: Arc<Memory>,
    /// Called when a limit is met.
    report_limit: Box<dyn Fn(Limit) + Send + Sync>,
}

impl fmt::Debug for Questions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Questions");
        debug.field("limits", &self.inner.limits).finish()
    }
}

impl Default for Questions {
    fn default() -> Self {
        Self::new(QuestionLimits::default(), |_| ())
    }
}

impl Questions {
    /// Returns questions with these limits, of which nothing is used yet.
    /// `limited` is called for each question that is refused, and for each
    /// answer that is not read in time.
    #[must_use]
    pub fn new(limits: QuestionLimits, limited: impl Fn(Limit) + Send + Sync + 'static) -> Self {
        Self::within(Arc::new(Memory::new(None)), limits, limited)
    }

    /// Returns questions with these limits, as [`Self::new`] does, in a process
    /// that has a memory limit: near it, all but light questions are refused.
    #[must_use]
    pub fn within(
        memory: Arc<Memory>,
        limits: QuestionLimits,
        limited: impl Fn(Limit) + Send + Sync + 'static,
    ) -> Self {
        let at_once = Arc::new(Semaphore::new(limits.at_once));
        Self {
            inner: Arc::new(Inner {
                limits,
                table: Table::default(),
                at_once,
                memory,
                report_limit: Box::new(limited),
            }),
        }
    }

    /// Begins a question of this address. All without an address share what one
    /// address may have.
    #[must_use]
    pub fn ask(&self, address: Option<IpAddr>) -> Question {
        let is_light = false;
        self.begin(Peer { address, is_light })
    }

    /// Begins a question that takes little: it waits for other light ones of
    /// its address only, and not for the lists that the same address asks for.
    #[must_use]
    pub fn ask_light(&self, address: Option<IpAddr>) -> Question {
        let is_light = true;
        self.begin(Peer { address, is_light })
    }

    /// Counts a question, which is over when it is dropped.
    fn begin(&self, peer: Peer) -> Question {
        let inner = Arc::clone(&self.inner);
        inner.table.enter(peer, inner.limits.peer_at_once);
        Question {
            inner,
            peer,
            bytes: 0,
        }
    }

    /// Returns the bytes of answers that are not read yet.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.inner.table.bytes()
    }
}

/// A question. It counts for its address until it is dropped.
pub struct Question {
    inner: Arc<Inner>,
    peer: Peer,
    /// Bytes of the answer.
    bytes: usize,
}

impl fmt::Debug for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Question");
        debug.field("peer", &self.peer).field("bytes", &self.bytes);
        debug.finish_non_exhaustive()
    }
}

/// The question of a response, in the extensions of that: it is taken out where
/// the body is handed to the transport.
#[derive(Clone, Debug)]
pub(crate) struct Asked(Arc<std::sync::Mutex<Option<Question>>>, Questions);

impl Asked {
    /// Makes the extension of a response whose body is handed over by this
    /// question.
    pub(crate) fn new(question: Question) -> Self {
        let questions = Questions {
            inner: Arc::clone(&question.inner),
        };
        Self(Arc::new(std::sync::Mutex::new(Some(question))), questions)
    }

    /// Takes the question. If it was taken before, begins one without an
    /// address.
    pub(crate) fn into_question(self) -> Question {
        let question = self.0.lock();
        let mut question = question.unwrap_or_else(std::sync::PoisonError::into_inner);
        question.take().unwrap_or_else(|| self.1.ask(None))
    }
}

/// Returns the address that a request comes from, by its extensions; `None` if
/// they do not tell.
pub(crate) fn peer_of(extensions: &http::Extensions) -> Option<IpAddr> {
    let connection = extensions.get::<Connection>();
    connection
        .and_then(|connection| connection.peer)
        .map(|peer| peer.ip())
}

/// A question that is worked on, until this is dropped.
#[derive(Debug)]
pub struct Work {
    _of_peer: OwnedSemaphorePermit,
    _of_all: OwnedSemaphorePermit,
}

impl Question {
    /// Waits until the question may be worked on.
    ///
    /// # Errors
    /// Too many questions of its address wait, it waits too long, or there is
    /// no memory for its answer.
    pub async fn work(&self) -> Result<Work, Busy> {
        let limits = &self.inner.limits;
        if !self.peer.is_light && self.inner.memory.is_near_limit() {
            return Err(self.refuse(Busy::Memory));
        }
        let waiting = self.inner.table.wait(self.peer, limits.peer_waiting);
        let Some(_waiting) = waiting else {
            return Err(self.refuse(Busy::Work));
        };
        let outcome = tokio::time::timeout(limits.patience, self.next_turn()).await;
        outcome.unwrap_or_else(|_| Err(self.refuse(Busy::Work)))
    }

    /// Waits for the question's turn, without a timeout: a question that has
    /// begun to answer is not refused.
    async fn next_turn(&self) -> Result<Work, Busy> {
        let peer_turns = self.inner.table.turns(self.peer);
        // The line of its address comes first, so that one address takes few
        // places in the line of all. Neither semaphore is ever closed.
        let closed = |_| Busy::Work;
        let peer_permit = peer_turns.acquire_owned().await.map_err(closed)?;
        let common_permit = Arc::clone(&self.inner.at_once).acquire_owned().await;
        Ok(Work {
            _of_peer: peer_permit,
            _of_all: common_permit.map_err(closed)?,
        })
    }

    /// Waits until the question may be worked on, and runs a part of the work
    /// on a blocking thread.
    ///
    /// # Errors
    /// Too many questions wait. The inner result is `None` if the work
    /// panicked.
    pub async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<Option<T>, Busy> {
        let permit = self.work().await?;
        Ok(run_aside(permit, work).await)
    }

    /// Waits for the question's turn, however long that takes, and runs a part
    /// of the work on a blocking thread. Returns `None` if the work panicked.
    pub(crate) async fn run_in_turn<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let turn = self.next_turn().await.ok()?;
        run_aside(turn, work).await
    }

    /// Counts bytes of the answer, before they are made, until
    /// [`Self::release`] or the end of the question.
    ///
    /// # Errors
    /// The bytes of the answers of the address, or of all, would exceed a
    /// limit.
    pub fn hold(&mut self, bytes: usize) -> Result<(), Busy> {
        let limits = &self.inner.limits;
        let bounds = (limits.peer_bytes, limits.bytes);
        if !self.inner.table.hold(self.peer, bytes, bounds) {
            return Err(self.refuse(Busy::Bytes));
        }
        self.bytes += bytes;
        Ok(())
    }

    /// Counts none of the question's bytes any more: the answer is gone.
    pub fn release(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        self.inner.table.release(self.peer, bytes);
    }

    /// Reports that the question is refused, and returns why.
    fn refuse(&self, busy: Busy) -> Busy {
        (self.inner.report_limit)(busy.limit());
        busy
    }

    /// Reports that the asker has taken nothing of an answer in time.
    fn report_unread(&self) {
        (self.inner.report_limit)(Limit::UnreadAnswers);
    }

    /// Returns how long the asker may take nothing of an answer before it is
    /// given up.
    fn stall(&self) -> Duration {
        self.inner.limits.stall
    }
}

impl Drop for Question {
    fn drop(&mut self) {
        self.release();
        self.inner.table.leave(self.peer);
    }
}

/// Runs work on a blocking thread, and ends its turn after it. Returns `None`
/// if the work panicked.
async fn run_aside<T: Send + 'static>(
    permit: Work,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let result = tokio::task::spawn_blocking(move || {
        let result = work();
        drop(permit);
        result
    });
    result.await.ok()
}
