//! A world small enough to list: three keys that are absent, have a mentioned
//! value, or have another one; and what TP2 says an expression means there.

use proptest::prelude::*;
use trunkline_core::params::{Expr, ExprNode, Params};

/// The keys of the small world.
pub(crate) const KEYS: [&str; 3] = ["a", "b", "c"];
/// The values that expressions may mention.
pub(crate) const MENTIONED: [&str; 2] = ["1", "2"];
const OTHER: &str = "3";

/// Every client of the small world.
pub(crate) fn world() -> Vec<Params> {
    let choices = [None, Some(MENTIONED[0]), Some(MENTIONED[1]), Some(OTHER)];
    let mut clients = Vec::new();
    for number in 0..4_usize.pow(3) {
        let pairs = (0..3).filter_map(|nth| {
            let value = choices[number / 4_usize.pow(nth) % 4]?;
            Some((KEYS[nth as usize], value))
        });
        clients.push(Params::new(pairs).unwrap());
    }
    clients
}

/// What TP2 says an expression means.
pub(crate) fn holds(expr: &Expr, client: &Params) -> bool {
    match expr.node() {
        ExprNode::Value { key, value } => client.get(key) == Some(value),
        ExprNode::Exists { key } => client.get(key).is_some(),
        ExprNode::And(all) => all.iter().all(|it| holds(it, client)),
        ExprNode::Or(any) => any.iter().any(|it| holds(it, client)),
        ExprNode::Not(it) => !holds(it, client),
    }
}

/// Any expression of the small world.
pub(crate) fn expr() -> impl Strategy<Value = Expr> {
    let key = prop::sample::select(&KEYS[..]);
    let value = prop::sample::select(&MENTIONED[..]);
    let leaf = prop_oneof![
        3 => (key.clone(), value).prop_map(|(key, value)| Expr::value(key, value)),
        1 => key.prop_map(Expr::exists),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let list = prop::collection::vec(inner.clone(), 0..4);
        prop_oneof![
            list.clone().prop_map(|all| Expr::and(all).unwrap()),
            list.prop_map(|any| Expr::or(any).unwrap()),
            inner.prop_map(|it| Expr::not(it).unwrap()),
        ]
    })
}
