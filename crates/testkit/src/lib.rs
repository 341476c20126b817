//! Tests as data: the machines of core in memory with virtual time, the
//! scenario language, worlds with seeded faults, and the table that shows which
//! rules are proved by what.
#![forbid(unsafe_code)]

pub mod pair;
pub mod rules;
pub mod scenario;
pub mod trees;
pub mod variants;
pub mod world;
