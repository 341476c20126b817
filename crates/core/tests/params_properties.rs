//! Constraints against brute force over a world small enough to list: three
//! keys that are absent, have a mentioned value, or have another one (S62).

#![allow(clippy::unwrap_used)] // a panic is how a test fails

mod small_world;

use proptest::prelude::*;
use small_world::{KEYS, expr, holds, world};
use trunkline_core::params::{ConstraintError, Constraints, Expr, ExprNode, Keys, Params};

/// The same meaning in other words: backwards, and by De Morgan's laws.
fn reworded(expr: &Expr) -> Expr {
    let not = |it: &Expr| Expr::not(reworded(it)).unwrap();
    match expr.node() {
        ExprNode::And(all) => {
            let none = Expr::or(all.iter().rev().map(not).collect()).unwrap();
            Expr::not(none).unwrap()
        }
        ExprNode::Or(any) => Expr::or(any.iter().rev().map(reworded).collect()).unwrap(),
        ExprNode::Not(it) => not(it),
        _ => expr.clone(),
    }
}

proptest! {
    #[test]
    fn matching_is_the_meaning(expr in expr()) {
        let constraints = Constraints::new(&expr).unwrap();
        for client in world() {
            prop_assert_eq!(constraints.matches(&client), holds(&expr, &client));
            let seen = client.project(constraints.keys());
            prop_assert_eq!(constraints.matches(&seen), holds(&expr, &client));
        }
    }

    #[test]
    fn equal_if_and_only_if_the_same_clients_match(a in expr(), b in expr()) {
        let same = world().iter().all(|client| holds(&a, client) == holds(&b, client));
        let (one, two) = (Constraints::new(&a).unwrap(), Constraints::new(&b).unwrap());
        prop_assert_eq!(one == two, same, "{} / {}", one, two);
        prop_assert_eq!(one.to_string() == two.to_string(), same);
        prop_assert_eq!(one.cmp(&two).is_eq(), same);
        let again = Constraints::new(&reworded(&a)).unwrap();
        prop_assert_eq!(again.to_string(), one.to_string());
        prop_assert_eq!(again, one);
    }

    #[test]
    fn a_key_matters_if_and_only_if_it_changes_something(expr in expr()) {
        let constraints = Constraints::new(&expr).unwrap();
        for key in KEYS {
            let rest = Keys::new(KEYS.into_iter().filter(|other| *other != key));
            let matters = world().iter().any(|client| {
                holds(&expr, client) != holds(&expr, &client.project(&rest))
            });
            prop_assert_eq!(constraints.keys().contains(key), matters);
        }
    }

    #[test]
    fn the_canonical_expression_says_the_same_and_is_final(expr in expr()) {
        let constraints = Constraints::new(&expr).unwrap();
        let canonical = constraints.expr();
        for client in world() {
            prop_assert_eq!(holds(canonical, &client), holds(&expr, &client));
        }
        let again = Constraints::new(canonical).unwrap();
        prop_assert_eq!(again.expr(), canonical);
        prop_assert_eq!(again, constraints);
    }

    #[test]
    fn text_round_trips(expr in expr()) {
        let constraints = Constraints::new(&expr).unwrap();
        prop_assert_eq!(&constraints.to_string().parse::<Constraints>().unwrap(), &constraints);
        let read: Expr = expr.to_string().parse().unwrap();
        prop_assert_eq!(Constraints::new(&read).unwrap(), constraints);
    }

    #[test]
    fn any_words_round_trip(key in any::<String>(), value in any::<String>()) {
        let both = Expr::or(vec![Expr::value(&*key, &*value), Expr::exists(&*value)]).unwrap();
        prop_assert_eq!(&both.to_string().parse::<Expr>().unwrap(), &both);
        let constraints = Constraints::new(&both).unwrap();
        prop_assert_eq!(constraints.to_string().parse(), Ok(constraints));
    }

    #[test]
    fn no_text_panics(text in prop_oneof![
        any::<String>(),
        "([abé=()\"\\\\u{} ]|AND|OR|NOT|exists| a=1 |\\\\u\\{61\\}){0,12}",
    ]) {
        if let Ok(expr) = text.parse::<Expr>() {
            prop_assert_eq!(expr.to_string().parse::<Expr>().unwrap().to_string(), expr.to_string());
        }
    }

    #[test]
    fn overlap_is_decided_exactly(a in expr(), b in expr()) {
        let both = |client: &Params| holds(&a, client) && holds(&b, client);
        let (one, two) = (Constraints::new(&a).unwrap(), Constraints::new(&b).unwrap());
        match one.overlap(&two).unwrap() {
            Some(witness) => {
                prop_assert!(both(&witness), "{} is not in {} and {}", witness, one, two);
                let sorted = Params::new(witness.iter()).unwrap();
                prop_assert_eq!(sorted, witness);
            }
            None => prop_assert!(!world().iter().any(both)),
        }
    }
}

