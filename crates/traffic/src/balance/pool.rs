//! Endpoints that are equal in all but weight, and the choice among them: in
//! turn, by weight, by requests under way, or at random (62; facts 4.2).

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::edf::Edf;
use super::host::Host;
use super::policy::{Kind, Policy, SlowStart};

/// Endpoints to choose from.
#[derive(Debug)]
pub(super) struct Pool {
    /// A place is empty where an endpoint was taken out whose turn is to come.
    hosts: Vec<Option<Arc<Host>>>,
    count: usize,
    /// The places of endpoints by address, once one of them has changed.
    places: Option<HashMap<Box<str>, usize>>,
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
        let first_weight = weights.next();
        let is_equal = is_warm && weights.all(|weight| Some(weight) == first_weight);

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
            count: hosts.len(),
            hosts: hosts.into_iter().map(Some).collect(),
            places: None,
            choice,
            slow_start,
        }
    }

    /// Returns whether the pool has no endpoints; empty places do not count.
    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the number of endpoints.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Returns the number of places that are held, empty ones included.
    #[cfg(test)]
    pub(super) fn places_held(&self) -> usize {
        self.hosts.len()
    }

    /// Puts an endpoint in, or in the place of what was at its address, or takes
    /// it out. The work does not depend on how many there are, unless another
    /// kind of choice has to begin: with the first weight that differs, or the
    /// first endpoint that starts slowly.
    pub(super) fn change(
        &mut self,
        address: &str,
        new_host: Option<&Arc<Host>>,
        policy: &Policy,
        seed: u64,
        now: Duration,
    ) {
        let old_place = self.places().get(address).copied();
        match (old_place, new_host) {
            (None, None) => return,
            (Some(place), Some(host)) => self.hosts[place] = Some(Arc::clone(host)),
            (None, Some(host)) => self.insert(host, now),
            (Some(place), None) => self.remove(address, place),
        }

        let is_other_kind = new_host.is_some_and(|host| !self.suits(host, now));
        // Empty places are few, or all are put in anew.
        if is_other_kind || self.hosts.len() > 2 * self.count + 8 {
            let hosts = self.hosts.iter().flatten().cloned().collect();
            *self = Self::new(hosts, policy, seed, now);
        }
    }

    /// Returns the places of endpoints by address, and works them out the first
    /// time.
    fn places(&mut self) -> &mut HashMap<Box<str>, usize> {
        let hosts = self.hosts.iter().enumerate();
        self.places.get_or_insert_with(|| {
            let places = hosts.filter_map(|(place, host)| {
                let host = host.as_ref()?;
                Some((host.address().into(), place))
            });
            places.collect()
        })
    }

    /// Puts in an endpoint whose address is not there, in a place at the end.
    fn insert(&mut self, host: &Arc<Host>, now: Duration) {
        let place = self.hosts.len();
        self.hosts.push(Some(Arc::clone(host)));
        self.count += 1;
        self.places().insert(host.address().into(), place);

        let slow_start = self.slow_start;
        match &mut self.choice {
            Choice::Weighted(edf) => edf.add(place, weight(host, slow_start, now)),
            Choice::WeightedByLoad(edf, bias) => {
                edf.add(place, loaded_weight(host, *bias, slow_start, now));
            }
            Choice::Turn(_) | Choice::Random | Choice::Fewest(_) | Choice::FewestOfAll => {}
        }
    }

    /// Takes an endpoint out. Where order does not matter, the last one takes its
    /// place; where it is in a queue, its place stays empty until its turn.
    fn remove(&mut self, address: &str, place: usize) {
        self.count -= 1;
        self.places().remove(address);
        if matches!(
            self.choice,
            Choice::Weighted(_) | Choice::WeightedByLoad(..)
        ) {
            self.hosts[place] = None;
            return;
        }

        self.hosts.swap_remove(place);
        let moved_host = self.hosts.get(place).and_then(Option::as_ref);
        if let Some(moved_host) = moved_host.map(|host| host.address().into()) {
            self.places().insert(moved_host, place);
        }
    }

    /// Returns whether the kind of choice can stay after an endpoint was put in: a
    /// choice without weights suits endpoints of equal weight that are past their
    /// slow start.
    fn suits(&self, host: &Host, now: Duration) -> bool {
        let other = self
            .hosts
            .iter()
            .flatten()
            .find(|other| other.address() != host.address());
        match self.choice {
            Choice::Weighted(_) | Choice::WeightedByLoad(..) | Choice::Random => true,
            Choice::Turn(_) | Choice::Fewest(_) | Choice::FewestOfAll => {
                other.is_none_or(|other| other.weight == host.weight)
                    && self
                        .slow_start
                        .is_none_or(|slow| slow.is_over(age(host, now)))
            }
        }
    }

    /// Chooses an endpoint. Returns `None` if the pool is empty.
    pub(super) fn pick(
        &mut self,
        now: Duration,
        random: &mut dyn FnMut() -> u64,
    ) -> Option<&Arc<Host>> {
        let hosts = &self.hosts;
        if self.count == 0 {
            return None;
        }

        let slow_start = self.slow_start;
        let index = match &mut self.choice {
            Choice::Turn(next) => {
                let index = index_by(*next, hosts.len());
                *next = next.wrapping_add(1);
                index
            }
            Choice::Weighted(edf) => edf.pick_living(|place| {
                let host = hosts[place].as_deref();
                host.map(|host| weight(host, slow_start, now))
            })?,
            Choice::WeightedByLoad(edf, bias) => edf.pick_living(|place| {
                let host = hosts[place].as_deref();
                host.map(|host| loaded_weight(host, *bias, slow_start, now))
            })?,
            Choice::Random => index_by(random(), hosts.len()),
            Choice::Fewest(choices) => fewest(hosts, *choices, random),
            Choice::FewestOfAll => fewest_of_all(hosts, random),
        };
        hosts.get(index)?.as_ref()
    }
}

