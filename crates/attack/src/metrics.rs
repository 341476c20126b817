//! The server's own figures, from `/metrics`.

use std::collections::BTreeMap;

use crate::admin;
use crate::door::Door;
use crate::error::{Error, Result};

/// The histogram in which the server counts how long changes took.
const PUSH: &str = "trunkline_push_seconds_bucket";

/// The type of the victim's resources, as a label. No attacker has changes of
/// it, so the histogram is the victim's alone.
const TYPE: &str = "type=\"cds\"";

/// Counters that say that a bound was met.
const REFUSALS: [&str; 5] = [
    "trunkline_limits_total",
    "trunkline_refused_names_total",
    "trunkline_denied_total",
    "trunkline_log_dropped",
    "trunkline_audit",
];

/// All samples of one look, by name and labels as they are written.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sample(BTreeMap<String, f64>);

impl Sample {
    /// Looks once.
    pub(crate) async fn take(door: &Door) -> Result<Self> {
        let answer = admin::get(door, "/metrics").await?;
        match answer.is_good() {
            true => Ok(Self::parse(&answer.text())),
            false => Err(Error::Refused(format!("/metrics: {}", answer.status))),
        }
    }

    fn parse(text: &str) -> Self {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let samples = lines.filter_map(|line| line.rsplit_once(' '));
        let numbers = samples.filter_map(|(name, value)| {
            let value = value.parse().ok()?;
            Some((name.to_owned(), value))
        });
        Self(numbers.collect())
    }

    /// How often each refusal was counted since an earlier look.
    pub(crate) fn refusals_since(&self, earlier: &Self) -> BTreeMap<String, u64> {
        let of_refusals = self.0.iter().filter(|(name, _)| {
            let name = name.as_str();
            REFUSALS.iter().any(|prefix| name.starts_with(prefix))
        });
        let moved = of_refusals.filter_map(|(name, value)| {
            let before = earlier.0.get(name).copied().unwrap_or_default();
            (value > &before).then(|| (short(name), (value - before) as u64))
        });
        moved.collect()
    }

    /// How long the victim's changes took in the server since an earlier look.
    pub(crate) fn pushes_since(&self, earlier: &Self) -> Pushes {
        let buckets = self.0.iter().filter_map(|(name, count)| {
            let le = bound(name)?;
            let before = earlier.0.get(name).copied().unwrap_or_default();
            Some((le, count - before))
        });
        let mut buckets: Vec<(f64, f64)> = buckets.collect();
        buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
        Pushes(buckets)
    }
}

/// The label of a refusal, without what is the same for all.
fn short(name: &str) -> String {
    let name = name.strip_prefix("trunkline_").unwrap_or(name);
    let name = name.replace("_total", "").replace('"', "");
    name.replace("limits{limit=", "limit{")
}

/// The upper bound of a bucket of the victim's histogram.
fn bound(name: &str) -> Option<f64> {
    let labels = name.strip_prefix(PUSH)?;
    if !labels.contains(TYPE) {
        return None;
    }
    let (_, rest) = labels.split_once("le=\"")?;
    let (bound, _) = rest.split_once('"')?;
    match bound {
        "+Inf" => Some(f64::INFINITY),
        bound => bound.parse().ok(),
    }
}

/// A difference of two looks at the histogram: bounds, and how many are below.
#[derive(Debug, Default)]
pub(crate) struct Pushes(Vec<(f64, f64)>);

impl Pushes {
    /// How many pushes were counted.
    pub(crate) fn count(&self) -> u64 {
        self.0.last().map_or(0, |(_, all)| *all as u64)
    }

    /// A quantile in milliseconds, as the upper bound of its bucket.
    pub(crate) fn quantile(&self, quantile: f64) -> Option<f64> {
        let (_, all) = self.0.last().filter(|(_, all)| *all > 0.0)?;
        let rank = (quantile * all).ceil();
        let bucket = self.0.iter().find(|(_, below)| *below >= rank)?;
        Some(bucket.0 * 1000.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str = "# TYPE x\ntrunkline_limits_total{limit=\"bytes\"} 1\n\
        trunkline_push_seconds_bucket{le=\"0.001\",type=\"cds\"} 10\n\
        trunkline_push_seconds_bucket{le=\"+Inf\",type=\"cds\"} 10\n";
    const AFTER: &str = "trunkline_limits_total{limit=\"bytes\"} 4\n\
        trunkline_limits_total{limit=\"streams\"} 0\n\
        trunkline_push_seconds_bucket{le=\"0.001\",type=\"cds\"} 19\n\
        trunkline_push_seconds_bucket{le=\"0.002\",type=\"lds\"} 99\n\
        trunkline_push_seconds_bucket{le=\"0.01\",type=\"cds\"} 20\n\
        trunkline_push_seconds_bucket{le=\"+Inf\",type=\"cds\"} 20\n";

    #[test]
    fn two_looks_are_compared() {
        let (before, after) = (Sample::parse(BEFORE), Sample::parse(AFTER));
        let refusals = after.refusals_since(&before);
        assert_eq!(refusals, [("limit{bytes}".to_owned(), 3)].into());
        let pushes = after.pushes_since(&before);
        assert_eq!(pushes.count(), 10);
        assert_eq!(pushes.quantile(0.5), Some(1.0));
        assert_eq!(pushes.quantile(0.99), Some(10.0));
        assert_eq!(before.pushes_since(&before).quantile(0.5), None);
    }
}
