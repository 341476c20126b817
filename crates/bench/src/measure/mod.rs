//! What is counted and timed.

mod counters;
mod latency;
mod process;
mod work;

pub use counters::Count;
pub(crate) use counters::Counters;
pub(crate) use latency::Latencies;
pub use latency::Quantiles;
pub(crate) use process::Process;
pub use process::Usage;
pub use work::Work;
