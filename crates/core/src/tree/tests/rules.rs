//! The rules of a tree, by number.

use std::sync::Arc;
use std::time::Duration;

use super::{Owner, failed, key, show, value_of};
use crate::Moment;
use crate::sink::{Cause, WatchError};
use crate::tree::{MAX_LEVELS, Update};

/// A listener with a route configuration that has two clusters with endpoints.
fn two_clusters() -> (Owner, crate::tree::RootId) {
    let mut owner = Owner::default();
    let root = owner.root("lds/l");
    owner.value("lds/l", 1, &["rds/r"]);
    owner.value("rds/r", 1, &["cds/a", "cds/b"]);
    owner.value("cds/a", 1, &["eds/a"]);
    owner.value("cds/b", 1, &["eds/b"]);
    owner.value("eds/a", 1, &[]);
    owner.value("eds/b", 1, &[]);
    owner.log();
    (owner, root)
}

const TWO: &str = "lds/l=1(rds/r=1(cds/a=1(eds/a=1) cds/b=1(eds/b=1)))";

#[test]
fn c51_a_snapshot_is_shown_when_all_its_parts_are_known() {
    let mut owner = Owner::default();
    let root = owner.root("lds/l");
    owner.value("lds/l", 1, &["rds/r"]);
    owner.value("rds/r", 1, &["cds/a", "cds/b"]);
    owner.value("cds/a", 1, &["eds/a"]);
    owner.value("eds/a", 1, &[]);
    assert_eq!(owner.show(root), "", "cds/b is not known");
    owner.value("cds/b", 1, &["eds/b"]);
    assert_eq!(owner.show(root), "", "eds/b is not known");
    owner.value("eds/b", 1, &[]);
    assert_eq!(owner.show(root), TWO);
    let published = owner.log();
    assert_eq!(published.iter().filter(|of| *of == "publish").count(), 1);
}

#[test]
fn c51_an_unreachable_server_is_no_answer_until_the_fetch_timeout() {
    let mut owner = Owner::default();
    let root = owner.root("cds/a");
    let deadline = Moment::from_millis(15_000);
    owner
        .tree
        .handle_subscribed(owner.nodes["cds/a"], Some(deadline));
    owner.update("cds/a", failed(Cause::Unreachable));
    assert_eq!(owner.show(root), "");
    assert_eq!(owner.tree.poll_timeout(), Some(deadline));
    owner.tree.handle_timeout(deadline);
    owner.run();
    assert_eq!(owner.show(root), "cds/a!");
    assert_eq!(owner.tree.poll_timeout(), None);
    owner.value("cds/a", 1, &[]);
    assert_eq!(owner.show(root), "cds/a=1");
}

#[test]
fn e2_waiting_ends_at_the_deadline_of_each_resource() {
    let mut owner = Owner::default();
    let root = owner.root("lds/l");
    owner.value("lds/l", 1, &["rds/r", "rds/s"]);
    for (name, millis) in [("rds/r", 1_000), ("rds/s", 2_000)] {
        let deadline = Moment::START + Duration::from_millis(millis);
        owner
            .tree
            .handle_subscribed(owner.nodes[name], Some(deadline));
    }
    let warming = owner.tree.warming();
    assert_eq!(*warming[0].key, key("lds/l"));
    let waits_for = &warming[0].waits_for;
    let waits_for: Vec<_> = waits_for.iter().map(|key| super::text(key)).collect();
    assert_eq!(waits_for, ["rds/r", "rds/s"]);

    owner.tree.handle_timeout(Moment::from_millis(1_000));
    owner.run();
    assert_eq!(owner.show(root), "");
    owner.value("rds/s", 1, &[]);
    assert_eq!(owner.show(root), "lds/l=1(rds/r! rds/s=1)");
    assert_eq!(owner.tree.poll_timeout(), None, "an answer ends the wait");
    assert!(owner.tree.warming().is_empty());
}

#[test]
fn c53_an_error_concerns_its_part_only() {
    let (mut owner, root) = two_clusters();
    owner.update("cds/b", failed(Cause::Deleted));
    assert_eq!(
        owner.show(root),
        "lds/l=1(rds/r=1(cds/a=1(eds/a=1) cds/b!))"
    );
    owner.update("eds/a", failed(Cause::Rejected));
    assert_eq!(owner.show(root), "lds/l=1(rds/r=1(cds/a=1(eds/a!) cds/b!))");
    owner.update("rds/r", failed(Cause::Silent));
    assert_eq!(owner.show(root), "lds/l=1(rds/r!)");
    assert_eq!(owner.nodes.len(), 2, "{:?}", owner.nodes);
}

