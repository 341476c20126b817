//! Copies of values, for anchors and aliases: how large they are, and how large
//! they may be.

use super::super::{
    Limits,
    error::Problem,
    tree::{Node, Value},
};

/// Counts a copy of `count` values before it is made. `expanded` is the number
/// of values copied so far; returns the new number, or a mistake if it passes
/// the limit.
pub(super) fn count_copy(expanded: usize, count: usize, limits: &Limits) -> Result<usize, Problem> {
    let (expanded, max) = (expanded + count, limits.expanded);
    if expanded > max {
        return Err(Problem::TooManyAliases { max });
    }
    Ok(expanded)
}

/// The size of a tree.
pub(super) struct Size {
    pub(super) values: usize,
    /// Collections inside each other; zero for a scalar.
    pub(super) levels: usize,
}

/// Measures a tree. Recursion is bounded, because the levels are.
pub(super) fn measure(node: &Node) -> Size {
    let empty = Size {
        values: 1,
        levels: 1,
    };
    let add = |size: Size, node: &Node| {
        let inner = measure(node);
        Size {
            values: size.values + inner.values,
            levels: size.levels.max(inner.levels + 1),
        }
    };
    match &node.value {
        Value::List(list) => list.iter().fold(empty, add),
        Value::Map(map) => map.iter().map(|entry| &entry.node).fold(empty, add),
        _ => Size {
            values: 1,
            levels: 0,
        },
    }
}
