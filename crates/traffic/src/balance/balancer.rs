//! The choice of an endpoint for a request.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::host::{Health, Host};
use super::host_set::{Changes, HostChange, HostSets};
use super::load::PriorityLoad;
use super::members::Members;
use super::metadata::LbMetadata;
use super::policy::{LocalityMode, Policy};
use super::pool::Pool;
use super::priority::{Pools, Priority, PriorityChange, Setting};
use super::subset::Subsets;
use super::zone::{LocalCluster, ZoneRouting};

/// What the choice depends on.
#[derive(Debug, Clone, Copy, Default)]
pub struct PickContext<'p> {
    /// The hash of the request, for ring hash and maglev. Without one a random
    /// number serves.
    pub hash: Option<u64>,
    /// How often the request was tried before.
    pub attempt: u32,
    /// The time.
    pub now: Duration,
    /// The metadata that the route asks for, for subsets.
    pub metadata: Option<&'p LbMetadata>,
    /// An address that is taken if it is usable, whatever the policy.
    pub override_host: Option<&'p str>,
}

/// Chooses endpoints, for one worker. Endpoints are shared with other workers;
/// whose turn it is, is not.
#[derive(Debug)]
pub struct Balancer {
    policy: Arc<Policy>,
    group: Group,
    subsets: Option<Subsets>,
    /// Endpoints and their priorities.
    hosts_by_address: HashMap<Box<str>, (usize, Arc<Host>)>,
    seed: u64,
}

/// All priorities of a cluster, or of a subset of it.
#[derive(Debug)]
pub(super) struct Group {
    priorities: Vec<Priority>,
    load: PriorityLoad,
    zone: ZoneRouting,
    /// Made at the first change of single endpoints.
    members: Option<Members>,
}

impl Balancer {
    /// Makes a balancer. `local` is the cluster that this proxy is in, if it is
    /// known; the seed keeps workers from choosing in step.
    #[must_use]
    pub fn new(
        policy: Arc<Policy>,
        hosts: &HostSets,
        local: Option<&LocalCluster>,
        seed: u64,
        now: Duration,
    ) -> Self {
        Self {
            group: Group::new(&policy, hosts, local, seed, now),
            subsets: policy
                .subsets
                .as_ref()
                .map(|config| Subsets::new(config, &policy, hosts, seed, now)),
            hosts_by_address: hosts_by_address(hosts),
            policy,
            seed,
        }
    }

    /// Applies an update: `hosts` are the endpoints after it, and `changes`
    /// what [`HostSets::update`] returned. The work follows what has changed: an
    /// endpoint that comes, goes or is another one is put into its pools,
    /// whatever their size.
    /// What depends on all endpoints is made anew: rings, maglev tables, subsets,
    /// and zone aware routing where the own cluster is known.
    pub fn apply(
        &mut self,
        hosts: &HostSets,
        changes: &Changes,
        local: Option<&LocalCluster>,
        now: Duration,
    ) {
        // An endpoint may go from one priority and come in another.
        for change in &changes.hosts {
            self.hosts_by_address.remove(&change.address);
        }

        for change in &changes.hosts {
            if let Some(host) = &change.now {
                let address = change.address.clone();
                let priority_and_host = (change.priority, Arc::clone(host));
                self.hosts_by_address.insert(address, priority_and_host);
            }
        }

        let (policy, seed) = (&self.policy, self.seed);
        let is_done = changes.reshaped.is_empty()
            && self.group.apply(policy, hosts, &changes.hosts, seed, now);
        if is_done {
            self.group.route_zones(policy, hosts, local);
            self.make_subsets(hosts, now);
            return;
        }

        self.refresh(hosts, &changes.priorities, local, now);
        // From now on changes are followed.
        self.group.members = Some(Members::new(hosts));
    }

