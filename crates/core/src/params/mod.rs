//! Dynamic parameters and constraints (TP2).

use std::fmt;

/// What a client says of itself: keys with values, sorted by key.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Params(Box<[(Box<str>, Box<str>)]>);

/// Which clients a variant is for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Constraints(());

impl fmt::Display for Constraints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("")
    }
}
