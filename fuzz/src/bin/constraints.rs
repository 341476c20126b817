//! Constraints from any text and any expression, against a naive reading.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use trunkline_core::params::{Constraints, Expr, Params};

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    text: &'a str,
    first: Tree<'a>,
    second: Tree<'a>,
    clients: [Vec<(Word<'a>, Word<'a>)>; 2],
}

#[derive(Arbitrary, Debug)]
enum Tree<'a> {
    Value(Word<'a>, Word<'a>),
    Exists(Word<'a>),
    And(Vec<Tree<'a>>),
    Or(Vec<Tree<'a>>),
    Not(Box<Tree<'a>>),
}

/// Mostly one of a few, so that expressions have keys and values in common.
#[derive(Arbitrary, Debug)]
enum Word<'a> {
    Few(u8),
    Any(&'a str),
}

impl Word<'_> {
    fn text(&self) -> &str {
        match self {
            Self::Few(number) => ["a", "b", "c", "other"][usize::from(number % 4)],
            Self::Any(text) => text,
        }
    }
}

impl Tree<'_> {
    fn expr(&self) -> Option<Expr> {
        let list = |all: &[Self]| all.iter().map(Self::expr).collect::<Option<Vec<_>>>();
        match self {
            Self::Value(key, value) => Some(Expr::value(key.text(), value.text())),
            Self::Exists(key) => Some(Expr::exists(key.text())),
            Self::And(all) => Expr::and(list(all)?).ok(),
            Self::Or(any) => Expr::or(list(any)?).ok(),
            Self::Not(it) => Expr::not(it.expr()?).ok(),
        }
    }
}

fuzz_target!(|input: Input<'_>| {
    let clients = input.clients.iter().filter_map(|pairs| {
        let pairs = pairs.iter().map(|(key, value)| (key.text(), value.text()));
        Params::new(pairs).ok()
    });
    let clients: Vec<Params> = clients.collect();
    let mut all = Vec::new();
    if let Ok(expr) = input.text.parse::<Expr>() {
        assert_eq!(expr.to_string().parse().as_ref(), Ok(&expr));
        all.extend(check(&expr, &clients));
    }
    for tree in [&input.first, &input.second] {
        all.extend(tree.expr().and_then(|expr| check(&expr, &clients)));
    }
    for a in &all {
        for b in &all {
            check_overlap(a, b, &clients);
        }
    }
});

fn check(expr: &Expr, clients: &[Params]) -> Option<Constraints> {
    let constraints = Constraints::new(expr).ok()?;
    assert_eq!(constraints.to_string().parse().as_ref(), Ok(&constraints));
    assert_eq!(
        Constraints::new(constraints.expr()).as_ref(),
        Ok(&constraints)
    );
    for client in clients {
        assert_eq!(constraints.matches(client), expr.holds(client));
    }
    Some(constraints)
}

fn check_overlap(a: &Constraints, b: &Constraints, clients: &[Params]) {
    let (Ok(one), Ok(other)) = (a.overlap(b), b.overlap(a)) else {
        return;
    };
    assert_eq!(one.is_some(), other.is_some());
    for witness in one.iter().chain(&other) {
        assert!(a.matches(witness) && b.matches(witness));
    }
    if one.is_none() {
        let both = |client: &Params| a.matches(client) && b.matches(client);
        assert!(!clients.iter().any(both));
        assert!(a != b || a.is_never());
    }
}
