//! Attacks the server, while a victim looks on: `crates/attack` does the work.
//!
//! | form | what it does |
//! |---|---|
//! | `attack` | every attack, each with a server of its own; fails if a verdict does |
//! | `attack --page` | the same, and writes the table of docs/security.md |
//! | `attack soak` | attacks at random against one server, for an hour |
//! | in the gate | every attack once and small; times and memory do not matter |

mod page;

use std::path::PathBuf;
use std::process::Command;

use lexopt::{Arg, ValueExt as _};

use crate::failure::{Failure, Result};
use crate::workspace::{Workspace, capture_shown, run};

/// The cores of the server and of all others, where there are two.
const CORES: [&str; 4] = ["--server-cores", "0", "--own-cores", "1"];

/// What is asked for.
#[derive(Debug, Default, PartialEq)]
struct Asked {
    is_soak: bool,
    page: bool,
    list: bool,
    only: Vec<String>,
    seconds: Option<u64>,
    minutes: Option<u64>,
    seed: Option<u64>,
}

/// Runs the attacks that are asked for.
pub(crate) fn command(workspace: &Workspace, args: lexopt::Parser) -> Result<()> {
    let asked = parse(args)?;
    let programs = Programs::build(workspace, "release")?;
    let mut attack = programs.command(workspace, &asked);
    if !asked.page {
        return run(&mut attack).map_err(|_| failed());
    }
    attack.arg("--markdown");
    let (table, is_good) = capture_shown(&mut attack)?;
    page::write(workspace, &table)?;
    match is_good {
        true => Ok(()),
        false => Err(failed()),
    }
}

/// Every attack once and small, with the programs that tests have built.
pub(crate) fn gate(workspace: &Workspace) -> Result<()> {
    let programs = Programs::build(workspace, "dev")?;
    let mut attack = programs.tool(workspace);
    run(attack.arg("--quick"))
}

fn failed() -> Failure {
    Failure::new("a verdict does not hold; see the table above")
}

fn parse(mut args: lexopt::Parser) -> Result<Asked> {
    let mut asked = Asked::default();
    while let Some(arg) = args.next()? {
        match arg {
            Arg::Value(word) if word == "soak" => asked.is_soak = true,
            Arg::Long("page") => asked.page = true,
            Arg::Long("list") => asked.list = true,
            Arg::Long("only") => asked.only.push(args.value()?.string()?),
            Arg::Long("seconds") => asked.seconds = Some(args.value()?.parse()?),
            Arg::Long("minutes") => asked.minutes = Some(args.value()?.parse()?),
            Arg::Long("seed") => asked.seed = Some(args.value()?.parse()?),
            other => return Err(other.unexpected().into()),
        }
    }
    if asked.page && (asked.is_soak || asked.list) {
        return Err(Failure::new("--page is for the attacks one by one"));
    }
    Ok(asked)
}

/// What is run.
struct Programs {
    tool: PathBuf,
    trunkline: PathBuf,
}

impl Programs {
    fn build(workspace: &Workspace, profile: &str) -> Result<Self> {
        let built = workspace.build_tools(profile)?;
        Ok(Self {
            tool: built.join("trunkline-attack"),
            trunkline: built.join("trunkline"),
        })
    }

    /// The harness with the program that it attacks.
    fn tool(&self, workspace: &Workspace) -> Command {
        let mut command = workspace.program(&self.tool);
        command.arg("--program").arg(&self.trunkline);
        command
    }

    /// The harness with what is asked for.
    fn command(&self, workspace: &Workspace, asked: &Asked) -> Command {
        let mut command = self.tool(workspace);
        if std::thread::available_parallelism().is_ok_and(|cores| cores.get() > 1) {
            command.args(CORES);
        }
        command.args(words(asked));
        command
    }
}

/// What is asked for, in the words of the harness.
fn words(asked: &Asked) -> Vec<String> {
    let mut words = Vec::new();
    for name in &asked.only {
        words.extend(["--only".to_owned(), name.clone()]);
    }
    if asked.list {
        words.push("--list".to_owned());
    }
    let minutes = asked.is_soak.then(|| asked.minutes.unwrap_or(60));
    let numbers = [
        ("--seconds", asked.seconds),
        ("--soak", minutes),
        ("--seed", asked.seed),
    ];
    for (flag, number) in numbers {
        if let Some(number) = number {
            words.extend([flag.to_owned(), number.to_string()]);
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(args: &[&str]) -> Result<Asked> {
        parse(lexopt::Parser::from_args(args))
    }

    #[test]
    fn what_is_asked_for_is_said_in_the_words_of_the_harness() {
        let soak = asked(&["soak", "--seed", "7"]).unwrap();
        assert_eq!(words(&soak), ["--soak", "60", "--seed", "7"]);
        let some = asked(&["--only", "globs", "--seconds", "5"]).unwrap();
        assert_eq!(words(&some), ["--only", "globs", "--seconds", "5"]);
        assert!(asked(&["soak", "--page"]).is_err());
        assert!(asked(&["--minute", "5"]).is_err());
    }
}
