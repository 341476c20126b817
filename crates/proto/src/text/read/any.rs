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
const VALUE: &str = "value";

impl Walk<'_> {
    pub(super) fn any(&mut self, of: &MessageDescriptor, node: &Node) -> Option<DynamicMessage> {
        let mut any = DynamicMessage::new(of.clone());
        if matches!(&node.value, Tree::Map(entries) if entries.is_empty()) {
            return Some(any);
        }
        let url = self.type_url(node)?;
        let bytes = match raw(url, node) {
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

    /// The type that a mapping states.
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

    /// The body of a mapping whose type is `url`.
    pub(in super::super) fn typed(&mut self, url: &str, node: &Node) -> Option<DynamicMessage> {
        let Some(of) = descriptor::message(url) else {
            let at = node.get(TYPE).map_or(node.at, |entry| entry.node.at);
            let name = descriptor::full_name(url).to_owned();
            let known = descriptor::pool().all_messages();
            let near = nearest(&name, known.map(|m| m.full_name().to_owned()));
            return self.wrong(at, Problem::UnknownType { name, near });
        };
        let empty = of.full_name() == "google.protobuf.Empty";
        let nothing = node.get(VALUE).map(|e| &e.node.value) == Some(&Tree::Map(Vec::new()));
        if empty && nothing {
            self.only(&of, node, &[TYPE, VALUE]);
            return Some(DynamicMessage::new(of));
        }
        if !has_own_form(&of) {
            return self.fields(&of, node, &[TYPE]);
        }
        match node.get(VALUE) {
            Some(entry) => {
                self.only(&of, node, &[TYPE, VALUE]);
                self.message(&of, &entry.node)
            }
            None => {
                self.only(&of, node, &[TYPE]);
                Some(DynamicMessage::new(of))
            }
        }
    }
}

impl Walk<'_> {
    /// Reports keys that a message with a form of its own cannot have.
    fn only(&mut self, of: &MessageDescriptor, node: &Node, keys: &[&str]) {
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

/// A body of an unknown type, as this crate writes it: nothing but base64. It
/// passes through unread (S70).
pub(in super::super) fn raw(url: &str, node: &Node) -> Option<Vec<u8>> {
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
