//! Retry policies (A44).

use super::nanos;
use crate::acceptance::findings::Findings;
use crate::acceptance::place::Place;
use crate::acceptance::problem::Problem;
use crate::envoy::envoy::config::route::v3::RetryPolicy;
use crate::envoy::google::protobuf::Duration;
use crate::text::print_duration;

/// Checks the retry policy of the part at `place`, if there is one.
pub(super) fn check_retry_policy(
    policy: Option<&RetryPolicy>,
    place: &Place<'_>,
    findings: &mut Findings<'_>,
) {
    let Some(policy) = policy else { return };
    let place = place.field("retry_policy");
    if (policy.num_retries.as_ref()).is_some_and(|retries| retries.value == 0) {
        let problem = Problem::value(0, "at least 1");
        findings.reject(&place.field("num_retries"), problem);
    }

    let Some(back_off) = &policy.retry_back_off else {
        return;
    };

    let place = place.field("retry_back_off");
    let base_place = place.field("base_interval");
    let base_nanos = match &back_off.base_interval {
        Some(base) => check_interval(base, &base_place, findings),
        None => {
            findings.reject(&base_place, Problem::Missing);
            None
        }
    };

    let Some(max) = &back_off.max_interval else {
        return;
    };

    let max_place = place.field("max_interval");
    let max_nanos = check_interval(max, &max_place, findings);
    if let (Some(base_nanos), Some(max_nanos)) = (base_nanos, max_nanos)
        && max_nanos < base_nanos
    {
        let found = print_duration(max.seconds, max.nanos);
        let problem = Problem::value(found, "at least base_interval");
        findings.reject(&max_place, problem);
    }
}

/// Returns an interval in nanoseconds. Rejects the body and returns `None` if
/// the interval is invalid or zero.
fn check_interval(
    duration: &Duration,
    place: &Place<'_>,
    findings: &mut Findings<'_>,
) -> Option<u128> {
    match nanos(duration) {
        None => findings.reject(place, Problem::Duration),
        Some(0) => findings.reject(place, Problem::value("0s", "above 0s")),
        Some(nanos) => return Some(nanos),
    }
    None
}
