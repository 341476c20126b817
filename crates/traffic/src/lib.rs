//! The rules of traffic: what a proxy does with a request, as Envoy decides it.
//!
//! | module | concern |
//! |---|---|
//! | [`listener`] | from a connection to its filter chain |
//! | [`connection_manager`] | host, path and trust, before a request is routed |
//! | [`route`] | from a request to a virtual host, a route, a cluster |
//! | [`balance`] | from a cluster and a request to an endpoint |
//! | [`cluster`] | circuit breakers and outlier detection |
//! | [`retry`] | attempts, timeouts and hedging of one request |
//! | [`concurrency`] | how many requests may be under way, by their latency |
//! | [`headers`] | header lines of requests and responses |
//! | [`support`] | what is supported and what is not |
//! | [`hash`] | hashes that choose endpoints |
//!
//! Envoy's typed messages go in, immutable tables come out, which threads share
//! without locks. What cannot be compiled is a [`Finding`] with the path of its
//! field. Nothing here has IO, waits or reads a clock: time and randomness are
//! arguments, so the same inputs give the same decisions.
//!
//! Numbers in parentheses name rules of the data plane; "facts" are what a live
//! Envoy 1.40 was seen to do, and the recorded cases are tests.

mod address;
pub mod balance;
pub mod cluster;
pub mod concurrency;
pub mod connection_manager;
mod drain;
mod findings;
pub mod hash;
pub mod headers;
#[cfg(test)]
mod json;
pub mod listener;
mod pattern;
mod persistent;
mod request;
pub mod retry;
pub mod route;
mod runtime;
pub mod support;

pub use drain::{Drain, DrainStrategy};
pub use findings::{Finding, Findings};
pub use request::Request;
pub use runtime::{Fraction, Runtime};
