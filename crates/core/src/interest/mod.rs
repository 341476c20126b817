//! Interest: the selectors that a stream or a sink subscribes to.

mod set;
mod wildcard;

pub use set::{Interest, InterestDiff};
pub use wildcard::{DeltaWildcard, Wildcard};
