//! Meaning, identity, text and limits of constraints, case by case. Laws that
//! hold for all of them are in `tests/params_properties.rs`.

use std::collections::HashSet;

use super::*;

fn of(text: &str) -> Constraints {
    text.parse().unwrap()
}

fn client(text: &str) -> Params {
    let pairs = text.split(',').filter(|pair| !pair.is_empty());
    Params::new(pairs.map(|pair| pair.split_once('=').unwrap())).unwrap()
}

#[test]
fn s62_matching() {
    for (constraints, params, expected) in [
        ("always", "", true),
        ("always", "env=prod", true),
        ("never", "", false),
        ("env=prod", "env=prod", true),
        ("env=prod", "env=test", false),
        ("env=prod", "", false),
        ("env=prod", "env=prod,zone=a", true),
        ("NOT env=prod", "env=test", true),
        ("NOT env=prod", "", true),
        ("env exists", "env=", true),
        ("env exists", "", false),
        ("NOT env exists", "", true),
        ("env=a OR env=c", "env=b", false),
        ("env=a OR env=c", "env=c", true),
        ("env=prod AND NOT version=v1", "env=prod,version=v2", true),
        ("env=prod AND NOT version=v1", "env=prod,version=v1", false),
        ("env=prod AND NOT version=v1", "env=prod", true),
    ] {
        assert_eq!(
            of(constraints).matches(&client(params)),
            expected,
            "{constraints} {params}"
        );
    }
}

