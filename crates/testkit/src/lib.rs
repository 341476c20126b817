//! What the tests of the engine are made of.
#![forbid(unsafe_code)]

pub mod world;
