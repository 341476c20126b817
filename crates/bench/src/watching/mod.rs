//! Measures an xDS client: what it takes to receive, check and deliver.
//!
//! ```text
//!   this process                      a process of its own
//!   server ─── xDS, one stream ─────▶ client: 2 × N watches by name
//!     ▲                                  │
//!     └── update ◀── "held", "+" ────────┘  CPU, memory, time of the client
//! ```
//!
//! The server is Trunkline's, with the same contents for every client, so all
//! are sent the same bytes. A client prints `held` when each of its watches has
//! had a resource, and `+` for each resource that it is given after that; an
//! update is made when the one before has arrived.
//!
//! | file | concern |
//! |---|---|
//! | `contents` | clusters and endpoints as gRPC uses them |
//! | `measure` | the server, the client as a process, the phases |
//! | `options` | what is measured |
//! | `watcher` | Trunkline's own client |

mod contents;
mod measure;
mod options;
mod watcher;

pub use measure::{ClientPhase, ClientReport, measure};
pub use options::{MeasureOptions, WatchOptions};
pub use watcher::watch;
