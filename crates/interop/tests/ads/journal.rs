//! What a server reported, in order, and waiting for it.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use trunkline::{Event, Peer, Report};

/// One report, with all that tests look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Entry {
    Opened,
    Sent {
        type_url: String,
        names: Vec<String>,
        removed: Vec<String>,
    },
    Event(Event),
    Closed,
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
            Report::Opened => Entry::Opened,
            Report::Sent(sent) => Entry::Sent {
                type_url: sent.type_url.to_string(),
                names: texts(sent.resources.iter().map(|d| &d.resource.name)),
                removed: texts(sent.removed),
            },
            Report::Event(event) => Entry::Event(event.clone()),
            Report::Closed => Entry::Closed,
            _ => return,
        };
        self.lock().push(entry);
        self.written.notify_all();
    }

    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    /// The names that were sent of a type since a place in the journal.
    pub(crate) fn sent_since(&self, place: usize, type_url: &str) -> Vec<String> {
        let entries = self.lock();
        let names = entries[place..].iter().filter_map(|entry| match entry {
            Entry::Sent {
                type_url: url,
                names,
                ..
            } if url == type_url => Some(names.clone()),
            _ => None,
        });
        names.flatten().collect()
    }

    /// Waits until the entries since a place have an answer to a question.
    pub(crate) fn wait<T>(
        &self,
        what: &str,
        since: usize,
        ask: impl Fn(&[Entry]) -> Option<T>,
    ) -> T {
        const PATIENCE: Duration = Duration::from_secs(10);
        let deadline = Instant::now() + PATIENCE;
        let mut entries = self.lock();
        loop {
            if let Some(answer) = ask(&entries[since..]) {
                return answer;
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

fn texts<'a>(names: impl IntoIterator<Item = &'a trunkline::Name>) -> Vec<String> {
    names.into_iter().map(ToString::to_string).collect()
}
