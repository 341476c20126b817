//! Several variants of one name (TP2).

mod ended;

use super::*;

/// A sink of a server with locators.
fn located(mode: Mode, wants: &[&str]) -> Bench {
    Bench::new(mode, |config| config.locators = true).up(wants)
}

const ENVS: [&str; 2] = ["cds a{env=prod}", "cds a{env=test}"];

/// `cds a` is held in two variants.
fn two(mode: Mode) -> Bench {
    let mut bench = located(mode, &ENVS);
    let both = ["a@1[env=prod]", "a@2[env=test]"];
    let effects = match mode {
        Mode::Sotw => bench.accept(sotw("cds", "1", "n1", &both)),
        Mode::Delta => bench.accept(delta("cds", "n1", &both, &[])),
    };
    let changes = ["+cds a@1[env=prod]", "+cds a@2[env=test]"];
    assert_eq!(effects, changes);
    assert_eq!(bench.states(), ["cds a Acked 1,2"]);
    bench.requests();
    bench
}

#[test]
fn variants_stand_beside_each_other() {
    let mut bench = two(Mode::Delta);
    let again = delta("cds", "n2", &["a@1[env=prod]", "a@3[env=test]"], &[]);
    let effects = bench.accept(again);
    assert_eq!(effects, ["+cds a@3[env=test]"]);
    assert_eq!(bench.replay("cds a"), [""; 0]);
}

#[test]
fn one_version_cannot_speak_for_two_variants() {
    let mut bench = two(Mode::Delta);
    bench.sink.handle_connected();
    let request = "node:n cds +a{env=prod} +a{env=test}";
    assert_eq!(bench.requests(), [request]);
}

#[test]
fn a_variant_goes_alone_and_the_last_takes_the_name() {
    let mut bench = two(Mode::Delta);
    let mut gone = |nonce: &str, of: &str| {
        let mut response = delta("cds", nonce, &[], &[]);
        response.removed_variants = vec![
            (Name::new("a"), Some(constraint(of))),
            (Name::new("unknown"), Some(constraint(of))),
        ];
        let effects = bench.accept(response);
        bench.requests();
        (effects, bench.states())
    };
    let (effects, states) = gone("n2", "env=none");
    assert_eq!((effects.len(), states), (0, vec!["cds a Acked 1,2".into()]));
    let (effects, states) = gone("n3", "env=prod");
    assert_eq!(effects, ["-cds a[env=prod]"]);
    assert_eq!(states, ["cds a Acked 2"]);
    let (effects, states) = gone("n4", "env=test");
    assert_eq!(
        effects,
        [
            "-cds a",
            "cds a ! Deleted: the source says that it does not exist"
        ]
    );
    assert_eq!(states, ["cds a DoesNotExist Deleted"]);
}

#[test]
fn a_name_goes_with_all_its_variants() {
    let mut bench = two(Mode::Delta);
    let effects = bench.accept(delta("cds", "n2", &[], &["a"]));
    assert_eq!(effects[0], "-cds a");
    assert_eq!(bench.states(), ["cds a DoesNotExist Deleted"]);
}

#[test]
fn one_variant_may_take_the_place_of_another() {
    let mut bench = located(Mode::Delta, &["cds a{env=prod}"]);
    bench.accept(delta("cds", "n1", &["a@1[env=prod]"], &[]));
    bench.requests();
    let mut swap = delta("cds", "n2", &["a@2"], &[]);
    swap.removed_variants = vec![(Name::new("a"), Some(constraint("env=prod")))];
    assert_eq!(bench.accept(swap), ["+cds a@2", "-cds a[env=prod]"]);
    bench.sink.handle_connected();
    assert_eq!(bench.requests(), ["node:n cds +a{env=prod} held=a@2"]);
}

#[test]
fn variants_may_take_the_place_of_the_one_for_all() {
    let mut bench = located(Mode::Delta, &ENVS);
    bench.accept(delta("cds", "n1", &["a@1"], &[]));
    bench.requests();
    let mut swap = delta("cds", "n2", &["a@2[env=prod]", "a@3[env=test]"], &[]);
    swap.removed_variants = vec![(Name::new("a"), None)];
    let effects = bench.accept(swap);
    assert_eq!(effects[2], "-cds a[all]");
    assert_eq!(bench.states(), ["cds a Acked 2,3"]);
}

