//! Measures xDS servers, ours or another's, as many real clients would.
//!
//! ```text
//!  driver ── puts contents, makes changes ──▶ server ◀── streams ── clients
//!     │            (a revision in each)          │                     │
//!     └── when ──▶ truth ◀── which revision, when ─────────────────────┘
//!                                                │ CPU, memory
//!                   report ◀─────────────────────┘
//! ```
//!
//! Every resource says in its body which revision it is, so a client knows
//! which change it sees, how long that took, and whether it is the right one.
//! Clients are the engine's own sinks ([`Options::light`] has a cheaper kind).
//! The server may be any: what it is given, and how, is a driver's matter.
#![forbid(unsafe_code)]

mod client;
mod contents;
mod driver;
mod error;
mod examples;
mod measure;
mod options;
mod progress;
mod report;
mod run;
mod serving;
mod table;
pub mod watching;

pub use contents::Kind;
pub use error::{Error, Result};
pub use examples::{EXAMPLES, SHORT_EXAMPLES};
pub use measure::{Count, Quantiles, Usage, Work};
pub use options::{Asking, Child, Options, Output, Told, Variant};
pub use report::{Check, Phase, Report, Scenario};
pub use run::run;
