//! The gate: every part in order, then a table of what ran and how long it took.

mod parts;
mod report;

use std::time::Instant;

use lexopt::{Arg, ValueExt};

use crate::failure::{Failure, Result};
use crate::workspace::Workspace;
use parts::{PARTS, Part};
use report::{Outcome, Report};

/// Runs the whole gate, or the parts that are asked for and what they need.
pub(crate) fn command(workspace: &Workspace, mut args: lexopt::Parser) -> Result<()> {
    let mut only: Vec<String> = Vec::new();
    while let Some(arg) = args.next()? {
        match arg {
            Arg::Long("only") => only.push(args.value()?.string()?),
            Arg::Long("list") => {
                list();
                return Ok(());
            }
            other => return Err(other.unexpected().into()),
        }
    }
    let chosen = choose(PARTS, &only)?;
    let report = run(workspace, &chosen);
    print!("{report}");
    if report.failed() == 0 {
        return Ok(());
    }
    Err(Failure::Told)
}

fn list() {
    for part in PARTS {
        println!("{:<10} {}", part.name, part.about);
    }
}

/// The parts with these names and those they need, in the table's order; all
/// of them when no name is given.
fn choose<'a>(parts: &'a [Part], only: &[String]) -> Result<Vec<&'a Part>> {
    if only.is_empty() {
        return Ok(parts.iter().collect());
    }
    if let Some(unknown) = only
        .iter()
        .find(|name| parts.iter().all(|part| part.name != **name))
    {
        return Err(Failure::new(format!("the gate has no part `{unknown}`"))
            .remedy("`cargo xtask test --list` names them"));
    }
    let mut wanted: Vec<&str> = only.iter().map(String::as_str).collect();
    // A part needs only parts that stand before it, so one pass from the end
    // finds everything.
    for part in parts.iter().rev() {
        if wanted.contains(&part.name) {
            wanted.extend(part.needs);
        }
    }
    Ok(parts
        .iter()
        .filter(|part| wanted.contains(&part.name))
        .collect())
}

/// Runs the parts one after the other; only what a failed part was needed for
/// is skipped.
fn run(workspace: &Workspace, parts: &[&Part]) -> Report {
    let mut report = Report::default();
    for part in parts {
        println!("\n== {}: {}", part.name, part.about);
        let start = Instant::now();
        let missing = part.needs.iter().find(|need| !report.passed_part(need));
        let outcome = match missing {
            Some(need) => Outcome::Skipped(need),
            None => match (part.run)(workspace) {
                Ok(()) => Outcome::Passed,
                Err(failure) => {
                    println!("{}: {failure}", part.name);
                    Outcome::Failed
                }
            },
        };
        report.add(part.name, outcome, start.elapsed());
    }
    report
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn part(name: &'static str, needs: &'static [&'static str]) -> Part {
        Part {
            name,
            about: "",
            needs,
            run: |_| Ok(()),
        }
    }

    const THREE: &[Part] = &[part("a", &[]), part("b", &["a"]), part("c", &["b"])];

    fn chosen(only: &[&str]) -> Vec<&'static str> {
        let only: Vec<String> = only.iter().map(|name| (*name).to_owned()).collect();
        choose(THREE, &only)
            .unwrap()
            .iter()
            .map(|part| part.name)
            .collect()
    }

    #[test]
    fn a_part_brings_what_it_needs() {
        assert_eq!(chosen(&["c"]), ["a", "b", "c"]);
        assert_eq!(chosen(&["a"]), ["a"]);
        assert_eq!(chosen(&[]), ["a", "b", "c"]);
    }

    #[test]
    fn an_unknown_part_is_refused() {
        assert!(choose(THREE, &["d".to_owned()]).is_err());
    }

    #[test]
    fn every_need_stands_before_its_part() {
        for (position, part) in PARTS.iter().enumerate() {
            for need in part.needs {
                assert!(
                    PARTS
                        .iter()
                        .take(position)
                        .any(|before| before.name == *need),
                    "{} needs {need}, which does not stand before it",
                    part.name
                );
            }
        }
    }
}
