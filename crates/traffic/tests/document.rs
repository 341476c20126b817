//! `docs/traffic.md` says what the table in `support.rs` says.
#![allow(clippy::expect_used)]

use trunkline_traffic::support::{Level, SUPPORT};

const DOCUMENT: &str = include_str!("../../../docs/traffic.md");
const START: &str = "<!-- made of crates/traffic/src/support.rs -->\n";
const END: &str = "<!-- end -->\n";

/// The part of the page that is made of the table.
fn tables() -> String {
    let mut out = String::new();
    for (name, rows) in SUPPORT {
        out.push_str(&format!(
            "\n### {name}\n\n| what | rules | how |\n|---|---|---|\n"
        ));
        for (what, rules, level) in *rows {
            let how = match level {
                Level::Recorded => "as recorded of Envoy 1.40",
                Level::Documented => "as documented",
                Level::Finding => "refused, with its field",
                Level::Absent => "not there",
            };
            out.push_str(&format!("| {what} | {rules} | {how} |\n"));
        }
    }
    out.push('\n');
    out
}

#[test]
fn the_page_is_made_of_the_table() {
    let (_, rest) = DOCUMENT.split_once(START).expect("where it starts");
    let (page, _) = rest.split_once(END).expect("where it ends");
    let expected = tables();
    assert!(page == expected, "docs/traffic.md is to have:\n{expected}");
}
