//! The revision of each resource that one client has seen, and whether that is
//! right.

mod known;

use std::collections::HashMap;
use std::sync::Arc;

use known::Known;

use super::rejects::Rejects;
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
    /// Each of its types got a response.
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
    /// By type and place.
    known: [Vec<Known>; Kind::ALL.len()],
    answered: [bool; Kind::ALL.len()],
    pub(crate) held: usize,
    /// Resources that it rejected and never held.
    without: usize,
    /// It rejects some changes: what it sees is not what others do.
    picky: bool,
    complete: Complete,
    configured: bool,
    /// Whether the response that is being read brought something.
    news: bool,
    /// When the client was told to connect, in nanoseconds.
    begun: u64,
    /// When each name was subscribed to, if that is timed.
    asked: HashMap<(Kind, usize), u64>,
}

impl Ledger {
    /// Makes the ledger of a client that knows of nothing yet.
    pub(crate) fn new(spec: &Spec, shared: Arc<Shared>) -> Self {
        Self {
            client: spec.number,
            variant: shared.truth.recipe.variants.variant_of(spec.category),
            shared,
            known: Default::default(),
            answered: [false; Kind::ALL.len()],
            held: 0,
            without: 0,
            picky: matches!(spec.rejects, Rejects::Part { .. }),
            complete: spec.complete,
            configured: false,
            news: false,
            begun: 0,
            asked: HashMap::new(),
        }
    }

    /// Starts the time to the first configuration, unless it is running: a
    /// client that reconnects was told to connect before.
    pub(crate) fn note_begin(&mut self) {
        if self.begun == 0 {
            self.begun = self.shared.truth.now();
        }
    }

    /// Notes that a subscription to a name begins. It is timed until its
    /// resource comes.
    pub(crate) fn note_subscribed(&mut self, kind: Kind, index: usize) {
        self.asked.insert((kind, index), self.shared.truth.now());
    }

    /// Counts a response. To be called before anything in it is read, because a
    /// stage that waits for the contents reads the counters next.
    pub(crate) fn count_response(&self, resources: usize, bytes: usize) {
        let counters = &self.shared.counters;
        Counters::add(&counters.responses, 1);
        Counters::add(&counters.resources, resources);
        Counters::add(&counters.bytes, bytes);
    }

    /// Notes that all resources of a response about a type were read. Counts it
    /// as needless if it brought nothing.
    pub(crate) fn finish_response(&mut self, kind: Kind) {
        let first = !std::mem::replace(&mut self.answered[kind.place()], true);
        let news = std::mem::take(&mut self.news);
        // After a NACK the good resources are sent again, apart from the bad
        // one (S12).
        if !news && !first && !self.picky && self.complete != Complete::Never {
            Counters::add(&self.shared.counters.needless, 1);
        }
        let answered = self.answered.iter().filter(|yes| **yes).count();
        if matches!(self.complete, Complete::Answered(all) if answered >= all) {
            self.note_configured();
        }
    }

    /// Notes that the client accepted a resource, and counts it if it should
    /// not have been sent. Returns the place of its name if the client sees it
    /// for the first time.
    pub(crate) fn note_accepted(&mut self, kind: Kind, name: &str, body: &[u8]) -> Option<usize> {
        if self.complete == Complete::Never {
            return None;
        }
        if body.is_empty() {
            // A form of the negative answer.
            self.note_removed(kind, name);
            return None;
        }
        let (place, new) = self.identify(kind, name, body)?;
        let (index, known) = (place.index, self.known(kind, place.index));
        let old = known.revision();
        if new < old || (new == old && known.is_held()) {
            let counters = &self.shared.counters;
            // A client that rejected a change may be sent what it has.
            let counter = match new == old || known.is_rejected() {
                true => &counters.repeated,
                false => &counters.backwards,
            };
            Counters::add(counter, 1);
            return None;
        }
        self.set_known(kind, index, Known::held(new));
        if !known.is_held() {
            self.add_held(kind, index);
        }
        if old == 0 {
            self.shared.truth.add_holder(place);
            return Some(index);
        }
        if new > old {
            self.count_change(old, new);
        }
        None
    }

    /// Returns the place and the revision of a resource, if it is one that this
    /// client should be sent. What is not is counted, and gives `None`; so does
    /// a resource that is not the tool's.
    fn identify(&self, kind: Kind, name: &str, body: &[u8]) -> Option<(Place, u32)> {
        let (truth, counters) = (&self.shared.truth, &self.shared.counters);
        // Resources of others do not count.
        let index = truth.recipe.index(name)?;
        let place = self.place(kind, index);
        let said = kind.read_mark(body);
        let newest = truth.newest(place);
        let (Some(said), Some(newest)) = (said, newest) else {
            Counters::add(&counters.wrong, 1);
            return None;
        };
        if said.variant != self.variant {
            Counters::add(&counters.foreign, 1);
            return None;
        }
        let revision = said.revision;
        if revision > newest {
            Counters::add(&counters.wrong, 1);
            return None;
        }
        if (self.client + index).is_multiple_of(COMPARED)
            && !same(kind, body, &truth.recipe.body(place, revision))
        {
            Counters::add(&counters.wrong, 1);
        }
        Some((place, revision))
    }

    /// Returns the revision of a resource, if it is a change of one that the
    /// client holds.
    pub(crate) fn revision_of_change(&self, kind: Kind, name: &str, body: &[u8]) -> Option<u32> {
        let index = self.shared.truth.recipe.index(name)?;
        let revision = kind.read_mark(body)?.revision;
        let known = self.known(kind, index);
        let held = known.is_held() && (!known.is_rejected() || known.revision() <= revision);
        let news = revision > known.revision() || known.is_rejected();
        (held && news).then_some(revision)
    }

