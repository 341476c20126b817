//! What one client has seen: a revision for each resource, and whether that is
//! right.

use std::collections::HashMap;
use std::sync::Arc;

use super::shared::Shared;
use super::spec::Spec;
use crate::contents::{Kind, Place, same};
use crate::measure::Counters;

/// One of so many bodies is compared as a whole with what was put.
const COMPARED: usize = 61;

/// When a client has its first configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Complete {
    /// It holds so many resources of the tool's.
    Holding(usize),
    /// Each of its types was answered.
    Answered(usize),
    /// It never does, and nobody waits for it.
    Never,
}

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Ledger {
    client: usize,
    /// The variant that it gets of every resource.
    variant: usize,
    shared: Arc<Shared>,
    /// By type and place; zero is not held.
    revisions: [Vec<u32>; Kind::ALL.len()],
    answered: [bool; Kind::ALL.len()],
    pub(crate) held: usize,
    complete: Complete,
    configured: bool,
    /// Whether the response that is being read brought something.
    news: bool,
    /// When the client was told to connect, in nanoseconds.
    begun: u64,
    /// When each name was asked for, if that is timed.
    asked: HashMap<(Kind, usize), u64>,
}

impl Ledger {
    pub(crate) fn new(spec: &Spec, shared: Arc<Shared>) -> Self {
        Self {
            client: spec.number,
            variant: shared.truth.recipe.variants.of(spec.category),
            shared,
            revisions: Default::default(),
            answered: [false; Kind::ALL.len()],
            held: 0,
            complete: spec.complete,
            configured: false,
            news: false,
            begun: 0,
            asked: HashMap::new(),
        }
    }

    pub(crate) fn begin(&mut self) {
        if self.begun == 0 {
            self.begun = self.shared.truth.now();
        }
    }

    /// A name is asked for, and its answer is timed.
    pub(crate) fn ask(&mut self, kind: Kind, index: usize) {
        self.asked.insert((kind, index), self.shared.truth.now());
    }

    /// A response came, with so many resources. Counted before anything in it
    /// is looked at: who waits for that reads the counters next.
    pub(crate) fn heard(&self, resources: usize, bytes: usize) {
        let counters = &self.shared.counters;
        Counters::add(&counters.responses, 1);
        Counters::add(&counters.resources, resources);
        Counters::add(&counters.bytes, bytes);
    }

    /// All that is in a response about a type was looked at.
    pub(crate) fn answered(&mut self, kind: Kind) {
        let first = !std::mem::replace(&mut self.answered[kind.place()], true);
        let news = std::mem::take(&mut self.news);
        if !news && !first && self.complete != Complete::Never {
            Counters::add(&self.shared.counters.needless, 1);
        }
        let answered = self.answered.iter().filter(|yes| **yes).count();
        if matches!(self.complete, Complete::Answered(all) if answered >= all) {
            self.configure();
        }
    }

    /// A resource was accepted; its place, if the client did not hold it.
    pub(crate) fn saw(&mut self, kind: Kind, name: &str, body: &[u8]) -> Option<usize> {
        if self.complete == Complete::Never {
            return None;
        }
        let shared = Arc::clone(&self.shared);
        let (truth, counters) = (&shared.truth, &shared.counters);
        // What others put is none of our business.
        let index = truth.recipe.index(name)?;
        let place = self.place(kind, index);
        let (Some(said), Some(newest)) = (kind.said(body), truth.newest(place)) else {
            Counters::add(&counters.wrong, 1);
            return None;
        };
        if said.variant != self.variant {
            Counters::add(&counters.foreign, 1);
            return None;
        }
        let (old, new) = (self.revision(kind, index), said.revision);
        if new > newest {
            Counters::add(&counters.wrong, 1);
            return None;
        }
        if (self.client + index).is_multiple_of(COMPARED)
            && !same(kind, body, &truth.recipe.body(place, new))
        {
            Counters::add(&counters.wrong, 1);
        }
        if new <= old {
            let counter = match new == old {
                true => &counters.repeated,
                false => &counters.backwards,
            };
            Counters::add(counter, 1);
            return None;
        }
        self.set(kind, index, new);
        self.news = true;
        if old == 0 {
            truth.held(place);
            self.gain(kind, index);
            return Some(index);
        }
        // Counted first: who waits for the change reads the counters next.
        Counters::add(&counters.delivered, 1);
        let mut newest = true;
        truth.seen(old, new, |nanoseconds| {
            shared.converged.note(self.client, nanoseconds);
            if !std::mem::replace(&mut newest, false) {
                Counters::add(&counters.overtaken, 1);
            }
        });
        None
    }

    fn gain(&mut self, kind: Kind, index: usize) {
        self.held += 1;
        if let Some(asked) = self.asked.remove(&(kind, index)) {
            let took = self.shared.truth.now().saturating_sub(asked);
            self.shared.answered.note(self.client, took);
        }
        if matches!(self.complete, Complete::Holding(all) if self.held >= all) {
            self.configure();
        }
    }

    fn configure(&mut self) {
        if !std::mem::replace(&mut self.configured, true) {
            let took = self.shared.truth.now().saturating_sub(self.begun);
            self.shared.first.note(self.client, took);
            self.shared.configured();
        }
    }

    /// The server says that a resource is gone. Nobody removes any.
    pub(crate) fn lost(&mut self, kind: Kind, name: &str) {
        let index = self.shared.truth.recipe.index(name);
        if let Some(index) = index.filter(|index| self.revision(kind, *index) > 0) {
            self.set(kind, index, 0);
            self.held -= 1;
            self.news = true;
            Counters::add(&self.shared.counters.lost, 1);
        }
    }

    /// Where the client's variant of a resource stands.
    pub(crate) fn place(&self, kind: Kind, index: usize) -> Place {
        Place {
            kind,
            index,
            variant: self.variant,
        }
    }

    /// The revision that the client holds; zero is none.
    pub(crate) fn revision(&self, kind: Kind, index: usize) -> u32 {
        let revisions = &self.revisions[kind.place()];
        revisions.get(index).copied().unwrap_or(0)
    }

    /// The places of what it holds.
    pub(crate) fn holds(&self, kind: Kind) -> impl Iterator<Item = (usize, u32)> + '_ {
        let all = self.revisions[kind.place()].iter().copied().enumerate();
        all.filter(|(_, revision)| *revision > 0)
    }

    fn set(&mut self, kind: Kind, index: usize, revision: u32) {
        let revisions = &mut self.revisions[kind.place()];
        if revisions.is_empty() {
            revisions.resize(self.shared.truth.count, 0);
        }
        revisions[index] = revision;
    }

    /// Compares what is held with what was put: how many are behind, and how
    /// many are missing of those that should be there.
    pub(crate) fn check(&self) -> (u64, u64) {
        let Complete::Holding(all) = self.complete else {
            return (0, 0);
        };
        let truth = &self.shared.truth;
        let behind = |kind: Kind| {
            let held = self.holds(kind);
            let newest = |index: usize| truth.newest(self.place(kind, index));
            held.filter(|(index, revision)| newest(*index) != Some(*revision))
                .count() as u64
        };
        let missing = all.saturating_sub(self.held) as u64;
        (Kind::ALL.into_iter().map(behind).sum(), missing)
    }
}

#[cfg(test)]
mod tests;
