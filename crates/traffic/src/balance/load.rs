//! How requests are spread over priorities, and which of them panic (66-68;
//! facts 4.3).

use super::host::{Health, Host};
use super::host_set::HostSets;

/// The share of each priority, in per cent, and whether it panics.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PriorityLoad {
    /// The share that goes to healthy endpoints.
    pub healthy: Vec<u64>,
    /// The share that goes to degraded endpoints.
    pub degraded: Vec<u64>,
    /// Whether the health of endpoints is ignored.
    pub panics: Vec<bool>,
}

/// The number of endpoints of one priority, and the sums of their weights.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct PriorityCounts {
    all: u64,
    /// All but those that drain.
    total: u64,
    healthy: u64,
    degraded: u64,
    /// The same in weights, or in numbers where weights do not count.
    shares: [u64; 3],
}

impl PriorityLoad {
    /// Works out the shares of the priorities. The threshold is the percentage of
    /// usable endpoints below which a priority panics; 0 turns panic off.
    pub(super) fn new(sets: &HostSets, panic_threshold: f64) -> Self {
        let counts = PriorityCounts::count_all(sets);
        Self::of_counts(&counts, sets.overprovisioning, panic_threshold)
    }

    /// Works out the shares of priorities with these counts. `factor` is the overprovisioning
    /// factor in per cent.
    pub(super) fn of_counts(counts: &[PriorityCounts], factor: u64, panic_threshold: f64) -> Self {
        let availability = |part: u64, total: u64| match total {
            0 => 0,
            // Weights have up to 32 bits each, and so has the factor.
            _ => (factor.saturating_mul(part) / total).min(100),
        };

        let shares = |which: usize| -> Vec<u64> {
            counts
                .iter()
                .map(|sums| availability(sums.shares[which], sums.shares[0]))
                .collect()
        };

        let (healthy, degraded) = (shares(1), shares(2));
        let total = (healthy.iter().sum::<u64>() + degraded.iter().sum::<u64>()).min(100);
        let nothing = vec![0; counts.len()];
        let mut load = Self {
            healthy: nothing.clone(),
            degraded: nothing,
            panics: vec![false; counts.len()],
        };

        if total == 0 {
            if panic_threshold > 0.0 {
                load.panics.fill(true);
                load.spread_by_count(counts);
            }
            return load;
        }

        load.spread(&healthy, &degraded, total);
        if total < 100 {
            for (panics, sums) in load.panics.iter_mut().zip(counts) {
                *panics = sums.is_below(panic_threshold);
            }
            // If all priorities panic, health is ignored.
            if load.panics.iter().all(|panics| *panics) {
                load.spread_by_count(counts);
            }
        }
        load
    }

    /// Spreads 100 per cent by what is available, which is `total` in all: healthy
    /// endpoints of all priorities come before degraded ones of any.
    fn spread(&mut self, healthy: &[u64], degraded: &[u64], total: u64) {
        let mut unspread = 100;
        for (share, available) in self.healthy.iter_mut().zip(healthy) {
            *share = unspread.min(available * 100 / total);
            unspread -= *share;
        }
        for (share, available) in self.degraded.iter_mut().zip(degraded) {
            *share = unspread.min(available * 100 / total);
            unspread -= *share;
        }
        // What is left comes from rounding, and goes to the first that has any.
        if let Some(first) = healthy.iter().position(|available| *available > 0) {
            self.healthy[first] += unspread;
        } else if let Some(first) = degraded.iter().position(|available| *available > 0) {
            self.degraded[first] += unspread;
        }
    }

    /// Spreads by the number of endpoints, those that drain included.
    fn spread_by_count(&mut self, counts: &[PriorityCounts]) {
        self.degraded.fill(0);
        let total: u64 = counts.iter().map(|counts| counts.all).sum();
        if total == 0 {
            self.healthy.fill(0);
            return;
        }
        let mut unspread = 100;
        for (share, counts) in self.healthy.iter_mut().zip(counts) {
            *share = unspread.min(100 * counts.all / total);
            unspread -= *share;
        }
        if let Some(first) = counts.iter().position(|counts| counts.all > 0) {
            self.healthy[first] += unspread;
        }
    }

    /// Chooses a priority by any number, and the health of its endpoints. Returns
    /// `None` if no priority has a share.
    pub(super) fn choose(&self, number: u64) -> Option<(usize, Health)> {
        let number = number % 100 + 1;
        let mut sum = 0;
        for (shares, health) in [
            (&self.healthy, Health::Healthy),
            (&self.degraded, Health::Degraded),
        ] {
            for (index, share) in shares.iter().enumerate() {
                sum += share;
                if number <= sum {
                    return Some((index, health));
                }
            }
        }
        None
    }
}

impl PriorityCounts {
    /// Counts the endpoints of each priority.
    pub(super) fn count_all(sets: &HostSets) -> Vec<Self> {
        let priorities = sets.priorities.iter();
        priorities
            .map(|set| {
                let mut counts = Self::default();
                for host in set.hosts() {
                    counts.add(&Counts::of(host, sets.weighs_health));
                }
                counts
            })
            .collect()
    }

    /// Adds what one endpoint counts for.
    pub(super) fn add(&mut self, counts: &Counts) {
        for (sum, count) in self.sums().into_iter().zip(counts.0) {
            *sum += count;
        }
    }

    /// Subtracts what one endpoint counted for.
    pub(super) fn subtract(&mut self, counts: &Counts) {
        for (sum, count) in self.sums().into_iter().zip(counts.0) {
            *sum -= count;
        }
    }

