//! The table "Where is …" of ARCHITECTURE.md names files and items that exist.
//!
//! A row is a question, a file, and the functions of the answer. A function is
//! there if a file that the row names, or one in a folder that it names,
//! declares it; a type may be declared anywhere.

use std::collections::BTreeSet;

use super::{Finding, numbered};
use crate::failure::Result;
use crate::workspace::Workspace;

/// The page whose table is checked.
const PAGE: &str = "ARCHITECTURE.md";

/// Words before the name of an item that is declared.
const DECLARATIONS: &[&str] = &[
    "fn", "struct", "enum", "trait", "const", "static", "mod", "type",
];

/// Checks the table against the sources.
pub(super) fn check(workspace: &Workspace, files: &[String]) -> Result<Vec<Finding>> {
    let page = workspace.read(PAGE)?;
    let mut types = BTreeSet::new();
    for path in files.iter().filter(|path| path.ends_with(".rs")) {
        let names = declarations(&workspace.read(path)?).into_iter();
        types.extend(names.filter(|name| is_type(name)));
    }
    let mut findings = Vec::new();
    for (line, row) in rows(&page) {
        let mut declared = types.clone();
        for path in named_files(row, files) {
            declared.extend(declarations(&workspace.read(path)?));
        }
        let missing = unknown_words(row, files, &declared);
        findings.extend(missing.map(|word| Finding::new(line, format!("there is no `{word}`"))));
    }
    Ok(findings)
}

/// The rows of the page whose second cell is a path of the tree.
fn rows(page: &str) -> impl Iterator<Item = (usize, &str)> {
    numbered(page).filter(|(_, line)| {
        let file = line.split('|').nth(2).unwrap_or_default().trim();
        file.starts_with("`crates/") || file.starts_with("`xtask/")
    })
}

/// The files that a row names, by a path from the root, a folder, or a name
/// "beside it".
fn named_files<'a>(row: &str, files: &'a [String]) -> Vec<&'a String> {
    let words: Vec<&str> = code_words(row).filter(|word| is_path(word)).collect();
    let is_named = |file: &str| {
        words.iter().any(|word| {
            let tail = format!("/{word}");
            file == *word || file.ends_with(&tail) || file.starts_with(&format!("{word}/"))
        })
    };
    let sources = files.iter().filter(|file| file.ends_with(".rs"));
    sources.filter(|file| is_named(file)).collect()
}

/// The words of a row that are neither files nor declared in its files.
fn unknown_words<'a>(
    row: &'a str,
    files: &'a [String],
    declared: &'a BTreeSet<String>,
) -> impl Iterator<Item = &'a str> {
    code_words(row).filter(move |word| match is_path(word) {
        true => {
            let folder = format!("/{word}/");
            let tail = format!("/{word}");
            !files.iter().any(|file| {
                let file = format!("/{file}");
                file.ends_with(&tail) || file.contains(&folder)
            })
        }
        false => is_item(word) && word.split("::").any(|part| !declared.contains(part)),
    })
}

/// The words in backticks.
fn code_words(row: &str) -> impl Iterator<Item = &str> {
    row.split('`').skip(1).step_by(2)
}

fn is_path(word: &str) -> bool {
    word.contains('/') || word.ends_with(".rs")
}

fn is_type(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_uppercase())
}

/// Returns whether a word is a name of Rust, and not a command or a value.
fn is_item(word: &str) -> bool {
    word.split("::").all(|part| {
        let is_name = part.chars().all(|c| c == '_' || c.is_ascii_alphanumeric());
        is_name && part.starts_with(|c: char| c == '_' || c.is_ascii_alphabetic())
    })
}

/// The names of the items that a source declares.
fn declarations(source: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let words = source.split(|c: char| c != '_' && !c.is_ascii_alphanumeric());
    let mut declares = false;
    for word in words.filter(|word| !word.is_empty()) {
        if declares {
            names.insert(word.to_owned());
        }
        declares = DECLARATIONS.contains(&word);
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unknown(row: &str, source: &str) -> usize {
        let files = ["crates/core/src/order.rs", "crates/core/src/kind/table.rs"];
        let files = files.map(str::to_owned);
        unknown_words(row, &files, &declarations(source)).count()
    }

    #[test]
    fn rows_name_files_and_items_that_exist() {
        let row = "| a removal | `crates/core/src/order.rs` | `Order::defer`; `kind`, `table.rs` beside it |";
        let source = "struct Order; impl Order { fn defer(&self) {} } mod kind;";
        assert_eq!(unknown(row, source), 0);
        assert_eq!(unknown(row, "struct Order; mod kind;"), 1);
        assert_eq!(unknown("| x | `crates/core/src/other.rs` |", ""), 1);
        assert_eq!(
            unknown("| x | `crates/core/src/order.rs` | `a b`, `--c` |", ""),
            0
        );
    }

    #[test]
    fn a_row_has_the_sources_of_its_files_and_folders() {
        let files = ["crates/a/src/x.rs", "crates/a/src/y/z.rs", "docs/a.md"];
        let files = files.map(str::to_owned);
        let row = "| q | `crates/a/src/x.rs` | `f` |";
        assert_eq!(named_files(row, &files), [&files[0]]);
        let row = "| q | `crates/a/src/x.rs` | `f` in `crates/a/src/y`, `z.rs` |";
        assert_eq!(named_files(row, &files), [&files[0], &files[1]]);
        assert_eq!(rows("| q | `crates/a` | x |\n| a | b |\ntext").count(), 1);
    }
}
