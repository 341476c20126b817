//! Variants of resources, and clients of several categories (TP2).

use crate::tool::{bench, phase, refused, right};

const SMALL: &str = "--clients 12 --resources 20 --categories 6 --variants 3";

#[test]
fn a_change_of_a_variant_arrives_at_its_clients_and_at_no_other() {
    for flags in ["", "--mode sotw", "--light", "--light --mode sotw"] {
        for ask in [
            "",
            "--told-by parameters",
            "--ask named --names 20",
            "--ask named --names 20 --told-by metadata",
        ] {
            let report = bench(&format!("{SMALL} --changes 10 {ask} {flags}"));
            right(&report);
            let changes = phase(&report, "changes");
            // Four of the twelve clients are for each variant.
            assert_eq!(changes["count"]["delivered"], 4 * 10, "{flags} {ask}");
            assert_eq!(changes["count"]["responses"], 4 * 10, "{flags} {ask}");
            assert_eq!(changes["count"]["needless"], 0, "{flags} {ask}");
        }
    }
}

#[test]
fn constraints_are_evaluated_for_categories_and_not_for_clients() {
    let evaluated = |clients: usize| {
        let flags = "--resources 20 --categories 6 --variants 3 --changes 30";
        let report = bench(&format!("--clients {clients} {flags}"));
        right(&report);
        assert_eq!(phase(&report, "connect")["work"]["views"], 6);
        ["connect", "changes"].map(|name| phase(&report, name)["work"]["evaluations"].clone())
    };
    let few = evaluated(6);
    // Of three variants, a category looks at one, two or three.
    assert_eq!(few[0], 20 * 2 * (1 + 2 + 3));
    assert_eq!(evaluated(24), few);
}

#[test]
fn clients_of_every_category_come_back_to_their_variants() {
    for flags in ["", "--light"] {
        let storm = "--reconnect-storm 1 --changed-meanwhile 0.5";
        let report = bench(&format!("{SMALL} --changes 0 {storm} {flags}"));
        right(&report);
        let storm = phase(&report, "reconnect storm");
        // Half of sixty variants, and those of one more resource.
        assert_eq!(storm["count"]["delivered"], 4 * (30 + 3), "{flags}");
    }
}

#[test]
fn variants_without_clients_are_refused() {
    let said = refused("--variants 3 --categories 2");
    assert!(said.contains("at least as many --categories"), "{said}");
    let said = refused("--variants 2 --categories 2 --told-by locators");
    assert!(said.contains("of a wildcard by the node only"), "{said}");
    let said = refused("--variants 2 --categories 2 --floor");
    assert!(said.contains("--floor gives everybody the same"), "{said}");
}
