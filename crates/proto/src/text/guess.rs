//! The type of a mapping that does not state it, by its keys.

use prost_reflect::MessageDescriptor;

use super::tree::{Node, Value};
use crate::descriptor::{self, types};

/// Returns the message of the resource that has the keys of a mapping; `None`
/// if that cannot be told.
pub(super) fn resource(node: &Node) -> Option<String> {
    let urls = types::ALL.iter().copied().chain([types::RESOURCE]);
    best(node, urls.filter_map(descriptor::message))
}

/// Returns the message of the extension that has the keys of a mapping; `None`
/// if that cannot be told.
pub(super) fn extension(node: &Node) -> Option<String> {
    let all = descriptor::pool().all_messages();
    let extensions = all.filter(|message| {
        let is_top_level = message.parent_message().is_none();
        is_top_level && message.full_name().starts_with("envoy.extensions.")
    });
    best(node, extensions)
}

/// Returns the one message that has more of the keys than every other, and most
/// of them.
fn best(node: &Node, candidates: impl Iterator<Item = MessageDescriptor>) -> Option<String> {
    let Value::Map(entries) = &node.value else {
        return None;
    };
    let count = |descriptor: &MessageDescriptor| {
        let is_field = |key: &str| {
            descriptor.get_field_by_name(key).is_some()
                || descriptor.get_field_by_json_name(key).is_some()
        };
        entries.iter().filter(|entry| is_field(&entry.key)).count()
    };

    let mut best: Option<(usize, Option<MessageDescriptor>)> = None;
    for candidate in candidates {
        let known = count(&candidate);
        match &best {
            Some((most, _)) if known < *most => {}
            Some((most, _)) if known == *most => best = Some((known, None)),
            _ => best = Some((known, Some(candidate))),
        }
    }
    let (known, message) = best?;
    let has_most = known * 2 > entries.len();
    message
        .filter(|_| has_most)
        .map(|message| message.full_name().to_owned())
}
