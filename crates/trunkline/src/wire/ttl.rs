//! The time to live of a resource (S59) as a message.

use std::time::Duration;

use trunkline_proto::discovery;

/// The maximum of seconds in a duration of protobuf, some ten thousand years.
#[cfg(feature = "server")]
const MAX_SECONDS: u64 = 315_576_000_000;

/// The maximum of nanoseconds beside the seconds.
const MAX_NANOS: u32 = 999_999_999;

/// Writes a time to live. One beyond the maximum of protobuf is cut to it,
/// which is as good as for ever.
#[cfg(feature = "server")]
pub(super) fn write_ttl(ttl: Duration) -> discovery::Duration {
    discovery::Duration {
        seconds: i64::try_from(ttl.as_secs().min(MAX_SECONDS)).unwrap_or_default(),
        nanos: i32::try_from(ttl.subsec_nanos()).unwrap_or_default(),
    }
}

/// Reads a time to live; `None` if it is zero or negative, or if its
/// nanoseconds are.
pub(super) fn read_ttl(message: discovery::Duration) -> Option<Duration> {
    let seconds = u64::try_from(message.seconds).ok()?;
    let nanos = u32::try_from(message.nanos).ok()?;
    let ttl = Duration::new(seconds, nanos.min(MAX_NANOS));
    (!ttl.is_zero()).then_some(ttl)
}