    /// Applies a change of an endpoint's health, by checks or by outlier
    /// detection. The work is that of one change, as in [`apply`](Self::apply).
    /// An address that is not known is ignored.
    pub fn apply_health(
        &mut self,
        hosts: &HostSets,
        address: &str,
        local: Option<&LocalCluster>,
        now: Duration,
    ) {
        let Some((priority, host)) = self.hosts_by_address.get(address).cloned() else {
            return;
        };

        let change = HostChange {
            priority,
            address: address.into(),
            now: Some(host),
        };

        let changes = Changes {
            priorities: vec![priority],
            hosts: vec![change],
            ..Changes::default()
        };
        self.apply(hosts, &changes, local, now);
    }

    /// Makes the subsets anew, if the policy has any.
    fn make_subsets(&mut self, hosts: &HostSets, now: Duration) {
        let config = self.policy.subsets.as_ref();
        self.subsets =
            config.map(|config| Subsets::new(config, &self.policy, hosts, self.seed, now));
    }

    /// Makes the tables of these priorities anew. Tables of other priorities
    /// stay.
    pub fn refresh(
        &mut self,
        hosts: &HostSets,
        changed_priorities: &[usize],
        local: Option<&LocalCluster>,
        now: Duration,
    ) {
        self.group.refresh(
            &self.policy,
            hosts,
            changed_priorities,
            local,
            self.seed,
            now,
        );
        self.make_subsets(hosts, now);
        self.hosts_by_address = hosts_by_address(hosts);
    }

    /// Returns the shares of the priorities.
    #[must_use]
    pub fn load(&self) -> &PriorityLoad {
        &self.group.load
    }

    /// Chooses the endpoint of a request, and draws numbers from `random` as it
    /// needs them. Returns `None` if there is no endpoint to use.
    pub fn pick(
        &mut self,
        context: &PickContext<'_>,
        random: &mut dyn FnMut() -> u64,
    ) -> Option<&Arc<Host>> {
        if let Some(address) = context.override_host {
            let host = self.hosts_by_address.get(address).map(|(_, host)| host);
            if let Some(host) = host.filter(|host| host.health() != Health::Unhealthy) {
                return Some(host);
            }
        }
        match &mut self.subsets {
            None => self.group.pick(&self.policy, context, random),
            Some(subsets) => {
                let group = subsets.find(context.metadata, &mut self.group)?;
                group.pick(&self.policy, context, random)
            }
        }
    }
}

/// Returns all endpoints with their priorities, by address.
fn hosts_by_address(hosts: &HostSets) -> HashMap<Box<str>, (usize, Arc<Host>)> {
    let sets = hosts.priorities.iter().enumerate();
    let hosts = sets.flat_map(|(priority, set)| set.hosts().map(move |host| (priority, host)));
    hosts
        .map(|(priority, host)| (host.address().into(), (priority, Arc::clone(host))))
        .collect()
}

impl Group {
    /// Makes the tables of all priorities.
    pub(super) fn new(
        policy: &Policy,
        hosts: &HostSets,
        local: Option<&LocalCluster>,
        seed: u64,
        now: Duration,
    ) -> Self {
        let mut group = Self {
            priorities: Vec::new(),
            load: PriorityLoad::default(),
            zone: ZoneRouting::Plain,
            members: None,
        };
        let priorities: Vec<usize> = (0..hosts.priorities.len()).collect();
        group.refresh(policy, hosts, &priorities, local, seed, now);
        group
    }

    /// Makes the tables anew of the priorities in `changed_priorities`, of new
    /// ones, and of those that begin or cease to panic.
    fn refresh(
        &mut self,
        policy: &Policy,
        hosts: &HostSets,
        changed_priorities: &[usize],
        local: Option<&LocalCluster>,
        seed: u64,
        now: Duration,
    ) {
        self.members = None;
        let old_load = std::mem::replace(
            &mut self.load,
            PriorityLoad::new(hosts, policy.panic_threshold),
        );

        self.priorities.truncate(hosts.priorities.len());
        for (index, set) in hosts.priorities.iter().enumerate() {
            let panics = self.load.panics.get(index).copied().unwrap_or(false);
            let is_known = index < self.priorities.len();
            let is_same = is_known
                && !changed_priorities.contains(&index)
                && old_load.panics.get(index).copied() == Some(panics);
            if is_same {
                continue;
            }
            let setting = Setting {
                panics,
                overprovisioning: hosts.overprovisioning,
                seed,
                now,
            };
            let priority = Priority::new(set, policy, &setting);
            match is_known {
                true => self.priorities[index] = priority,
                false => self.priorities.push(priority),
            }
        }
        self.route_zones(policy, hosts, local);
    }

