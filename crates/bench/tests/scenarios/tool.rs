//! Runs the tool, and looks into its report.

use std::process::Command;

use serde_json::Value;

/// Runs the tool; its report.
pub(crate) fn bench(flags: &str) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_trunkline-bench"))
        .args(flags.split_whitespace())
        .args(["-o", "json"])
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{flags}: {error}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Runs the tool with flags that it does not take; what it says.
pub(crate) fn refused(flags: &str) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_trunkline-bench"))
        .args(flags.split_whitespace())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2), "{flags}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

pub(crate) fn phase<'a>(report: &'a Value, name: &str) -> &'a Value {
    let phases = report["phases"].as_array().unwrap();
    phases.iter().find(|phase| phase["name"] == name).unwrap()
}

/// All that clients held was right, and nothing failed.
pub(crate) fn right(report: &Value) {
    for (what, number) in report["check"].as_object().unwrap() {
        assert_eq!(number, 0, "{what}: {report:#}");
    }
    for phase in report["phases"].as_array().unwrap() {
        for fault in ["broken", "refused", "unreadable"] {
            assert_eq!(phase["count"][fault], 0, "{fault}: {report:#}");
        }
    }
}