/// Returns the index that a random number chooses in a list, which is not empty.
#[expect(clippy::cast_possible_truncation, reason = "less than the length")]
fn index_by(number: u64, length: usize) -> usize {
    (number % length as u64) as usize
}

/// Returns the time since the endpoint was first seen.
fn age(host: &Host, now: Duration) -> Duration {
    now.saturating_sub(host.counters().added())
}

/// Returns the weight of an endpoint, less while it starts slowly.
fn weight(host: &Host, slow_start: Option<SlowStart>, now: Duration) -> f64 {
    let factor = slow_start.map_or(1.0, |slow| slow.factor(age(host, now)));
    f64::from(host.weight) * factor
}

/// Returns the weight of an endpoint divided by its requests under way and one
/// more, to the power of `bias`.
fn loaded_weight(host: &Host, bias: f64, slow_start: Option<SlowStart>, now: Duration) -> f64 {
    let active = f64::from(host.counters().active()) + 1.0;
    let load = match bias {
        1.0 => active,
        bias => active.powf(bias),
    };
    weight(host, slow_start, now) / load
}

/// Returns the number of requests under way. An empty place has the most, so that
/// it is never chosen.
fn active(host: &Option<Arc<Host>>) -> u32 {
    host.as_ref()
        .map_or(u32::MAX, |host| host.counters().active())
}

/// Draws `choices` places, and returns the first with the fewest requests under
/// way. A place may be drawn twice, as in Envoy.
fn fewest(hosts: &[Option<Arc<Host>>], choices: u32, random: &mut dyn FnMut() -> u64) -> usize {
    let mut best = index_by(random(), hosts.len());
    for _ in 1..choices {
        let other = index_by(random(), hosts.len());
        if active(&hosts[other]) < active(&hosts[best]) {
            best = other;
        }
    }
    best
}

/// Looks at all places, and returns one that it draws from those with the fewest
/// requests under way.
fn fewest_of_all(hosts: &[Option<Arc<Host>>], random: &mut dyn FnMut() -> u64) -> usize {
    let (mut best, mut least, mut ties) = (0, u32::MAX, 0);
    for (index, host) in hosts.iter().enumerate() {
        let active = active(host);
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
