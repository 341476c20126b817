//! Zone aware routing (69).

use std::time::Duration;

use serde_json::json;

use super::{World, assignment, locality, plain, sets};
use crate::balance::policy::ZoneAware;
use crate::balance::zone::ZoneRouting;
use crate::balance::{HostSets, LocalCluster, Locality};

fn config(enabled: f64) -> ZoneAware {
    ZoneAware {
        enabled,
        ..ZoneAware::default()
    }
}

/// The locality that these random numbers choose; each of them is drawn.
fn choose(routing: &ZoneRouting, enabled: f64, numbers: &[u64]) -> Option<usize> {
    let mut numbers = numbers.iter();
    let mut random = || *numbers.next().expect("one more number");
    let chosen = routing.choose(&config(enabled), &mut random);
    assert_eq!(numbers.next(), None, "a number too many");
    chosen
}

fn residual(local: Option<usize>, local_share: u64, sums: &[u64]) -> ZoneRouting {
    ZoneRouting::Residual {
        local,
        local_share,
        sums: sums.to_vec(),
    }
}

#[test]
fn d69_a_part_stays_local_and_the_rest_goes_where_capacity_is_left() {
    // The documents' example: 62.5 % stay, 0 and 5 and 10 per cent are left.
    let routing = residual(Some(0), 6_250, &[0, 500, 1_500]);
    for (numbers, expected) in [
        (&[0][..], 0),
        (&[6_249], 0),
        (&[16_249], 0),
        (&[6_250, 0], 1),
        (&[6_250, 499], 1),
        (&[9_999, 500], 2),
        (&[9_999, 1_499], 2),
        (&[9_999, 1_500], 1),
    ] {
        assert_eq!(
            choose(&routing, 100.0, numbers),
            Some(expected),
            "{numbers:?}"
        );
    }
    // Who has no endpoints in its own zone draws for the others only.
    let routing = residual(None, 0, &[250, 1_000]);
    assert_eq!(choose(&routing, 100.0, &[249]), Some(0));
    assert_eq!(choose(&routing, 100.0, &[250]), Some(1));
    // With nothing left anywhere any zone will do.
    let routing = residual(Some(0), 10, &[0, 0, 0]);
    assert_eq!(choose(&routing, 100.0, &[10, 4]), Some(1));
    assert_eq!(choose(&routing, 100.0, &[9_999, 5]), Some(2));
}

#[test]
fn d69_routing_by_zone_may_be_for_a_part_of_requests() {
    let local = ZoneRouting::Local(2);
    assert_eq!(choose(&local, 100.0, &[]), Some(2));
    for (number, expected) in [
        (0, Some(2)),
        (29, Some(2)),
        (30, None),
        (99, None),
        (129, Some(2)),
    ] {
        assert_eq!(choose(&local, 30.0, &[number]), expected, "{number}");
    }
    assert_eq!(choose(&local, 0.0, &[0]), None);
    // Where the zone does not matter no number is drawn.
    assert_eq!(choose(&ZoneRouting::Plain, 30.0, &[]), None);
}

fn local(counts: &[(&str, &[u8])]) -> LocalCluster {
    let groups = counts
        .iter()
        .map(|(zone, lasts)| locality(zone, 0, &plain(lasts)));
    LocalCluster {
        hosts: sets(&json!(groups.collect::<Vec<_>>())),
        locality: Locality {
            zone: "z0".to_owned(),
            ..Locality::default()
        },
    }
}

fn routing(upstream: &[(&str, &[u8])], own: &[(&str, &[u8])], least: u64) -> ZoneRouting {
    let groups = upstream
        .iter()
        .map(|(zone, lasts)| locality(zone, 0, &plain(lasts)));
    let hosts: HostSets = sets(&json!(groups.collect::<Vec<_>>()));
    let config = ZoneAware {
        min_cluster_size: least,
        ..ZoneAware::default()
    };
    ZoneRouting::new(&hosts.priorities[0], Some(&local(own)), &config, 50.0)
}

#[test]
fn d69_shares_are_worked_out_as_in_the_documents() {
    let own: &[(&str, &[u8])] = &[("z0", &[1, 2]), ("z1", &[3, 4]), ("z2", &[5])];
    // Here 40, 40 and 20 per cent, there 25, 50 and 25.
    let there: &[(&str, &[u8])] = &[("z0", &[1]), ("z1", &[2, 3]), ("z2", &[4])];
    assert_eq!(
        routing(there, own, 4),
        residual(Some(0), 6_250, &[0, 1_000, 1_500])
    );
    // Fewer than the least number of endpoints.
    assert_eq!(routing(there, own, 5), ZoneRouting::Plain);
    // As large a share there as here: all stay.
    let there: &[(&str, &[u8])] = &[("z1", &[1, 2]), ("z0", &[3, 4]), ("z2", &[5])];
    assert_eq!(routing(there, own, 4), ZoneRouting::Local(1));
    // One zone only, or nobody known here.
    assert_eq!(routing(&there[..1], own, 1), ZoneRouting::Plain);
    assert_eq!(routing(there, &[], 1), ZoneRouting::Plain);
}

/// After an update a zone is the one of its name, wherever it now stands.
#[test]
fn d63_d69_zones_that_change_places_are_told_apart() {
    let zones = |names: [&str; 2]| {
        json!([
            locality(names[0], 0, &plain(&[1, 2, 3])),
            locality(names[1], 0, &plain(&[4, 5, 6])),
        ])
    };
    let own = local(&[("z0", &[1]), ("z1", &[2])]);
    let mut world = World::with_local(&json!({}), &zones(["z0", "z1"]), Some(own));
    assert_eq!(world.used(), [1, 2, 3]);
    for _ in 0..2 {
        world.update(&zones(["z1", "z0"]));
        assert_eq!(world.used(), [4, 5, 6]);
        world.update(&zones(["z0", "z1"]));
        assert_eq!(world.used(), [1, 2, 3]);
        // The same endpoints in their zones, the other zone first.
        let swapped = json!([
            locality("z1", 0, &plain(&[4, 5, 6])),
            locality("z0", 0, &plain(&[1, 2, 3])),
        ]);
        world.update(&swapped);
        assert_eq!(world.used(), [1, 2, 3]);
    }
    let read = HostSets::read(&assignment(&json!({})), Duration::ZERO).expect("nothing");
    assert_eq!(read.hosts().count(), 0);
}
