//! What a change costs: it follows the change, not the size of the tree.

use super::Owner;
use crate::tree::Work;

const CLUSTERS: usize = 1_000;

/// A listener with a route configuration that has many clusters.
fn many_clusters() -> Owner {
    let mut owner = Owner::default();
    owner.root("lds/l");
    owner.value("lds/l", 1, &["rds/r"]);
    let names: Vec<_> = (0..CLUSTERS).map(|of| format!("cds/{of:04}")).collect();
    let children: Vec<_> = names.iter().map(String::as_str).collect();
    owner.value("rds/r", 1, &children);
    for name in &names {
        let endpoints = name.replace("cds", "eds");
        let id = owner.nodes[name];
        owner
            .tree
            .handle_update(id, super::value_of(1, &[&endpoints]));
    }
    owner.run_unchecked();
    for of in 0..CLUSTERS {
        let id = owner.nodes[&format!("eds/{of:04}")];
        owner.tree.handle_update(id, super::value_of(1, &[]));
    }
    owner.run_unchecked();
    owner
}

#[test]
fn one_endpoint_of_a_thousand_clusters_costs_four_parts() {
    let mut owner = many_clusters();
    let first = owner.tree.take_work();
    assert_eq!(first.snapshots, 1);
    assert_eq!(first.parts, 2 * CLUSTERS + 2, "each part is made once");

    owner.value("eds/0500", 2, &[]);
    let work = owner.tree.take_work();
    let expected = Work {
        // Endpoints, cluster, route configuration, listener.
        parts: 4,
        // A leaf and a branch of the route's children; the only child of the
        // cluster, and of the listener.
        entries: 32 + 32 + 1 + 1,
        snapshots: 1,
    };
    assert_eq!(work, expected);
}

#[test]
fn a_batch_is_one_snapshot_and_makes_each_part_once() {
    let mut owner = many_clusters();
    owner.tree.take_work();
    for of in 0..10 {
        let id = owner.nodes[&format!("eds/{of:04}")];
        owner.tree.handle_update(id, super::value_of(2, &[]));
    }
    owner.run_unchecked();
    let work = owner.tree.take_work();
    assert_eq!((work.parts, work.snapshots), (10 + 10 + 2, 1));
}

#[test]
fn the_same_state_costs_nothing_more() {
    let mut owner = many_clusters();
    owner.tree.take_work();
    owner.run_unchecked();
    assert_eq!(owner.tree.take_work(), Work::default());
}
