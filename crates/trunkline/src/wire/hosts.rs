//! Virtual hosts that are taken out of a route configuration: their names, and
//! the names in their bodies.

use bytes::Bytes;
use trunkline_core::name::Name;
use trunkline_proto::descriptor::{full_name, types};
use trunkline_proto::facts::FactsError;
use trunkline_proto::vhosts;

use super::accept::AcceptError;

/// Returns whether resources of this type may contain virtual hosts.
pub(super) fn is_route(type_url: &str) -> bool {
    full_name(type_url) == full_name(types::ROUTE_CONFIGURATION)
}

/// Returns the name of a virtual host that was written in a route
/// configuration.
///
/// Clients take the text before the last slash for the route configuration, so
/// slashes in the host are replaced.
pub(super) fn name_inside(route: &Name, host: &str) -> Name {
    Name::new(&format!("{route}/{}", host.replace('/', "%2F")))
}

/// Writes a name into the body of a virtual host: Envoy removes it by the name
/// in its body.
pub(super) fn rename(body: &Bytes, name: &Name) -> Result<Bytes, AcceptError> {
    let renamed_body = vhosts::rename(body, name.as_str());
    let renamed_body = renamed_body.map_err(malformed(types::VIRTUAL_HOST))?;
    Ok(renamed_body.into())
}

/// Returns a function that converts the error of decoding bytes as this type.
pub(super) fn malformed(type_url: &'static str) -> impl Fn(prost::DecodeError) -> AcceptError {
    move |source| {
        AcceptError::Facts(FactsError::Malformed {
            type_url: type_url.to_owned(),
            source,
        })
    }
}
