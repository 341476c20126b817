//! `google.protobuf.Any`: a mapping that says its own type, the key `@type`
//! anywhere in it.

use prost_reflect::{DynamicMessage, MessageDescriptor, Value};

use super::{
    super::{
        error::Problem,
        near::nearest,
        tree::{Node, Value as Tree},
    },
    Walk,
    scalar::decode_base64,
    wellknown::has_own_form,
};
use crate::descriptor;

/// The key that holds the type.
pub(in super::super) const TYPE: &str = "@type";
/// The key that holds a body which is no mapping from fields.
pub(in super::super) const VALUE: &str = "value";

impl Walk<'_> {
    /// Reads an `Any`. An empty mapping is an `Any` without a type, and a body
    /// of an unknown type passes as base64.
    pub(super) fn any(&mut self, of: &MessageDescriptor, node: &Node) -> Option<DynamicMessage> {
        let mut any = DynamicMessage::new(of.clone());
        if matches!(&node.value, Tree::Map(entries) if entries.is_empty()) {
            return Some(any);
        }
        let url = self.type_url(node)?;
        let bytes = match opaque_body(url, node) {
            Some(bytes) => bytes,
            None => {
                let message = self.typed(url, node)?;
                self.encode(&message, node.at)?
            }
        };
        any.set_field_by_name("type_url", Value::String(url.to_owned()));
        any.set_field_by_name(VALUE, Value::Bytes(bytes.into()));
        Some(any)
    }

    /// Returns the type that a mapping states.
    pub(in super::super) fn type_url<'n>(&mut self, node: &'n Node) -> Option<&'n str> {
        if !matches!(node.value, Tree::Map(_)) {
            return self.wrong_kind(node, "a mapping with the key \"@type\"");
        }
        match node.get(TYPE) {
            None => self.wrong(node.at, Problem::MissingType),
            Some(entry) => match &entry.node.value {
                Tree::String(url) => Some(url),
                _ => self.wrong_kind(&entry.node, "a type URL"),
            },
        }
    }

    /// Reads the message of a mapping whose `@type` is `url`: from its other
    /// keys, or from `value` if the message has a form of its own.
    pub(in super::super) fn typed(&mut self, url: &str, node: &Node) -> Option<DynamicMessage> {
        let Some(of) = descriptor::message(url) else {
            return self.unknown_type(url, node);
        };
        let value = node.get(VALUE).map(|entry| &entry.node);
        let is_empty_value = value.is_some_and(|node| node.value == Tree::Map(Vec::new()));
        // `Empty` is written with and without its value.
        if of.full_name() == "google.protobuf.Empty" && is_empty_value {
            self.refuse_other_keys(&of, node, &[TYPE, VALUE]);
            return Some(DynamicMessage::new(of));
        }
        if !has_own_form(&of) {
            return self.fields(&of, node, &[TYPE]);
        }
        match value {
            Some(value) => {
                self.refuse_other_keys(&of, node, &[TYPE, VALUE]);
                self.message(&of, value)
            }
            None => {
                self.refuse_other_keys(&of, node, &[TYPE]);
                Some(DynamicMessage::new(of))
            }
        }
    }

    /// Reports a type that is not known, at the place where it stands.
    fn unknown_type<T>(&mut self, url: &str, node: &Node) -> Option<T> {
        let at = node.get(TYPE).map_or(node.at, |entry| entry.node.at);
        let name = descriptor::full_name(url).to_owned();
        let known = descriptor::pool().all_messages();
        let near = nearest(&name, known.map(|m| m.full_name().to_owned()));
        self.wrong(at, Problem::UnknownType { name, near })
    }

    /// Reports the keys of a mapping other than `keys`: a message with a form
    /// of its own has no fields there.
    fn refuse_other_keys(&mut self, of: &MessageDescriptor, node: &Node, keys: &[&str]) {
        let Tree::Map(entries) = &node.value else {
            return;
        };
        for entry in entries.iter().filter(|e| !keys.contains(&e.key.as_str())) {
            let problem = Problem::UnknownField {
                name: entry.key.clone(),
                message: of.name().to_owned(),
                near: Some(VALUE.to_owned()),
            };
            self.unknown(entry.at, problem);
        }
    }
}

/// Returns the body of an unknown type, as this crate writes it: the type, and
/// its bytes in base64. It passes through unread (S70). `None` if the type is
/// known, or if the mapping has another form.
pub(in super::super) fn opaque_body(url: &str, node: &Node) -> Option<Vec<u8>> {
    let Tree::Map(entries) = &node.value else {
        return None;
    };
    let text = match &node.get(VALUE)?.node.value {
        Tree::String(text) => text,
        _ => return None,
    };
    (entries.len() == 2 && descriptor::message(url).is_none())
        .then(|| decode_base64(text))
        .flatten()
}