#[test]
fn one_text_for_one_meaning() {
    for (written, canonical) in [
        ("b=2 AND a=1", "a=1 AND b=2"),
        ("b=2 OR a=1", "a=1 OR b=2"),
        ("NOT (a=1 OR b=2)", "NOT a=1 AND NOT b=2"),
        ("NOT (a=1 AND b=2)", "NOT a=1 OR NOT b=2"),
        ("a=1 AND a exists", "a=1"),
        ("a=1 OR a exists", "a exists"),
        ("a=1 AND a=2", "never"),
        ("NOT a=1 OR NOT a=2", "always"),
        ("a=1 OR NOT a=1", "always"),
        ("a=2 OR a=1 OR a=2", "a=1 OR a=2"),
        ("a exists AND NOT a=1", "a exists AND NOT a=1"),
        ("NOT a exists OR a=1", "NOT a exists OR a=1"),
        ("NOT (NOT a exists OR a=1)", "a exists AND NOT a=1"),
        ("(a=1 AND b=2) OR (a=1 AND NOT b=2)", "a=1"),
        (
            "(a=1 OR b=1) AND (c=1 OR d=1)",
            "(a=1 OR b=1) AND (c=1 OR d=1)",
        ),
        (
            "(a=1 AND b=1) OR (c=1 AND d=1)",
            "(a=1 AND b=1) OR (c=1 AND d=1)",
        ),
        (
            "a=1 OR (b=1 AND (c=1 OR d=1))",
            "a=1 OR (b=1 AND (c=1 OR d=1))",
        ),
        (
            "(a=1 AND b=1) OR (a=2 AND b=2)",
            "(a=1 AND b=1) OR (a=2 AND b=2)",
        ),
        ("a=1 OR (a exists AND b=1)", "a=1 OR (a exists AND b=1)"),
        ("a=1 OR (a=2 AND b=1)", "a=1 OR (a=2 AND b=1)"),
        (
            "a=1 OR a=2 OR (NOT a exists AND b=1)",
            "a=1 OR a=2 OR (NOT a exists AND b=1)",
        ),
        (
            "(a=1 AND b=1) OR (a exists AND NOT a=1 AND b=2) OR (NOT a exists AND b=3)",
            "(a=1 AND b=1) OR (a exists AND NOT a=1 AND b=2) OR (NOT a exists AND b=3)",
        ),
        (
            "NOT a exists OR (NOT a=1 AND b=1)",
            "NOT a exists OR (NOT a=1 AND b=1)",
        ),
        // Of two guards of equal length, the stricter.
        (
            "(NOT a=1 AND NOT a=2) OR (NOT a=1 AND b=1)",
            "(NOT a=1 AND NOT a=2) OR (a=2 AND b=1)",
        ),
        (r#""x y"="""#, r#""x y"="""#),
    ] {
        assert_eq!(of(written).to_string(), canonical, "{written}");
        assert_eq!(of(written), of(canonical));
        assert_eq!(format!("{:?}", of(written)), canonical);
        assert_eq!(of(written).expr().to_string(), canonical);
    }
}

#[test]
fn identity_is_meaning() {
    let (a, same, b) = (of("a=1 AND b=2"), of("b=2 AND a=1"), of("a=1 AND b=3"));
    assert_eq!(a, same);
    assert_eq!(a.cmp(&same), Ordering::Equal);
    assert_eq!(HashSet::from([a.clone(), same, b.clone()]).len(), 2);
    assert_ne!(a, b);
    assert_eq!(a.cmp(&b), b.cmp(&a).reverse());
    assert_eq!(a.partial_cmp(&b), Some(a.cmp(&b)));
    assert_ne!(of("a=1"), of("b=1"));
    assert_ne!(of("a=1"), of("a=2"));
    assert_ne!(of("a=1"), of("NOT a=1"));
}

#[test]
fn always_and_never() {
    assert_eq!(Constraints::always(), of("always"));
    assert_eq!(Constraints::always().to_string(), "always");
    let flags = |text| (of(text).is_always(), of(text).is_never());
    assert_eq!(flags("a=1 OR NOT a=1"), (true, false));
    assert_eq!(flags("a=1 AND NOT a=1"), (false, true));
    assert_eq!(flags("a=1"), (false, false));
}

#[test]
fn only_keys_that_matter_are_keys() {
    let keys = |text| {
        of(text)
            .keys()
            .iter()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(keys("b=1 AND a exists"), ["a", "b"]);
    assert_eq!(keys("a=1 AND (b=1 OR NOT b=1)"), ["a"]);
    assert_eq!(keys("always"), [""; 0]);
}

#[test]
fn s62_overlap_has_a_witness() {
    for (a, b, expected) in [
        ("always", "always", Some("")),
        ("always", "never", None),
        ("never", "always", None),
        ("env=prod", "env=test", None),
        ("env=prod", "always", Some("env=prod")),
        ("env=prod", "NOT env=prod", None),
        ("env=prod", "version=v1", Some("env=prod,version=v1")),
        ("env=foo OR env=bar", "env=bar OR env=baz", Some("env=bar")),
        ("env exists", "NOT env exists", None),
        ("env exists", "NOT env=other", Some("env=other2")),
        ("NOT env=a", "NOT env=b", Some("")),
        (
            "env=prod",
            "env=prod AND version=v1",
            Some("env=prod,version=v1"),
        ),
        (
            "env=prod AND NOT version exists",
            "env=prod AND version=v1",
            None,
        ),
        ("a=1 OR b=1", "NOT a exists AND c=1", Some("b=1,c=1")),
    ] {
        let witness = of(a).overlap(&of(b)).unwrap();
        assert_eq!(
            witness.map(|it| it.to_string()).as_deref(),
            expected,
            "{a} / {b}"
        );
        let witness = of(b).overlap(&of(a)).unwrap();
        assert_eq!(
            witness.map(|it| it.to_string()).as_deref(),
            expected,
            "{b} / {a}"
        );
    }
}

#[test]
fn bytes_and_keys_are_bounded() {
    let limit = Constraints::MAX_BYTES;
    let long = |bytes: usize| Constraints::new(&Expr::exists("k".repeat(bytes)));
    assert!(long(limit).is_ok());
    assert_eq!(
        long(limit + 1),
        Err(ConstraintError::TooManyBytes { limit })
    );

    let limit = Constraints::MAX_KEYS;
    let keys = |count: usize| {
        let keys = (0..count).map(|nth| Expr::exists(nth.to_string()));
        Constraints::new(&Expr::or(keys.collect()).unwrap())
    };
    assert_eq!(keys(limit).unwrap().keys().len(), limit);
    assert_eq!(keys(limit + 1), Err(ConstraintError::TooManyKeys { limit }));
}

#[test]
fn always_is_shared() {
    assert!(Arc::ptr_eq(
        &Constraints::always().0,
        &Constraints::always().0
    ));
}
