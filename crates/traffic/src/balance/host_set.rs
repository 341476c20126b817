//! The endpoints of a cluster by priority and locality, and their updates (63,
//! 64).

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use trunkline_proto::acceptance::{Place, Problem};
use trunkline_proto::envoy::envoy::config::endpoint::v3::{
    ClusterLoadAssignment, cluster_load_assignment::Policy as AssignmentPolicy,
};

use super::drop::DropOverloads;
use super::host::{Host, Locality};
use crate::findings::Findings;

/// The largest priority, as in Envoy.
const MAX_PRIORITY: u32 = 128;

/// The overprovisioning factor, in per cent, unless an assignment says another.
const OVERPROVISIONING: u64 = 140;

/// All endpoints of a cluster.
#[derive(Debug, Clone)]
pub struct HostSets {
    pub(super) priorities: Vec<Arc<HostSet>>,
    pub(super) overprovisioning: u64,
    /// Whether the health of a priority is the share of weights, not of numbers.
    pub(super) weighs_health: bool,
    drops: DropOverloads,
}

/// The endpoints of one priority.
#[derive(Debug, Clone, Default)]
pub(super) struct HostSet {
    pub(super) localities: Vec<LocalityHosts>,
}

/// The endpoints of one locality in one priority.
#[derive(Debug, Clone, Default)]
pub(super) struct LocalityHosts {
    pub(super) locality: Locality,
    /// 0 if none was given.
    pub(super) weight: u32,
    pub(super) hosts: Vec<Arc<Host>>,
}

/// What an update changed.
#[derive(Debug, Clone, Default)]
pub struct Changes {
    /// Priorities whose endpoints or weights are others. Only these need new
    /// tables.
    pub priorities: Vec<usize>,
    /// Endpoints that are new.
    pub added: Vec<String>,
    /// Endpoints that are gone.
    pub removed: Vec<String>,
    /// Endpoints that are others than before, each with its priority.
    pub(super) hosts: Vec<HostChange>,
    /// Priorities whose localities or settings are others.
    pub(super) reshaped: Vec<usize>,
}

/// One endpoint of a priority that is another than before.
#[derive(Debug, Clone)]
pub(super) struct HostChange {
    pub(super) priority: usize,
    pub(super) address: Box<str>,
    /// `None` if it is gone.
    pub(super) now: Option<Arc<Host>>,
}

impl Default for HostSets {
    /// Makes sets without endpoints, with Envoy's default settings.
    fn default() -> Self {
        Self {
            priorities: Vec::new(),
            overprovisioning: OVERPROVISIONING,
            weighs_health: false,
            drops: DropOverloads::default(),
        }
    }
}

impl HostSets {
    /// Reads an assignment. `now` is when new endpoints count as seen first.
    pub fn read(message: &ClusterLoadAssignment, now: Duration) -> Result<Self, Findings> {
        let mut sets = Self::default();
        sets.update(message, now)?;
        Ok(sets)
    }

    /// Applies an assignment. Endpoints that stay keep their counters, and
    /// those that are the same stay as they are. An assignment with findings
    /// changes nothing.
    pub fn update(
        &mut self,
        message: &ClusterLoadAssignment,
        now: Duration,
    ) -> Result<Changes, Findings> {
        let drops = DropOverloads::read(message)?;
        check_priorities(message)?;
        let mut changes = Changes::default();
        let sets = self.read_sets(message, now, &mut changes);
        self.replace(sets, &mut changes);
        self.apply_policy(message.policy.as_ref(), &mut changes);
        self.drops = drops;
        Ok(changes)
    }

