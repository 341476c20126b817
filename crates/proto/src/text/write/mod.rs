//! From a message to text: the JSON mapping of protobuf, with the field names
//! of the `.proto` files, as Envoy's documentation and dumps have them.
//!
//! Fields come in the order of their numbers and map entries in the order of
//! their keys, so the same message is the same text. A body of an unknown type
//! becomes `value:` with its base64, which reads back (S70). Unknown fields are
//! not written: text has no names for them.

mod json;
mod message;
mod yaml;

use prost_reflect::DynamicMessage;

use super::tree::{Entry, Node, Value};

/// Writes a message as a tree, with its `@type` first if `type_url` is given.
#[must_use]
pub fn to_node(message: &DynamicMessage, type_url: Option<&str>) -> Node {
    let node = message::write_message(message, 0);
    match type_url {
        Some(url) => message::add_type(url, node),
        None => node,
    }
}

/// Writes resources, each with its type URL, as a document in JSON.
#[must_use]
pub fn to_json<'a>(resources: impl IntoIterator<Item = (&'a str, &'a DynamicMessage)>) -> String {
    json::print(&write_document(resources))
}

/// Writes resources, each with its type URL, as a document in YAML.
#[must_use]
pub fn to_yaml<'a>(resources: impl IntoIterator<Item = (&'a str, &'a DynamicMessage)>) -> String {
    yaml::print(&write_document(resources))
}

/// Writes resources, each with its type URL, as the tree of a document: a
/// mapping whose `resources` are the list of them.
fn write_document<'a>(resources: impl IntoIterator<Item = (&'a str, &'a DynamicMessage)>) -> Node {
    let nodes = resources
        .into_iter()
        .map(|(url, message)| to_node(message, Some(url)));
    let list = Value::List(nodes.collect());
    Node::new(Value::Map(vec![Entry::new("resources", list)]))
}

impl Node {
    /// Returns the text of the node in JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        json::print(self)
    }

    /// Returns the text of the node in YAML.
    #[must_use]
    pub fn to_yaml(&self) -> String {
        yaml::print(self)
    }
}
