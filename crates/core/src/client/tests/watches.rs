//! What watches are told of one source.

use super::*;
use crate::sink::{Rejection, Verdict};

#[test]
fn a_watch_alone_asks_nobody() {
    let mut rig = Rig::new();
    let (source, servers) = rig.source(1);
    let watch = rig.watch(None, "a");
    assert_eq!(rig.actions(), []);
    assert_eq!(rig.state(watch), "-");

    rig.subscribe(source, "a");
    rig.connect(servers[0]);
    rig.send(servers[0], &["a@1"]);
    assert_eq!(rig.news(), [watch]);
    assert_eq!(rig.state(watch), "a@1");
}

#[test]
fn a_resource_of_the_bootstrap_needs_no_connection() {
    let mut rig = Rig::new();
    let watch = rig.watch(None, "a");
    rig.client.add_static(&cds(), resource("a@1"));
    assert_eq!(rig.news(), [watch]);
    assert_eq!(rig.state(watch), "a@1");
    assert_eq!(rig.actions(), []);
}

#[test]
fn c23_who_comes_later_is_told_what_is_known() {
    let mut rig = Rig::new();
    let (source, servers) = rig.source(1);
    rig.subscribe(source, "a");
    rig.connect(servers[0]);
    rig.send(servers[0], &["a@1"]);
    let watch = rig.watch(None, "a");
    assert_eq!(rig.news(), [watch]);
    assert_eq!(rig.state(watch), "a@1");
}

#[test]
fn c24_the_same_again_is_no_news() {
    let mut rig = Rig::new();
    let (source, servers) = rig.source(1);
    rig.subscribe(source, "a");
    let watch = rig.watch(Some(source), "a");
    rig.connect(servers[0]);
    rig.send(servers[0], &["a@1"]);
    assert_eq!(rig.news(), [watch]);
    rig.send(servers[0], &["a@1"]);
    assert_eq!(rig.news(), []);
}

#[test]
fn c25_the_last_subscription_ends_the_stream() {
    let mut rig = Rig::new();
    let (source, servers) = rig.source(1);
    rig.subscribe(source, "a");
    rig.subscribe(source, "a");
    let watch = rig.watch(Some(source), "a");
    rig.connect(servers[0]);
    rig.send(servers[0], &["a@1"]);

    rig.unsubscribe(source, "a");
    assert_eq!(rig.actions(), [], "one is left");
    rig.unsubscribe(source, "a");
    assert_eq!(rig.actions(), [Action::Close(servers[0])]);
    let statuses = rig.client.statuses();
    assert_eq!(statuses, [], "and its contents are dropped");

    rig.news();
    rig.subscribe(source, "a");
    rig.connect(servers[0]);
    rig.send(servers[0], &["a@2"]);
    assert_eq!(rig.news(), [watch]);
    assert_eq!(rig.state(watch), "a@2");
}

#[test]
fn c32_c34_a_name_that_nobody_speaks_of_does_not_exist_until_it_comes() {
    let mut rig = Rig::new();
    let (source, servers) = rig.source(1);
    rig.subscribe(source, "a");
    let watch = rig.watch(Some(source), "a");
    rig.connect(servers[0]);
    rig.wait(14_999);
    assert_eq!(rig.state(watch), "-");
    rig.wait(1);
    assert_eq!(rig.news(), [watch]);
    assert_eq!(rig.state(watch), "! Silent");
    let status = rig.client.server_status(servers[0]).unwrap();
    assert_eq!(status.fetch_timeouts, 1, "E2, E16");

    rig.send(servers[0], &["a@1"]);
    assert_eq!(rig.news(), [watch]);
    assert_eq!(rig.state(watch), "a@1");
}

#[test]
fn c41_a_rejected_update_is_an_error_beside_the_last_good_one() {
    let mut rig = Rig::new();
    let (source, servers) = rig.source(1);
    rig.subscribe(source, "a");
    rig.subscribe(source, "b");
    let (a, b) = (rig.watch(Some(source), "a"), rig.watch(Some(source), "b"));
    rig.connect(servers[0]);
    rig.send(servers[0], &["a@1", "b@1"]);
    rig.news();

    let response = DeltaResponse {
        type_url: cds(),
        nonce: "bad".into(),
        resources: vec![wire("a@2"), wire("b@2")].into(),
        ..delta_of_nothing()
    };
    let verdict = Verdict::reject(vec![Rejection::of(&Name::new("a"), "no")]);
    rig.judge(servers[0], response, verdict);
    assert_eq!(rig.state(a), "a@1 ~ Rejected");
    assert_eq!(rig.state(b), "b@2", "C26");
    let news = rig.news();
    assert!(news.contains(&a) && news.contains(&b) && news.len() == 2);

    // C42: who comes later sees both.
    let late = rig.watch(Some(source), "a");
    assert_eq!(rig.state(late), "a@1 ~ Rejected");
    rig.send(servers[0], &["a@3"]);
    assert_eq!(rig.state(a), "a@3", "C39: the next good one ends the error");
}

fn delta_of_nothing() -> DeltaResponse {
    DeltaResponse {
        type_url: cds(),
        nonce: "none".into(),
        resources: Vec::new().into(),
        removed: Vec::new(),
        removed_variants: Vec::new(),
        errors: Vec::new(),
    }
}

#[test]
fn a_watch_of_many_skips_states_and_never_a_name() {
    let mut rig = Rig::new();
    let (source, servers) = rig.source(1);
    rig.subscribe(source, "*");
    let all = rig.watch(Some(source), "*");
    let one = rig.watch(None, "b");
    rig.connect(servers[0]);
    rig.send(servers[0], &["a@1", "b@1"]);
    rig.send(servers[0], &["a@2"]);
    assert_eq!(rig.news(), [all, one]);
    assert_eq!(rig.changes(all), ["a@2", "b@1"]);
    assert_eq!(rig.state(one), "b@1", "a wildcard brings it, too");

    rig.send_all(servers[0], &["c@1"], &["a"]);
    assert_eq!(rig.news(), [all]);
    assert_eq!(rig.changes(all), ["a ! Deleted", "c@1"]);
    assert_eq!(rig.changes(all), [""; 0]);
}

#[test]
fn c29_what_a_whole_set_leaves_out_is_gone() {
    let mut rig = Rig::new();
    let server = rig.server(Mode::Sotw);
    let source = rig.client.add_source(vec![server], FallbackPolicy::Grpc);
    rig.subscribe(source, "*");
    let all = rig.watch(Some(source), "*");
    rig.connect(server);
    rig.judge(server, sotw("1", &["a@1", "b@1"]), Verdict::accept());
    assert_eq!(rig.changes(all), ["a@1", "b@1"]);
    rig.judge(server, sotw("2", &["b@1"]), Verdict::accept());
    assert_eq!(rig.changes(all), ["a ! Deleted"]);
}

#[test]
fn a_watch_that_has_ended_is_told_nothing() {
    let mut rig = Rig::new();
    let (source, servers) = rig.source(1);
    rig.subscribe(source, "a");
    let watch = rig.watch(Some(source), "a");
    rig.connect(servers[0]);
    rig.send(servers[0], &["a@1"]);
    rig.client.unwatch(watch);
    assert_eq!(rig.news(), []);
    rig.send(servers[0], &["a@2"]);
    assert_eq!(rig.news(), []);
}
