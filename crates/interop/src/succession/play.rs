//! From round to round.

use std::fmt;
use std::thread;
use std::time::{Duration, Instant};

use super::record::{Record, Tally};
use super::{name_of, now};

/// How long a client may take to see the answer of a round. Envoy waits for a
/// resource for fifteen seconds.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// How long it may take to start.
const START: Duration = Duration::from_secs(30);

/// Resources that are removed late are removed within this time after the last
/// round.
const LINGER: Duration = Duration::from_secs(3);

const LOOK: Duration = Duration::from_millis(5);

/// A server whose contents go from round to round.
pub trait Scene {
    /// Where clients find it, on loopback.
    fn port(&self) -> u16;
    /// How many rounds come after the first.
    fn rounds(&self) -> usize;
    /// Replaces the contents by those of a round, in one change.
    fn change_to(&mut self, round: usize);
    /// Ends the server, and starts another in its place which knows nothing but
    /// the contents of a round.
    fn restart_with(&mut self, round: usize);
}

/// Who makes requests all the time.
pub trait Client: fmt::Debug {
    /// Its name in reports.
    fn name(&self) -> String;
    /// Whether the endpoint of this name has answered it.
    fn has_seen(&self, answer: &str) -> bool;
    /// How long it may take to see the answer of a round.
    fn patience(&self) -> Duration {
        PATIENCE
    }
    /// Ends its requests and tells what became of them.
    fn stop(self: Box<Self>) -> Tally;
}

/// How the server gets from one round to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// Its contents change.
    Change,
    /// Its contents change again before clients have seen what they are.
    Haste,
    /// It is replaced by one that has only the new contents.
    Restart,
}

impl By {
    /// How many rounds show that it costs nothing.
    #[must_use]
    pub fn rounds(self) -> usize {
        match self {
            Self::Change | Self::Haste => 20,
            Self::Restart => 5,
        }
    }

    /// How long a round goes on after it was seen, or at all. A server that is
    /// new learns from its clients' requests, and waits a while for all of them.
    fn pause(self) -> Duration {
        match self {
            Self::Change => Duration::from_millis(100),
            // More than files take to settle, and less than a client far away
            // takes to move.
            Self::Haste => Duration::from_millis(80),
            Self::Restart => Duration::from_millis(1200),
        }
    }
}

/// Goes through all rounds of a server. Unless in haste, the next begins when
/// all clients have seen the last, and a pause after.
#[must_use]
pub fn play(scene: &mut dyn Scene, by: By, clients: Vec<Box<dyn Client>>) -> Record {
    let mut record = Record::default();
    record.rounds.push(now());
    record.late = late(&clients, 0, START);
    for round in 1..=scene.rounds() {
        // A client that is lost would only lose more.
        if !record.late.is_empty() {
            break;
        }
        thread::sleep(by.pause());
        record.rounds.push(now());
        match by {
            By::Change | By::Haste => scene.change_to(round),
            By::Restart => scene.restart_with(round),
        }
        if by != By::Haste || round == scene.rounds() {
            let patience = clients.iter().map(|client| client.patience());
            let patience = patience.max().unwrap_or(PATIENCE);
            record.late = late(&clients, round, patience);
        }
    }
    thread::sleep(LINGER);
    record.tallies = clients.into_iter().map(Client::stop).collect();
    record
}

/// Waits until all clients have seen a round, and names those that have not.
fn late(clients: &[Box<dyn Client>], round: usize, patience: Duration) -> Vec<String> {
    let (answer, deadline) = (name_of(round), Instant::now() + patience);
    loop {
        let late = clients.iter().filter(|client| !client.has_seen(&answer));
        let late = late.map(|client| client.name());
        let late: Vec<_> = late
            .map(|name| format!("{name} has not seen {answer} in {patience:?}"))
            .collect();
        if late.is_empty() || Instant::now() >= deadline {
            return late;
        }
        thread::sleep(LOOK);
    }
}
