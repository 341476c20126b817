//! Habits of Rust files: a doc comment first, small, nothing half done, no
//! test that never runs, `unsafe` only where it is listed.

use super::{Finding, numbered};

const LONGEST: usize = 500;

/// Files that may hold `unsafe`, each with the reason.
const UNSAFE_ALLOWED: &[(&str, &str)] = &[(
    "crates/cli/src/allocator.rs",
    "declares functions of the allocators that no crate does",
)];

/// What is half done, written so that this file does not hold what it looks
/// for.
const HALF_DONE: &[&str] = &[
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("to", "do!"),
    concat!("unimple", "mented!"),
];

const NEVER_RUNS: &str = concat!("#[ig", "nore");

pub(super) fn check(path: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    if !text.starts_with("//!") {
        findings.push(Finding::new(
            1,
            "a file opens with a `//!` comment that says what it is",
        ));
    }
    findings.extend(size(text.lines().count()));
    let unsafe_allowed = UNSAFE_ALLOWED.iter().any(|(allowed, _)| *allowed == path);
    for (number, line) in numbered(text) {
        for word in HALF_DONE.iter().filter(|word| line.contains(**word)) {
            findings.push(Finding::new(
                number,
                format!("{word}: nothing half done stays"),
            ));
        }
        let code = code(line);
        if code.contains(NEVER_RUNS) {
            findings.push(Finding::new(number, "a test that never runs"));
        }
        if !unsafe_allowed && has_word(&code, "unsafe") {
            findings.push(Finding::new(
                number,
                "`unsafe` outside the places listed in xtask/src/tidy/source.rs",
            ));
        }
    }
    findings
}

fn size(lines: usize) -> Option<Finding> {
    let what = || format!("{lines} lines, more than {LONGEST}: does it still hold one thing?");
    (lines > LONGEST).then(|| Finding::new(0, what()))
}

/// The line without its comment and without the insides of its strings. A
/// string that spans lines is not followed.
fn code(line: &str) -> String {
    let mut code = String::with_capacity(line.len());
    let mut chars = line.chars().peekable();
    let mut in_string = false;
    while let Some(c) = chars.next() {
        match c {
            '\\' if in_string => {
                chars.next();
            }
            '"' => in_string = !in_string,
            '/' if !in_string && chars.peek() == Some(&'/') => break,
            _ if in_string => {}
            _ => code.push(c),
        }
    }
    code
}

fn has_word(code: &str, word: &str) -> bool {
    code.split(|c: char| !c.is_alphanumeric() && c != '_')
        .any(|found| found == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: [usize; 0] = [];

    fn lines(text: &str) -> Vec<usize> {
        check("a.rs", text)
            .iter()
            .map(|finding| finding.line)
            .collect()
    }

    #[test]
    fn the_first_line_is_a_doc_comment() {
        assert_eq!(lines("//! What it is.\nfn f() {}"), NONE);
        assert_eq!(lines("fn f() {}"), [1]);
    }

    #[test]
    fn half_done_work_is_found() {
        assert_eq!(lines(concat!("//! x\n// TO", "DO: later")), [2]);
    }

    #[test]
    fn unsafe_is_found_in_code_only() {
        assert_eq!(lines("//! x\nunsafe { f() }"), [2]);
        assert_eq!(
            lines("//! unsafe\n#![forbid(unsafe_code)]\nlet a = \"unsafe\"; // unsafe"),
            NONE
        );
    }

    #[test]
    fn ignored_tests_are_found() {
        assert_eq!(lines(concat!("//! x\n    #[ig", "nore = \"slow\"]")), [2]);
    }

    #[test]
    fn long_files_fail() {
        assert!(size(500).is_none());
        assert!(size(501).is_some());
    }
}
