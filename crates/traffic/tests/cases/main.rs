//! Requests that a live Envoy 1.40 was given, and what it did with them.
//!
//! Each case of `tests/data` is put to this crate, and gives Envoy's outcome.
//! What differs is listed with its reason, and a case that is listed must
//! differ.

#![expect(clippy::expect_used, reason = "tests")]

mod balance;
mod data;
mod hash;
mod headers;
mod outcome;
mod retry;
mod route;
mod sampling;