    /// Reads the endpoints of an assignment by priority, and shares those that
    /// are the same as before. Adds the addresses that come and go to
    /// `changes`.
    fn read_sets(
        &self,
        message: &ClusterLoadAssignment,
        now: Duration,
        changes: &mut Changes,
    ) -> Vec<HostSet> {
        let old_hosts = self.hosts_by_address();
        let mut kept_addresses: HashSet<&str> = HashSet::new();
        let mut sets: Vec<HostSet> = Vec::new();
        for group in &message.endpoints {
            let priority = group.priority as usize;
            if sets.len() <= priority {
                sets.resize_with(priority + 1, HostSet::default);
            }

            let locality = Locality::read(group.locality.as_ref());
            let mut hosts = Vec::with_capacity(group.lb_endpoints.len());
            for endpoint in &group.lb_endpoints {
                let Some(host) = Host::read(endpoint, &locality, now) else {
                    continue;
                };

                let Some(old_host) = old_hosts.get(host.address()) else {
                    changes.added.push(host.address().to_owned());
                    hosts.push(Arc::new(host));
                    continue;
                };
                kept_addresses.insert(old_host.address());
                hosts.push(match host.is_same(old_host) {
                    true => Arc::clone(old_host),
                    false => Arc::new(host.with_counters_of(old_host)),
                });
            }

            sets[priority].add(LocalityHosts {
                locality,
                weight: group.load_balancing_weight.map_or(0, |weight| weight.value),
                hosts,
            });
        }

        let old_addresses = old_hosts.into_keys();
        let removed_addresses = old_addresses.filter(|address| !kept_addresses.contains(address));
        changes.removed = removed_addresses.map(ToOwned::to_owned).collect();
        changes.removed.sort_unstable();
        sets
    }

    /// Applies the settings of an assignment. If they are others, all
    /// priorities are reshaped.
    fn apply_policy(&mut self, policy: Option<&AssignmentPolicy>, changes: &mut Changes) {
        let factor = policy.and_then(|policy| policy.overprovisioning_factor);
        let factor = factor.map_or(OVERPROVISIONING, |factor| u64::from(factor.value));
        let weighs = policy.is_some_and(|policy| policy.weighted_priority_health);
        if (factor, weighs) != (self.overprovisioning, self.weighs_health) {
            changes.priorities = (0..self.priorities.len()).collect();
            changes.reshaped.clone_from(&changes.priorities);
        }
        self.overprovisioning = factor;
        self.weighs_health = weighs;
    }

    /// Returns the parts of requests that the assignment says to drop.
    #[must_use]
    pub fn drops(&self) -> &DropOverloads {
        &self.drops
    }

    /// Returns all endpoints, by priority and locality.
    pub fn hosts(&self) -> impl Iterator<Item = &Arc<Host>> {
        self.priorities.iter().flat_map(|set| set.hosts())
    }

    /// Returns all endpoints by their addresses.
    fn hosts_by_address(&self) -> HashMap<&str, &Arc<Host>> {
        self.hosts().map(|host| (host.address(), host)).collect()
    }

    /// Replaces the sets of the priorities that differ, and adds these
    /// priorities and their differences to `changes`. Sets that are the same
    /// stay the same value.
    fn replace(&mut self, sets: Vec<HostSet>, changes: &mut Changes) {
        let priority_count = sets.len().max(self.priorities.len());
        for priority in 0..priority_count {
            match (self.priorities.get(priority), sets.get(priority)) {
                (Some(old_set), Some(new_set)) if old_set.is_same(new_set) => continue,
                (Some(old_set), Some(new_set)) if old_set.has_shape_of(new_set) => {
                    let hosts = old_set.changed_hosts(new_set, priority);
                    changes.hosts.extend(hosts);
                }
                _ => changes.reshaped.push(priority),
            }
            changes.priorities.push(priority);
        }

        self.priorities.truncate(sets.len());
        for (priority, set) in sets.into_iter().enumerate() {
            let is_changed = changes.priorities.contains(&priority);
            match self.priorities.get_mut(priority) {
                Some(old_set) if is_changed => *old_set = Arc::new(set),
                Some(_) => {}
                None => self.priorities.push(Arc::new(set)),
            }
        }
    }

