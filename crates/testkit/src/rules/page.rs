//! The page that shows which rules hold.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::{Evidence, Family, Rule};

const HEAD: &str = "# Rules

What the protocol asks for, and what shows that it is kept: scenarios by file with their number, tests by name. `cargo xtask rules` writes this page from the tests.
";

/// The page, as it belongs under `docs`.
#[must_use]
pub fn page(families: &[Family], evidence: &[Evidence]) -> String {
    let mut page = HEAD.to_owned();
    for family in families {
        let later = family.rules.iter().filter(|rule| rule.later.is_some());
        let shown = |rule: &&Rule| evidence.iter().any(|e| e.rule == rule.number);
        let held = family.rules.iter().filter(shown).count();
        let _ = write!(
            page,
            "\n## {}\n\n{held} shown, {} for later work.\n\n| rule | says | shown by |\n|---|---|---|\n",
            family.title,
            later.filter(|rule| !shown(rule)).count(),
        );
        for rule in &family.rules {
            let _ = writeln!(
                page,
                "| {} | {} | {} |",
                rule.number,
                rule.summary.replace('|', "\\|"),
                shown_by(rule, evidence)
            );
        }
    }
    page
}

fn shown_by(rule: &Rule, evidence: &[Evidence]) -> String {
    let own = evidence.iter().filter(|e| e.rule == rule.number);
    let mut scenarios: BTreeMap<&str, usize> = BTreeMap::new();
    let mut parts = Vec::new();
    for one in own {
        match one.file.ends_with(".txt") {
            true => *scenarios.entry(&one.file).or_default() += 1,
            false => parts.push(format!("[`{}`](../{})", one.what, one.file)),
        }
    }
    let files = scenarios.into_iter().map(|(file, count)| {
        let name = file
            .split_once("/tests/scenarios/")
            .map_or(file, |(_, n)| n);
        format!("[{}](../{file}) {count}", name.trim_end_matches(".txt"))
    });
    let all: Vec<_> = files.chain(parts).collect();
    match (&rule.later, all.is_empty()) {
        (Some(reason), true) => format!("later: {reason}"),
        _ => all.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(number: &str, later: Option<&str>) -> Rule {
        Rule {
            number: number.to_owned(),
            summary: "says".to_owned(),
            later: later.map(str::to_owned),
        }
    }

    #[test]
    fn a_rule_has_a_line_and_what_is_missing_is_a_fault() {
        let families = [Family {
            title: "Servers".to_owned(),
            rules: vec![rule("S1", None), rule("S2", Some("soon")), rule("S3", None)],
        }];
        let evidence = |rule: &str, file: &str| Evidence {
            rule: rule.to_owned(),
            file: file.to_owned(),
            what: "w".to_owned(),
        };
        let found = [
            evidence("S1", "crates/x/tests/scenarios/a/b.txt"),
            evidence("S1", "crates/x/tests/scenarios/a/b.txt"),
            evidence("S1", "crates/x/src/c.rs"),
            evidence("S9", "crates/x/src/c.rs"),
        ];
        let page = page(&families, &found);
        let line = "| S1 | says | [a/b](../crates/x/tests/scenarios/a/b.txt) 2, [`w`](../crates/x/src/c.rs) |";
        assert!(page.contains(line), "{page}");
        assert!(page.contains("| S2 | says | later: soon |"), "{page}");
        let faults = super::super::faults(&families, &found);
        assert_eq!(faults.len(), 2, "{faults:?}");
        assert!(faults[0].starts_with("S3:") && faults[1].starts_with("S9:"));
    }
}
