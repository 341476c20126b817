//! Counts of outcomes that are drawn at random, compared with recorded ones.

use std::collections::BTreeMap;

use serde_json::Value;

/// Returns the shares that differ by more than sampling explains, as a text.
///
/// Both sides are samples, so the difference of two shares has the variance of
/// both; five standard deviations are never seen by chance.
pub(crate) fn differences(recorded: &Value, ours: &BTreeMap<String, u64>) -> Option<String> {
    let recorded: BTreeMap<String, u64> = recorded
        .as_object()?
        .iter()
        .map(|(name, count)| (name.clone(), count.as_u64().unwrap_or(0)))
        .collect();
    let (theirs_total, ours_total) = (sum(&recorded), sum(ours));
    let names = recorded.keys().chain(ours.keys());
    let mut wrong = Vec::new();
    for name in names {
        let a = share(&recorded, name, theirs_total);
        let b = share(ours, name, ours_total);
        let mean = (a + b) / 2.0;
        let variance = mean * (1.0 - mean) * (1.0 / theirs_total + 1.0 / ours_total);
        if (a - b).abs() > 5.0 * variance.sqrt() + 1e-9 {
            wrong.push(format!("{name}: recorded {a:.3}, here {b:.3}"));
        }
    }
    (!wrong.is_empty()).then(|| wrong.join(", "))
}

#[expect(clippy::cast_precision_loss, reason = "counts of some thousand")]
fn sum(counts: &BTreeMap<String, u64>) -> f64 {
    counts.values().sum::<u64>() as f64
}

#[expect(clippy::cast_precision_loss, reason = "counts of some thousand")]
fn share(counts: &BTreeMap<String, u64>, name: &str, total: f64) -> f64 {
    counts.get(name).map_or(0.0, |count| *count as f64 / total)
}