    /// Notes that the client rejected a resource: it keeps what it has, and no
    /// stage waits for it to take this one.
    pub(crate) fn note_rejected(&mut self, kind: Kind, name: &str, body: &[u8]) {
        if self.complete == Complete::Never {
            return;
        }
        let Some((place, new)) = self.identify(kind, name, body) else {
            return;
        };
        let known = self.known(kind, place.index);
        let old = known.revision();
        if new <= old {
            // Resources of a NACKed response may be sent again (S12).
            self.news = true;
            return;
        }
        self.set_known(kind, place.index, known.rejected(new));
        Counters::add(&self.shared.counters.rejected, 1);
        if known.is_held() {
            self.shared.truth.note_seen(old, new, |_| ());
        } else if old == 0 {
            self.without += 1;
            self.check_complete();
        }
    }

    /// Counts a change that arrived at the client, and with it those that it
    /// overtook, all that were made after `old`.
    fn count_change(&self, old: u32, new: u32) {
        let counters = &self.shared.counters;
        // Counted first: a stage that waits for the change reads the counters
        // next.
        Counters::add(&counters.delivered, 1);
        let mut newest = true;
        self.shared.truth.note_seen(old, new, |nanoseconds| {
            let times = match self.picky {
                false => &self.shared.converged,
                true => &self.shared.converged_picky,
            };
            times.note(self.client, nanoseconds);
            if !std::mem::replace(&mut newest, false) {
                Counters::add(&counters.overtaken, 1);
            }
        });
    }

    /// Counts a resource that the client holds now and did not before, and ends
    /// the time of its subscription.
    fn add_held(&mut self, kind: Kind, index: usize) {
        self.held += 1;
        if let Some(asked) = self.asked.remove(&(kind, index)) {
            let took = self.shared.truth.now().saturating_sub(asked);
            self.shared.answered.note(self.client, took);
        }
        self.check_complete();
    }

    /// Notes the first configuration, if all of it is there.
    fn check_complete(&mut self) {
        let met = self.held + self.without;
        if matches!(self.complete, Complete::Holding(all) if met >= all) {
            self.note_configured();
        }
    }

    /// Notes that the client has its first configuration, and how long that
    /// took. Does nothing the next time.
    fn note_configured(&mut self) {
        if !std::mem::replace(&mut self.configured, true) {
            let took = self.shared.truth.now().saturating_sub(self.begun);
            self.shared.first.note(self.client, took);
            self.shared.count_configured();
        }
    }

    /// Notes that the server removed a resource. It is lost if the tool did not
    /// remove it.
    pub(crate) fn note_removed(&mut self, kind: Kind, name: &str) {
        let shared = Arc::clone(&self.shared);
        let index = shared.truth.recipe.index(name);
        let Some(index) = index.filter(|index| self.known(kind, *index).is_held()) else {
            return;
        };
        let old = self.known(kind, index).revision();
        let removal = shared.truth.removal_since(self.place(kind, index), old);
        self.set_known(kind, index, Known::absent(removal.unwrap_or(old)));
        self.held -= 1;
        match removal {
            Some(removal) => {
                Counters::add(&shared.counters.removed, 1);
                self.count_change(old, removal);
            }
            None => Counters::add(&shared.counters.lost, 1),
        }
    }

    /// Returns the place of the client's variant of a resource.
    pub(crate) fn place(&self, kind: Kind, index: usize) -> Place {
        Place {
            kind,
            index,
            variant: self.variant,
        }
    }

    /// Returns what the client knows of a resource.
    pub(crate) fn known(&self, kind: Kind, index: usize) -> Known {
        let known = &self.known[kind.place()];
        known.get(index).copied().unwrap_or_default()
    }

    /// Returns the indexes of the resources that the client holds, each with
    /// its revision.
    pub(crate) fn held_revisions(&self, kind: Kind) -> impl Iterator<Item = (usize, u32)> + '_ {
        let all = self.known[kind.place()].iter().enumerate();
        let held = all.filter(|(_, known)| known.is_held());
        held.map(|(index, known)| (index, known.revision()))
    }

    /// Sets what the client knows of a resource: the response at hand has
    /// brought something.
    fn set_known(&mut self, kind: Kind, index: usize, known: Known) {
        self.news = true;
        let all = &mut self.known[kind.place()];
        if all.is_empty() {
            all.resize(self.shared.truth.count, Known::default());
        }
        all[index] = known;
    }

    /// Compares what the client holds with what was put. Returns how many
    /// resources are behind, and how many are missing; zeros for a client that
    /// is not to hold all.
    pub(crate) fn compare(&self) -> (u64, u64) {
        let Complete::Holding(all) = self.complete else {
            return (0, 0);
        };
        let truth = &self.shared.truth;
        let (mut behind, mut missing, mut met) = (0, 0, 0);
        for kind in Kind::ALL {
            for (index, known) in self.known[kind.place()].iter().enumerate() {
                let place = self.place(kind, index);
                let current = truth.newest(place) == Some(known.revision());
                let absent = !known.is_held() && !known.is_rejected();
                if *known == Known::default() {
                    continue;
                }
                met += 1;
                behind += u64::from(!absent && !current);
                missing += u64::from(absent && !truth.is_gone(place));
            }
        }
        (behind, missing + all.saturating_sub(met) as u64)
    }
}

#[cfg(test)]
mod tests;
