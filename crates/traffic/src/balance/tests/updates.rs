//! What an update changes, and what it leaves (63, 64).

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::{
    Changes, HostSets, PickContext, World, assignment, in_priority, locality, of_health, plain,
    sets, weighing,
};

/// Takes over a second assignment, and tells what it changed.
fn changes(before: &Value, after: &Value) -> Changes {
    let mut hosts = HostSets::read(&assignment(before), Duration::ZERO).expect("endpoints");
    let changes = hosts.update(&assignment(after), Duration::ZERO);
    changes.expect("endpoints")
}

fn groups(groups: Value) -> Value {
    json!({ "endpoints": groups })
}

#[test]
fn d63_one_endpoint_of_many_is_one_change() {
    let before = groups(json!([
        locality("z0", 1, &plain(&[1, 2, 3])),
        locality("z1", 2, &plain(&[4])),
    ]));
    let addresses = |changes: &Changes| -> Vec<(String, bool)> {
        let hosts = changes.hosts.iter();
        hosts
            .map(|change| (change.address.to_string(), change.now.is_some()))
            .collect()
    };
    for (after, expected) in [
        // Another one, a new one, one that is gone.
        (
            vec![weighing(1, 1), weighing(2, 5), weighing(3, 1)],
            ("10.0.0.2:80", true),
        ),
        (plain(&[1, 2, 3, 9]), ("10.0.0.9:80", true)),
        (plain(&[1, 2]), ("10.0.0.3:80", false)),
        (plain(&[2, 3]), ("10.0.0.1:80", false)),
    ] {
        let after = groups(json!([
            locality("z0", 1, &after),
            locality("z1", 2, &plain(&[4])),
        ]));
        let changes = changes(&before, &after);
        assert_eq!(addresses(&changes), [(expected.0.to_owned(), expected.1)]);
        assert_eq!(changes.priorities, [0]);
        assert!(changes.reshaped.is_empty(), "{after}");
    }
}

#[test]
fn d64_localities_weights_and_settings_are_changes_of_their_own() {
    let z0 = || locality("z0", 1, &plain(&[1, 2]));
    let z1 = || locality("z1", 2, &plain(&[3]));
    let before = json!({"endpoints": [z0(), z1()]});
    for after in [
        json!({"endpoints": [locality("z0", 3, &plain(&[1, 2])), z1()]}),
        json!({"endpoints": [z0()]}),
        json!({"endpoints": [z0(), z1(), locality("z2", 1, &plain(&[]))]}),
        json!({"endpoints": [z1(), z0()]}),
        json!({"endpoints": [z0(), z1()], "policy": {"overprovisioning_factor": 150}}),
        json!({"endpoints": [z0(), z1()], "policy": {"weighted_priority_health": true}}),
    ] {
        let changes = changes(&before, &after);
        assert_eq!(changes.priorities, [0], "{after}");
        assert_eq!(changes.reshaped, [0], "{after}");
    }
    // Another order of endpoints is another order of turns, and no more.
    let swapped = json!({"endpoints": [locality("z0", 1, &plain(&[2, 1])), z1()]});
    let swapped = changes(&before, &swapped);
    assert_eq!((swapped.priorities, swapped.reshaped), (vec![0], vec![]));
    let default = json!({"endpoints": [z0(), z1()], "policy": {"overprovisioning_factor": 140}});
    assert!(changes(&before, &default).priorities.is_empty());
}

#[test]
fn d63_what_came_and_what_went_is_told() {
    let before = groups(json!([
        in_priority(0, &plain(&[5, 3, 1])),
        in_priority(1, &plain(&[7]))
    ]));
    let after = groups(json!([in_priority(0, &plain(&[3, 8, 2]))]));
    let changes = changes(&before, &after);
    assert_eq!(changes.added, ["10.0.0.8:80", "10.0.0.2:80"]);
    assert_eq!(
        changes.removed,
        ["10.0.0.1:80", "10.0.0.5:80", "10.0.0.7:80"]
    );
    assert_eq!(changes.priorities, [0, 1]);
    assert_eq!(changes.reshaped, [1], "a priority is gone");
}

/// A priority may be missing, and their order in the assignment does not matter.
#[test]
fn d66_priorities_are_found_by_their_numbers() {
    let mut world = World::new(
        &json!({}),
        &json!([
            in_priority(2, &plain(&[3])),
            in_priority(0, &of_health(&[1], "UNHEALTHY"))
        ]),
    );
    assert_eq!(world.balancer.load().healthy, [0, 0, 100]);
    assert_eq!(world.used(), [3]);
    world.update(&json!([in_priority(0, &plain(&[1]))]));
    assert_eq!(world.balancer.load().healthy, [100]);
    assert_eq!(world.used(), [1]);
    world.update(&json!([in_priority(0, &[]), in_priority(1, &plain(&[2]))]));
    assert_eq!(world.balancer.load().healthy, [0, 100]);
    assert_eq!(world.used(), [2]);
}

