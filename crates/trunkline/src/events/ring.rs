//! The events that are kept: the newest, so many and so many bytes. They are
//! kept as bytes, in blocks.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::SystemTime;

use super::blocks::{Blocks, Span};
use super::encoded::{decode, encode};
use super::entry::{EventId, LogEntry, LogEvent};
use super::log::LogLimits;

/// Events in one batch of a reader.
const MOST_IN_BATCH: usize = 64;
/// Bytes of one batch, about; a larger event is a batch of its own.
const MOST_BATCH_BYTES: usize = 256 << 10;

/// Where a reader begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// At the next event.
    Now,
    /// After the change with this revision. All later changes follow; of other
    /// events those that are kept, see
    /// [`Reader::has_gap`](super::Reader::has_gap).
    Revision(u64),
    /// After the event with this id, exactly.
    After(EventId),
}

/// Why a reader cannot begin where it should.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    /// There are too many readers.
    #[error("{limit} readers follow the events, and no more may: end one of them")]
    TooManyReaders {
        /// How many there may be.
        limit: usize,
    },
    /// Changes after the revision are forgotten.
    #[error("changes after revision {revision} are forgotten: the oldest that counts is {oldest}")]
    RevisionForgotten {
        /// The revision.
        revision: u64,
        /// The oldest revision from which all changes are kept.
        oldest: u64,
    },
    /// The contents have not had the revision; those of an earlier process may
    /// have.
    #[error("the contents are at revision {current}, and have not been at {revision}")]
    RevisionUnknown {
        /// The revision.
        revision: u64,
        /// The revision of the contents.
        current: u64,
    },
    /// The id is of another process.
    #[error("the event {0} is of another process, or of one before the server was started again")]
    OtherLog(EventId),
    /// Events after that of the id are forgotten.
    #[error("events after {id} are forgotten: the oldest that is kept is {oldest}")]
    IdForgotten {
        /// The id.
        id: EventId,
        /// The id of the oldest event that is kept.
        oldest: EventId,
    },
    /// No event has had the id yet.
    #[error("there is no event {id} yet: the newest is {newest}")]
    IdUnknown {
        /// The id.
        id: EventId,
        /// The id of the newest event.
        newest: EventId,
    },
}

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Ring {
    /// The log of the ids.
    log: u64,
    limits: LogLimits,
    slots: VecDeque<Slot>,
    /// The events of the slots that are kept as bytes.
    blocks: Blocks,
    /// How many events are forgotten; the first slot has the next number.
    forgotten: u64,
    /// The bytes of all slots, about.
    bytes: usize,
    /// The newest revision of the contents.
    revision: u64,
    /// The newest revision whose change is forgotten.
    forgotten_change: u64,
    /// The oldest revision after which no event is forgotten.
    complete_after: u64,
}

/// An event in the ring.
#[derive(Debug)]
struct Slot {
    time: SystemTime,
    event: Kept,
    /// The revision that it made, if it is a change.
    change: Option<u64>,
    /// The newest revision that it can be about.
    last_revision: u64,
    /// The newest revision that this event or an earlier one is about: slots
    /// are in the order of these.
    seen: u64,
}

/// How an event is kept.
#[derive(Debug)]
pub(super) enum Kept {
    /// As bytes.
    Encoded(Span),
    /// One that has constraints, which are shared with the contents.
    Shared(Arc<LogEvent>),
}

/// An event on its way into the ring.
pub(super) struct NewEvent {
    form: NewForm,
    change: Option<u64>,
    /// The revision of the response that it is about, if that is known.
    about: u64,
}

enum NewForm {
    Encoded(Vec<u8>),
    Shared(Arc<LogEvent>),
}

