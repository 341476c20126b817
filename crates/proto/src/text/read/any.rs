//! `google.protobuf.Any`: a mapping that says its own type, the key `@type`
//! anywhere in it.

use prost_reflect::{DynamicMessage, MessageDescriptor, Value};

use super::{
    super::{
        error::Problem,
        guess,
        near::nearest,
        tree::{Entry, Node, Value as Tree},
    },
    Walk,
    scalar::decode_base64,
    wellknown::has_own_form,
};
use crate::descriptor::{self, types};

/// The key that holds the type.
pub(in super::super) const TYPE: &str = "@type";
/// The key that holds a body which is no mapping from fields.
pub(in super::super) const VALUE: &str = "value";

impl Walk<'_> {
    /// Reads an `Any`, and encodes its body canonically. An empty mapping is an
    /// `Any` without a type. A body of an unknown type is accepted in base64.
    /// Returns `None` if a mistake was reported.
    pub(super) fn read_any(
        &mut self,
        descriptor: &MessageDescriptor,
        node: &Node,
    ) -> Option<DynamicMessage> {
        let mut any = DynamicMessage::new(descriptor.clone());
        if matches!(&node.value, Tree::Map(entries) if entries.is_empty()) {
            return Some(any);
        }

        let url = self.read_type_url(node, guess::guess_extension)?;
        let bytes = match opaque_body(url, node) {
            Some(bytes) => bytes,
            None => {
                let message = self.read_typed(url, node)?;
                self.encode(&message, node.at)?
            }
        };

        any.set_field_by_name("type_url", Value::String(url.to_owned()));
        any.set_field_by_name(VALUE, Value::Bytes(bytes.into()));
        Some(any)
    }

    /// Reads the type at the key `@type` of a mapping. Returns `None` if it is
    /// missing or malformed, which is reported; `guess` returns a message to
    /// propose.
    pub(in super::super) fn read_type_url<'n>(
        &mut self,
        node: &'n Node,
        guess: fn(&Node) -> Option<String>,
    ) -> Option<&'n str> {
        if !matches!(node.value, Tree::Map(_)) {
            return self.report_wrong_kind(node, "a mapping with the key \"@type\"");
        }

        match node.get(TYPE) {
            None => self.report(node.at, Problem::MissingType(guess(node))),
            Some(entry) => match &entry.node.value {
                Tree::String(url) if has_host(url) => Some(url),
                Tree::String(url) => {
                    let name = descriptor::full_name(url).to_owned();
                    self.report(entry.node.at, Problem::NoSlash(name))
                }
                _ => self.report_wrong_kind(&entry.node, "a type URL"),
            },
        }
    }

    /// Reads a mapping with the `@type` `url` as a message. A message with its
    /// own JSON form is at the key `value`, and empty without this key; the
    /// fields of other messages are keys of the mapping. Returns `None` if a
    /// mistake was reported.
    pub(in super::super) fn read_typed(
        &mut self,
        url: &str,
        node: &Node,
    ) -> Option<DynamicMessage> {
        let Some(descriptor) = descriptor::message(url) else {
            return self.report_unknown_type(url, node);
        };
        let value = node.get(VALUE).map(|entry| &entry.node);

        // Some programs write `Empty` with a value, and some without.
        let is_empty_value = value.is_some_and(|node| node.value == Tree::Map(Vec::new()));
        if descriptor.full_name() == "google.protobuf.Empty" && is_empty_value {
            self.refuse_other_keys(&descriptor, node, &[TYPE, VALUE]);
            return Some(DynamicMessage::new(descriptor));
        }

        if !has_own_form(&descriptor) {
            return self.read_fields(&descriptor, node, &[TYPE]);
        }

        match value {
            Some(value) => {
                self.refuse_other_keys(&descriptor, node, &[TYPE, VALUE]);
                self.read_message(&descriptor, value)
            }
            None => {
                self.refuse_other_keys(&descriptor, node, &[TYPE]);
                Some(DynamicMessage::new(descriptor))
            }
        }
    }

    /// Reports an unknown type at its position, with the nearest known one.
    /// Returns `None` for the caller to return.
    fn report_unknown_type<T>(&mut self, url: &str, node: &Node) -> Option<T> {
        let position = node.get(TYPE).map_or(node.at, |entry| entry.node.at);
        let name = descriptor::full_name(url).to_owned();
        let nearest_name = nearest_type(&name);
        let problem = Problem::UnknownType {
            name,
            near: nearest_name,
        };
        self.report(position, problem)
    }

    /// Reports the keys of a mapping other than `keys` as unknown fields, for a
    /// message with its own JSON form.
    fn refuse_other_keys(&mut self, message: &MessageDescriptor, node: &Node, keys: &[&str]) {
        let Tree::Map(entries) = &node.value else {
            return;
        };
        let is_other = |entry: &&Entry| !keys.contains(&entry.key.as_str());
        for entry in entries.iter().filter(is_other) {
            let problem = Problem::UnknownField {
                name: entry.key.clone(),
                message: message.name().to_owned(),
                near: Some(VALUE.to_owned()),
            };
            self.report_unknown(entry.at, problem);
        }
    }
}

/// Returns whether a type URL has something before its last slash, as Envoy
/// wants it.
fn has_host(url: &str) -> bool {
    url.rsplit_once('/')
        .is_some_and(|(host, _)| !host.is_empty())
}

/// Returns the known type that is probably meant: a resource, or else the only
/// type, of the same name in another package, such as an older one; or else the
/// type with the nearest name.
fn nearest_type(name: &str) -> Option<String> {
    let short_name = name.rsplit('.').next()?;
    let mut resources = types::ALL.iter().map(|url| descriptor::full_name(url));
    let resource = resources.find(|known| known.rsplit('.').next() == Some(short_name));
    if let Some(resource) = resource {
        return Some(resource.to_owned());
    }

    let known_messages = || descriptor::pool().all_messages();
    let mut namesakes = known_messages()
        .filter(|message| message.name() == short_name && message.parent_message().is_none());
    let namesake = namesakes.next().filter(|_| namesakes.next().is_none());
    match namesake {
        Some(namesake) => Some(namesake.full_name().to_owned()),
        None => nearest(
            name,
            known_messages().map(|message| message.full_name().to_owned()),
        ),
    }
}

/// Returns the body of a resource or an `Any` of an unknown type, as this crate
/// writes it: `@type`, and `value` with the bytes in base64. Such a body is
/// passed on unread, so that no contents are lost for want of a descriptor
/// (S70). Returns `None` if the type is known, or the mapping has another form.
pub(in super::super) fn opaque_body(url: &str, node: &Node) -> Option<Vec<u8>> {
    let Tree::Map(entries) = &node.value else {
        return None;
    };
    let Tree::String(text) = &node.get(VALUE)?.node.value else {
        return None;
    };
    let has_only_type_and_value = entries.len() == 2;
    if !has_only_type_and_value || descriptor::message(url).is_some() {
        return None;
    }
    decode_base64(text)
}
