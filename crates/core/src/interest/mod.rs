//! Interest: the selectors that a stream or a sink subscribes to.

mod set;
mod wildcard;

pub use set::Interest;
pub(crate) use set::InterestDiff;
pub(crate) use wildcard::{DeltaWildcard, Wildcard};
