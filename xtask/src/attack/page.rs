//! The table in docs/security.md, between its markers. An attack that was not
//! made anew keeps its row.

use std::fs;

use crate::bench;
use crate::failure::{Failure, Result};
use crate::workspace::Workspace;

const PAGE: &str = "docs/security.md";
const BEGIN: &str = "<!-- written by `cargo xtask attack --page` -->\n";
const END: &str = "<!-- end of the table -->\n";

/// Writes the rows of a table into that of the page.
pub(super) fn write(workspace: &Workspace, table: &str) -> Result<()> {
    let page = workspace.read(PAGE)?;
    let measured = bench::measured_on(workspace)?;
    let written = replace(&page, table, &measured).ok_or_else(|| {
        Failure::new(format!("{PAGE} has no place for the table"))
            .remedy(format!("put {BEGIN:?} and {END:?} into it"))
    })?;
    fs::write(workspace.root().join(PAGE), written)
        .map_err(|error| Failure::new(format!("cannot write {PAGE}: {error}")))?;
    println!("written to {PAGE}");
    Ok(())
}

/// The page with a table that has the new rows; none if it has no markers.
fn replace(page: &str, table: &str, measured: &str) -> Option<String> {
    let (before, rest) = page.split_once(BEGIN)?;
    let (old, after) = rest.split_once(END)?;
    let table = merge(old, table);
    Some(format!(
        "{before}{BEGIN}\nLast measured: {measured}.\n\n{table}\n{END}{after}"
    ))
}

/// The new table, with the rows of the old one that it does not have at their
/// places.
fn merge(old: &str, new: &str) -> String {
    let rows = |text: &str| -> Vec<(String, String)> {
        let rows = text
            .lines()
            .filter_map(|line| Some((name(line)?, line.to_owned())));
        rows.collect()
    };
    let (mut merged, fresh) = (rows(old), rows(new));
    for (name, line) in fresh {
        match merged.iter_mut().find(|(known, _)| *known == name) {
            Some(row) => row.1 = line,
            None => merged.push((name, line)),
        }
    }
    let head = new.lines().take(2).map(str::to_owned);
    let rows = merged.into_iter().map(|(_, line)| line);
    head.chain(rows).map(|line| line + "\n").collect()
}

/// The name of the attack in a row.
fn name(line: &str) -> Option<String> {
    let (_, rest) = line.strip_prefix('|')?.split_once("| `")?;
    let (name, _) = rest.split_once('`')?;
    Some(name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "| # | attack | verdict |\n|---|---|---|\n";

    #[test]
    fn rows_that_were_not_measured_stay() {
        let old = format!("{HEAD}| 1 | `a`: x | old |\n| 2 | `b`: y | old |\n");
        let new = format!("{HEAD}| 2 | `b`: y | new |\n| 3 | `c`: z | new |\n");
        let page = format!("# Page\n{BEGIN}{old}{END}after\n");
        let written = replace(&page, &new, "now").unwrap();
        let table =
            format!("{HEAD}| 1 | `a`: x | old |\n| 2 | `b`: y | new |\n| 3 | `c`: z | new |\n");
        assert_eq!(
            written,
            format!("# Page\n{BEGIN}\nLast measured: now.\n\n{table}\n{END}after\n")
        );
        assert_eq!(replace("# Page\n", &new, "now"), None);
    }
}