#[test]
fn the_state_of_the_world_lists_every_variant() {
    let mut bench = two(Mode::Sotw);
    let others = ["a@2[env=test]", "a@3[NOT env=test]"];
    let effects = bench.accept(sotw("cds", "2", "n2", &others));
    assert_eq!(effects, ["+cds a@3[NOT env=test]", "-cds a[env=prod]"]);
    bench.requests();
    let effects = bench.accept(sotw("cds", "3", "n3", &["a@2[env=test]"]));
    assert_eq!(effects, ["-cds a[NOT env=test]"]);
    assert_eq!(bench.states(), ["cds a Acked 2"]);
}

#[test]
fn a_rejected_name_keeps_its_variants() {
    let mut bench = two(Mode::Sotw);
    let response = sotw("cds", "2", "n2", &["a@9[env=test]"]);
    let (_, effects) = bench.judge(response, &[("a", "bad")]);
    assert_eq!(effects, ["cds a ~ Rejected: bad"]);
    assert_eq!(bench.states(), ["cds a Nacked 1,2 Rejected"]);
}

#[test]
fn s41_a_variant_that_is_there_twice_rejects_the_response() {
    let fault = |response| {
        let mut bench = two(Mode::Delta);
        match bench.sink.handle_response(Response::Delta(response)) {
            Err(SinkError::Protocol { fault, .. }) => Some(fault),
            _ => None,
        }
    };
    let response = delta("cds", "n2", &["a@3[k=v]", "a@4[k=v]"], &[]);
    let twice = ProtocolFault::Duplicate(Name::new("a"));
    assert_eq!(fault(response), Some(twice));
    let mut response = delta("cds", "n2", &["a@3[env=prod]"], &[]);
    response.removed_variants = vec![(Name::new("a"), Some(constraint("env=prod")))];
    let both = ProtocolFault::AddedAndRemoved(Name::new("a"));
    assert_eq!(fault(response), Some(both));
    let mut response = delta("cds", "n2", &["a@3[env=prod]"], &[]);
    response.removed_variants = vec![(Name::new("a"), Some(constraint("env=test")))];
    assert_eq!(fault(response), None);
}

#[test]
fn e10_each_variant_has_its_own_ttl() {
    let mut bench = located(Mode::Delta, &ENVS);
    let both = ["a@1[env=prod]!100", "a@2[env=test]!200"];
    bench.accept(delta("cds", "n1", &both, &[]));
    bench.requests();
    assert_eq!(bench.wait(100), ["-cds a[env=prod]"]);
    assert_eq!(bench.due(), Some(100));
    let mut response = delta("cds", "n2", &[], &[]);
    response.resources.extend([beat("a@2[env=test]!200")]);
    bench.accept(response);
    bench.requests();
    assert_eq!(bench.due(), Some(200));
    bench.accept(delta("cds", "n3", &["a@3[env=prod]!300"], &[]));
    bench.requests();
    let mut response = delta("cds", "n4", &[], &[]);
    response.removed_variants = vec![(Name::new("a"), Some(constraint("env=test")))];
    bench.accept(response);
    assert_eq!(bench.due(), Some(300), "the ttl went with its variant");
    assert_eq!(
        bench.wait(300),
        ["-cds a", "cds a ! Expired: not refreshed within its ttl"]
    );
}

#[test]
fn variants_that_linger_are_found_again() {
    let mut bench = two(Mode::Sotw);
    bench.unsub("cds a");
    bench.sub("cds a");
    bench.unsub("cds a");
    let effects = bench.accept(sotw("cds", "2", "n2", &["a@1[env=prod]"]));
    assert_eq!(effects, ["-cds a[env=test]"]);
    bench.sub("cds a");
    assert_eq!(bench.states(), ["cds a Acked 1"]);
}

