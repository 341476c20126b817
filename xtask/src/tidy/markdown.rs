//! Documents point at files and headings that exist, and name commands that
//! exist.

use super::{Finding, numbered};
use crate::command::COMMANDS;

pub(super) fn check(path: &str, text: &str, files: &[String]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut fenced = false;
    for (number, line) in numbered(text) {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        let mut say = |what: String| findings.push(Finding::new(number, what));
        for command in named_after(line, "cargo xtask ") {
            if COMMANDS.iter().all(|known| known.name != command) {
                say(format!("there is no `cargo xtask {command}`"));
            }
        }
        for example in named_after(line, "--example ") {
            let file = format!("/examples/{example}.rs");
            if !files.iter().any(|known| known.ends_with(&file)) {
                say(format!("there is no example `{example}`"));
            }
        }
        for target in links(line).filter(|_| !fenced) {
            if !resolves(path, target, text, files) {
                say(format!("the link to `{target}` leads nowhere"));
            }
        }
    }
    findings
}

/// The words that follow each occurrence of a prefix.
fn named_after<'a>(line: &'a str, prefix: &'a str) -> impl Iterator<Item = &'a str> {
    line.split(prefix).skip(1).filter_map(|rest| {
        let word = rest
            .split(|c: char| !c.is_ascii_alphanumeric() && c != '-')
            .next();
        word.filter(|word| !word.is_empty() && !word.starts_with('-'))
    })
}

/// The targets of the line's links, `[text](target)`.
fn links(line: &str) -> impl Iterator<Item = &str> {
    line.split("](")
        .skip(1)
        .filter_map(|rest| rest.split_once(')'))
        .map(|(target, _)| target)
}

fn resolves(from: &str, target: &str, text: &str, files: &[String]) -> bool {
    if target.contains("://") || target.starts_with("mailto:") {
        return true;
    }
    let (file, heading) = target.split_once('#').unwrap_or((target, ""));
    if file.is_empty() {
        return text
            .lines()
            .any(|line| line.starts_with('#') && anchor(line) == heading);
    }
    let wanted = resolve(from, file);
    let folder = format!("{wanted}/");
    files
        .iter()
        .any(|known| *known == wanted || known.starts_with(&folder))
}

/// The path of a link's target from the root of the tree.
fn resolve(from: &str, target: &str) -> String {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            name => parts.push(name),
        }
    }
    parts.join("/")
}

/// The anchor that a heading gets when it is shown as a page.
fn anchor(heading: &str) -> String {
    heading
        .trim_start_matches('#')
        .trim()
        .chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
        .map(|c| {
            if c == ' ' {
                '-'
            } else {
                c.to_ascii_lowercase()
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(text: &str) -> usize {
        let files = ["README.md", "docs/a.md", "crates/x/examples/ads.rs"].map(str::to_owned);
        check("docs/a.md", text, &files).len()
    }

    #[test]
    fn links_resolve_from_the_file_they_stand_in() {
        assert_eq!(
            findings("[r](../README.md) [x](../crates/x) [w](https://example.org)"),
            0
        );
        assert_eq!(findings("[r](README.md)"), 1);
        assert_eq!(findings("```\n[r](README.md)\n```"), 0);
    }

    #[test]
    fn headings_resolve() {
        assert_eq!(findings("# One idea, twice\n[x](#one-idea-twice)"), 0);
        assert_eq!(findings("# One idea\n[x](#another)"), 1);
    }

    #[test]
    fn commands_and_examples_exist() {
        assert_eq!(
            findings("`cargo xtask test --only tidy`, `cargo xtask --help`"),
            0
        );
        assert_eq!(findings("`cargo xtask nothing`"), 1);
        assert_eq!(findings("cargo run --example ads"), 0);
        assert_eq!(findings("cargo run --example none"), 1);
    }
}
