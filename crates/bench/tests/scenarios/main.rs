//! The tool as it is called, against the library and the floor: small numbers,
//! and only what was received is looked at, never how long it took.
#![allow(clippy::unwrap_used)]

mod rejections;
mod removals;
mod tls;
mod tool;
mod variants;

use std::process::Command;

use serde_json::Value;

use tool::{bench, phase, right};

#[test]
fn every_change_arrives_at_every_client() {
    for flags in ["", "--mode sotw", "--light", "--light --mode sotw"] {
        let report = bench(&format!("--clients 7 --resources 50 --changes 20 {flags}"));
        right(&report);
        let connect = phase(&report, "connect");
        assert_eq!(connect["first_configuration"]["count"], 7, "{flags}");
        let changes = phase(&report, "changes");
        assert_eq!(changes["convergence"]["count"], 7 * 20, "{flags}");
        assert_eq!(changes["count"]["delivered"], 7 * 20, "{flags}");
        assert!(changes["server"]["memory"].as_u64().unwrap() > 0);
    }
}

#[test]
fn every_type_is_asked_for_as_real_clients_do() {
    for flags in [
        "",
        "--per-type",
        "--light",
        "--mode sotw",
        "--light --mode sotw --per-type",
    ] {
        let types = "--types cds,eds,lds,rds --change eds";
        let report = bench(&format!(
            "--clients 3 --resources 10 --changes 5 {types} {flags}"
        ));
        right(&report);
        assert_eq!(
            phase(&report, "changes")["count"]["delivered"],
            15,
            "{flags}"
        );
    }
}

#[test]
fn clients_come_back_and_get_what_changed_meanwhile() {
    for flags in ["", "--light"] {
        let storm = "--reconnect-storm 1 --changed-meanwhile 0.2";
        let report = bench(&format!(
            "--clients 5 --resources 50 --changes 0 {storm} {flags}"
        ));
        right(&report);
        let storm = phase(&report, "reconnect storm");
        // Ten that changed, and one more to know the end.
        assert_eq!(storm["count"]["delivered"], 5 * 11, "{flags}");
        assert_eq!(storm["count"]["repeated"], 0, "{flags}");
    }
}

#[test]
fn some_names_and_names_on_demand() {
    let report = bench("--clients 5 --resources 50 --ask named --names 3 --changes 200");
    right(&report);
    assert_eq!(phase(&report, "connect")["count"]["resources"], 15);
    let demand = "--ask demand --demand-rate 50 --duration 0.3 --changes 5";
    let report = bench(&format!("--clients 5 --resources 50 {demand}"));
    right(&report);
    assert!(phase(&report, "idle")["answer"]["count"].as_u64().unwrap() > 0);
}

#[test]
fn bad_clients_do_not_count() {
    // Time for the client that rejects: nobody waits for it.
    let bad = "--nackers 1 --slow-readers 1 --duration 0.5";
    let report = bench(&format!("--clients 3 --resources 20 --changes 5 {bad}"));
    right(&report);
    assert_eq!(phase(&report, "changes")["count"]["delivered"], 15);
    let nacks = |phase: &Value| phase["count"]["nacks"].as_u64().unwrap();
    let phases = report["phases"].as_array().unwrap();
    assert!(phases.iter().map(nacks).sum::<u64>() > 0, "{report:#}");
}

#[test]
fn clients_share_connections_and_say_what_they_are() {
    let shared = "--connections 2 --categories 3 --ramp 0.1";
    right(&bench(&format!(
        "--clients 9 --resources 20 --changes 5 {shared}"
    )));
}

#[test]
fn the_floor_writes_the_same() {
    for flags in ["", "--mode sotw", "--light"] {
        let report = bench(&format!(
            "--floor --clients 4 --resources 20 --changes 10 {flags}"
        ));
        right(&report);
        assert_eq!(phase(&report, "changes")["count"]["delivered"], 40);
    }
}

#[test]
fn a_server_that_is_not_there_is_said_so() {
    let output = Command::new(env!("CARGO_BIN_EXE_trunkline-bench"))
        .args(["127.0.0.1:1", "--driver", "command=true", "--patience", "1"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(error.contains("cannot connect"), "{error}");
}
