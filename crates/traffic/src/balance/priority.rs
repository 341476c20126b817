//! The endpoints of one priority, ready to choose from.

use std::sync::Arc;
use std::time::Duration;

use super::edf::Edf;
use super::host::{Health, Host};
use super::host_set::{HostSet, LocalityHosts};
use super::maglev::Maglev;
use super::policy::{Kind, LocalityMode, Policy};
use super::pool::Pool;
use super::ring::Ring;

/// The endpoints of one priority.
#[derive(Debug)]
pub(super) enum Priority {
    /// Endpoints are chosen in turn or at random.
    Pools(Box<Pools>),
    /// Endpoints are chosen by a hash.
    Hashed(Hashed),
}

/// Endpoints by health and locality.
#[derive(Debug)]
pub(super) struct Pools {
    all: Pool,
    healthy: Pool,
    degraded: Pool,
    healthy_localities: Localities,
    degraded_localities: Localities,
    counts: Vec<LocalityCount>,
}

/// Endpoints of one health by locality, in the order of localities.
#[derive(Debug)]
struct Localities {
    pools: Vec<Pool>,
    /// Localities that have an effective weight; empty if weights do not count.
    turn: Edf,
    weights: Vec<f64>,
}

/// The counts of a locality that its share depends on.
#[derive(Debug, Clone, Copy, Default)]
struct LocalityCount {
    /// As it was given.
    weight: u32,
    /// Endpoints, without those that drain.
    total: usize,
}

/// Endpoints by hash.
#[derive(Debug)]
pub(super) struct Hashed {
    hosts: Vec<Arc<Host>>,
    table: Table,
}

#[derive(Debug)]
enum Table {
    Ring(Ring),
    Maglev(Maglev),
}

impl Priority {
    /// Makes the pools or the table of the endpoints, as the policy needs.
    pub(super) fn new(set: &HostSet, policy: &Policy, setting: &Setting) -> Self {
        match policy.kind {
            Kind::RingHash(_) | Kind::Maglev(_) => Self::Hashed(Hashed::new(set, policy, setting)),
            _ => Self::Pools(Box::new(Pools::new(set, policy, setting))),
        }
    }

    /// Applies a change of one endpoint. Returns `false` if the table has to
    /// be made anew: a ring and a maglev table depend on all endpoints.
    pub(super) fn change(
        &mut self,
        change: &PriorityChange<'_>,
        policy: &Policy,
        setting: &Setting,
    ) -> bool {
        match self {
            Self::Hashed(_) => false,
            Self::Pools(pools) => {
                pools.change(change, policy, setting);
                true
            }
        }
    }
}

/// A change of one endpoint in a priority.
#[derive(Debug, Clone, Copy)]
pub(super) struct PriorityChange<'c> {
    pub(super) address: &'c str,
    /// The endpoint after the change; `None` if it is gone.
    pub(super) now: Option<&'c Arc<Host>>,
    /// The index of its locality.
    pub(super) locality: usize,
    /// Whether it counted before the change, where health is a share.
    pub(super) counted_before: bool,
    /// Whether it counts after the change.
    pub(super) counts_now: bool,
}

/// What the tables of a priority depend on besides its endpoints.
#[derive(Debug, Clone, Copy)]
pub(super) struct Setting {
    pub(super) panics: bool,
    pub(super) overprovisioning: u64,
    pub(super) seed: u64,
    pub(super) now: Duration,
}

impl Pools {
    /// Makes the pools of the endpoints of a priority: by health, and by health
    /// and locality.
    fn new(set: &HostSet, policy: &Policy, setting: &Setting) -> Self {
        let pool = |hosts: Vec<Arc<Host>>| Pool::new(hosts, policy, setting.seed, setting.now);
        let counts = set.localities.iter().map(|locality| LocalityCount {
            weight: locality.weight,
            total: locality
                .hosts
                .iter()
                .filter(|host| host.counts_for_health())
                .count(),
        });

        let counts: Vec<LocalityCount> = counts.collect();
        let hosts_of_health = |health| {
            let hosts = set.hosts().filter(|host| host.health() == health);
            hosts.cloned().collect::<Vec<_>>()
        };

        Self {
            all: pool(set.hosts().cloned().collect()),
            healthy: pool(hosts_of_health(Health::Healthy)),
            degraded: pool(hosts_of_health(Health::Degraded)),
            healthy_localities: Localities::new(set, Health::Healthy, policy, setting, &counts),
            degraded_localities: Localities::new(set, Health::Degraded, policy, setting, &counts),
            counts,
        }
    }

