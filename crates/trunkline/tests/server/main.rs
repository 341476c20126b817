//! The server over real gRPC.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "all of this is a test"
)]

mod arrival;
mod aside;
mod base;
mod ending;
mod hooks;
mod junk;
mod limits;
mod params;
mod services;
mod streams;
mod support;
