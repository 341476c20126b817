//! Several variants of one name (TP2).

use super::*;

/// `cds a` is cached in two variants.
fn two(mode: Mode) -> Bench {
    let mut bench = Bench::subscribed(mode, &["cds a"]);
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
    assert_eq!(bench.requests(), ["node:n cds +a"]);
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
    let mut bench = Bench::subscribed(Mode::Delta, &["cds a"]);
    bench.accept(delta("cds", "n1", &["a@1[env=prod]"], &[]));
    bench.requests();
    let mut swap = delta("cds", "n2", &["a@2"], &[]);
    swap.removed_variants = vec![(Name::new("a"), Some(constraint("env=prod")))];
    assert_eq!(bench.accept(swap), ["+cds a@2", "-cds a[env=prod]"]);
    bench.sink.handle_connected();
    assert_eq!(bench.requests(), ["node:n cds +a held=a@2"]);
}

#[test]
fn variants_may_take_the_place_of_the_one_for_all() {
    let mut bench = Bench::subscribed(Mode::Delta, &["cds a"]);
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
    let effects = bench.accept(sotw("cds", "2", "n2", &["a@2[env=test]", "a@3"]));
    assert_eq!(effects, ["+cds a@3", "-cds a[env=prod]"]);
    bench.requests();
    let effects = bench.accept(sotw("cds", "3", "n3", &["a@2[env=test]"]));
    assert_eq!(effects, ["-cds a[all]"]);
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
    let mut bench = Bench::subscribed(Mode::Delta, &["cds a"]);
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
    bench.accept(delta("cds", "n3", &["a@3!300"], &[]));
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
