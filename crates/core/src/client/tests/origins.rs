//! The same name from several origins.

use super::*;

#[test]
fn the_one_that_was_there_first_is_shown_until_it_is_gone() {
    let mut rig = Rig::new();
    let (one, first) = rig.source(1);
    let (two, second) = rig.source(1);
    rig.subscribe(one, "a");
    rig.subscribe(two, "a");
    let watch = rig.watch(None, "a");
    rig.connect(second[0]);
    rig.send(second[0], &["a@second"]);
    assert_eq!(rig.state(watch), "a@second");
    rig.news();

    rig.client.handle_connected(first[0], rig.now);
    rig.requests(first[0]);
    rig.send(first[0], &["a@first"]);
    assert_eq!(rig.news(), [], "the second was there before");
    rig.send_all(second[0], &[], &["a"]);
    assert_eq!(rig.news(), [watch]);
    assert_eq!(rig.state(watch), "a@first", "and now the first takes over");
}

#[test]
fn e20_a_resource_of_the_bootstrap_stays() {
    let mut rig = Rig::new();
    rig.client.add_static(&cds(), resource("a@static"));
    let (source, servers) = rig.source(1);
    rig.subscribe(source, "a");
    let watch = rig.watch(None, "a");
    rig.connect(servers[0]);
    rig.send(servers[0], &["a@dynamic"]);
    assert_eq!(rig.state(watch), "a@static");
    let own = rig.watch(Some(source), "a");
    assert_eq!(rig.state(own), "a@dynamic");
}

#[test]
fn contents_without_a_server_are_applied_as_they_come() {
    let mut rig = Rig::new();
    let source = rig.client.add_source(Vec::new(), FallbackPolicy::Grpc);
    rig.subscribe(source, "*");
    let all = rig.watch(Some(source), "*");
    assert_eq!(rig.actions(), []);
    let changes = vec![crate::change::Change::ReplaceAll(
        cds(),
        vec![resource("a@1"), resource("b@1")],
    )];
    let complete = vec![(cds(), Selector::Wildcard.into())];
    rig.client.apply(source, changes, complete);
    assert_eq!(rig.changes(all), ["a@1", "b@1"]);
    let changes = vec![crate::change::Change::ReplaceAll(
        cds(),
        vec![resource("b@2")],
    )];
    rig.client.apply(source, changes, Vec::new());
    assert_eq!(rig.changes(all), ["a ! Deleted", "b@2"]);

    rig.client.set_unavailable(source, Some("no such file"));
    assert_eq!(rig.changes(all), ["b@2 ~ Unreachable"]);
}