impl NewEvent {
    /// Makes an event ready, so that a ring has to copy its bytes only.
    pub(super) fn new(event: LogEvent) -> Self {
        let (change, about) = match event {
            LogEvent::Changed { revision, .. } => (Some(revision), 0),
            LogEvent::Acked { revision, .. } | LogEvent::Nacked { revision, .. } => {
                (None, revision.unwrap_or(0))
            }
            LogEvent::Connected { .. } | LogEvent::Disconnected { .. } => (None, 0),
        };
        let form = match encode(&event) {
            Some(bytes) => NewForm::Encoded(bytes),
            None => NewForm::Shared(Arc::new(event)),
        };
        Self {
            form,
            change,
            about,
        }
    }
}

/// A place in the ring.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// How many events are before it.
    pub(super) passed: u64,
    /// Events up to the change with this revision are skipped.
    floor: u64,
}

/// Some of the events after a place.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) entries: Vec<LogEntry>,
    pub(super) place: Place,
    /// Whether there are no more.
    pub(super) is_last: bool,
}

impl Ring {
    /// Returns a ring without events.
    pub(super) fn new(log: u64, limits: LogLimits) -> Self {
        Self {
            log,
            limits,
            slots: VecDeque::new(),
            blocks: Blocks::default(),
            forgotten: 0,
            bytes: 0,
            revision: 0,
            forgotten_change: 0,
            complete_after: 0,
        }
    }

    /// Adds an event. Returns an old event that had to be forgotten for it. The
    /// caller frees that one without the lock, and calls [`Self::forget_one`]
    /// until it returns none.
    pub(super) fn push(&mut self, event: NewEvent) -> Option<Kept> {
        if let Some(revision) = event.change {
            self.note_revision(revision);
        }
        // A list that is full would double for one event more.
        let has_most = self.slots.len() >= self.limits.events;
        let forgotten = has_most.then(|| self.forget_oldest()).flatten();

        let last_revision = self.revision.max(event.about);
        let last_seen = self.slots.back().map_or(0, |last| last.seen);
        let slot = Slot {
            time: SystemTime::now(),
            event: match event.form {
                NewForm::Encoded(bytes) => Kept::Encoded(self.blocks.push(&bytes)),
                NewForm::Shared(event) => Kept::Shared(event),
            },
            change: event.change,
            last_revision,
            seen: last_revision.max(last_seen),
        };
        self.bytes += slot.bytes();
        self.slots.push_back(slot);
        forgotten.or_else(|| self.forget_one())
    }

    /// Notes a revision of the contents, unless a newer one is known.
    pub(super) fn note_revision(&mut self, revision: u64) {
        self.revision = self.revision.max(revision);
    }

    /// Forgets the oldest event if the ring is over its limits, and returns it.
    /// The newest event is kept even if it alone is over a limit.
    pub(super) fn forget_one(&mut self) -> Option<Kept> {
        let is_full = self.slots.len() > self.limits.events || self.bytes > self.limits.bytes;
        if !is_full || self.slots.len() < 2 {
            return None;
        }
        self.forget_oldest()
    }

    /// Forgets the oldest event, and returns it.
    fn forget_oldest(&mut self) -> Option<Kept> {
        let slot = self.slots.pop_front()?;
        self.forgotten += 1;
        self.bytes -= slot.bytes();
        if let Kept::Encoded(_) = slot.event {
            self.blocks.pop();
        }
        let complete_after = match slot.change {
            Some(revision) => {
                self.forgotten_change = self.forgotten_change.max(revision);
                revision
            }
            None => slot.last_revision + 1,
        };
        self.complete_after = self.complete_after.max(complete_after);
        Some(slot.event)
    }

    /// Finds the place at which a reader begins, and whether events that are no
    /// changes are forgotten after its revision.
    pub(super) fn find(&self, start: Start) -> Result<(Place, bool), StartError> {
        match start {
            Start::Now => Ok((self.end_place(), false)),
            Start::After(id) => Ok((Place::after(self.find_id(id)?), false)),
            Start::Revision(revision) => self.find_revision(revision),
        }
    }

