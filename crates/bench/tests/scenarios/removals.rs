//! Resources that are taken away, and come back.

use serde_json::Value;

use crate::tool::{bench, phase, refused, right};

const SMALL: &str = "--clients 6 --resources 20 --changes 20 --removals 0.25";

/// Every change arrived at so many clients, a quarter of them as a removal.
fn arrived(report: &Value, clients: u64, what: &str) {
    right(report);
    let changes = phase(report, "changes");
    assert_eq!(changes["count"]["delivered"], 20 * clients, "{what}");
    assert_eq!(changes["convergence"]["count"], 20 * clients, "{what}");
    assert_eq!(changes["count"]["removed"], 5 * clients, "{what}");
    assert_eq!(changes["count"]["overtaken"], 0, "{what}");
}

#[test]
fn every_client_sees_every_removal() {
    for flags in [
        "",
        "--mode sotw",
        "--light",
        "--light --mode sotw",
        "--floor",
        "--floor --mode sotw --light",
        "--types eds --ask named --names 20",
        "--types cds,eds,lds,rds --change lds --light",
        "--types vhds --prefix outbound/host --ask named --names 20",
        "--types vhds --prefix outbound/host --ask named --names 20 --light",
    ] {
        arrived(&bench(&format!("{SMALL} {flags}")), 6, flags);
    }
}

#[test]
fn a_variant_is_removed_for_its_clients_only() {
    for flags in [
        "",
        "--mode sotw",
        "--light",
        "--light --mode sotw",
        "--ask named --names 20",
        "--ask named --names 20 --light",
        "--ask named --names 20 --mode sotw",
    ] {
        let variants = "--categories 6 --variants 3";
        let report = bench(&format!("{SMALL} {variants} {flags}"));
        arrived(&report, 2, flags);
        assert_eq!(phase(&report, "changes")["count"]["needless"], 0, "{flags}");
    }
}

#[test]
fn a_removal_may_be_overtaken_when_changes_do_not_wait() {
    let report = bench(&format!("{SMALL} --rate 2000 --batch 4"));
    right(&report);
    let count = &phase(&report, "changes")["count"];
    let number = |what: &str| count[what].as_u64().unwrap();
    assert!(number("delivered") + number("overtaken") <= 20 * 6);
    assert!(number("delivered") > 0);
}

#[test]
fn removals_that_nobody_could_see_are_refused() {
    let said = refused("--removals 0.1 --types eds --mode sotw");
    assert!(said.contains("state of the world does not tell"), "{said}");
    let said = refused("--removals 0.6");
    assert!(said.contains("from 0 to 0.5"), "{said}");
}