    /// Applies a change of one endpoint. Each pool gets the endpoint, or loses
    /// the one that it had at the address, as the endpoint's health says.
    fn change(&mut self, change: &PriorityChange<'_>, policy: &Policy, setting: &Setting) {
        let (seed, now) = (setting.seed, setting.now);
        let new_host = change.now;
        let health = new_host.map(|host| host.health());
        let if_health = |expected| new_host.filter(|_| health == Some(expected));
        let address = change.address;
        self.all.change(address, new_host, policy, seed, now);
        let healthy = if_health(Health::Healthy);
        self.healthy.change(address, healthy, policy, seed, now);
        let degraded = if_health(Health::Degraded);
        self.degraded.change(address, degraded, policy, seed, now);

        let count = &mut self.counts[change.locality];
        count.total =
            count.total + usize::from(change.counts_now) - usize::from(change.counted_before);
        for (localities, host) in [
            (&mut self.healthy_localities, healthy),
            (&mut self.degraded_localities, degraded),
        ] {
            let pool = &mut localities.pools[change.locality];
            pool.change(address, host, policy, seed, now);
            localities.weigh(change.locality, *count, policy, setting);
        }
    }

    /// Returns the pool of all endpoints, whatever their health.
    pub(super) fn all(&mut self) -> &mut Pool {
        &mut self.all
    }

    /// Returns the pool of a health. There is none of unhealthy endpoints: a
    /// priority is never chosen for them.
    pub(super) fn of_health(&mut self, health: Health) -> &mut Pool {
        match health {
            Health::Degraded => &mut self.degraded,
            Health::Healthy | Health::Unhealthy => &mut self.healthy,
        }
    }

    /// Returns the pool of healthy endpoints in a locality, if it has any.
    pub(super) fn of_locality(&mut self, index: usize) -> Option<&mut Pool> {
        let pool = self.healthy_localities.pools.get_mut(index)?;
        (!pool.is_empty()).then_some(pool)
    }

    /// Returns the pool of the locality whose turn it is by weight (70). Weights
    /// do not count where no locality has one.
    pub(super) fn next_locality(&mut self, health: Health) -> &mut Pool {
        let (localities, all) = match health {
            Health::Degraded => (&mut self.degraded_localities, &mut self.degraded),
            Health::Healthy | Health::Unhealthy => {
                (&mut self.healthy_localities, &mut self.healthy)
            }
        };
        let weights = &localities.weights;
        match localities.turn.pick(|entry| weights[entry]) {
            Some(index) => &mut localities.pools[index],
            None => all,
        }
    }
}

impl Localities {
    /// Makes the pools of the endpoints of one health by locality, and the queue
    /// of localities if weights count. `counts` are those of all localities.
    fn new(
        set: &HostSet,
        health: Health,
        policy: &Policy,
        setting: &Setting,
        counts: &[LocalityCount],
    ) -> Self {
        let pool = |locality: &LocalityHosts| {
            let hosts = locality.hosts.iter();
            let healthy_hosts = hosts.filter(|host| host.health() == health).cloned();
            Pool::new(healthy_hosts.collect(), policy, setting.seed, setting.now)
        };

        let pools: Vec<Pool> = set.localities.iter().map(pool).collect();
        let usable_counts = pools.iter().map(Pool::count);
        let weights = counts
            .iter()
            .zip(usable_counts)
            .map(|(count, usable)| count.effective_weight(usable, setting));
        let mut localities = Self {
            weights: weights.collect(),
            turn: Edf::default(),
            pools,
        };

        localities.queue(policy);
        localities
    }

