//! Runs every scenario under `scenarios/` and shows those that fail.

use std::path::Path;

use testkit::scenario;

#[test]
fn every_scenario_holds() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios");
    let (mut ran, mut failed) = (0, Vec::new());
    for path in scenario::files(&folder).unwrap() {
        let text = std::fs::read_to_string(&path).unwrap();
        let shown = path.strip_prefix(&folder).unwrap().display().to_string();
        let (count, reports) = scenario::run_text(&shown, &text);
        ran += count;
        failed.extend(reports.iter().map(ToString::to_string));
    }
    assert!(ran > 0, "there are no scenarios");
    assert!(
        failed.is_empty(),
        "{} of {ran} scenarios fail\n\n{}",
        failed.len(),
        failed.join("\n")
    );
    println!("{ran} scenarios");
}
