//! The server against real clients: its contents take effect in them.
#![allow(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "all of this is tests"
)]

mod grpc;
mod large;
mod order;
mod ready;
mod reconnect;
mod rejection;
mod resources;
