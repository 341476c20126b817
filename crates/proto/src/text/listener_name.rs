//! A name for a listener that has none.
//!
//! Envoy gives each listener of a bootstrap that has no name a random one. Here
//! the same contents are to give the same bytes, so the name is made from the
//! address.

use prost_reflect::{DynamicMessage, Value};

use super::{Resource, document::Reader, error::Problem};
use crate::descriptor::{full_name, types};

impl Reader<'_> {
    /// Names a listener without a name by its address, with a warning. Returns
    /// other resources unchanged. A listener without an address stays without a
    /// name, which later checks report.
    pub(super) fn name_listener(&mut self, mut resource: Resource) -> Option<Resource> {
        let is_listener = full_name(&resource.type_url) == full_name(types::LISTENER);
        let is_named = || {
            let name = resource.message.get_field_by_name("name");
            name.is_some_and(|name| name.as_str() != Some(""))
        };
        if !is_listener || is_named() {
            return Some(resource);
        }
        let Some(name) = name_by_address(&resource.message) else {
            return Some(resource);
        };

        let position = resource.node.at;
        let value = Value::String(name.clone());
        resource.message.set_field_by_name("name", value);
        resource.body = self.walk.encode(&resource.message, position)?.into();
        self.walk.warn(position, Problem::NamedListener(name));
        Some(resource)
    }
}

/// Returns a name such as `0.0.0.0_10000` for the address of a listener. A name
/// for UDP ends in `_udp`, since a listener for TCP may have the same port.
/// Returns `None` if the listener has no address.
fn name_by_address(listener: &DynamicMessage) -> Option<String> {
    let address = message_in(listener, "address")?;
    if let Some(pipe) = message_in(&address, "pipe") {
        return text_in(&pipe, "path");
    }
    let socket = message_in(&address, "socket_address")?;
    let host = text_in(&socket, "address")?;
    let port = socket.get_field_by_name("port_value")?.as_u32()?;
    let is_udp = socket.get_field_by_name("protocol")?.as_enum_number() == Some(UDP);
    let suffix = if is_udp { "_udp" } else { "" };
    Some(format!("{host}_{port}{suffix}"))
}

/// The number of UDP in `SocketAddress.Protocol`.
const UDP: i32 = 1;

/// Returns the message in a field, if it is set.
fn message_in(message: &DynamicMessage, field: &str) -> Option<DynamicMessage> {
    let is_set = message.has_field_by_name(field);
    let value = message.get_field_by_name(field).filter(|_| is_set)?;
    value.as_message().cloned()
}

/// Returns the text in a field, if there is one.
fn text_in(message: &DynamicMessage, field: &str) -> Option<String> {
    let value = message.get_field_by_name(field)?;
    let text = value.as_str().filter(|text| !text.is_empty())?;
    Some(text.to_owned())
}

#[cfg(test)]
mod tests {
    use crate::text::{Options, read};

    #[test]
    fn the_name_is_made_from_the_address() {
        for (address, name) in [
            (
                "{socket_address: {address: 0.0.0.0, port_value: 80}}",
                "0.0.0.0_80",
            ),
            (
                "{socket_address: {address: \"::\", port_value: 443, protocol: UDP}}",
                "::_443_udp",
            ),
            ("{pipe: {path: /run/a.sock}}", "/run/a.sock"),
        ] {
            let text = format!("static_resources: {{listeners: [{{address: {address}}}]}}");
            let read = read("b.yaml", &text, &Options::default());
            assert_eq!(read.errors, []);
            let found = read.resources[0].message.get_field_by_name("name").unwrap();
            assert_eq!(found.as_str(), Some(name));
            assert_eq!(
                read.warnings[0].to_string(),
                format!(
                    "b.yaml:1:32: static_resources.listeners[0]: the listener has no name, and \
                     is served as {name:?}; add `name: {name}` to it, or another"
                )
            );
            let body = crate::canonical::encode(&read.resources[0].message).unwrap();
            assert_eq!(read.resources[0].body, body);
        }
    }
}