/// As Envoy's, an update does not let the first endpoint begin again.
#[test]
fn d63_whose_turn_it_is_outlives_a_change() {
    let four = |lasts: &[u8]| json!([locality("z", 1, &plain(lasts))]);
    let mut world = World::new(&json!({}), &four(&[1, 2, 3]));
    // The first change makes what later ones are followed with.
    world.update(&four(&[1, 2, 3, 4]));
    assert_eq!(world.order(2), [1, 2]);
    world.update(&four(&[1, 2, 3, 4, 5]));
    assert_eq!(world.order(4), [3, 4, 5, 1]);
    // The seventh request has the place of the third, of four.
    world.eject(5, true);
    assert_eq!(world.order(3), [3, 4, 1]);
}

/// Nothing but the weights of localities is another one.
#[test]
fn d64_new_weights_of_localities_are_used() {
    let cluster = json!({"common_lb_config": {"locality_weighted_lb_config": {}}});
    let both = |first: u32, second: u32| {
        json!([
            locality("z0", first, &plain(&[1])),
            locality("z1", second, &plain(&[2]))
        ])
    };
    let mut world = World::new(&cluster, &both(1, 1));
    for (first, second) in [(1, 3), (4, 1), (1, 1), (2, 3)] {
        world.update(&both(first, second));
        let picks = 20 * (first + second) as usize;
        let expected = [(1, 20 * first), (2, 20 * second)];
        assert_eq!(world.counts(picks), expected.into());
    }
}

#[test]
fn d64_the_first_news_of_a_check_reaches_the_priority_of_its_endpoint() {
    let groups = json!([
        in_priority(0, &of_health(&[1], "UNHEALTHY")),
        in_priority(1, &plain(&[2, 3, 4])),
        in_priority(2, &plain(&[5])),
    ]);
    let mut world = World::new(&json!({}), &groups);
    assert_eq!(world.used(), [2, 3, 4]);
    world.eject(3, true);
    assert_eq!(world.used(), [2, 4, 5]);
    world.eject(2, true);
    assert_eq!(world.used(), [4, 5]);
    world.eject(3, false);
    world.eject(2, false);
    assert_eq!(world.used(), [2, 3, 4]);
    // Nothing is known of it.
    let address = "10.9.9.9:80";
    world
        .balancer
        .apply_health(&world.hosts, address, None, world.now);
    assert_eq!(world.used(), [2, 3, 4]);
}

/// An endpoint that goes from one priority to another is found where it is now.
#[test]
fn d63_an_endpoint_may_move_to_another_priority() {
    let with = |first: &[u8], second: &[u8]| {
        json!([
            in_priority(0, &plain(first)),
            in_priority(1, &plain(second))
        ])
    };
    let asked = |world: &mut World, last: u8| {
        let address = format!("10.0.0.{last}:80");
        world.pick(&PickContext {
            override_host: Some(&address),
            ..PickContext::default()
        })
    };
    let mut world = World::new(&json!({}), &with(&[1, 2], &[3]));
    for (first, second) in [(&[1][..], &[2, 3][..]), (&[1, 3], &[2]), (&[1, 2], &[3])] {
        world.update(&with(first, second));
        for last in [1, 2, 3] {
            assert_eq!(asked(&mut world, last), Some(last));
        }
        assert_eq!(world.used(), first);
        // The news of a check goes where the endpoint is.
        first.iter().for_each(|last| world.eject(*last, true));
        assert_eq!(world.used(), second);
        first.iter().for_each(|last| world.eject(*last, false));
    }
    world.update(&with(&[1, 4], &[2]));
    assert_eq!(asked(&mut world, 4), Some(4));
    // What is gone cannot be asked for, nor what is out.
    assert_ne!(asked(&mut world, 3), Some(3));
    world.eject(4, true);
    assert_ne!(asked(&mut world, 4), Some(4));
}

/// A table of hashes is made anew when its priority panics, whatever priority
/// has changed.
#[test]
fn d64_d68_panic_in_one_priority_reaches_the_tables_of_others() {
    for name in ["MAGLEV", "RING_HASH"] {
        let mut first = plain(&[1]);
        first.extend(of_health(&[2, 3], "UNHEALTHY"));
        let with = |health: &str| {
            json!([
                in_priority(0, &first),
                in_priority(1, &of_health(&[4], health))
            ])
        };
        let mut world = World::new(&json!({"lb_policy": name}), &with("HEALTHY"));
        assert_eq!(world.used(), [1, 4], "{name}");
        world.update(&with("UNHEALTHY"));
        assert_eq!(world.used(), [1, 2, 3, 4], "{name}");
        world.update(&with("HEALTHY"));
        assert_eq!(world.used(), [1, 4], "{name}");
        world.eject(4, true);
        assert_eq!(world.used(), [1, 2, 3, 4], "{name}");
    }
}

/// Workers share the endpoints of a priority, and so do copies of all.
#[test]
fn d64_a_priority_that_is_as_it_was_stays_shared() {
    let before = sets(&json!([
        in_priority(0, &plain(&[1])),
        in_priority(1, &plain(&[2]))
    ]));
    let mut after = before.clone();
    let changed = json!([
        in_priority(0, &plain(&[1, 3])),
        in_priority(1, &plain(&[2]))
    ]);
    let message = assignment(&json!({"endpoints": changed}));
    after.update(&message, Duration::ZERO).expect("endpoints");
    let is_shared = |of: usize| Arc::ptr_eq(&before.priorities[of], &after.priorities[of]);
    assert!(!is_shared(0) && is_shared(1));
}
