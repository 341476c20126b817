//! Outlier detection (A50).

use super::check_duration;
use crate::acceptance::findings::Findings;
use crate::acceptance::place::Place;
use crate::acceptance::problem::Problem;
use crate::envoy::envoy::config::cluster::v3::OutlierDetection;

/// Rejects durations that are negative, and percentages above 100.
pub(super) fn check_detection(
    detection: &OutlierDetection,
    place: &Place<'_>,
    findings: &mut Findings<'_>,
) {
    for (field, duration) in [
        ("interval", &detection.interval),
        ("base_ejection_time", &detection.base_ejection_time),
        ("max_ejection_time", &detection.max_ejection_time),
    ] {
        check_duration(duration.as_ref(), &place.field(field), findings);
    }

    for (field, percentage) in [
        ("max_ejection_percent", &detection.max_ejection_percent),
        ("enforcing_success_rate", &detection.enforcing_success_rate),
        (
            "failure_percentage_threshold",
            &detection.failure_percentage_threshold,
        ),
        (
            "enforcing_failure_percentage",
            &detection.enforcing_failure_percentage,
        ),
    ] {
        if let Some(percentage) = percentage
            .as_ref()
            .filter(|percentage| percentage.value > 100)
        {
            let problem = Problem::value(percentage.value, "at most 100");
            findings.reject(&place.field(field), problem);
        }
    }
}
