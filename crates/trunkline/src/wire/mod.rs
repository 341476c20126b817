//! Where the wire and the rules meet: the only module that knows the messages
//! of both `trunkline-proto` and `trunkline-core`.
//!
//! ```text
//! a server: received bytes ── request ──▶ core's request   (node read when it changes)
//!           core's response ── response ──▶ frames of shared bytes
//! a client: core's request ── ask ──▶ bytes
//!           received bytes ── heard ──▶ core's response, bodies not copied
//! encoded contents ── accept ──▶ core's resource, with its facts
//! a resource of a file ── intake, authored ──▶ the same, with what stands around
//!           it; virtual hosts out of their route configuration (`hosts`),
//!           variants out of conditions on parts (`compact`)
//! constraints: both ways
//! ```
//!
//! Nothing is decided here. What a peer sent beyond a limit, or nobody can read,
//! is taken out of the message and reported beside it.

mod accept;
mod ask;
mod authored;
mod compact;
mod constraints;
mod heard;
mod hosts;
mod intake;
mod known_versions;
mod node;
mod request;
mod response;
mod shared;

pub use accept::{AcceptError, accept};
pub use ask::RequestWriter;
pub use authored::accept_text;
pub use compact::Doubt;
pub use constraints::{ConstraintReadError, read_constraints, text_options, write_constraints};
pub use heard::{Heard, read_response};
pub use intake::{Accepted, Host, Hosted, Intake, Mistake, Parent};
pub(crate) use known_versions::KnownVersions;
pub(crate) use request::Reader;
pub use request::Refused;
pub(crate) use response::{delta_frames, sotw_frames};