#[test]
fn c53_an_ambient_error_stands_beside_the_resource() {
    let (mut owner, root) = two_clusters();
    let update = |error| Update::Value {
        value: 1,
        error,
        children: vec![key("eds/a")],
    };
    let error = WatchError::new(Cause::Unreachable, "gone");
    owner.update("cds/a", update(Some(error)));
    assert_eq!(owner.show(root), TWO.replace("cds/a=1", "cds/a=1?"));
    owner.update("cds/a", update(None));
    assert_eq!(owner.show(root), TWO);
    owner.update("cds/a", failed(Cause::Unreachable));
    assert_eq!(owner.show(root), TWO.replace("cds/a=1", "cds/a=1?"));
}

#[test]
fn e3_the_old_version_stays_until_the_new_one_is_warm() {
    let (mut owner, root) = two_clusters();
    owner.value("cds/a", 2, &["eds/new"]);
    assert_eq!(owner.show(root), TWO);
    assert_eq!(owner.log(), ["+eds/new"], "the old endpoints stay");
    // Changes elsewhere, and of what the old version uses, are shown meanwhile.
    owner.value("eds/b", 2, &[]);
    owner.value("eds/a", 2, &[]);
    assert_eq!(
        owner.show(root),
        "lds/l=1(rds/r=1(cds/a=1(eds/a=2) cds/b=1(eds/b=2)))"
    );
    owner.log();
    owner.value("eds/new", 1, &[]);
    assert_eq!(
        owner.show(root),
        "lds/l=1(rds/r=1(cds/a=2(eds/new=1) cds/b=1(eds/b=2)))"
    );
    assert_eq!(
        owner.log(),
        ["publish", "-eds/a"],
        "make before break (E18)"
    );
}

#[test]
fn e3_what_is_removed_while_its_successor_warms_stays_in_use() {
    let (mut owner, root) = two_clusters();
    owner.value("cds/a", 2, &["eds/new"]);
    owner.update("eds/a", failed(Cause::Deleted));
    assert_eq!(owner.show(root), TWO.replace("eds/a=1", "eds/a=1?"));
    owner.value("eds/new", 1, &[]);
    let swapped = TWO.replace("cds/a=1(eds/a=1)", "cds/a=2(eds/new=1)");
    assert_eq!(owner.show(root), swapped);

    // So does what is below it.
    owner.value("rds/r", 2, &["cds/b", "cds/c"]);
    owner.update("cds/a", failed(Cause::Deleted));
    owner.update("eds/new", failed(Cause::Deleted));
    let stale = swapped.replace("cds/a=2(eds/new=1)", "cds/a=2?(eds/new=1?)");
    assert_eq!(owner.show(root), stale);
    owner.value("cds/c", 1, &[]);
    let swapped = "lds/l=1(rds/r=2(cds/b=1(eds/b=1) cds/c=1))";
    assert_eq!(owner.show(root), swapped);

    // A cluster that goes back to endpoints which are gone has none.
    owner.value("cds/b", 2, &["eds/later"]);
    owner.update("eds/b", failed(Cause::Deleted));
    owner.value("cds/b", 3, &["eds/b"]);
    let without = swapped.replace("b=1(eds/b=1)", "b=3(eds/b!)");
    assert_eq!(owner.show(root), without);
}

#[test]
fn c54_clusters_of_replaced_routes_stay_until_the_new_snapshot() {
    let (mut owner, root) = two_clusters();
    owner.value("rds/r", 2, &["cds/b", "cds/c"]);
    assert_eq!(owner.log(), ["+cds/c"]);
    owner.value("cds/c", 1, &[]);
    assert_eq!(owner.log(), ["publish", "-cds/a", "-eds/a"]);
    assert_eq!(
        owner.show(root),
        "lds/l=1(rds/r=2(cds/b=1(eds/b=1) cds/c=1))"
    );
}

#[test]
fn c54_a_cluster_with_a_subscription_stays_when_no_route_uses_it() {
    let (mut owner, root) = two_clusters();
    owner.tree.subscribe(root, key("cds/a"));
    owner.tree.subscribe(root, key("cds/a"));
    owner.run();
    owner.value("rds/r", 2, &["cds/b"]);
    let shown = "lds/l=1(rds/r=2(cds/b=1(eds/b=1))) + cds/a=1(eds/a=1)";
    assert_eq!(owner.show(root), shown);
    owner.log();
    owner.tree.unsubscribe(root, &key("cds/a"));
    owner.run();
    assert_eq!(owner.log(), [""; 0], "one subscription is left");
    owner.tree.unsubscribe(root, &key("cds/a"));
    owner.run();
    assert_eq!(owner.log(), ["publish", "-cds/a", "-eds/a"]);
    // A subscription that is not answered holds nothing back.
    owner.tree.subscribe(root, key("cds/late"));
    owner.run();
    owner.value("eds/b", 2, &[]);
    assert_eq!(owner.show(root), "lds/l=1(rds/r=2(cds/b=1(eds/b=2)))");
    owner.value("cds/late", 1, &[]);
    assert!(owner.show(root).ends_with(" + cds/late=1"));
}

