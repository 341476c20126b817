//! What a subscriber asks for: names, globs, and the whole type.

mod wildcard;

pub use wildcard::{DeltaStar, Wildcard};
