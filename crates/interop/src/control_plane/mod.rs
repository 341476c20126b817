//! Trunkline's client at a control plane that is not ours.
//!
//! ```text
//!   scenario ── PUT contents ──▶ plane: go-control-plane
//!      │                            │ SotW or delta, aggregated or by type
//!      └─ compares what it holds ◀─ client
//! ```
//!
//! | file | concern |
//! |---|---|
//! | `plane` | the control plane as a process |
//! | `contents` | resources, in revisions |
//! | `scenario` | what happens, and what a client should hold after each step |

mod contents;
mod plane;
mod scenario;

pub use plane::Cache;
pub use scenario::{By, Case, play};
