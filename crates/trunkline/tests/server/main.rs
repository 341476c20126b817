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
mod kept;
mod lanes;
mod limits;
mod params;
mod quotas;
mod secrets;
mod services;
mod slow_peers;
mod streams;
mod support;
