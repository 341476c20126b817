//! Finds the scenarios and tests that prove a rule, by reading the tree's own
//! files.

use std::fs;
use std::io;
use std::path::Path;

use crate::scenario;

/// A scenario or test that proves a rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Evidence {
    /// `S12`.
    pub rule: String,
    /// The file, from the root of the tree.
    pub file: String,
    /// The scenario's title, or the test's name.
    pub what: String,
}

/// Reads every scenario and every Rust file under `crates`.
///
/// # Errors
/// If a file cannot be read, or a scenario is not understood.
pub fn find(root: &Path) -> io::Result<Vec<Evidence>> {
    let mut found = Vec::new();
    visit(root, &root.join("crates"), &mut found)?;
    found.sort();
    Ok(found)
}

fn visit(root: &Path, folder: &Path, found: &mut Vec<Evidence>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() {
            if name != "target" && !name.starts_with('.') {
                visit(root, &path, found)?;
            }
            continue;
        }
        let inside = path.strip_prefix(root).unwrap_or(&path);
        let file = inside.to_string_lossy().replace('\\', "/");
        if file.contains("/tests/scenarios/") && file.ends_with(".txt") {
            found.extend(in_scenarios(&file, &fs::read_to_string(&path)?)?);
        } else if file.ends_with(".rs") {
            found.extend(in_source(&file, &fs::read_to_string(&path)?));
        }
    }
    Ok(())
}

fn in_scenarios(file: &str, text: &str) -> io::Result<Vec<Evidence>> {
    let scripts = scenario::parse(text)
        .map_err(|fault| io::Error::other(format!("{file}:{}: {}", fault.line, fault.what)))?;
    let shown = scripts.iter().flat_map(|script| {
        script.rules.iter().map(|rule| Evidence {
            rule: rule.clone(),
            file: file.to_owned(),
            what: script.title.clone(),
        })
    });
    Ok(shown.collect())
}

/// Tests by name, and by a comment before or inside of them.
fn in_source(file: &str, text: &str) -> Vec<Evidence> {
    let mut found = Vec::new();
    let mut add = |rule: String, what: &str| {
        found.push(Evidence {
            rule,
            file: file.to_owned(),
            what: what.to_owned(),
        });
    };
    let (mut is_test, mut test) = (false, "");
    let mut waiting: Vec<String> = Vec::new();
    for line in text.lines().map(str::trim_start) {
        let starts = ["#[test]", "#[tokio::test", "proptest! {"];
        is_test |= starts.iter().any(|start| line.starts_with(start));
        if let Some(rules) = line.strip_prefix(concat!("// ", "rule: ")) {
            let rules = rules.split([' ', ',']).filter_map(rule);
            match is_test || test.is_empty() {
                true => waiting.extend(rules),
                false => rules.for_each(|rule| add(rule, test)),
            }
        }
        let line = line.strip_prefix("async ").unwrap_or(line);
        if let (Some(rest), true) = (line.strip_prefix("fn "), is_test) {
            test = rest.split(['(', '<']).next().unwrap_or_default();
            is_test = false;
            for rule in test.split('_').map_while(rule).chain(waiting.drain(..)) {
                add(rule, test);
            }
        }
    }
    found
}

/// A rule's number in either case.
fn rule(text: &str) -> Option<String> {
    let upper = text.to_ascii_uppercase();
    let digits = upper.strip_prefix(['S', 'C', 'E', 'M'])?;
    let number = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    number.then_some(upper)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_name_rules() {
        let text = concat!(
            "#[test]\nfn s18_s19_lists() {}\n",
            "fn s20_not_a_test() {}\n",
            "#[test]\n// rule: C11, M2\nfn other() {\n    // rule: E9\n}\n",
            "#[test]\nfn some_s21() {}\n",
            "#[tokio::test(start_paused = true)]\nasync fn c22_waits() {}\n",
        );
        let found: Vec<_> = in_source("f", text)
            .into_iter()
            .map(|e| (e.rule, e.what))
            .collect();
        let pair = |rule: &str, what: &str| (rule.to_owned(), what.to_owned());
        assert_eq!(
            found,
            [
                pair("S18", "s18_s19_lists"),
                pair("S19", "s18_s19_lists"),
                pair("C11", "other"),
                pair("M2", "other"),
                pair("E9", "other"),
                pair("C22", "c22_waits"),
            ]
        );
    }

    #[test]
    fn scenarios_name_rules() {
        let found = in_scenarios("f", "title: t\nrules: S1 S2\n").unwrap();
        assert_eq!(found.len(), 2);
        assert!(in_scenarios("f", "nonsense").is_err());
    }
}