#[test]
fn c54_clusters_of_clusters_have_sixteen_levels() {
    for levels in [MAX_LEVELS, MAX_LEVELS + 1] {
        let mut owner = Owner::default();
        let root = owner.root("cds/1");
        for level in 1..levels {
            let (name, child) = (format!("cds/{level}"), format!("cds/{}", level + 1));
            owner.value(&name, 1, &[child.as_str()]);
        }
        let last = format!("cds/{levels}");
        if let Some(id) = owner.nodes.get(&last).copied() {
            owner.tree.handle_update(id, value_of(1, &[]));
            owner.run();
        }
        let is_shown = owner.show(root).starts_with("cds/1=1(cds/2=1(");
        assert_eq!(
            is_shown,
            levels <= MAX_LEVELS,
            "{levels}: {}",
            owner.show(root)
        );
        assert!(owner.nodes.len() <= MAX_LEVELS, "no deeper than is shown");
    }
}

#[test]
fn c54_a_cluster_that_refers_to_itself_is_an_error_until_it_does_not() {
    let mut owner = Owner::default();
    let root = owner.root("rds/r");
    owner.value("rds/r", 1, &["cds/a", "cds/b", "cds/c"]);
    owner.value("cds/a", 1, &["cds/b"]);
    owner.value("cds/c", 1, &[]);
    owner.value("cds/b", 1, &["cds/a"]);
    assert_eq!(owner.show(root), "rds/r=1(cds/a! cds/b! cds/c=1)");
    owner.value("cds/a", 2, &[]);
    assert_eq!(
        owner.show(root),
        "rds/r=1(cds/a=2 cds/b=1(cds/a=2) cds/c=1)"
    );
}

#[test]
fn c54_a_cluster_too_deep_for_one_way_is_followed_by_a_shorter_one() {
    let mut owner = Owner::default();
    let root = owner.root("rds/r");
    owner.value("rds/r", 1, &["cds/1"]);
    for level in 1..=MAX_LEVELS {
        let (name, child) = (format!("cds/{level}"), format!("cds/{}", level + 1));
        owner.value(&name, 1, &[child.as_str()]);
    }
    assert_eq!(owner.show(root), "rds/r=1(cds/1!)");
    owner.value("rds/r", 2, &["cds/1", "cds/15"]);
    owner.value("cds/17", 1, &[]);
    let deep = "cds/15=1(cds/16=1(cds/17=1))";
    assert_eq!(owner.show(root), format!("rds/r=2(cds/1! {deep})"));
}

#[test]
fn a_shared_cluster_is_one_node() {
    let mut owner = Owner::default();
    let first = owner.root("rds/r");
    let second = owner.root("rds/s");
    owner.value("rds/r", 1, &["cds/a", "cds/a"]);
    owner.value("rds/s", 1, &["cds/a"]);
    owner.value("cds/a", 1, &[]);
    let shared = |owner: &Owner, root| Arc::clone(owner.shown[&root].root.children.get(0).unwrap());
    assert!(Arc::ptr_eq(&shared(&owner, first), &shared(&owner, second)));
    owner.log();
    owner.tree.remove_root(first);
    owner.run();
    assert_eq!(owner.log(), ["-rds/r"], "another root has the cluster");
    owner.tree.remove_root(second);
    owner.run();
    assert_eq!(owner.log(), ["-rds/s", "-cds/a"]);
    assert!(owner.tree.nodes.is_empty());
}

#[test]
fn an_unchanged_part_is_the_same_in_the_next_snapshot() {
    let (mut owner, root) = two_clusters();
    let before = Arc::clone(&owner.shown[&root]);
    owner.value("eds/a", 2, &[]);
    let after = &owner.shown[&root];
    assert_eq!(show(&before.root), TWO, "a snapshot never changes");
    let (old, new) = (before.root.children.get(0), after.root.children.get(0));
    let (old, new) = (old.unwrap(), new.unwrap());
    assert!(!Arc::ptr_eq(old, new));
    let cluster =
        |part: &Arc<crate::tree::Part<(), u32>>, at| Arc::clone(part.children.get(at).unwrap());
    assert!(!Arc::ptr_eq(&cluster(old, 0), &cluster(new, 0)));
    assert!(Arc::ptr_eq(&cluster(old, 1), &cluster(new, 1)));
}

#[test]
fn a_superseded_version_lets_its_children_go() {
    let (mut owner, root) = two_clusters();
    owner.value("cds/a", 2, &["eds/x", "eds/y"]);
    owner.value("cds/a", 3, &["eds/y", "eds/z"]);
    assert_eq!(owner.log(), ["+eds/x", "+eds/y", "+eds/z", "-eds/x"]);
    owner.value("cds/a", 4, &["eds/a"]);
    assert_eq!(owner.show(root), TWO.replace("cds/a=1", "cds/a=4"));
    assert!(owner.log().ends_with(&["publish".into()]));
}
