//! A tree as a graph for Graphviz.

use std::collections::BTreeSet;

use trunkline::client::Raw;
use trunkline::client::tree::Part;

use super::lines::label;
use crate::output::printable;

/// Writes a part with all parts below it as a graph. A part with several
/// parents is one node; a failed part is dashed.
pub(super) fn write_graph(root: &Part<Raw>) -> String {
    let (mut nodes, mut edges) = (BTreeSet::new(), BTreeSet::new());
    let mut pending = vec![root.clone()];
    while let Some(part) = pending.pop() {
        let name = quote(&label(&part));
        let style = if part.is_failed() {
            " [style=dashed]"
        } else {
            ""
        };
        if !nodes.insert(format!("  {name}{style};\n")) {
            continue;
        }
        for child in part.children() {
            edges.insert(format!("  {name} -> {};\n", quote(&label(&child))));
            pending.push(child);
        }
    }
    let statements: String = nodes.into_iter().chain(edges).collect();
    format!("digraph tree {{\n  rankdir=LR;\n  node [shape=box];\n{statements}}}\n")
}

/// Quotes a text for DOT, without control characters.
fn quote(text: &str) -> String {
    let text = printable(text).replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{text}\"")
}