    /// Returns the same sets with only the endpoints that a test accepts.
    pub(super) fn filter(&self, test: impl Fn(&Host) -> bool) -> Self {
        let priorities = self.priorities.iter().map(|set| {
            let localities = set.localities.iter().map(|locality| LocalityHosts {
                hosts: locality
                    .hosts
                    .iter()
                    .filter(|host| test(host))
                    .cloned()
                    .collect(),
                ..locality.clone()
            });
            Arc::new(HostSet {
                localities: localities.collect(),
            })
        });

        Self {
            priorities: priorities.collect(),
            overprovisioning: self.overprovisioning,
            weighs_health: self.weighs_health,
            drops: self.drops.clone(),
        }
    }
}

/// Checks that priorities are small enough: each one below the largest takes a
/// place in memory.
///
/// # Errors
/// A priority is above [`MAX_PRIORITY`]. Each is a finding.
fn check_priorities(message: &ClusterLoadAssignment) -> Result<(), Findings> {
    let mut findings = Findings::default();
    for (index, group) in message.endpoints.iter().enumerate() {
        if group.priority > MAX_PRIORITY {
            let place = Place::ROOT.item("endpoints", index);
            let problem = Problem::Value {
                found: group.priority.to_string(),
                allowed: "0 to 128",
            };
            findings.add(&place.field("priority"), problem);
        }
    }
    findings.finish(())
}

impl HostSet {
    /// Adds the endpoints of a locality, to those that it has already. Of several
    /// weights the last one counts, as in Envoy.
    fn add(&mut self, group: LocalityHosts) {
        let mut localities = self.localities.iter_mut();
        match localities.find(|known| known.locality == group.locality) {
            Some(known) => {
                known.hosts.extend(group.hosts);
                if group.weight > 0 {
                    known.weight = group.weight;
                }
            }
            None => self.localities.push(group),
        }
    }

    /// Returns the endpoints of all localities.
    pub(super) fn hosts(&self) -> impl Iterator<Item = &Arc<Host>> {
        self.localities.iter().flat_map(|locality| &locality.hosts)
    }

    /// Returns whether the localities and their weights are the same, whatever
    /// their endpoints.
    fn has_shape_of(&self, other: &Self) -> bool {
        let mut pairs = self.localities.iter().zip(&other.localities);
        self.localities.len() == other.localities.len()
            && pairs.all(|(a, b)| a.locality == b.locality && a.weight == b.weight)
    }

    /// Returns the endpoints that are others in a newer set of the same shape,
    /// those that came or went included.
    fn changed_hosts(&self, newer: &Self, priority: usize) -> Vec<HostChange> {
        let change = |host: &Arc<Host>, now: Option<&Arc<Host>>| HostChange {
            priority,
            address: host.address().into(),
            now: now.cloned(),
        };

        let mut old_hosts: HashMap<&str, &Arc<Host>> =
            self.hosts().map(|host| (host.address(), host)).collect();
        let mut changes = Vec::new();
        for host in newer.hosts() {
            let is_same = old_hosts
                .remove(host.address())
                .is_some_and(|old| Arc::ptr_eq(old, host));
            if !is_same {
                changes.push(change(host, Some(host)));
            }
        }

        changes.extend(old_hosts.into_values().map(|host| change(host, None)));
        changes
    }

    /// Returns whether two sets have the same localities with the very same
    /// endpoints, in the same order.
    fn is_same(&self, other: &Self) -> bool {
        let pairs = || self.localities.iter().zip(&other.localities);
        self.localities.len() == other.localities.len()
            && pairs().all(|(a, b)| {
                a.locality == b.locality
                    && a.weight == b.weight
                    && a.hosts.len() == b.hosts.len()
                    && a.hosts.iter().zip(&b.hosts).all(|(a, b)| Arc::ptr_eq(a, b))
            })
    }
}
