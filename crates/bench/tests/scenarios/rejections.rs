//! Clients that reject, and what that means for the others.

use crate::tool::{bench, phase, refused, right};

#[test]
fn what_is_rejected_costs_nothing_else() {
    for flags in [
        "",
        "--mode sotw",
        "--batch 5",
        "--batch 5 --mode sotw",
        "--types eds --ask named --names 20",
    ] {
        let clients = "--clients 4 --nackers 2 --nack-part 0.3";
        let report = bench(&format!("{clients} --resources 20 --changes 40 {flags}"));
        right(&report);
        let changes = phase(&report, "changes");
        let count = |what: &str| changes["count"][what].as_u64().unwrap();
        let (delivered, rejected) = (count("delivered"), count("rejected"));
        // Both reject the same: about a third, and each of them by a NACK.
        assert!((2 * 4..=2 * 20).contains(&rejected), "{flags}: {rejected}");
        assert_eq!(rejected % 2, 0, "{flags}");
        assert!(count("nacks") > 0, "{flags}");
        // The others get all, and they the rest, each change once.
        let good = changes["convergence"]["count"].as_u64().unwrap();
        let nackers = &changes["convergence_of_nackers"]["count"];
        assert_eq!(good % 4, 0, "{flags}");
        assert_eq!(*nackers, good / 2 - rejected, "{flags}");
        assert_eq!(delivered, good + nackers.as_u64().unwrap(), "{flags}");
    }
}

#[test]
fn a_name_that_all_reject_is_not_waited_for() {
    let named = "--clients 3 --resources 20 --nack bench-000003";
    for flags in ["", "--mode sotw"] {
        let report = bench(&format!("{named} --changes 60 {flags}"));
        right(&report);
        let connect = phase(&report, "connect");
        assert_eq!(connect["count"]["rejected"], 3, "{flags}");
        let changes = phase(&report, "changes");
        assert!(changes["count"]["delivered"].as_u64().unwrap() > 0);
    }
}

#[test]
fn a_part_is_a_part_of_something() {
    let said = refused("--nack-part 0.5");
    assert!(said.contains("--nackers"), "{said}");
    let said = refused("--nackers 1 --nack-part 1.5");
    assert!(said.contains("from 0 to 1"), "{said}");
}
