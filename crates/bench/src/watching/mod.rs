//! Measures an xDS client: what it takes to receive, check and deliver.
//!
//! ```text
//!   this process                      a process of its own
//!   server ─── xDS, one stream ─────▶ client: 2 × N watches by name,
//!     ▲                                  │    or one tree of a listener
//!     └── update ◀── "held", "+" ────────┘  CPU, memory, time of the client
//! ```
//!
//! The server is Trunkline's, with the same contents for every client, so all
//! are sent the same bytes. A client of names prints `held` when each of its
//! watches has had a resource, and `+` for each resource that it is given after
//! that. One of a tree prints `held` when it is given a tree in which each
//! cluster has endpoints. It is told on its input, before an update, the cluster
//! and its new first port, and prints `+` when the tree that it is given shows
//! this port. An update is made when the one before has arrived.
//!
//! | file | concern |
//! |---|---|
//! | `contents` | clusters and endpoints as gRPC uses them |
//! | `listener` | a listener and its routes to these clusters |
//! | `measure` | the server and its updates |
//! | `subject` | the client as a process, and the phases of it |
//! | `options` | what is measured |
//! | `watcher`, `tree` | Trunkline's own client: names, a tree |

mod contents;
mod listener;
mod measure;
mod options;
mod subject;
mod tree;
mod watcher;

pub use measure::{ClientReport, measure};
pub use options::{MeasureOptions, WatchOptions};
pub use subject::ClientPhase;
pub use watcher::watch;