#[test]
fn tp2_each_set_of_parameters_is_a_locator() {
    for (mode, first, second) in [
        (
            Mode::Sotw,
            "node:n cds [a{env=prod} a{env=test}]",
            "cds [a{env=test}]",
        ),
        (
            Mode::Delta,
            "node:n cds +a{env=prod} +a{env=test}",
            "cds -a{env=prod}",
        ),
    ] {
        let mut bench = located(mode, &[]);
        ENVS.iter().for_each(|want| bench.sub(want));
        assert_eq!(bench.requests(), [first]);
        bench.unsub(ENVS[0]);
        assert_eq!(bench.requests(), [second]);
        bench.sub("cds a");
        let plain = ["cds [a a{env=test}]", "cds +a"];
        assert_eq!(bench.requests(), [plain[usize::from(mode == Mode::Delta)]]);
    }
}

#[test]
fn tp2_a_wildcard_with_parameters_is_named() {
    for (mode, located_star, plain_star) in [
        (Mode::Sotw, "node:n cds [*{env=prod}]", "node:n cds []"),
        (Mode::Delta, "node:n cds +*{env=prod}", "node:n cds"),
    ] {
        let mut bench = located(mode, &[]);
        bench.sub("cds *{env=prod}");
        assert_eq!(bench.requests(), [located_star]);
        let mut bench = Bench::subscribed(mode, &[]);
        bench.sub("cds *{env=prod}");
        assert_eq!(bench.requests(), [plain_star], "without locators");
    }
}

#[test]
fn tp2_a_server_without_locators_is_asked_for_each_name_once() {
    for (mode, first, more, last) in [
        (Mode::Sotw, "node:n cds [a b]", "cds [a b c]", "cds [b c]"),
        (Mode::Delta, "node:n cds +a +b", "cds +c", "cds -a"),
    ] {
        let mut bench = Bench::subscribed(mode, &[]);
        ENVS.iter().for_each(|want| bench.sub(want));
        bench.sub("cds b");
        assert_eq!(bench.requests(), [first]);
        bench.sub("cds a");
        bench.sub("cds c{env=prod}");
        assert_eq!(bench.requests(), [more]);
        bench.unsub(ENVS[0]);
        bench.unsub("cds a");
        assert_eq!(bench.requests(), [""; 0]);
        assert_eq!(bench.forgotten(), [""; 0]);
        // Asked for otherwise, before the server knows that it was not.
        bench.unsub(ENVS[1]);
        bench.sub(ENVS[0]);
        let again: &[&str] = if mode == Mode::Delta {
            &["cds +a"]
        } else {
            &[]
        };
        assert_eq!(bench.requests(), again);
        bench.unsub(ENVS[0]);
        assert_eq!(bench.requests(), [last]);
        assert_eq!(bench.forgotten(), ["cds a"]);
    }
}

#[test]
fn tp2_without_locators_a_resource_is_for_all_parameters() {
    let mut bench = Bench::subscribed(Mode::Delta, &ENVS);
    let effects = bench.accept(delta("cds", "n1", &["a@1[zone=x]"], &[]));
    assert_eq!(effects, ["+cds a@1"]);
    bench.requests();
    // The one that is held stays; it goes only with its name.
    let (acked, effects) = bench.judge(delta("cds", "n2", &["a@2[zone=y]"], &[]), &[]);
    assert!(!acked);
    let reason = "a client could match both [zone=y] and [zone=x], which is held";
    assert_eq!(effects, [format!("cds a ~ Rejected: {reason}")]);
    bench.requests();
    let mut swap = delta("cds", "n3", &["a@3[zone=y]"], &[]);
    swap.removed_variants = vec![(Name::new("a"), Some(constraint("zone=x")))];
    assert_eq!(bench.accept(swap), ["+cds a@3", "cds a ~ ok"]);
    assert_eq!(bench.states(), ["cds a Acked 3"]);
    bench.requests();
    bench.sink.handle_connected();
    bench.requests();
    // After a reconnect the server does not know which variant is held.
    let effects = bench.accept(delta("cds", "n4", &["a@4[zone=z]"], &[]));
    assert_eq!(effects, ["+cds a@4"]);
    assert_eq!(bench.states(), ["cds a Acked 4"]);
}

