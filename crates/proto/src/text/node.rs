//! A node as people write it: alone, or in a bootstrap of Envoy.

use super::{
    Format, Options, Problem, TextError,
    plain::parse_by,
    read::{TYPE, Walk},
    schema::Schema,
    tree::{Node as Tree, Position, Value},
};
use crate::{
    descriptor,
    discovery::{Limits, Node},
};

/// Reads the node of a text, which is the text itself or its entry `node`. Only
/// the first of several documents is read.
///
/// ```
/// use trunkline_proto::text::{Format, Options, read_node};
///
/// let bootstrap = "node: {id: n1, cluster: c}\nadmin: {}";
/// let node = read_node(Format::Yaml, "envoy.yaml", bootstrap, &Options::default())?;
/// assert_eq!(node.id, "n1");
/// # Ok::<(), Vec<trunkline_proto::text::TextError>>(())
/// ```
///
/// # Errors
/// The mistakes, each with its place.
pub fn read_node(
    format: Format,
    file: &str,
    text: &str,
    options: &Options,
) -> Result<Node, Vec<TextError>> {
    let parsed = parse_by(Schema::Envoy, format, file, text, &options.limits);
    let parsed = parsed.map_err(|error| vec![*error])?;
    let root = parsed.documents.into_iter().next().unwrap_or(Tree {
        at: Position::START,
        value: Value::Null,
    });
    let node = root.get("node").map_or(&root, |entry| &entry.node);

    let mut walk = Walk::new(file, options, parsed.charged_bytes);
    match read_tree(&mut walk, node) {
        Some(node) if walk.total == 0 => Ok(node),
        _ => Err(walk.errors),
    }
}

/// Reads a tree as the node of a client, by encoding and decoding it. Returns
/// `None` if that is impossible; a mistake in a field is only reported.
fn read_tree(walk: &mut Walk<'_>, node: &Tree) -> Option<Node> {
    let descriptor = descriptor::message("envoy.config.core.v3.Node")?;
    let message = walk.read_fields(&descriptor, node, &[TYPE])?;
    let bytes = walk.encode(&message, node.at)?;
    match Node::parse(&bytes.into(), &Limits::DEFAULT) {
        Ok(client_node) => Some(client_node),
        Err(error) => walk.report(node.at, Problem::Encoding(error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Node, String> {
        let read = read_node(Format::Yaml, "n.yaml", text, &Options::default());
        read.map_err(|errors| errors[0].to_string())
    }

    #[test]
    fn a_node_stands_alone_or_in_a_bootstrap() {
        let alone = read("id: e\nlocality: {zone: z}\nmetadata: {a: b}").unwrap();
        assert_eq!(alone.locality.as_ref().unwrap().zone, "z");
        assert!(alone.metadata.is_some());
        let inside = "static_resources: {}\nnode:\n  id: e\n  locality: {zone: z}\n  \
                      metadata: {a: b}";
        assert_eq!(read(inside).unwrap(), alone);
    }

    #[test]
    fn a_mistake_has_a_place() {
        let slip = read("node:\n  id: e\n  clustr: c").unwrap_err();
        assert!(slip.starts_with("n.yaml:3:3: "), "{slip}");
        assert!(slip.contains("did you mean \"cluster\"?"), "{slip}");
        for text in ["", "- a", "id: [", "node: 7"] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
