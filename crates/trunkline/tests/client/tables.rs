//! Tables of the guides that compare this library with others: each row names
//! tests, and these exist. The guide of the channel also has rows of what is
//! absent.

use std::fs;
use std::path::{Path, PathBuf};

/// A column with this head holds the tests.
const SHOWN_BY: &str = "shown by";

#[test]
fn every_row_of_a_comparison_names_tests_that_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut sources = Vec::new();
    for folder in [
        "tests",
        "src",
        "../core/src",
        "../testkit",
        "../interop/tests",
    ] {
        collect(&root.join(folder), &mut sources);
    }
    let sources: Vec<_> = sources
        .iter()
        .map(|path| fs::read_to_string(path).unwrap())
        .collect();
    let has = |test: &str| {
        let function = format!("fn {test}(");
        sources.iter().any(|source| source.contains(&function))
    };
    for page in ["client.md", "tonic.md"] {
        let text = fs::read_to_string(root.join("../../docs").join(page)).unwrap();
        let rows = rows(&text);
        assert!(rows.len() > 10, "{page} has a comparison");
        for row in rows {
            let is_absent = page == "tonic.md" && row.contains("| no") && row.ends_with("| |");
            let names: Vec<_> = row.split('`').skip(1).step_by(2).collect();
            let tests = names.iter().filter(|name| has(name));
            assert!(
                is_absent || tests.count() > 0,
                "{page} has no test for: {row}"
            );
            let last = row.trim_end_matches('|').rsplit('|').next();
            for name in last.unwrap_or_default().split('`').skip(1).step_by(2) {
                assert!(has(name), "{page} names {name}, which is not there: {row}");
            }
        }
    }
}

/// The rows of tables that say what shows them.
fn rows(text: &str) -> Vec<&str> {
    let mut rows = Vec::new();
    let mut is_inside = false;
    for line in text.lines() {
        is_inside = line.starts_with('|') && (is_inside || line.contains(SHOWN_BY));
        if is_inside && !line.contains(SHOWN_BY) && !line.starts_with("|---") {
            rows.push(line);
        }
    }
    rows
}

fn collect(folder: &Path, sources: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, sources);
        } else if path.extension().is_some_and(|of| of == "rs") {
            sources.push(path);
        }
    }
}