#[test]
fn tp2_a_variant_that_is_for_nobody_is_rejected_alone() {
    for mode in BOTH {
        let mut bench = located(mode, &["cds a{env=prod}"]);
        let both = ["a@1[env=prod]", "a@2[env=test]"];
        let (acked, effects) = match mode {
            Mode::Sotw => bench.judge(sotw("cds", "1", "n1", &both), &[]),
            Mode::Delta => bench.judge(delta("cds", "n1", &both, &[]), &[]),
        };
        let reason = "no subscription has parameters that match [env=test]";
        assert!(!acked);
        assert_eq!(
            effects,
            ["+cds a@1[env=prod]", &format!("cds a ~ Rejected: {reason}")]
        );
        assert_eq!(bench.states(), ["cds a Nacked 1 Rejected"]);
        assert!(bench.requests()[0].ends_with(&format!("nonce=n1 error=3:a: {reason}")));
    }
}

#[test]
fn tp2_a_refused_variant_costs_no_value_under_any_policy() {
    let bench = Bench::new(Mode::Delta, |config| {
        config.locators = true;
        config.data_errors = DataErrors::Fail;
    });
    let mut bench = bench.up(&["cds a{env=prod}"]);
    bench.accept(delta("cds", "n1", &["a@1[env=prod]"], &[]));
    bench.requests();
    bench.judge(delta("cds", "n2", &["a@2[env=test]"], &[]), &[]);
    assert_eq!(bench.states(), ["cds a Nacked 1 Rejected"]);
    bench.requests();
    let (_, effects) = bench.judge(delta("cds", "n3", &["a@2[env=test]"], &[]), &[]);
    assert_eq!(effects, [""; 0], "C28");
    let mut bench = located(Mode::Delta, &["cds a{env=prod}"]);
    let (_, effects) = bench.judge(delta("cds", "n1", &["a@2[env=test]"], &[]), &[]);
    assert!(effects[0].starts_with("cds a ! Rejected"), "{effects:?}");
}

#[test]
fn tp2_of_two_that_match_the_one_that_is_held_stays() {
    let held = "a@1[env=prod]";
    let other = "a@2[zone=x]";
    let reason = "a client could match both [zone=x] and [env=prod], which is held";
    for mode in BOTH {
        // In any order.
        for second in [[held, other], [other, held]] {
            let mut bench = located(mode, &["cds a{env=prod,zone=x}"]);
            let (acked, effects) = match mode {
                Mode::Sotw => {
                    bench.accept(sotw("cds", "1", "n1", &[held]));
                    bench.requests();
                    bench.judge(sotw("cds", "2", "n2", &second), &[])
                }
                Mode::Delta => {
                    bench.accept(delta("cds", "n1", &[held], &[]));
                    bench.requests();
                    bench.judge(delta("cds", "n2", &second, &[]), &[])
                }
            };
            assert!(!acked);
            assert_eq!(effects, [format!("cds a ~ Rejected: {reason}")]);
            assert_eq!(bench.states(), ["cds a Nacked 1 Rejected"]);
            assert!(bench.requests()[0].ends_with(&format!("error=3:a: {reason}")));
        }
    }
}

/// A database with a subscriber of these parameters sees one change.
#[test]
fn tp2_a_successor_and_the_end_of_its_predecessor_are_one_update() {
    for short in ["cds", "lds"] {
        let mut bench = located(Mode::Delta, &[&format!("{short} a{{env=prod}}")]);
        bench.accept(delta(short, "n1", &["a@1[env=prod]"], &[]));
        bench.requests();
        let mut swap = delta(short, "n2", &["a@2[zone exists OR env=prod]"], &[]);
        swap.removed_variants = vec![(Name::new("a"), Some(constraint("env=prod")))];
        let effects = bench.accept(swap);
        assert_eq!(effects.len(), 2, "{effects:?}");
        assert!(effects[0].starts_with(&format!("+{short} a@2")));
        assert_eq!(effects[1], format!("-{short} a[env=prod]"));
        bench.requests();
        // If the successor is not good, the predecessor stays.
        let mut swap = delta(short, "n3", &["a@3[env=prod]"], &[]);
        let held = constraint("zone exists OR env=prod");
        swap.removed_variants = vec![(Name::new("a"), Some(held))];
        let (_, effects) = bench.judge(swap, &[("a", "bad")]);
        assert_eq!(effects, [format!("{short} a ~ Rejected: bad")]);
        assert_eq!(bench.states(), [format!("{short} a Nacked 2 Rejected")]);
    }
}

