//! What a subscriber asks for: names, globs, and the whole type.

mod set;
mod wanted;
mod wildcard;

pub use set::{Edges, Interest};
pub use wanted::Wanted;
pub use wildcard::{DeltaStar, Wildcard};
