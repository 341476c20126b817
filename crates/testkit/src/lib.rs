//! Tests as data: the machines of core in memory with virtual time, the
//! scenario language, worlds with seeded faults, and the table of rules with
//! the tests that prove each.
#![forbid(unsafe_code)]

pub mod pair;
pub mod rules;
pub mod scenario;
pub mod servers;
pub mod snapshots;
pub mod trees;
pub mod variants;
pub mod world;