#[test]
fn tp2_after_a_reconnect_the_first_update_has_all_variants() {
    let mut bench = two(Mode::Delta);
    bench.sink.handle_connected();
    bench.requests();
    let effects = bench.accept(delta("cds", "n1", &["a@1[env=prod]"], &[]));
    assert_eq!(effects, ["-cds a[env=test]"]);
    bench.requests();
    let effects = bench.accept(delta("cds", "n2", &["a@2[env=test]"], &[]));
    assert_eq!(effects, ["+cds a@2[env=test]"], "and the second adds to it");

    // Of one variant the server knows; it goes if another contradicts it.
    let mut bench = located(Mode::Delta, &["cds a{env=prod}"]);
    bench.accept(delta("cds", "n1", &["a@1[env=prod]"], &[]));
    bench.sink.handle_connected();
    assert_eq!(bench.requests(), ["node:n cds +a{env=prod} held=a@1"]);
    let effects = bench.accept(delta("cds", "n1", &["a@2[env exists]"], &[]));
    assert_eq!(effects, ["-cds a[env=prod]", "+cds a@2[env exists]"]);
}

#[test]
fn tp2_plain_subscriptions_have_the_parameters_of_the_stream() {
    let bench = Bench::new(Mode::Delta, |config| {
        config.locators = true;
        config.node.params = params_of("env=prod");
    });
    let mut bench = bench.up(&["cds a", "cds a{env=test}"]);
    let both = ["a@1[env=prod]", "a@2[env=test]"];
    assert_eq!(bench.accept(delta("cds", "n1", &both, &[])).len(), 2);
    bench.requests();
    bench.sink.set_node(Node {
        id: "n".into(),
        params: params_of("env=dev"),
        ..Node::default()
    });
    bench.sub("cds b");
    assert_eq!(bench.requests(), ["node:n cds +b"], "the node says so");
    bench.effects();
    // What nobody matches any more goes with the next update of its name.
    let effects = bench.accept(delta("cds", "n2", &["a@3[env=dev]"], &[]));
    assert_eq!(effects, ["-cds a[env=prod]", "+cds a@3[env=dev]"]);
    // A wildcard with parameters brings its own to the plain names beside it.
    let mut bench = located(Mode::Delta, &["cds *{env=prod}", "cds b"]);
    let both = ["a@1[env=prod]", "b@1[env=prod]"];
    assert_eq!(bench.judge(delta("cds", "n1", &both, &[]), &[]).1.len(), 2);
}

#[test]
fn c32_each_set_of_parameters_waits_for_its_own_answer() {
    let mut bench = located(Mode::Delta, &ENVS);
    bench.accept(delta("cds", "n1", &["a@1[env=prod]"], &[]));
    bench.requests();
    assert_eq!(bench.due(), Some(15_000), "nothing for env=test");
    bench.now = bench.now + Duration::from_secs(15);
    bench.sink.handle_timeout(bench.now);
    assert_eq!(bench.complete(), ["cds a{env=test}"]);
    assert_eq!(bench.states(), ["cds a Acked 1"]);
    assert_eq!(bench.due(), None);
    let mut bench = two(Mode::Delta);
    assert_eq!(bench.due(), None);
    bench.sub("cds a{env=dev}");
    bench.requests();
    assert_eq!(bench.due(), Some(15_000));
    bench.unsub("cds a{env=dev}");
    bench.requests();
    assert_eq!(bench.due(), None);
}
