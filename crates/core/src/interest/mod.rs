//! Interest: the selectors that a stream or a sink subscribes to.

mod param_sets;
mod set;
mod subscription;
mod wildcard;

pub use set::Interest;
pub(crate) use set::InterestDiff;
pub use subscription::Subscription;
pub(crate) use wildcard::{DeltaWildcard, Wildcard};
