//! The newest events of a server, for readers who follow them: changes of the
//! contents, ACKs and NACKs, clients that connect and disconnect.
//!
//! ```text
//!  hooks ─▶ append ─▶ ring: the newest events ─▶ batch ─▶ reader, at its position
//!                      │
//!                      └─▶ forgotten: a reader that is there is told that it missed some
//! ```
//!
//! | file | concern |
//! |---|---|
//! | `entry` | an event, and its id |
//! | `encoded`, `blocks` | how an event is kept: as bytes, in large blocks |
//! | `ring` | the events that are kept, by number and by revision |
//! | `log` | the ring behind a lock, and the hooks that fill it |
//! | `reader` | a position in the log |
//!
//! Events are kept as numbers and names, not as the texts that readers get:
//! nothing is formatted unless somebody reads it. A reader is a number. One that is slow costs no memory,
//! and makes nobody wait.
//!
//! ```
//! use trunkline::events::{EventLog, LogEvent, Start};
//! use trunkline::envoy::config::cluster::v3::Cluster;
//! use trunkline::{ResourceMessage, Server};
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() {
//! let log = EventLog::default();
//! let server = Server::builder().hooks(log.clone()).build();
//! let mut reader = log.read(Start::Now).unwrap();
//!
//! let cluster = Cluster {
//!     name: "backend".to_owned(),
//!     ..Cluster::default()
//! };
//! server.set("example", [ResourceMessage::of(&cluster)]).unwrap();
//! let entries = reader.next().await.unwrap();
//! assert!(matches!(*entries[0].event, LogEvent::Changed { revision: 1, .. }));
//! # }
//! ```

mod blocks;
mod encoded;
mod entry;
mod log;
mod reader;
mod ring;
#[cfg(test)]
mod tests;

pub use entry::{ClientStream, EventId, InvalidEventId, LogEntry, LogEvent};
pub use log::{EventLog, LogLimits, MOST_LISTED};
pub use reader::{Missed, Reader};
pub use ring::{Start, StartError};
