//! REST polling, as far as it is text: the type of a path, a request from JSON,
//! a response to JSON.
//!
//! ```text
//! POST /v3/discovery:clusters  {"node": …, "version_info": …, "resource_names": […]}
//!   kind_of_path ── read ──▶ SotwRequest ──▶ a session ──▶ SotwResponse ── write ──▶ {"resources": […]}
//! ```
//!
//! Connections, status codes and sessions are elsewhere. A client that polls
//! has no nonce and sends no NACK.
//!
//! ```
//! use trunkline::rest::{self, RestLimits};
//!
//! let kind = rest::kind_of_path("/v3/discovery:clusters").unwrap_or_default();
//! let body = br#"{"node": {"id": "envoy-1"}, "resource_names": ["backend"]}"#;
//! let read = rest::read(kind, body, &RestLimits::default())?;
//! assert_eq!(read.request.node.unwrap_or_default().id, "envoy-1");
//! # Ok::<(), rest::RestError>(())
//! ```

mod error;
mod node;
mod request;
mod response;
#[cfg(test)]
mod tests;

pub use error::RestError;
pub use request::{Read, RestLimits, read};
pub use response::{LeftOut, Written, pieces, write};

/// Every path that can be polled, and its type: the paths of Envoy's services.
pub const PATHS: &[(&str, &str)] = crate::paths::POLLED;

/// Returns the type that is polled at a path; `None` if none is.
///
/// ```
/// use trunkline::{kind, rest::kind_of_path};
///
/// assert_eq!(kind_of_path("/v3/discovery:clusters"), Some(kind::CDS));
/// assert_eq!(kind_of_path("/v3/discovery:unknown"), None);
/// ```
#[must_use]
pub fn kind_of_path(path: &str) -> Option<&'static str> {
    PATHS
        .iter()
        .find_map(|(known, kind)| (*known == path).then_some(*kind))
}
