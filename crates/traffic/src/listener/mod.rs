//! Listeners: from a connection to its filter chain (26).
//!
//! ```text
//! Listener ── compile ──▶ FilterChains
//!                            │ find(connection)
//!                            ▼
//!  port ─▶ address ─▶ server name ─▶ transport ─▶ application protocol
//!       ─▶ direct source ─▶ kind of source ─▶ source ─▶ source port
//! ```
//!
//! Each step takes the most specific of what the chains at hand name, and does
//! not come back: where a chain names the port, those for any port are out.

mod chains;
mod connection;
mod steps;

pub use chains::{FilterChains, FoundChain};
pub use connection::Incoming;