    /// Works out zone aware routing of the first priority, the only one that has
    /// it.
    fn route_zones(&mut self, policy: &Policy, hosts: &HostSets, local: Option<&LocalCluster>) {
        self.zone = match (&policy.localities, hosts.priorities.first()) {
            (LocalityMode::ZoneAware(zone), Some(first)) => {
                ZoneRouting::new(first, local, zone, policy.panic_threshold)
            }
            _ => ZoneRouting::Plain,
        };
    }

    /// Applies changes of single endpoints. Returns `false` if tables have to
    /// be made anew: there are no members yet, an endpoint moved to another
    /// locality, or a table depends on all endpoints. Some of the changes may
    /// have been applied then.
    fn apply(
        &mut self,
        policy: &Policy,
        hosts: &HostSets,
        changes: &[HostChange],
        seed: u64,
        now: Duration,
    ) -> bool {
        // The members are those before the changes, and cannot be made from the
        // sets, which have the changes already. So the first time everything is
        // made anew.
        let Some(members) = &mut self.members else {
            return false;
        };

        for change in changes {
            let new_host = change.now.as_ref();
            let shift = members.apply_change(hosts, change.priority, &change.address, new_host);
            let Some(shift) = shift else {
                return false;
            };
            let priority_change = PriorityChange {
                address: &change.address,
                now: new_host,
                locality: shift.locality,
                counted_before: shift.counted_before,
                counts_now: shift.counts_now,
            };
            let setting = Setting {
                panics: false,
                overprovisioning: hosts.overprovisioning,
                seed,
                now,
            };
            if !self.priorities[change.priority].change(&priority_change, policy, &setting) {
                return false;
            }
        }

        self.load = PriorityLoad::of_counts(
            &members.counts,
            hosts.overprovisioning,
            policy.panic_threshold,
        );
        true
    }

    /// Chooses an endpoint: first the priority and the health, then the pool or
    /// the table. Returns `None` if there is none to use.
    pub(super) fn pick(
        &mut self,
        policy: &Policy,
        context: &PickContext<'_>,
        random: &mut dyn FnMut() -> u64,
    ) -> Option<&Arc<Host>> {
        // With hashes the number that chose the priority chooses the endpoint.
        let number = match self.priorities.first()? {
            Priority::Hashed(_) => context.hash.unwrap_or_else(&mut *random),
            Priority::Pools(_) => random(),
        };

        let (index, health) = self.load.choose(number)?;
        // The load has an entry for each priority that it chooses.
        let panics = self.load.panics[index];
        match self.priorities.get_mut(index)? {
            Priority::Hashed(hashed) => hashed.pick(number, context.attempt),
            Priority::Pools(pools) => {
                let zone = (index == 0).then_some(&self.zone);
                let pool = pool_of(pools, policy, zone, (health, panics), random)?;
                pool.pick(context.now, random)
            }
        }
    }
}

/// Chooses the pool of a request in a priority. Returns `None` if the policy fails
/// requests in panic.
fn pool_of<'p>(
    pools: &'p mut Pools,
    policy: &Policy,
    zone: Option<&ZoneRouting>,
    (health, panics): (Health, bool),
    random: &mut dyn FnMut() -> u64,
) -> Option<&'p mut Pool> {
    match &policy.localities {
        LocalityMode::ZoneAware(config) if panics => (!config.fails_on_panic).then(|| pools.all()),
        _ if panics => Some(pools.all()),
        LocalityMode::Weighted => Some(pools.next_locality(health)),
        LocalityMode::ZoneAware(config) => {
            let zone = zone.filter(|_| health == Health::Healthy);
            let locality = zone.and_then(|zone| zone.choose(config, random));
            match locality {
                Some(locality) => pools.of_locality(locality),
                None => Some(pools.of_health(health)),
            }
        }
    }
}
