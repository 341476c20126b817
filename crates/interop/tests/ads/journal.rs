//! What a server reported, in order, and waiting for it.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use trunkline::{Event, Name, Peer, Report, Version};

const PATIENCE: Duration = Duration::from_secs(10);

/// One report, with all that tests look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Entry {
    Sent(Sent),
    Event(Event),
}

/// A response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sent {
    pub(crate) type_url: String,
    pub(crate) resources: Vec<(Name, Version)>,
    pub(crate) removed: Vec<Name>,
}

impl Sent {
    pub(crate) fn brings(&self, name: &str) -> bool {
        self.resources.iter().any(|(own, _)| own.as_str() == name)
    }
}

/// All reports of one server.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    entries: Mutex<Vec<Entry>>,
    written: Condvar,
}

impl Journal {
    pub(crate) fn write(&self, _: Peer<'_>, report: Report<'_>) {
        let entry = match report {
            Report::Sent(sent) => Entry::Sent(Sent {
                type_url: sent.type_url.to_string(),
                resources: sent
                    .resources
                    .iter()
                    .map(|d| (d.resource.name.clone(), d.resource.version.clone()))
                    .collect(),
                removed: sent.removed.to_vec(),
            }),
            Report::Event(event) => Entry::Event(event.clone()),
            _ => return,
        };
        self.lock().push(entry);
        self.written.notify_all();
    }

    /// Where the next entry will stand.
    pub(crate) fn place(&self) -> usize {
        self.lock().len()
    }

    /// The responses of a type since a place.
    pub(crate) fn sent(&self, since: usize, type_url: &str) -> Vec<Sent> {
        let of_type = |entry: &Entry| match entry {
            Entry::Sent(sent) if sent.type_url == type_url => Some(sent.clone()),
            _ => None,
        };
        self.lock()[since..].iter().filter_map(of_type).collect()
    }

    /// Waits until an entry since a place is what is looked for.
    pub(crate) fn wait<T>(
        &self,
        what: &str,
        since: usize,
        look: impl Fn(&Entry) -> Option<T>,
    ) -> T {
        self.wait_all(what, since, |entries| entries.iter().find_map(&look))
    }

    /// Waits until a response that is what is looked for is accepted.
    pub(crate) fn wait_accepted(
        &self,
        what: &str,
        since: usize,
        type_url: &str,
        look: impl Fn(&Sent) -> bool,
    ) {
        let sends = |entry: &Entry| match entry {
            Entry::Sent(sent) => sent.type_url == type_url && look(sent),
            Entry::Event(_) => false,
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
