//! Adaptive concurrency: how many requests may be under way, found out from how
//! long they take (57).
//!
//! ```text
//! try_start ──▶ under way ──end, cancel──▶
//!                     │ latency
//!                     ▼
//!   measurement of the least latency ⇄ samples ─▶ gradient ─▶ limit
//! ```
//!
//! From time to time, and at first, only few requests are let in, so that what
//! they take is the least that the service needs. Between, the limit follows
//! how much longer requests take than that.

mod config;
mod controller;
mod samples;

pub use config::ConcurrencyConfig;
pub use controller::ConcurrencyController;
