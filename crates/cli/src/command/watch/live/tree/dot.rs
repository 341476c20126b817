//! A tree as a graph for Graphviz.

use std::collections::BTreeSet;

use trunkline::client::Raw;
use trunkline::client::tree::Part;

use super::lines::label;
use crate::output::printable;

/// Writes a part and everything below it. A part with several parents is one
/// node; one that has nothing to use is dashed.
pub(super) fn write(root: &Part<Raw>) -> String {
    let (mut nodes, mut edges) = (BTreeSet::new(), BTreeSet::new());
    let mut open = vec![root.clone()];
    while let Some(part) = open.pop() {
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
            open.push(child);
        }
    }
    let all: String = nodes.into_iter().chain(edges).collect();
    format!("digraph tree {{\n  rankdir=LR;\n  node [shape=box];\n{all}}}\n")
}

fn quote(text: &str) -> String {
    let text = printable(text).replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{text}\"")
}
