//! Resources with aliases, and the negative answer of VHDS (S35, S36).

use super::*;

#[test]
fn an_alias_answers_for_the_name_that_was_asked_for() {
    let mut bench = Bench::subscribed(Mode::Delta, &["vhds r/a", "vhds r/b"]);
    let effects = bench.accept(delta("vhds", "n1", &["r/w@1#r/a#r/b#r/c"], &[]));
    assert_eq!(effects, ["+vhds r/w@1"], "nobody asked for r/w and r/c");
    assert_eq!(
        bench.states(),
        ["vhds r/a Acked 1", "vhds r/b Acked 1", "vhds r/w Acked 1"]
    );
    assert_eq!(bench.due(), None, "both are answered");
    bench.requests();
    // A lost alias does not exist.
    let effects = bench.accept(delta("vhds", "n2", &["r/w@2#r/a"], &[]));
    let gone =
        |name: &str| format!("vhds {name} ! Deleted: the source says that it does not exist");
    assert_eq!(effects, ["+vhds r/w@2", "-vhds r/b", &gone("r/b")]);
    bench.requests();
    let effects = bench.accept(delta("vhds", "n3", &[], &["r/w"]));
    assert_eq!(effects, ["-vhds r/a", "-vhds r/w", &gone("r/a")]);
}

#[test]
fn an_alias_may_pass_to_another_resource() {
    let mut bench = Bench::subscribed(Mode::Delta, &["vhds r/a"]);
    bench.accept(delta("vhds", "n1", &["r/w@1#r/a"], &[]));
    bench.requests();
    let effects = bench.accept(delta("vhds", "n2", &["r/v@2#r/a"], &["r/w"]));
    assert_eq!(effects, ["+vhds r/v@2", "-vhds r/w"]);
    assert_eq!(bench.states(), ["vhds r/a Acked 2", "vhds r/v Acked 2"]);
    bench.requests();
    bench.unsub("vhds r/a");
    bench.requests();
    assert_eq!(bench.states(), [""; 0], "nothing keeps r/v");
}

#[test]
fn versions_are_told_under_the_resources_own_name() {
    let mut bench = Bench::subscribed(Mode::Delta, &["vhds r/a"]);
    bench.accept(delta("vhds", "n1", &["r/w@1#r/a"], &[]));
    bench.sink.handle_connected();
    assert_eq!(bench.requests(), ["node:n vhds +r/a held=r/w@1"]);
}

#[test]
fn a_resource_without_a_body_does_not_exist() {
    let mut bench = Bench::subscribed(Mode::Delta, &["vhds r/a"]);
    let mut response = delta("vhds", "n1", &[], &[]);
    response.resources.extend([nothing("r/a@#r/a")]);
    let gone = "vhds r/a ! Deleted: the source says that it does not exist";
    assert_eq!(bench.accept(response), ["-vhds r/a", gone]);
    assert_eq!(bench.states(), ["vhds r/a DoesNotExist Deleted"]);
    assert_eq!(bench.due(), None);
    // The subscription stays, and it may still appear.
    bench.requests();
    let effects = bench.accept(delta("vhds", "n2", &["r/a@1"], &[]));
    assert_eq!(effects, ["+vhds r/a@1"]);
}

#[test]
fn an_alias_holds_the_variants_of_one_resource() {
    let mut bench = Bench::subscribed(Mode::Delta, &["vhds r/a"]);
    bench.accept(delta("vhds", "n1", &["r/w@1[k=v]#r/a"], &[]));
    bench.requests();
    bench.accept(delta("vhds", "n2", &["r/x@2#r/a"], &[]));
    assert_eq!(bench.replay("vhds r/a"), [""; 0]);
}

#[test]
fn one_alias_is_enough_to_keep_a_resource() {
    let mut bench = Bench::subscribed(Mode::Delta, &["vhds r/a", "vhds r/b"]);
    bench.accept(delta("vhds", "n1", &["r/w@1#r/a#r/b"], &[]));
    bench.requests();
    bench.judge(
        delta("vhds", "n2", &["r/w@2#r/a#r/b"], &[]),
        &[("r/w", "bad")],
    );
    bench.requests();
    bench.unsub("vhds r/b");
    bench.requests();
    assert_eq!(
        bench.states(),
        ["vhds r/a Acked 1", "vhds r/w Nacked 1 Rejected"]
    );
}