/// `(a0=1 OR b0=1) AND (a1=1 OR b1=1) AND .. AND z=..`: whoever asks all a's
/// before all b's has to remember which of them did not hold.
fn far_apart(count: usize, [a, b]: [&str; 2], z: &str) -> Result<Constraints, ConstraintError> {
    let clause = |nth| {
        let key = |name| Expr::value(format!("{name}{nth}"), "1");
        Expr::or(vec![key(a), key(b)]).unwrap()
    };
    let z = Expr::value("z", z);
    let all = (0..count).map(clause).chain([z]).collect();
    Constraints::new(&Expr::and(all).unwrap())
}

/// An odd number of the keys exists.
fn odd(keys: std::ops::Range<usize>) -> Expr {
    if keys.len() == 1 {
        return Expr::exists(format!("k{:02}", keys.start));
    }
    let middle = keys.start + keys.len() / 2;
    let (a, b) = (odd(keys.start..middle), odd(middle..keys.end));
    let only = |a: &Expr, b: &Expr| {
        let not = Expr::not(b.clone()).unwrap();
        Expr::and(vec![a.clone(), not]).unwrap()
    };
    Expr::or(vec![only(&a, &b), only(&b, &a)]).unwrap()
}

fn is_too_complex<T: std::fmt::Debug>(result: Result<T, ConstraintError>) -> bool {
    matches!(result.unwrap_err(), ConstraintError::TooComplex { .. })
}

#[test]
fn what_blows_up_is_refused() {
    assert!(far_apart(5, ["a", "b"], "1").is_ok());
    for count in [9, 16, 31] {
        assert!(is_too_complex(far_apart(count, ["a", "b"], "1")), "{count}");
    }
    // Its diagram is small, but no short expression says it key by key.
    assert_eq!(Constraints::new(&odd(0..8)).unwrap().keys().len(), 8);
    assert!(is_too_complex(Constraints::new(&odd(0..32))));
}

#[test]
fn overlap_that_costs_too_much_is_refused() {
    // That they have no client in common shows only at the end of all ways.
    let each = |count, names, z| far_apart(count, names, z).unwrap();
    let (one, two) = (each(8, ["a", "c"], "1"), each(8, ["b", "d"], "2"));
    assert!(is_too_complex(one.overlap(&two)));
    assert_eq!(one.overlap(&one).unwrap().unwrap().get("z"), Some("1"));
    let (one, two) = (each(6, ["a", "c"], "1"), each(6, ["b", "d"], "2"));
    assert_eq!(one.overlap(&two), Ok(None));
}

#[test]
fn what_only_looks_large_is_accepted() {
    // As many values of one key as an expression can hold.
    let values = |from: usize| {
        let each = (from..from + Expr::MAX_SIZE - 1).map(|nth| Expr::value("k", nth.to_string()));
        Constraints::new(&Expr::or(each.collect()).unwrap()).unwrap()
    };
    let (low, high) = (values(0), values(Expr::MAX_SIZE - 2));
    assert!(low.matches(&Params::new([("k", "17")]).unwrap()));
    let common = low.overlap(&high).unwrap().unwrap();
    assert_eq!(common.get("k"), Some(&*(Expr::MAX_SIZE - 2).to_string()));
    assert_eq!(values(0).overlap(&values(5000)), Ok(None));

    // As many keys as a constraint can ask, in clauses that stand side by side.
    let clause = |nth: usize| {
        let key = |nth: usize| Expr::value(format!("k{nth:02}"), "1");
        Expr::or(vec![key(2 * nth), key(2 * nth + 1)]).unwrap()
    };
    let clauses = Expr::and((0..Constraints::MAX_KEYS / 2).map(clause).collect()).unwrap();
    let constraints = Constraints::new(&clauses).unwrap();
    assert_eq!(constraints.expr(), &clauses);
    assert_eq!(
        constraints
            .overlap(&Constraints::always())
            .unwrap()
            .unwrap()
            .iter()
            .len(),
        32
    );
}
