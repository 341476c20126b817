//! Variants of subscriptions that have ended (TP2).

use super::*;

#[test]
fn tp2_a_variant_of_a_subscription_that_ended_is_ignored() {
    let mut bench = two(Mode::Delta);
    bench.unsub(ENVS[1]);
    assert_eq!(bench.requests(), ["cds -a{env=test}"]);
    assert_eq!(bench.effects(), ["-cds a[env=test]"]);
    // It was on its way.
    let late = delta("cds", "n2", &["a@3[env=test]"], &[]);
    assert_eq!(bench.judge(late, &[]), (true, vec![]));
    bench.requests();
    bench.sub(ENVS[1]);
    bench.requests();
    let effects = bench.accept(delta("cds", "n3", &["a@3[env=test]"], &[]));
    assert_eq!(effects, ["+cds a@3[env=test]"]);
}

#[test]
fn tp2_so_is_one_whose_name_goes_on_otherwise() {
    let prod = ENVS[0];
    let all = "cds *{env=prod}";
    let other = "cds a{env=none}";
    // What ends, what goes on, and what begins with the same request.
    for (ends, goes_on, begins) in [
        (ENVS[1], all, None),
        ("cds *{env=test}", prod, None),
        (ENVS[1], other, Some(prod)),
    ] {
        let mut bench = located(Mode::Delta, &[ends, goes_on]);
        bench.accept(delta("cds", "n1", &["a@2[env=test]"], &[]));
        bench.requests();
        bench.unsub(ends);
        begins.into_iter().for_each(|begins| bench.sub(begins));
        bench.requests();
        let late = delta("cds", "n2", &["a@3[env=test]"], &[]);
        assert_eq!(bench.judge(late, &[]), (true, vec![]), "{ends} {goes_on}");
    }
}

#[test]
fn tp2_so_is_one_whose_name_comes_back_otherwise() {
    for mode in [Mode::Delta, Mode::Sotw] {
        let mut bench = located(mode, &[ENVS[1], "cds b{env=test}"]);
        bench.unsub(ENVS[1]);
        bench.requests();
        bench.sub(ENVS[0]);
        bench.requests();
        let resources = ["a@1[env=test]", "b@1[env=test]"];
        let late: Response = match mode {
            Mode::Delta => delta("cds", "n1", &resources, &[]).into(),
            Mode::Sotw => sotw("cds", "1", "n1", &resources).into(),
        };
        let effects = vec!["+cds b@1[env=test]".to_owned()];
        assert_eq!(bench.judge(late, &[]), (true, effects), "{mode:?}");
    }
}

#[test]
fn tp2_a_version_of_a_variant_that_was_dropped_is_not_told() {
    let both = ["a@1[env=prod]", "a@2[env=test]"];
    // The variant goes before the set is there, or with the next request.
    for is_early in [true, false] {
        let mut bench = two(Mode::Sotw);
        bench.unsub(ENVS[1]);
        if is_early {
            bench.requests();
            bench.accept(sotw("cds", "2", "n2", &both));
        }
        bench.requests();
        bench.sink.handle_connected();
        assert_eq!(bench.requests(), ["node:n cds [a{env=prod}]"]);

        bench.accept(sotw("cds", "3", "n3", &both[..1]));
        bench.requests();
        bench.sink.handle_connected();
        assert_eq!(bench.requests(), ["node:n cds [a{env=prod}] version=3"]);
    }
}

#[test]
fn tp2_the_last_variant_of_a_subscription_that_ended_leaves_the_name_unknown() {
    let mut bench = located(Mode::Delta, &ENVS);
    bench.accept(delta("cds", "n1", &["a@1[env=prod]"], &[]));
    bench.requests();
    bench.unsub(ENVS[0]);
    bench.requests();
    assert_eq!(bench.forgotten(), ["cds a"]);
    assert_eq!(bench.states(), ["cds a Requested"]);
}
