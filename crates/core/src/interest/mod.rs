//! What a subscriber asks for: names, globs, and the whole type.

mod set;
mod wildcard;

pub use set::{Edges, Interest};
pub use wildcard::{DeltaStar, Wildcard};
