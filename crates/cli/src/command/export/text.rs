//! A resource of a binary file, as a text has it.

use prost::Message as _;
use trunkline::wire::read_constraints;
use trunkline_core::params::Constraints;
use trunkline_proto::descriptor::{self, types};
use trunkline_proto::discovery::{Any, DynamicParameterConstraints, Resource};
use trunkline_proto::prost_reflect::DynamicMessage;
use trunkline_proto::text::{self, Node, Value};

/// Writes a resource as an item of a list in YAML. Returns `None` if YAML
/// cannot express the whole resource.
pub(super) fn to_yaml_item(any: &Any) -> Option<String> {
    let node = to_node(any)?;
    let item = Node {
        at: node.at,
        value: Value::List(vec![node]),
    };
    Some(item.to_yaml())
}

/// Converts a resource to a tree. Returns `None` if its type is unknown, it
/// cannot be decoded, or YAML cannot express the whole resource.
fn to_node(any: &Any) -> Option<Node> {
    let message_type = descriptor::message(&any.type_url)?;
    let message = DynamicMessage::decode(message_type, any.value.clone()).ok()?;
    if text::loss(&message).is_some() {
        return None;
    }
    let mut node = text::to_node(&message, Some(&any.type_url));
    if any.type_url == types::RESOURCE {
        let wrapper = Resource::decode(any.value.clone()).ok()?;
        let name = wrapper.resource_name.unwrap_or_default();
        if let Some(constraints) = name.dynamic_parameter_constraints {
            write_constraints(&mut node, &constraints)?;
        }
    }
    Some(node)
}

/// Writes constraints as people do, as a text in place of the message.
fn write_constraints(node: &mut Node, constraints: &DynamicParameterConstraints) -> Option<()> {
    let expr = read_constraints(constraints).ok()?;
    let text = Constraints::new(&expr).ok()?.to_string();
    let name = entry(node, "resource_name")?;
    entry(name, "dynamic_parameter_constraints")?.value = Value::String(text);
    Some(())
}

/// Finds the value of a key.
fn entry<'a>(node: &'a mut Node, key: &str) -> Option<&'a mut Node> {
    let Value::Map(entries) = &mut node.value else {
        return None;
    };
    let entry = entries.iter_mut().find(|entry| entry.key == key)?;
    Some(&mut entry.node)
}
