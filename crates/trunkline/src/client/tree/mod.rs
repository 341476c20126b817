//! Listeners and clusters with everything below them, as snapshots.
//!
//! ```text
//!   listener ─┬▶ routes (RDS, SRDS, VHDS, inline) ──▶ clusters (weighted, aggregate)
//!             ├▶ secrets (SDS)                            ├▶ endpoints (EDS, LEDS, DNS)
//!             └▶ filters (ECDS), runtime (RTDS)           └▶ secrets (SDS)
//! ```
//!
//! | module | concern |
//! |---|---|
//! | `watch` | roots: what is watched, and subscribed to beside it |
//! | `snapshot`, `cluster`, `part` | what is shown |
//! | `references`, `place` | what a resource refers to, and where that is asked for |
//! | `trees`, `follow`, `dns`, `mailbox` | the machine of the engine, and what it decides done |
//! | `held` | what the machine holds of a resource |
//!
//! Everything is decided by [`trunkline_core::tree`]: what is subscribed to,
//! when a snapshot is complete, what it shares with the one before.

mod cluster;
mod dns;
mod follow;
mod held;
mod mailbox;
mod part;
mod place;
mod references;
mod snapshot;
mod trees;
mod watch;

pub use cluster::{ClusterSnapshot, EndpointsSnapshot};
pub use dns::{Lookup, Resolve};
pub use part::Part;
pub use snapshot::{AnySnapshot, ListenerSnapshot, RouteSnapshot, Show, VirtualHostSnapshot};
pub use trunkline_core::tree::Work;
pub use watch::{ClusterSubscription, SnapshotWatch, Warming};

pub(super) use dns::Resolver;
pub(super) use mailbox::{Mailbox, News};
pub(super) use trees::{Trees, grow};
