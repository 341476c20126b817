//! A reader: a position in a log.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::entry::{EventId, LogEntry};
use super::log::LogState;
use super::ring::{Batch, Place, Start, StartError};

/// A position in an [`EventLog`](super::EventLog). It keeps nothing: events
/// that it did not read in time are forgotten.
pub struct Reader {
    log: Arc<LogState>,
    place: Place,
    has_gap: bool,
}

/// Events were forgotten before the reader got to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{count} events were forgotten before they were read")]
pub struct Missed {
    /// How many.
    pub count: u64,
}

impl Reader {
    /// Returns a reader at the end of the log, and counts it.
    pub(super) fn new(log: Arc<LogState>) -> Result<Self, StartError> {
        log.admit_reader()?;
        let place = log.lock().end_place();
        Ok(Self {
            log,
            place,
            has_gap: false,
        })
    }

    /// Moves the reader to where it begins. An error means that events which
    /// should follow are not known here.
    pub(super) fn begin(mut self, start: Start) -> Result<Self, StartError> {
        (self.place, self.has_gap) = self.log.lock().find(start)?;
        Ok(self)
    }

    /// Waits for the next events, and returns a batch of those that are there.
    /// No event is lost if the future is dropped.
    ///
    /// # Errors
    /// The reader was too slow: events that it has not read are forgotten.
    pub async fn next(&mut self) -> Result<Vec<LogEntry>, Missed> {
        let log = Arc::clone(&self.log);
        loop {
            // Registered before the read, so that no event comes unseen in
            // between.
            let added = log.added.notified();
            let batch = log.lock().read(self.place);
            let Batch {
                entries,
                place,
                is_last,
            } = batch.map_err(|count| Missed { count })?;
            self.place = place;
            if !entries.is_empty() {
                return Ok(entries);
            }
            if is_last {
                added.await;
            }
        }
    }

    /// Returns the id of the last event that this reader has passed. A reader
    /// that begins after that id goes on where this one is.
    #[must_use]
    pub fn position(&self) -> EventId {
        self.log.lock().id(self.place.passed)
    }

    /// Returns the newest revision of the contents.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.log.lock().revision()
    }

    /// Returns whether ACKs, NACKs or other events are forgotten that came
    /// after the revision at which the reader began. Changes never are.
    #[must_use]
    pub fn has_gap(&self) -> bool {
        self.has_gap
    }
}

/// Counts the reader out.
impl Drop for Reader {
    fn drop(&mut self) {
        self.log.readers.fetch_sub(1, Ordering::Relaxed);
    }
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader")
            .field("place", &self.place)
            .finish_non_exhaustive()
    }
}
