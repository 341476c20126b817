//! What a server reported, in order, and waiting for it.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use trunkline::{Event, Name, Peer, Report, Version};

const PATIENCE: Duration = Duration::from_secs(10);

/// One report, with all that tests look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// A stream, by its number, made its first request.
    Opened(u64),
    /// A request came in.
    Requested {
        /// Its type.
        type_url: String,
        /// Its length on the wire.
        bytes: usize,
    },
    /// A response went out.
    Sent(Sent),
    /// The response before has so many bytes, which is more than its client may
    /// take.
    Oversized(usize),
    /// Something happened on a stream.
    Event(Event),
    /// A stream is over.
    Closed(u64),
}

/// A response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sent {
    /// On which stream.
    pub stream: u64,
    /// Its type.
    pub type_url: String,
    /// The resources in it.
    pub resources: Vec<(Name, Version)>,
    /// The names that it removes.
    pub removed: Vec<Name>,
    /// Its length on the wire.
    pub bytes: usize,
}

impl Sent {
    /// Whether it has a resource of this name.
    #[must_use]
    pub fn brings(&self, name: &str) -> bool {
        self.resources.iter().any(|(own, _)| own.as_str() == name)
    }

    /// The names of the resources in it.
    #[must_use]
    pub fn names(&self) -> Vec<&str> {
        self.resources
            .iter()
            .map(|(name, _)| name.as_str())
            .collect()
    }
}

/// All reports of one server.
#[derive(Debug, Default)]
pub struct Journal {
    entries: Mutex<Vec<Entry>>,
    written: Condvar,
}

impl Journal {
    pub(crate) fn write(&self, peer: Peer<'_>, report: Report<'_>) {
        let entry = match report {
            Report::Opened => Entry::Opened(peer.stream),
            Report::Requested {
                type_url, bytes, ..
            } => Entry::Requested {
                type_url: type_url.to_string(),
                bytes,
            },
            Report::Sent(sent) => Entry::Sent(Sent {
                stream: peer.stream,
                type_url: sent.type_url.to_string(),
                resources: sent
                    .resources
                    .iter()
                    .map(|d| (d.resource.name.clone(), d.resource.version.clone()))
                    .collect(),
                removed: sent.removed.to_vec(),
                bytes: sent.bytes,
            }),
            Report::Oversized(response) => Entry::Oversized(response.bytes),
            Report::Event(event) => Entry::Event(event.clone()),
            Report::Closed => Entry::Closed(peer.stream),
            _ => return,
        };
        self.lock().push(entry);
        self.written.notify_all();
    }

    /// Where the next entry will stand.
    #[must_use]
    pub fn place(&self) -> usize {
        self.lock().len()
    }

    /// The responses of a type since a place.
    #[must_use]
    pub fn sent(&self, since: usize, type_url: &str) -> Vec<Sent> {
        let of_type = |entry: &Entry| match entry {
            Entry::Sent(sent) if sent.type_url == type_url => Some(sent.clone()),
            _ => None,
        };
        self.lock()[since..].iter().filter_map(of_type).collect()
    }

    /// How many entries are what is looked for.
    #[must_use]
    pub fn count(&self, look: impl Fn(&Entry) -> bool) -> usize {
        self.lock().iter().filter(|entry| look(entry)).count()
    }

    /// How many requests of a type changed subscriptions, and were no
    /// acknowledgement. Waits until every response of the type has its ACK or
    /// NACK.
    ///
    /// # Panics
    ///
    /// When one has none in time.
    pub fn asked(&self, type_url: &str) -> usize {
        self.wait_all("an answer to every response", 0, |entries| {
            let (mut requests, mut sent, mut answered) = (0, 0, 0);
            for entry in entries {
                match entry {
                    Entry::Requested { type_url: url, .. } if url == type_url => requests += 1,
                    Entry::Sent(response) if response.type_url == type_url => sent += 1,
                    Entry::Event(
                        Event::Acked { type_url: url, .. }
                        | Event::Nacked { type_url: url, .. }
                        | Event::Stale { type_url: url, .. },
                    ) if url.as_str() == type_url => answered += 1,
                    _ => {}
                }
            }
            (sent == answered).then_some(requests - answered)
        })
    }

    /// Waits until an entry since a place is what is looked for.
    ///
    /// # Panics
    ///
    /// When none comes in time.
    pub fn wait<T>(&self, what: &str, since: usize, look: impl Fn(&Entry) -> Option<T>) -> T {
        self.wait_all(what, since, |entries| entries.iter().find_map(&look))
    }

    /// Waits until a response that is looked for is ACKed.
    ///
    /// # Panics
    ///
    /// When none is in time.
    pub fn wait_accepted(
        &self,
        what: &str,
        since: usize,
        type_url: &str,
        look: impl Fn(&Sent) -> bool,
    ) {
        let sends = |entry: &Entry| match entry {
            Entry::Sent(sent) => sent.type_url == type_url && look(sent),
            _ => false,
        };
        let accepts = |entry: &Entry| match entry {
            Entry::Event(Event::Acked { type_url: url, .. }) => url.as_str() == type_url,
            _ => false,
        };
        self.wait_all(what, since, |entries| {
            let sent = entries.iter().position(sends)?;
            entries[sent..]
                .iter()
                .find(|entry| accepts(entry))
                .map(drop)
        });
    }

    /// Waits until so many responses are what is looked for.
    ///
    /// # Panics
    ///
    /// When they are not in time.
    pub fn wait_times(&self, what: &str, times: usize, look: impl Fn(&Sent) -> bool) {
        let is = |entry: &&Entry| match entry {
            Entry::Sent(sent) => look(sent),
            _ => false,
        };
        self.wait_all(what, 0, |entries| {
            (entries.iter().filter(is).count() >= times).then_some(())
        });
    }

    /// Waits until a resource is quarantined, and gives its name, its version
    /// and the text of the NACK.
    ///
    /// # Panics
    ///
    /// When nothing is in time.
    pub fn wait_parked(&self, since: usize) -> (Name, Version, String) {
        let parked = |entry: &Entry| match entry {
            Entry::Event(Event::Quarantined {
                name,
                version,
                error,
                ..
            }) => Some((name.clone(), version.clone(), error.message.clone())),
            _ => None,
        };
        self.wait("the bad one to be parked", since, parked)
    }

    fn wait_all<T>(&self, what: &str, since: usize, look: impl Fn(&[Entry]) -> Option<T>) -> T {
        let deadline = Instant::now() + PATIENCE;
        let mut entries = self.lock();
        loop {
            if let Some(found) = look(&entries[since..]) {
                return found;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(
                !left.is_zero(),
                "waited {PATIENCE:?} for {what} in {entries:#?}"
            );
            let woken = self.written.wait_timeout(entries, left);
            entries = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
