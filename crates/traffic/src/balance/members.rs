//! What a balancer last made of each endpoint, so that a change of one costs no
//! look at the others.

use std::collections::HashMap;
use std::sync::Arc;

use super::host::Host;
use super::host_set::HostSets;
use super::load::{Counts, PriorityCounts};

/// The endpoints of all priorities by priority and address, and their sums.
#[derive(Debug)]
pub(super) struct Members {
    by_address: Vec<HashMap<Box<str>, Member>>,
    pub(super) counts: Vec<PriorityCounts>,
    weighs: bool,
}

/// One endpoint as it was last seen.
#[derive(Debug, Clone, Copy)]
struct Member {
    locality: usize,
    counts: Counts,
}

/// A change of an endpoint: its locality, and whether it counted for health
/// before the change and does after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shift {
    pub(super) locality: usize,
    pub(super) counted_before: bool,
    pub(super) counts_now: bool,
}

impl Members {
    /// Makes the members of all priorities, and the sums of their counts.
    pub(super) fn new(hosts: &HostSets) -> Self {
        let weighs = hosts.weighs_health;
        let priorities = hosts.priorities.iter().map(|set| {
            let localities = set.localities.iter().enumerate();
            let members = localities.flat_map(|(locality, hosts)| {
                hosts.hosts.iter().map(move |host| {
                    let counts = Counts::of(host, weighs);
                    (host.address().into(), Member { locality, counts })
                })
            });
            members.collect()
        });
        Self {
            by_address: priorities.collect(),
            counts: PriorityCounts::count_all(hosts),
            weighs,
        }
    }

    /// Applies a change of one endpoint, and corrects the sums. Returns `None`
    /// if the endpoint is in a locality that is not there, or moved from one to
    /// another: then its member is lost, and the caller makes all members anew.
    pub(super) fn apply_change(
        &mut self,
        hosts: &HostSets,
        priority: usize,
        address: &str,
        new_host: Option<&Arc<Host>>,
    ) -> Option<Shift> {
        let set = hosts.priorities.get(priority)?;
        let old_member = self.by_address.get_mut(priority)?.remove(address);
        let locality = match new_host {
            Some(host) => {
                let mut localities = set.localities.iter();
                localities.position(|locality| locality.locality == *host.locality())
            }
            None => old_member.map(|member| member.locality),
        }?;

        if old_member.is_some_and(|member| member.locality != locality) {
            return None;
        }

        let priority_counts = self.counts.get_mut(priority)?;
        if let Some(member) = old_member {
            priority_counts.subtract(&member.counts);
        }

        let counts = new_host.map(|host| Counts::of(host, self.weighs));
        if let Some(counts) = counts {
            priority_counts.add(&counts);
            let member = Member { locality, counts };
            self.by_address[priority].insert(address.into(), member);
        }

        Some(Shift {
            locality,
            counted_before: old_member.is_some_and(|member| member.counts.counts_for_health()),
            counts_now: counts.is_some_and(|counts| counts.counts_for_health()),
        })
    }
}
