//! Zone aware routing: as much as possible stays in the zone of this proxy, as
//! long as every zone gets its share (69).
//!
//! All shares are in parts of ten thousand.

use super::host::{Health, Locality};
use super::host_set::{HostSet, HostSets};
use super::load::PriorityLoad;
use super::policy::ZoneAware;

/// The whole, in parts of ten thousand.
const WHOLE: u64 = 10_000;

/// The cluster that this proxy belongs to, and its locality in it.
#[derive(Debug, Clone)]
pub struct LocalCluster {
    /// The proxies that send requests as this one does.
    pub hosts: HostSets,
    /// Where this proxy is.
    pub locality: Locality,
}

/// Where requests go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ZoneRouting {
    /// Health and turn decide, whatever the zone.
    Plain,
    /// All go to the own zone, which is this locality.
    Local(usize),
    /// A part goes to the own zone, the rest where capacity is left.
    Residual {
        local: Option<usize>,
        local_share: u64,
        /// What each locality has left, summed from the first.
        sums: Vec<u64>,
    },
}

impl ZoneRouting {
    /// Works out the routing of the first priority, `set`. It is plain if the own
    /// cluster is not known, empty or in panic, or if the endpoints are too few or
    /// in one locality.
    pub(super) fn new(
        set: &HostSet,
        local: Option<&LocalCluster>,
        config: &ZoneAware,
        panic_threshold: f64,
    ) -> Self {
        let Some(local) = local else {
            return Self::Plain;
        };

        // What this zone and others have of each cluster.
        let upstream = count_healthy(set);
        let total: u64 = upstream.iter().map(|(_, count)| count).sum();
        let own_counts = local.hosts.priorities.first().map(|set| count_healthy(set));
        let own_counts = own_counts.unwrap_or_default();
        let own_total: u64 = own_counts.iter().map(|(_, count)| count).sum();

        let panics = PriorityLoad::new(&local.hosts, panic_threshold).panics;
        let is_usable = upstream.len() > 1
            && total >= config.min_cluster_size.max(1)
            && own_total > 0
            && panics.first() == Some(&false);
        if !is_usable {
            return Self::Plain;
        }

        let local_index = upstream
            .iter()
            .position(|(locality, _)| *locality == local.locality);
        let own_share = share_of(&own_counts, &local.locality, own_total);
        let upstream_share = share_of(&upstream, &local.locality, total);
        if let Some(local_index) = local_index
            && upstream_share > 0
            && upstream_share >= own_share
        {
            return Self::Local(local_index);
        }

        let mut sum = 0;
        let sums = upstream.iter().enumerate().map(|(index, (locality, _))| {
            if Some(index) != local_index {
                let their_share = share_of(&upstream, locality, total);
                sum += their_share.saturating_sub(share_of(&own_counts, locality, own_total));
            }
            sum
        });

        let sums = sums.collect();
        Self::Residual {
            local: local_index,
            local_share: match own_share {
                0 => 0,
                own_share => upstream_share * WHOLE / own_share,
            },
            sums,
        }
    }

    /// Chooses the index of a locality; `None` if the zone does not matter.
    pub(super) fn choose(
        &self,
        config: &ZoneAware,
        random: &mut dyn FnMut() -> u64,
    ) -> Option<usize> {
        if *self == Self::Plain || !is_enabled(config, random) {
            return None;
        }

        match self {
            Self::Plain => None,
            Self::Local(here) => Some(*here),
            Self::Residual {
                local,
                local_share,
                sums,
            } => {
                if let Some(here) = local
                    && random() % WHOLE < *local_share
                {
                    return Some(*here);
                }
                let total = sums.last().copied().unwrap_or(0);
                // No zone has anything left: rounding, or all are alike.
                let number = random();
                match total {
                    0 => usize::try_from(number % sums.len() as u64).ok(),
                    total => sums.iter().position(|sum| number % total < *sum),
                }
            }
        }
    }
}

/// Counts the healthy endpoints of each locality.
fn count_healthy(set: &HostSet) -> Vec<(Locality, u64)> {
    let localities = set.localities.iter();
    let counts = localities.map(|locality| {
        let hosts = locality.hosts.iter();
        let healthy = hosts.filter(|host| host.health() == Health::Healthy);
        (locality.locality.clone(), healthy.count() as u64)
    });
    counts.collect()
}

/// Returns the share of a locality in a total that is not zero; zero if it is not
/// among the counts.
fn share_of(counts: &[(Locality, u64)], locality: &Locality, total: u64) -> u64 {
    let mut counts = counts.iter();
    let entry = counts.find(|(other, _)| other == locality);
    entry.map_or(0, |(_, count)| count * WHOLE / total)
}

/// Returns whether a request takes part, by the percentage that is configured.
#[expect(clippy::cast_precision_loss, reason = "a number below 100")]
fn is_enabled(config: &ZoneAware, random: &mut dyn FnMut() -> u64) -> bool {
    config.enabled >= 100.0 || ((random() % 100) as f64) < config.enabled
}
