//! Durations of messages and of gRPC's bootstrap.

use std::time::Duration;

use trunkline_proto::envoy::google::protobuf;

use super::super::problem::Problem;
use super::super::report::Scope;

const NEGATIVE: &str = "a duration must not be negative; write such as 15s";

/// Reads a duration. A negative one is a mistake.
pub(super) fn read(message: &protobuf::Duration, scope: &Scope<'_>) -> Option<Duration> {
    match (u64::try_from(message.seconds), u32::try_from(message.nanos)) {
        (Ok(seconds), Ok(nanos)) if nanos < 1_000_000_000 => Some(Duration::new(seconds, nanos)),
        _ => scope.mistake(Problem::Invalid { reason: NEGATIVE }),
    }
}

/// Reads the duration in a field, which is `default` if the field is not set.
pub(super) fn read_or(
    message: Option<&protobuf::Duration>,
    default: Duration,
    scope: &Scope<'_>,
) -> Option<Duration> {
    message.map_or(Some(default), |message| read(message, scope))
}

/// Reads a duration in the form that JSON has: `600s`, `1.5s`.
pub(in super::super) fn parse_seconds(text: &str) -> Option<Duration> {
    let number = text.strip_suffix('s')?;
    let is_number = number.starts_with(|c: char| c.is_ascii_digit())
        && number.chars().all(|c| c.is_ascii_digit() || c == '.');
    let seconds: f64 = number.parse().ok().filter(|_| is_number)?;
    Duration::try_from_secs_f64(seconds).ok()
}