    /// Returns the sums in the order of [`Counts`].
    fn sums(&mut self) -> [&mut u64; 7] {
        let [total, healthy, degraded] = &mut self.shares;
        [
            &mut self.all,
            &mut self.total,
            &mut self.healthy,
            &mut self.degraded,
            total,
            healthy,
            degraded,
        ]
    }

    /// Returns whether fewer of the endpoints are usable than the threshold, in per
    /// cent, wants.
    #[expect(clippy::cast_precision_loss, reason = "counts of endpoints")]
    fn is_below(&self, threshold: f64) -> bool {
        let percent = |part: u64| match self.total {
            0 => 0.0,
            total => 100.0 * part as f64 / total as f64,
        };
        percent(self.healthy) + percent(self.degraded) < threshold
    }
}

/// What one endpoint counts for, in the order of the sums.
#[derive(Debug, Clone, Copy)]
pub(super) struct Counts([u64; 7]);

impl Counts {
    /// Counts one endpoint; `weighs` says whether its weight is its share.
    pub(super) fn of(host: &Host, weighs: bool) -> Self {
        if !host.counts_for_health() {
            return Self([1, 0, 0, 0, 0, 0, 0]);
        }

        let share = if weighs { u64::from(host.weight) } else { 1 };
        let (healthy, degraded) = match host.health() {
            Health::Healthy => (1, 0),
            Health::Degraded => (0, 1),
            Health::Unhealthy => (0, 0),
        };

        Self([
            1,
            1,
            healthy,
            degraded,
            share,
            share * healthy,
            share * degraded,
        ])
    }

    /// Returns whether the endpoint counts where health is a share of all.
    pub(super) fn counts_for_health(&self) -> bool {
        self.0[1] > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d67_shares_of_large_weights_are_whole() {
        let of = |weight: u64| PriorityCounts {
            all: 3,
            total: 3,
            healthy: 3,
            degraded: 0,
            shares: [3 * weight, 3 * weight, 0],
        };
        let counts = [of(u32::MAX.into()); 2];
        let load = PriorityLoad::of_counts(&counts, u32::MAX.into(), 50.0);
        assert_eq!(load.healthy, [100, 0]);
    }

    /// Shares of healthy, shares of degraded, who panics.
    type Shares = (&'static [u64], &'static [u64], &'static [bool]);

    /// Healthy, degraded and all endpoints of each priority; the threshold.
    type Case = (&'static [(u64, u64, u64)], f64, Shares);

    #[test]
    fn d66_d67_d68_shares_are_those_of_envoy() {
        let cases: &[Case] = &[
            (
                &[(18, 0, 25), (5, 0, 5)],
                50.0,
                (&[100, 0], &[0, 0], &[false, false]),
            ),
            (
                &[(71, 0, 100), (5, 0, 5)],
                50.0,
                (&[99, 1], &[0, 0], &[false, false]),
            ),
            (
                &[(5, 0, 10), (5, 0, 5)],
                50.0,
                (&[70, 30], &[0, 0], &[false, false]),
            ),
            (
                &[(1, 0, 4), (4, 0, 4)],
                50.0,
                (&[35, 65], &[0, 0], &[false, false]),
            ),
            (
                &[(1, 0, 4), (1, 0, 4)],
                50.0,
                (&[50, 50], &[0, 0], &[true, true]),
            ),
            (
                &[(1, 0, 4), (1, 0, 4), (4, 0, 4)],
                50.0,
                (&[35, 35, 30], &[0, 0, 0], &[false; 3]),
            ),
            (
                &[(1, 0, 4), (1, 0, 4), (1, 0, 5)],
                50.0,
                (&[32, 30, 38], &[0, 0, 0], &[true; 3]),
            ),
            // 35.7 each, which the documents show as 36: what is left goes to the first.
            (
                &[(1, 0, 4), (1, 0, 4), (1, 0, 5)],
                0.0,
                (&[37, 35, 28], &[0, 0, 0], &[false; 3]),
            ),
            (
                &[(1, 0, 5), (3, 0, 10)],
                0.0,
                (&[40, 60], &[0, 0], &[false; 2]),
            ),
            (
                &[(1, 0, 20), (13, 0, 20)],
                50.0,
                (&[8, 92], &[0, 0], &[true, false]),
            ),
            (
                &[(0, 0, 2), (0, 0, 8)],
                50.0,
                (&[20, 80], &[0, 0], &[true, true]),
            ),
            (&[(5, 2, 7)], 50.0, (&[100], &[0], &[false])),
            (&[(5, 13, 20)], 50.0, (&[35], &[65], &[false])),
            (
                &[(1, 3, 4), (4, 0, 4)],
                50.0,
                (&[35, 65], &[0, 0], &[false, false]),
            ),
            (&[(0, 0, 5)], 0.0, (&[0], &[0], &[false])),
        ];
        for (counts, threshold, (healthy, degraded, panics)) in cases {
            let counts: Vec<_> = counts
                .iter()
                .map(|&(healthy, degraded, total)| PriorityCounts {
                    all: total,
                    total,
                    healthy,
                    degraded,
                    shares: [total, healthy, degraded],
                })
                .collect();
            let load = PriorityLoad::of_counts(&counts, 140, *threshold);
            let expected = PriorityLoad {
                healthy: healthy.to_vec(),
                degraded: degraded.to_vec(),
                panics: panics.to_vec(),
            };
            assert_eq!(load, expected, "{counts:?}");
        }
    }
}
