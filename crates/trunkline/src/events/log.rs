//! The log: a ring behind a lock, and the hooks that fill it.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use tokio::sync::Notify;
use trunkline_core::resource::TypeUrl;

use super::entry::{ClientStream, LogEvent};
use super::reader::Reader;
use super::ring::{NewEvent, Ring, Start, StartError};
use crate::server::{Acknowledged, ChangeCounts, Changed, Hooks, Peer, Report};

/// The maximum of variants that one event lists; the others are counted only.
pub const MOST_LISTED: usize = 1000;
/// The maximum of quarantined resources that one event lists.
const MOST_QUARANTINED: usize = 100;

/// The limits of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogLimits {
    /// Events that are kept.
    pub events: usize,
    /// Bytes of all events that are kept, about.
    pub bytes: usize,
    /// Readers at once.
    pub readers: usize,
}

impl Default for LogLimits {
    /// Enough for the ACKs of one change by ten thousand clients.
    fn default() -> Self {
        Self {
            events: 65_536,
            bytes: 16 << 20,
            readers: 64,
        }
    }
}

/// The newest events of a server; clones are the same one. It is filled as
/// [hooks](Hooks) of the server.
#[derive(Clone)]
pub struct EventLog {
    pub(super) shared: Arc<LogState>,
}

/// The state that a log and its readers share.
pub(super) struct LogState {
    /// Locked for one event, or for one batch. Never locked while something is
    /// formatted or freed.
    ring: Mutex<Ring>,
    /// Wakes readers that wait for the next event.
    pub(super) added: Notify,
    pub(super) readers: AtomicUsize,
    limits: LogLimits,
}

impl EventLog {
    /// Returns a log without events.
    #[must_use]
    pub fn new(limits: LogLimits) -> Self {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
        let nanos = since_epoch.unwrap_or_default().as_nanos();
        let log = u64::try_from(nanos).unwrap_or_default();
        Self {
            shared: Arc::new(LogState {
                ring: Mutex::new(Ring::new(log, limits)),
                added: Notify::new(),
                readers: AtomicUsize::new(0),
                limits,
            }),
        }
    }

    /// Begins to read.
    ///
    /// # Errors
    /// There are too many readers, or the events that should follow are not
    /// known here.
    pub fn read(&self, start: Start) -> Result<Reader, StartError> {
        // The reader counts itself out, also where the start is wrong.
        let reader = Reader::new(Arc::clone(&self.shared))?;
        reader.begin(start)
    }

    /// Adds an event, and wakes readers. Forgets old events beyond the limits.
    pub(super) fn append(&self, event: LogEvent) {
        let event = NewEvent::new(event);
        let mut forgotten = self.shared.lock().push(event);
        // Each is freed without the lock, since an event may have many names.
        while forgotten.take().is_some() {
            forgotten = self.shared.lock().forget_one();
        }
        self.shared.added.notify_waiters();
    }
}

impl LogState {
    /// Counts one more reader. An error if there are as many as there may be.
    pub(super) fn admit_reader(&self) -> Result<(), StartError> {
        let limit = self.limits.readers;
        let increment = |readers| (readers < limit).then_some(readers + 1);
        let outcome = self
            .readers
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, increment);
        outcome.map_or(Err(StartError::TooManyReaders { limit }), |_| Ok(()))
    }

    /// Locks the ring. Ignores poison: a reader that panicked ends alone.
    pub(super) fn lock(&self) -> MutexGuard<'_, Ring> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Hooks for EventLog {
    /// Logs ACKs, NACKs, and the start and end of a stream. Other reports are
    /// ignored.
    fn report(&self, peer: Peer<'_>, report: Report<'_>) {
        let client = || ClientStream {
            stream: peer.stream,
            node: peer.node.into(),
        };
        self.append(match report {
            Report::Acknowledged(acknowledged) => acknowledgement_event(client(), acknowledged),
            Report::Opened => LogEvent::Connected {
                client: client(),
                address: peer.connection.peer,
                identity: peer.identity.map(|identity| identity.as_str().into()),
            },
            Report::Closed => LogEvent::Disconnected { client: client() },
            _ => return,
        });
    }

    /// Logs a change. A change without any difference counts as a revision, but
    /// is no event.
    fn changed(&self, revision: u64, author: &str, changed: &[Changed]) {
        if changed.is_empty() {
            return self.shared.lock().note_revision(revision);
        }
        self.append(LogEvent::Changed {
            revision,
            author: author.into(),
            listed: changed.iter().take(MOST_LISTED).cloned().collect(),
            counts: count_by_type(changed),
        });
    }
}

impl Default for EventLog {
    fn default() -> Self {
        Self::new(LogLimits::default())
    }
}

impl fmt::Debug for EventLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventLog")
            .field("limits", &self.shared.limits)
            .finish_non_exhaustive()
    }
}

/// Returns the event of an ACK or a NACK.
fn acknowledgement_event(client: ClientStream, acknowledged: Acknowledged<'_>) -> LogEvent {
    let type_url = acknowledged.type_url.clone();
    let nonce = acknowledged.nonce.clone();
    let revision = acknowledged.revision;
    let Some(error) = acknowledged.error else {
        return LogEvent::Acked {
            client,
            type_url,
            nonce,
            revision,
        };
    };

    let quarantined = acknowledged.quarantined().take(MOST_QUARANTINED);
    LogEvent::Nacked {
        client,
        type_url,
        nonce,
        revision,
        error: error.clone(),
        quarantined: quarantined
            .map(|(name, version)| (name.clone(), version.clone()))
            .collect(),
    }
}

/// Counts changes by type. They are in the order of their types.
fn count_by_type(changed: &[Changed]) -> Vec<(TypeUrl, ChangeCounts)> {
    let of_one_type = changed.chunk_by(|a, b| a.type_url == b.type_url);
    let counts =
        of_one_type.map(|changes| (changes[0].type_url.clone(), ChangeCounts::of(changes)));
    counts.collect()
}
