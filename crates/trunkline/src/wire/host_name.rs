//! Names of virtual hosts: a client subscribes by the name of their route
//! configuration and a host, and removes them by the name in their body.

use trunkline_core::name::Name;
use trunkline_proto::descriptor::{full_name, types};

use super::accept::AcceptError;

/// Returns whether resources of this type are virtual hosts.
pub(super) fn is_host(type_url: &str) -> bool {
    full_name(type_url) == full_name(types::VIRTUAL_HOST)
}

/// Refuses the name of a virtual host without a route configuration before its
/// last slash, or without a host after it.
pub(super) fn check_name(name: &Name) -> Result<(), AcceptError> {
    match name.as_str().rsplit_once('/') {
        Some((route, host)) if !route.is_empty() && !host.is_empty() => Ok(()),
        _ => Err(AcceptError::Unrouted { name: name.clone() }),
    }
}
