//! Acceptance: the checks that a client makes of a body before it uses it, and
//! NACKs it by.
//!
//! ```text
//!                  ┌ decode, once ─────────── a typed message, in an Arc
//!   type, bytes ───┤ name ─────────────────── C27
//!                  ├ rules of the profile ─── gRPC's, Envoy's, or those on fields
//!                  └ fields that are set ──── C57
//!                                │
//!             Accepted, with a report of     Rejection, with every
//!             what is not used of it    or   reason and its place (C26)
//! ```
//!
//! | module | concern |
//! |---|---|
//! | `policy`, `extensions` | whose rules apply; the filters, policies and providers that are supported |
//! | `resource_type`, `types` | the types that can be accepted, by Rust type and by type URL |
//! | `fields` | the fields that are supported |
//! | `grpc` | gRPC's checks of each type (C13, C14, C56 to C61) |
//! | `descriptors` | Envoy's rules, by [`validate`](crate::validate) |
//! | `findings`, `problem`, `rejection`, `report`, `place` | what was found, and where |
//!
//! ```
//! use bytes::Bytes;
//! use trunkline_proto::acceptance::{self, Policy};
//! use trunkline_proto::envoy::envoy::config::cluster::v3::Cluster;
//!
//! // name: "c", and nothing that says where its endpoints come from.
//! let body = Bytes::from_static(b"\x0a\x01c");
//! let rejection = acceptance::decode::<Cluster>(&body, &Policy::grpc()).unwrap_err();
//! assert_eq!(rejection.name.as_deref(), Some("c"));
//! assert_eq!(
//!     rejection.to_string(),
//!     "type: is STATIC, must be a type of cluster that is supported"
//! );
//! ```
//!
//! What is not here: whether a response is ACKed (`trunkline-core` decides, by
//! the verdict of a sink's owner), and what a data plane does with a message.
//! The work is linear in the size of a body, but for a bound on combinations of
//! filter chain matches; garbage is an error, never a panic.

mod descriptors;
mod extensions;
mod fields;
mod findings;
mod grpc;
mod place;
mod policy;
mod problem;
mod rejection;
mod report;
mod resource_type;
mod types;

use std::any::Any;
use std::sync::Arc;

use bytes::Bytes;

pub use extensions::{HttpFilter, HttpFilters, Side, Usage};
pub use fields::{FieldsError, SupportedFields};
pub use findings::Findings;
pub use grpc::listener::is_at;
pub use place::Place;
pub use policy::{Policy, Profile, Unsupported};
pub use problem::Problem;
pub use rejection::{MAX_TEXT, Reason, Rejection};
pub use report::{IgnoreReason, Ignored, MAX_FINDINGS, Report};
pub use resource_type::ResourceType;
pub use types::Types;

use crate::descriptor::full_name;

/// A body that was accepted.
#[derive(Debug, Clone)]
pub struct Accepted<T: ?Sized = dyn Any + Send + Sync> {
    /// The name of the resource in its body; `None` for a type without one.
    pub name: Option<String>,
    /// The message, decoded once.
    pub message: Arc<T>,
    /// What is not used of it.
    pub report: Report,
}

impl Accepted {
    /// Returns the message as one of a type; `None` if it is of another.
    #[must_use]
    pub fn downcast<T: ResourceType>(&self) -> Option<Arc<T>> {
        self.message.clone().downcast().ok()
    }
}

/// Decodes a body and checks it by the rules of the policy.
///
/// # Errors
/// The bytes are not of the type, or the body breaks a rule.
pub fn decode<T: ResourceType>(body: &Bytes, policy: &Policy) -> Result<Accepted<T>, Rejection> {
    let mut findings = Findings::new(policy);
    let message = match T::decode(body.clone()) {
        Ok(message) => message,
        Err(source) => {
            let message = full_name(T::TYPE_URL).to_owned();
            findings.reject(&Place::ROOT, Problem::Malformed { message, source });
            return Err(malformed_rejection(findings, T::TYPE_URL));
        }
    };

    let name = message.name().filter(|name| !name.is_empty());
    if message.name().is_some() && name.is_none() {
        findings.reject(&Place::ROOT.field(T::NAME_FIELD), Problem::Missing);
    }
    descriptors::check_rules(T::TYPE_URL, body, &mut findings);
    message.check(&mut findings);
    if let Some(fields) = &policy.fields {
        fields.scan(T::TYPE_URL, body, &mut findings);
    }

    let report = findings.finish(name, T::TYPE_URL)?;
    let name = name.map(str::to_owned);
    let message = Arc::new(message);
    Ok(Accepted {
        name,
        message,
        report,
    })
}

/// Decodes a body of one of the types of [`Types::standard`] and checks it.
///
/// # Errors
/// The type is not known, the bytes are not of it, or a rule of the policy is
/// broken.
pub fn accept(type_url: &str, body: &Bytes, policy: &Policy) -> Result<Accepted, Rejection> {
    Types::standard().accept(type_url, body, policy)
}

/// Returns the rejection of a body that cannot be decoded, so that its name is
/// unknown (C27). The caller must have added a reason.
fn malformed_rejection(findings: Findings<'_>, type_url: &str) -> Rejection {
    match findings.finish(None, type_url) {
        Err(rejection) => rejection,
        Ok(_) => Rejection {
            name: None,
            type_url: type_url.to_owned(),
            reasons: Vec::new(),
            omitted: 0,
        },
    }
}