    /// Makes the queue of localities anew. Those without weight get nothing
    /// where weights count.
    fn queue(&mut self, policy: &Policy) {
        self.turn = Edf::default();
        if policy.localities != LocalityMode::Weighted {
            return;
        }
        let weights = self.weights.iter().enumerate();
        for (entry, weight) in weights.filter(|(_, weight)| **weight > 0.0) {
            self.turn.add(entry, *weight);
        }
    }

    /// Weighs a locality anew after a change of its endpoints. The queue is made
    /// anew only if the locality gained or lost its weight; else the new weight
    /// counts from its next turn on.
    fn weigh(&mut self, index: usize, count: LocalityCount, policy: &Policy, setting: &Setting) {
        let old_weight = self.weights[index];
        let weight = count.effective_weight(self.pools[index].count(), setting);
        self.weights[index] = weight;
        if (old_weight > 0.0) != (weight > 0.0) {
            self.queue(policy);
        }
    }
}

impl LocalityCount {
    /// Returns the weight of a locality of which `usable` endpoints can be used:
    /// less than its own if that is too few, overprovisioning considered.
    #[expect(clippy::cast_precision_loss, reason = "counts of endpoints")]
    fn effective_weight(self, usable: usize, setting: &Setting) -> f64 {
        if self.total == 0 {
            return 0.0;
        }
        let factor = setting.overprovisioning as f64 / 100.0;
        let available = factor * usable as f64 / self.total as f64;
        f64::from(self.weight) * available.min(1.0)
    }
}

impl Hashed {
    /// Makes the table of the usable endpoints, each with its share of all
    /// weights. In panic all endpoints are usable.
    fn new(set: &HostSet, policy: &Policy, setting: &Setting) -> Self {
        let is_usable = |host: &&Arc<Host>| setting.panics || host.health() == Health::Healthy;
        let sum = |hosts: &[Arc<Host>]| -> f64 {
            let usable = hosts.iter().filter(is_usable);
            usable.map(|host| f64::from(host.weight)).sum()
        };

        let localities = set.localities.iter();
        let total_of_hosts: f64 = localities.clone().map(|l| sum(&l.hosts)).sum();
        let total_of_localities: f64 = localities.map(|l| f64::from(l.weight)).sum();

        let mut hosts = Vec::new();
        let mut weighted_keys = Vec::new();
        for locality in &set.localities {
            // No endpoint gets the weight of a locality without a usable
            // endpoint. The sum of all is less than 1 then, and a ring has
            // fewer entries.
            let (part, total_weight) = match policy.localities {
                LocalityMode::Weighted if locality.weight == 0 => continue,
                LocalityMode::Weighted => (
                    f64::from(locality.weight) / total_of_localities,
                    sum(&locality.hosts),
                ),
                LocalityMode::ZoneAware(_) => (1.0, total_of_hosts),
            };
            for host in locality.hosts.iter().filter(is_usable) {
                let weight = f64::from(host.weight) * part / total_weight;
                weighted_keys.push((host.hash_key(policy.uses_hostname), weight));
                hosts.push(Arc::clone(host));
            }
        }

        let table = match policy.kind {
            Kind::Maglev(size) => Table::Maglev(Maglev::new(&weighted_keys, size)),
            Kind::RingHash(config) => Table::Ring(Ring::new(&weighted_keys, &config)),
            _ => Table::Ring(Ring::default()),
        };
        Self { hosts, table }
    }

    /// Returns the endpoint of a hash; `attempt` is the number of attempts before.
    pub(super) fn pick(&self, hash: u64, attempt: u32) -> Option<&Arc<Host>> {
        let index = match &self.table {
            Table::Ring(ring) => ring.pick(hash, attempt)?,
            Table::Maglev(maglev) => maglev.pick(hash, attempt)?,
        };
        self.hosts.get(index)
    }
}
