//! The type of a mapping that does not state it, by its keys.

use prost_reflect::MessageDescriptor;

use super::tree::{Node, Value};
use crate::descriptor::{self, types};

/// Returns the message of the resource that has the keys of a mapping; `None`
/// if that cannot be told.
pub(super) fn resource(node: &Node) -> Option<String> {
    let urls = types::ALL.iter().copied().chain([types::RESOURCE]);
    best_match(node, urls.filter_map(descriptor::message))
}

/// Returns the extension whose fields are the keys of a mapping. Returns `None`
/// if several extensions fit, or none does.
pub(super) fn guess_extension(node: &Node) -> Option<String> {
    let messages = descriptor::pool().all_messages();
    let extensions = messages.filter(|message| {
        let is_top_level = message.parent_message().is_none();
        is_top_level && message.full_name().starts_with("envoy.extensions.")
    });
    best_match(node, extensions)
}

/// Returns the only message that has more of the keys as fields than every
/// other. Returns `None` if it has at most half of them, or another message has
/// as many.
fn best_match(node: &Node, candidates: impl Iterator<Item = MessageDescriptor>) -> Option<String> {
    let Value::Map(entries) = &node.value else {
        return None;
    };
    let count_fields = |descriptor: &MessageDescriptor| {
        let is_field = |key: &str| {
            descriptor.get_field_by_name(key).is_some()
                || descriptor.get_field_by_json_name(key).is_some()
        };
        entries.iter().filter(|entry| is_field(&entry.key)).count()
    };

    let mut best: Option<(usize, Option<MessageDescriptor>)> = None;
    for candidate in candidates {
        let field_count = count_fields(&candidate);
        match &best {
            Some((best_count, _)) if field_count < *best_count => {}
            Some((best_count, _)) if field_count == *best_count => best = Some((field_count, None)),
            _ => best = Some((field_count, Some(candidate))),
        }
    }
    let (field_count, message) = best?;
    let has_most = field_count * 2 > entries.len();
    message
        .filter(|_| has_most)
        .map(|message| message.full_name().to_owned())
}
