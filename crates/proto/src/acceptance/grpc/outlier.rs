//! Outlier detection (A50).

use super::check_duration;
use crate::acceptance::findings::Findings;
use crate::acceptance::place::Place;
use crate::acceptance::problem::Problem;
use crate::envoy::envoy::config::cluster::v3::OutlierDetection;

/// Rejects durations that are negative, and percentages above 100.
pub(super) fn check(of: &OutlierDetection, at: &Place<'_>, findings: &mut Findings<'_>) {
    for (field, duration) in [
        ("interval", &of.interval),
        ("base_ejection_time", &of.base_ejection_time),
        ("max_ejection_time", &of.max_ejection_time),
    ] {
        check_duration(duration.as_ref(), &at.field(field), findings);
    }
    for (field, percentage) in [
        ("max_ejection_percent", &of.max_ejection_percent),
        ("enforcing_success_rate", &of.enforcing_success_rate),
        (
            "failure_percentage_threshold",
            &of.failure_percentage_threshold,
        ),
        (
            "enforcing_failure_percentage",
            &of.enforcing_failure_percentage,
        ),
    ] {
        if let Some(percentage) = percentage.as_ref().filter(|p| p.value > 100) {
            let problem = Problem::value(percentage.value, "at most 100");
            findings.reject(&at.field(field), problem);
        }
    }
}
