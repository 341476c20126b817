//! What a subscriber asks for: names, globs, and the whole type.

mod set;
mod wildcard;

pub use set::{Interest, InterestDiff};
pub use wildcard::{DeltaWildcard, Wildcard};
