//! Localities by weight (70), and what panic makes of them.

use serde_json::{Value, json};

use super::{PickContext, World, locality, of_health, plain};

fn weighted() -> Value {
    json!({"common_lb_config": {"locality_weighted_lb_config": {}}})
}

#[test]
fn d70_localities_get_their_weights() {
    let both = json!([
        locality("z0", 1, &plain(&[1, 2])),
        locality("z1", 3, &plain(&[3]))
    ]);
    let mut world = World::new(&weighted(), &both);
    assert_eq!(world.counts(80), [(1, 10), (2, 10), (3, 60)].into());
}

/// Of three endpoints one is left: 3 * 1.4 / 3. Of four, three: all of its weight.
#[test]
fn d70_a_locality_without_some_of_its_endpoints_weighs_less() {
    let groups = |health: &str| {
        let mut first = plain(&[1]);
        first.extend(of_health(&[2, 3], health));
        json!([
            locality("z0", 15, &first),
            locality("z1", 7, &plain(&[4, 5, 6, 7]))
        ])
    };
    let mut world = World::new(&weighted(), &groups("UNHEALTHY"));
    assert_eq!(world.counts(140)[&1], 70);
    // What drains does not count as missing.
    world.update(&groups("DRAINING"));
    assert_eq!(world.counts(220)[&1], 150);
    world.update(&groups("UNHEALTHY"));
    assert_eq!(world.counts(140)[&1], 70);
    world.update(&groups("HEALTHY"));
    let counts = world.counts(220);
    assert_eq!(counts[&1] + counts[&2] + counts[&3], 150);
}

#[test]
fn d70_a_locality_without_endpoints_gets_nothing_until_it_has_some() {
    let groups = |health: &str| {
        json!([
            locality("z0", 1, &plain(&[1, 2, 3])),
            locality("z1", 1, &of_health(&[4], health)),
        ])
    };
    let mut world = World::new(&weighted(), &groups("HEALTHY"));
    for _ in 0..3 {
        world.eject(4, true);
        assert_eq!(world.counts(60), [(1, 20), (2, 20), (3, 20)].into());
        world.eject(4, false);
        assert_eq!(world.counts(60)[&4], 30);
        world.update(&groups("UNHEALTHY"));
        assert_eq!(world.counts(60), [(1, 20), (2, 20), (3, 20)].into());
        world.update(&groups("HEALTHY"));
        assert_eq!(world.counts(60)[&4], 30);
    }
}

/// A real Envoy gives all to the one that has a weight, and to each endpoint the
/// same where none has.
#[test]
fn d70_localities_without_weight_get_nothing_beside_one_that_has() {
    let groups = |weight| {
        json!([
            locality("z0", weight, &plain(&[1])),
            locality("z1", 0, &plain(&[2, 3]))
        ])
    };
    let mut world = World::new(&weighted(), &groups(3));
    assert_eq!(world.used(), [1]);
    let mut world = World::new(&weighted(), &groups(0));
    assert_eq!(world.counts(90), [(1, 30), (2, 30), (3, 30)].into());
}

/// As a real Envoy: with hashes, what has no weight has no place in the table.
#[test]
fn d70_a_table_of_hashes_has_none_without_weight() {
    for name in ["MAGLEV", "RING_HASH"] {
        let mut cluster = weighted();
        cluster["lb_policy"] = name.into();
        let groups = |weight| {
            json!([
                locality("z0", weight, &plain(&[1])),
                locality("z1", 0, &plain(&[2, 3]))
            ])
        };
        assert_eq!(World::new(&cluster, &groups(3)).used(), [1], "{name}");
        let mut world = World::new(&cluster, &groups(0));
        assert_eq!(world.pick(&PickContext::default()), None, "{name}");
    }
}

/// Degraded endpoints have localities of their own.
#[test]
fn d67_d70_degraded_endpoints_are_chosen_by_locality_as_well() {
    let groups = json!([
        locality("z0", 1, &of_health(&[1], "DEGRADED")),
        locality("z1", 2, &of_health(&[2], "DEGRADED")),
    ]);
    let mut world = World::new(&weighted(), &groups);
    assert_eq!(world.counts(90), [(1, 30), (2, 60)].into());
    world.eject(2, true);
    assert_eq!(world.used(), [1]);
}

/// In panic neither weights nor zones matter.
#[test]
fn d68_d70_panic_is_above_the_weights_of_localities() {
    let groups = json!([
        locality("z0", 1, &plain(&[1])),
        locality("z1", 100, &of_health(&[2, 3, 4], "UNHEALTHY")),
    ]);
    let mut world = World::new(&weighted(), &groups);
    assert_eq!(
        world.counts(40),
        [(1, 10), (2, 10), (3, 10), (4, 10)].into()
    );
}

#[test]
fn d68_in_panic_requests_may_be_refused() {
    let zones = |fails: bool| json!({"common_lb_config": {"zone_aware_lb_config": {"fail_traffic_on_panic": fails}}});
    let groups = |health: &str| {
        let mut all = plain(&[1]);
        all.extend(of_health(&[2, 3], health));
        json!([locality("z0", 0, &all)])
    };
    let mut world = World::new(&zones(true), &groups("UNHEALTHY"));
    assert_eq!(world.pick(&PickContext::default()), None);
    world.update(&groups("HEALTHY"));
    assert_eq!(world.used(), [1, 2, 3]);
    assert_eq!(
        World::new(&zones(false), &groups("UNHEALTHY")).used(),
        [1, 2, 3]
    );
}

/// Of a locality that is given twice in a priority, endpoints are put together,
/// and the last weight counts: 5 to 3, as a real Envoy has it.
#[test]
fn d70_a_locality_that_is_given_twice_is_one() {
    let groups = json!([
        locality("z0", 1, &plain(&[1])),
        locality("z0", 5, &plain(&[2])),
        locality("z1", 3, &plain(&[3])),
        locality("z1", 0, &plain(&[4])),
    ]);
    let mut world = World::new(&weighted(), &groups);
    assert_eq!(
        world.counts(160),
        [(1, 50), (2, 50), (3, 30), (4, 30)].into()
    );
}
