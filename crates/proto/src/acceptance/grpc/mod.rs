//! gRPC's checks, from its gRFCs. They read typed messages, with no descriptor.
//!
//! | file | rule | concern |
//! |---|---|---|
//! | `endpoints`, `address` | C56 | localities, priorities, weights, addresses |
//! | `cluster` | C13, C57 | the type of a cluster, and what each needs |
//! | `config_source` | C14 | `ads` and `self` |
//! | `lb_policy`, `outlier` | C57 | load balancing (A42, A48, A52), outlier detection (A50) |
//! | `metadata` | C57 | metadata of known types (A83, A86) |
//! | `routes`, `route_match`, `route_action`, `retry` | C58 | routes (A28, A36, A42, A44) |
//! | `matcher` | C58 | matchers of texts and headers, expressions (A63) |
//! | `http_filters`, `filter_bodies` | C59 | lists of filters, overrides, and gRPC's own filters (A39, A41, A55, A83) |
//! | `tls` | C60 | transport sockets of clusters and filter chains (A29, A82, A86, A101) |
//! | `listener`, `manager`, `chains` | C61 | API listeners, listeners of servers, filter chains (A36, A41) |
//!
//! A field that no check names is ignored, as gRPC does; [`fields`](super::fields)
//! reports it.

mod address;
mod chains;
pub(super) mod cluster;
mod config_source;
pub(super) mod endpoints;
pub(super) mod filter_bodies;
mod http_filters;
mod lb_policy;
pub(super) mod listener;
mod manager;
mod matcher;
mod metadata;
mod outlier;
mod retry;
mod route_action;
mod route_match;
pub(super) mod routes;
mod tls;

use std::borrow::Cow;

use prost::Message;

use super::findings::Findings;
use super::place::{Place, clip};
use super::problem::{MAX_VALUE, Problem};
use crate::descriptor::full_name;
use crate::envoy::google::protobuf::{Any, Duration};
use crate::text::MAX_SECONDS;

const NANOS_PER_SECOND: u128 = 1_000_000_000;

/// Decodes the body of an extension. Rejects the body and returns `None` if the
/// bytes are not of the type (C27).
fn decode_body<T: Message + Default>(
    message: &str,
    body: &[u8],
    place: &Place<'_>,
    findings: &mut Findings<'_>,
) -> Option<T> {
    match T::decode(body) {
        Ok(decoded) => Some(decoded),
        Err(source) => {
            let message = message.to_owned();
            findings.reject(place, Problem::Malformed { message, source });
            None
        }
    }
}

/// Rejects a duration that is out of range or negative; one that is not set is
/// in order.
fn check_duration(duration: Option<&Duration>, place: &Place<'_>, findings: &mut Findings<'_>) {
    if duration.is_some_and(|duration| nanos(duration).is_none()) {
        findings.reject(place, Problem::Duration);
    }
}

/// Returns a duration in nanoseconds; `None` if it is out of range or negative.
fn nanos(duration: &Duration) -> Option<u128> {
    let seconds = u128::try_from(duration.seconds).ok()?;
    let nanos = u128::try_from(duration.nanos).ok()?;
    let is_valid = duration.seconds <= MAX_SECONDS && nanos < NANOS_PER_SECOND;
    is_valid.then_some(seconds * NANOS_PER_SECOND + nanos)
}

/// `TypedStruct` of both packages, as far as it is read here.
#[derive(Clone, PartialEq, prost::Message)]
struct TypedStruct {
    #[prost(string, tag = "1")]
    type_url: String,
}

/// The message that an `Any` holds.
struct Extension<'a> {
    /// Its full name; empty if there is none.
    name: Cow<'a, str>,
    /// The body; `None` if it is written as a `TypedStruct`.
    body: Option<&'a [u8]>,
}

impl Extension<'_> {
    /// Returns the beginning of its name.
    fn shown_name(&self) -> String {
        clip(&self.name, MAX_VALUE).to_owned()
    }
}

/// Returns the type and the body of an `Any`. If the `Any` has a `TypedStruct`,
/// the type is the one inside (A39, A52), and there is no body. Rejects the
/// body and returns `None` if a `TypedStruct` cannot be decoded.
fn decode_extension<'a>(
    any: &'a Any,
    place: &Place<'_>,
    findings: &mut Findings<'_>,
) -> Option<Extension<'a>> {
    let name = full_name(&any.type_url);
    if !["xds.type.v3.TypedStruct", "udpa.type.v1.TypedStruct"].contains(&name) {
        return Some(Extension {
            name: Cow::Borrowed(name),
            body: Some(&any.value),
        });
    }
    let typed: TypedStruct = decode_body(name, &any.value, place, findings)?;
    Some(Extension {
        name: Cow::Owned(full_name(&typed.type_url).to_owned()),
        body: None,
    })
}
