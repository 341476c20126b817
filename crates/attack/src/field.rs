//! What an attack gets: the doors of the server, how large it shall be, when it
//! is over, and where it notes what happened.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use crate::door::{ATTACKERS, Door, Doors};
use crate::error::{Error, Result};

/// How often it is looked whether an attack is over.
const LOOK: Duration = Duration::from_millis(20);

/// How large an attack is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scale {
    /// As large as one machine can make it, for this time.
    Full(Duration),
    /// As small as it still is that attack.
    Quick,
}

/// How long a quick attack goes on at least, and how long it may take until the
/// server has taken or refused some of it.
const QUICK: Duration = Duration::from_millis(400);
const QUICK_PATIENCE: Duration = Duration::from_secs(15);

/// See the module's documentation.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub(crate) xds: Door,
    pub(crate) admin: Door,
    pub(crate) mcp: Door,
    /// The same for those who do no harm.
    pub(crate) others: Doors,
    scale: Scale,
    begun: Instant,
    tally: Arc<Tally>,
}

#[derive(Debug, Default)]
struct Tally {
    taken: AtomicU64,
    refused: AtomicU64,
    told: Mutex<Told>,
}

/// What attackers were told.
#[derive(Clone, Debug, Default)]
pub(crate) struct Told {
    /// The first reason for which one was turned away.
    pub(crate) reason: Option<String>,
    /// What the server should have done and did not.
    pub(crate) faults: Vec<String>,
}

impl Field {
    pub(crate) fn new(others: &Doors, scale: Scale) -> Self {
        let Doors { xds, admin, mcp } = others.from(ATTACKERS);
        Self {
            xds,
            admin,
            mcp,
            others: others.clone(),
            scale,
            begun: Instant::now(),
            tally: Arc::default(),
        }
    }

    /// A number by the scale.
    pub(crate) fn pick(&self, full: usize, quick: usize) -> usize {
        match self.scale {
            Scale::Full(_) => full,
            Scale::Quick => quick,
        }
    }

    /// Whether its time is over. A quick attack goes on until something has
    /// happened, so that it takes place on a slow machine too.
    pub(crate) fn is_over(&self) -> bool {
        let elapsed = self.begun.elapsed();
        match self.scale {
            Scale::Full(time) => elapsed >= time,
            Scale::Quick => {
                let has_happened = self.taken() + self.refused() > 0;
                elapsed >= QUICK_PATIENCE || (has_happened && elapsed >= QUICK)
            }
        }
    }

    /// The longest that the attack may take in all, if a step of it hangs.
    pub(crate) fn longest(&self) -> Duration {
        match self.scale {
            Scale::Full(time) => time + QUICK_PATIENCE,
            Scale::Quick => 2 * QUICK_PATIENCE,
        }
    }

    /// Waits until the attack is over.
    pub(crate) async fn hold(&self) {
        self.pause(Duration::MAX).await;
    }

    /// Waits a while, or until the attack is over.
    pub(crate) async fn pause(&self, time: Duration) {
        let begun = Instant::now();
        while !self.is_over() && begun.elapsed() < time {
            let rest = time.saturating_sub(begun.elapsed());
            tokio::time::sleep(rest.min(LOOK)).await;
        }
    }

    /// Lets so many attackers act at once until the attack is over. An attacker
    /// that the server turned away is noted as refused; those that are not done
    /// at the end are cut off.
    pub(crate) async fn crowd<F, M>(&self, count: usize, attacker: F)
    where
        F: Fn(usize, Self) -> M,
        M: Future<Output = Result<()>> + Send + 'static,
    {
        let mut attackers = JoinSet::new();
        for index in 0..count {
            let (field, attacker) = (self.clone(), attacker(index, self.clone()));
            attackers.spawn(async move { field.note(attacker.await) });
        }
        let all = async { while attackers.join_next().await.is_some() {} };
        tokio::select! {
            () = all => {}
            () = self.hold() => {}
        }
    }

    /// Notes what the server took: messages, names, connections, requests.
    pub(crate) fn note_taken(&self, count: usize) {
        self.tally.taken.fetch_add(count as u64, Ordering::Relaxed);
    }

    /// Notes a refusal, if it is one.
    pub(crate) fn note(&self, outcome: Result<()>) {
        if let Err(error) = outcome {
            self.note_refused(&error);
        }
    }

    /// Notes that the server turned an attacker away.
    pub(crate) fn note_refused(&self, error: &Error) {
        self.tally.refused.fetch_add(1, Ordering::Relaxed);
        let mut told = self
            .tally
            .told
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        told.reason.get_or_insert_with(|| error.to_string());
    }

    /// Notes a fault unless something holds.
    pub(crate) fn expect(&self, holds: bool, fault: impl Into<String>) {
        if !holds {
            let told = self.tally.told.lock();
            let mut told = told.unwrap_or_else(PoisonError::into_inner);
            told.faults.push(fault.into());
        }
    }

    /// How much the server took so far.
    pub(crate) fn taken(&self) -> u64 {
        self.tally.taken.load(Ordering::Relaxed)
    }

    /// How often it turned an attacker away so far.
    pub(crate) fn refused(&self) -> u64 {
        self.tally.refused.load(Ordering::Relaxed)
    }

    /// What attackers were told so far.
    pub(crate) fn told(&self) -> Told {
        let told = self.tally.told.lock();
        told.unwrap_or_else(PoisonError::into_inner).clone()
    }
}
