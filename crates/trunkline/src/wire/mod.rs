//! Messages to values of the engine and back: the only module that knows the
//! messages of both `trunkline-proto` and `trunkline-core`.
//!
//! ```text
//! a server: received bytes ── request ──▶ core's request   (node read when it changes)
//!           core's response ── response ──▶ frames of shared bytes
//! a sink:   core's request ── sink_request ──▶ bytes
//!           received bytes ── sink_response ──▶ core's response, bodies not copied
//! an encoded body ── accept ──▶ core's resource, with its facts
//! a resource of a file ── intake, authored ──▶ the same, with its wrapper;
//!           virtual hosts out of their route configuration (`hosts`),
//!           variants out of conditions on parts (`compact`)
//! constraints, resource_errors, ttl: both ways
//! ```
//!
//! Nothing is decided here. A part of a message that is beyond a limit or
//! unreadable is taken out and reported beside it.

mod accept;
#[cfg(feature = "server")]
mod authored;
#[cfg(feature = "server")]
mod compact;
mod constraints;
mod host_name;
#[cfg(feature = "server")]
mod hosts;
#[cfg(feature = "server")]
mod intake;
#[cfg(feature = "server")]
mod known_versions;
#[cfg(feature = "server")]
mod node;
#[cfg(feature = "server")]
mod request;
mod resource_errors;
#[cfg(feature = "server")]
mod response;
mod shared;
mod sink_request;
mod sink_response;
mod ttl;

pub use accept::{AcceptError, accept};
#[cfg(feature = "server")]
pub use authored::accept_text;
#[cfg(feature = "server")]
pub use compact::Doubt;
pub use constraints::{ConstraintReadError, read_constraints, text_options, write_constraints};
#[cfg(feature = "server")]
pub use intake::{Accepted, Host, Hosted, Intake, KeptResource, Mistake, Parent};
#[cfg(feature = "server")]
pub(crate) use known_versions::KnownVersions;
#[cfg(feature = "server")]
pub use request::Refused;
#[cfg(feature = "server")]
pub(crate) use request::{Read, Reader};
#[cfg(feature = "server")]
pub(crate) use response::{encode_delta_frames, encode_sotw_frames};
pub use sink_request::RequestWriter;
pub use sink_response::{ReceivedResponse, read_response};
