//! Endpoints that are equal in all but weight, and the choice among them: in
//! turn, by weight, by requests under way, or at random (62; facts 4.2).

use std::sync::Arc;
use std::time::Duration;

use super::edf::Edf;
use super::host::Host;
use super::policy::{Kind, Policy, SlowStart};

/// Endpoints to choose from.
#[derive(Debug)]
pub(super) struct Pool {
    hosts: Vec<Arc<Host>>,
    choice: Choice,
    slow_start: Option<SlowStart>,
}

#[derive(Debug)]
enum Choice {
    /// One after the other.
    Turn(u64),
    /// By weight.
    Weighted(Edf),
    /// By weight, less where requests are under way.
    WeightedByLoad(Edf, f64),
    Random,
    /// The one of a few with the fewest requests under way.
    Fewest(u32),
    /// The one of all with the fewest requests under way.
    FewestOfAll,
}

impl Pool {
    /// Makes a pool. Its first choice depends on the seed, so that workers do
    /// not choose in step.
    pub(super) fn new(hosts: Vec<Arc<Host>>, policy: &Policy, seed: u64, now: Duration) -> Self {
        let slow_start = policy.slow_start;
        let is_warm = slow_start.is_none_or(|slow| {
            let ages = hosts.iter().map(|host| age(host, now));
            ages.into_iter().all(|age| slow.is_over(age))
        });
        let mut weights = hosts.iter().map(|host| host.weight);
        let first = weights.next();
        let is_equal = is_warm && weights.all(|weight| Some(weight) == first);
        #[expect(clippy::cast_possible_truncation, reason = "any number will do")]
        let picks = seed as u32;
        let choice = match (policy.kind, is_equal) {
            (Kind::Random, _) => Choice::Random,
            (
                Kind::LeastRequest {
                    scans_all: true, ..
                },
                true,
            ) => Choice::FewestOfAll,
            (Kind::LeastRequest { choices, .. }, true) => Choice::Fewest(choices),
            (Kind::LeastRequest { bias, .. }, false) => {
                let weight = |index: usize| loaded_weight(&hosts[index], bias, slow_start, now);
                Choice::WeightedByLoad(Edf::new(hosts.len(), picks, weight), bias)
            }
            (_, true) => Choice::Turn(seed),
            (_, false) => {
                let weight = |index: usize| weight(&hosts[index], slow_start, now);
                Choice::Weighted(Edf::new(hosts.len(), picks, weight))
            }
        };
        Self {
            hosts,
            choice,
            slow_start,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.hosts.is_empty()
    }

    /// Chooses an endpoint.
    pub(super) fn pick(
        &mut self,
        now: Duration,
        random: &mut dyn FnMut() -> u64,
    ) -> Option<&Arc<Host>> {
        let hosts = &self.hosts;
        if hosts.is_empty() {
            return None;
        }
        let slow_start = self.slow_start;
        let index = match &mut self.choice {
            Choice::Turn(next) => {
                let index = at(*next, hosts.len());
                *next = next.wrapping_add(1);
                index
            }
            Choice::Weighted(edf) => edf.pick(|index| weight(&hosts[index], slow_start, now))?,
            Choice::WeightedByLoad(edf, bias) => {
                edf.pick(|index| loaded_weight(&hosts[index], *bias, slow_start, now))?
            }
            Choice::Random => at(random(), hosts.len()),
            Choice::Fewest(choices) => fewest(hosts, *choices, random),
            Choice::FewestOfAll => fewest_of_all(hosts, random),
        };
        hosts.get(index)
    }
}

/// Returns the place of a number in a list. A list has fewer than 2^32 entries.
#[expect(clippy::cast_possible_truncation, reason = "less than the length")]
fn at(number: u64, length: usize) -> usize {
    (number % length as u64) as usize
}

fn age(host: &Host, now: Duration) -> Duration {
    now.saturating_sub(host.counters().added())
}

fn weight(host: &Host, slow_start: Option<SlowStart>, now: Duration) -> f64 {
    let factor = slow_start.map_or(1.0, |slow| slow.factor(age(host, now)));
    f64::from(host.weight) * factor
}

fn loaded_weight(host: &Host, bias: f64, slow_start: Option<SlowStart>, now: Duration) -> f64 {
    let active = f64::from(host.counters().active()) + 1.0;
    weight(host, slow_start, now) / active.powf(bias)
}

/// Draws a few, and keeps the first with the fewest requests.
fn fewest(hosts: &[Arc<Host>], choices: u32, random: &mut dyn FnMut() -> u64) -> usize {
    let mut best = at(random(), hosts.len());
    for _ in 1..choices {
        let other = at(random(), hosts.len());
        if hosts[other].counters().active() < hosts[best].counters().active() {
            best = other;
        }
    }
    best
}

/// Looks at all, and draws among those with the fewest requests.
fn fewest_of_all(hosts: &[Arc<Host>], random: &mut dyn FnMut() -> u64) -> usize {
    let (mut best, mut least, mut ties) = (0, u32::MAX, 0);
    for (index, host) in hosts.iter().enumerate() {
        let active = host.counters().active();
        if active < least {
            (best, least, ties) = (index, active, 1);
        } else if active == least {
            ties += 1;
            if random().is_multiple_of(ties) {
                best = index;
            }
        }
    }
    best
}