    /// Returns the number of an event id. An error means that not all events
    /// after it are kept, or that the id is not of this log.
    fn find_id(&self, id: EventId) -> Result<u64, StartError> {
        if id.log != self.log {
            return Err(StartError::OtherLog(id));
        }
        if id.number > self.end() {
            let newest = self.id(self.end());
            return Err(StartError::IdUnknown { id, newest });
        }
        if id.number < self.forgotten {
            let oldest = self.id(self.forgotten + 1);
            return Err(StartError::IdForgotten { id, oldest });
        }
        Ok(id.number)
    }

    /// Returns the place after the change of a revision, and whether events
    /// that are no changes are forgotten after it. An error means that changes
    /// after the revision are forgotten, or that the contents have not had it.
    fn find_revision(&self, revision: u64) -> Result<(Place, bool), StartError> {
        let current = self.revision;
        if revision > current {
            return Err(StartError::RevisionUnknown { revision, current });
        }
        if revision < self.forgotten_change {
            let oldest = self.forgotten_change;
            return Err(StartError::RevisionForgotten { revision, oldest });
        }

        let first_index = self.slots.partition_point(|slot| slot.seen < revision);
        // The change itself is not after its revision. An ACK of it may have
        // been logged before.
        let change_slot = self
            .slots
            .get(first_index)
            .filter(|slot| !slot.is_after(revision));
        let index = first_index + usize::from(change_slot.is_some());
        let place = Place {
            passed: self.forgotten + index as u64,
            floor: revision,
        };
        Ok((place, revision < self.complete_after))
    }

    /// Returns a batch of the events after a place. The error is the number of
    /// events that the reader missed, because they are forgotten.
    pub(super) fn read(&self, place: Place) -> Result<Batch, u64> {
        let Some(first_index) = place.passed.checked_sub(self.forgotten) else {
            return Err(self.forgotten - place.passed);
        };
        let first_index = usize::try_from(first_index).unwrap_or(usize::MAX);

        let mut passed = place.passed;
        let mut entries = Vec::new();
        let mut bytes = 0;
        for slot in self.slots.iter().skip(first_index).take(MOST_IN_BATCH) {
            bytes += slot.bytes();
            if bytes > MOST_BATCH_BYTES && !entries.is_empty() {
                break;
            }
            passed += 1;
            if !slot.is_after(place.floor) {
                continue;
            }
            let event = match &slot.event {
                Kept::Encoded(span) => decode(self.blocks.get(*span)).map(Arc::new),
                Kept::Shared(event) => Some(Arc::clone(event)),
            };
            entries.extend(event.map(|event| LogEntry {
                id: self.id(passed),
                time: slot.time,
                event,
            }));
        }

        Ok(Batch {
            entries,
            place: Place { passed, ..place },
            is_last: passed == self.end(),
        })
    }

    /// Returns the newest revision of the contents.
    pub(super) fn revision(&self) -> u64 {
        self.revision
    }

    /// Returns the id of the event with this number.
    pub(super) fn id(&self, number: u64) -> EventId {
        let log = self.log;
        EventId { log, number }
    }

    /// Returns the place after the newest event.
    pub(super) fn end_place(&self) -> Place {
        Place::after(self.end())
    }

    /// Returns the number of the newest event; zero if there was none.
    fn end(&self) -> u64 {
        self.forgotten + self.slots.len() as u64
    }
}

impl Place {
    /// Returns the place after the event with this number.
    fn after(passed: u64) -> Self {
        Self { passed, floor: 0 }
    }
}

impl Slot {
    /// Returns about how many bytes of memory the event takes.
    fn bytes(&self) -> usize {
        let event = match &self.event {
            Kept::Encoded(span) => span.len(),
            Kept::Shared(event) => event.bytes(),
        };
        size_of::<Self>() + event
    }

    /// Returns whether the event came after the change with a revision. An ACK
    /// of that change did, even if it was told of sooner: streams do not wait
    /// for the hooks of a change.
    fn is_after(&self, revision: u64) -> bool {
        match self.change {
            Some(made) => made > revision,
            None => self.last_revision >= revision,
        }
    }
}
