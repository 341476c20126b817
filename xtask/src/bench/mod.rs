//! Measures, and writes `docs/benchmarks.md` from what was found.
//!
//! | part | measures | leaves behind |
//! |---|---|---|
//! | `engine` | core by itself | `target/bench/engine.md` |
//! | `servers` | the library, the floor and peers, by `trunkline-bench` | a report for each run under `target/bench` |
//! | `peers` | of these, the peers only | the same |
//! | `page` | nothing | the page, from what is there |
//!
//! Without a part, all of them in this order; `--only` picks figures by number,
//! and then the engine is left out. What has no report keeps its section of the
//! page. A bar on counts that is missed fails the
//! command, after the page is written; a time or a figure of a server never
//! does, but wrong contents at a client do.

mod engine;
mod figures;
mod machine;
mod picture;
mod plan;
mod remarks;
mod reports;
mod samples;
mod servers;
mod times;
mod trial;
mod written;

use std::fs;

use lexopt::Arg;

use figures::FIGURES;
use plan::Choice;
use samples::Samples;
use written::Written;

use crate::failure::{Failure, Result};
use crate::workspace::Workspace;

const PAGE: &str = "docs/benchmarks.md";
const PICTURES: &str = "docs/benchmarks";

/// How often a figure is measured unless somebody says.
const REPEATS: usize = 3;

/// What is asked for.
#[derive(Default)]
struct Asked {
    quick: bool,
    parts: Vec<String>,
    figures: Vec<usize>,
    repeats: Option<usize>,
}

impl Asked {
    /// Whether a part is wanted: where figures are named, of the parts that
    /// measure only the one that they are of.
    fn wants(&self, part: &str) -> bool {
        match self.parts.is_empty() {
            true => self.figures.is_empty() || part != "engine",
            false => self.parts.iter().any(|p| p == part),
        }
    }

    fn choice(&self, peers_only: bool) -> Choice {
        let repeats = if self.quick { 1 } else { REPEATS };
        Choice {
            quick: self.quick,
            figures: self.figures.clone(),
            repeats: self.repeats.unwrap_or(repeats),
            peers_only,
        }
    }
}

/// Runs the parts that are asked for.
pub(crate) fn command(workspace: &Workspace, args: lexopt::Parser) -> Result<()> {
    let asked = parse(args)?;
    let mut missed = Vec::new();
    if asked.wants("engine") && !engine::measure(workspace, asked.quick)? {
        missed.push("the engine: a bar is missed; see its table above".to_owned());
    }
    if asked.wants("servers") {
        missed.extend(servers::measure(workspace, &asked.choice(false))?);
    } else if asked.wants("peers") {
        missed.extend(servers::measure(workspace, &asked.choice(true))?);
    }
    if asked.wants("page") && !asked.quick {
        write(workspace)?;
    }
    outcome(&missed)
}

/// A smoke test: the tool runs and clients hold what they should. No time
/// matters, and no page is written.
pub(crate) fn gate(workspace: &Workspace) -> Result<()> {
    let quick = Asked {
        quick: true,
        ..Asked::default()
    };
    outcome(&servers::measure(workspace, &quick.choice(false))?)
}

/// The day, the tree and the machine of a measurement.
pub(crate) fn measured_on(workspace: &Workspace) -> Result<String> {
    let (day, tree) = (samples::day(workspace), samples::tree(workspace));
    let known = [day, tree.map(|tree| format!("tree {tree}"))];
    let mut words: Vec<String> = known.into_iter().flatten().collect();
    words.push(machine::describe(workspace)?);
    Ok(words.join(", "))
}

fn outcome(missed: &[String]) -> Result<()> {
    match missed {
        [] => Ok(()),
        some => Err(Failure::new(some.join("\n"))),
    }
}

fn parse(mut args: lexopt::Parser) -> Result<Asked> {
    let mut asked = Asked::default();
    while let Some(arg) = args.next()? {
        match arg {
            Arg::Long("quick") => asked.quick = true,
            Arg::Long("repeats") => {
                let number = args.value()?.to_string_lossy().parse().ok();
                let number = number.filter(|n| (1..=samples::MOST).contains(n));
                let wrong = || Failure::new("--repeats takes a number from 1 to 99");
                asked.repeats = Some(number.ok_or_else(wrong)?);
            }
            Arg::Long("only") => {
                let value = args.value()?.to_string_lossy().into_owned();
                asked.figures.extend(numbers(&value)?);
            }
            Arg::Value(part) => {
                let part = part.to_string_lossy().into_owned();
                if !["engine", "servers", "peers", "page"].contains(&part.as_str()) {
                    return Err(Failure::new(format!("there is no part `{part}`")));
                }
                asked.parts.push(part);
            }
            other => return Err(other.unexpected().into()),
        }
    }
    Ok(asked)
}

/// Numbers of figures, with commas between.
fn numbers(text: &str) -> Result<Vec<usize>> {
    let number = |word: &str| {
        let number = word.trim().parse().ok();
        let known = |n: &usize| FIGURES.iter().any(|figure| figure.number == *n);
        number.filter(known).ok_or_else(|| {
            Failure::new(format!("--only {text}: there is no figure `{word}`"))
                .remedy("give numbers of figures as docs/benchmarks.md has them, such as 1,4")
        })
    };
    text.split(',').map(number).collect()
}

fn write(workspace: &Workspace) -> Result<()> {
    let samples = Samples::new(workspace, false);
    let written = Written::read(workspace);
    let (figures, pictures) = reports::tables(&samples, &written);
    let engine = match (engine::found(workspace), written.engine()) {
        (Ok(found), _) => found,
        (Err(_), Some(written)) => written.to_owned(),
        (Err(failure), None) => return Err(failure),
    };
    let text = page(
        &machine::describe(workspace)?,
        &machine::peer(workspace)?,
        &reports::summary(&figures),
        &figures,
        &engine,
    );
    let folder = workspace.root().join(PICTURES);
    let written = fs::create_dir_all(&folder)
        .and_then(|()| {
            pictures
                .iter()
                .try_for_each(|(name, p)| fs::write(folder.join(name), p))
        })
        .and_then(|()| fs::write(workspace.root().join(PAGE), text));
    written.map_err(|error| Failure::new(format!("cannot write {PAGE}: {error}")))?;
    println!("written to {PAGE}");
    Ok(())
}

fn page(machine: &str, peer: &str, summary: &str, figures: &str, engine: &str) -> String {
    format!(
        "# Benchmarks\n\n\
         What Trunkline costs, beside what the same HTTP/2 stack costs when it only writes the \
         same bytes (the floor), beside go-control-plane, and behind a real Envoy. All numbers on \
         this page, and whether a bar is kept, are worked out from reports by\n\n\
         ```sh\n\
         cargo xtask setup                            # Envoy, for figure 10\n\
         cargo xtask bench                            # everything, three times\n\
         cargo xtask bench --only 1,4 --repeats 5     # some figures, and the page anew\n\
         ```\n\n\
         and a single run by the command below its figure, after `cargo build --release`. What is \
         not installed (Go, Java, Envoy) is left out. Leave the machine alone meanwhile: a report \
         says when it was not.\n\n\
         Machine: {machine}.\n\n\
         {summary}\n\
         What these figures do not show: a network, as everything runs on one machine; a server \
         on more than one core, as clients need the other; and times with clients that are never \
         the slower side.\n\n\
         ## Servers\n\n\
         Each run starts a server as a process of its own, on one core, and `trunkline-bench` on \
         another. The main figure is the server's CPU, user and system, for each change that \
         arrives at a client: unlike a time it does not depend on how fast clients are, and with \
         one core for all of them times are mostly theirs. Memory is what the system counts as \
         resident. {peer}, one linear cache for each type \
         or one snapshot for all nodes, no callbacks and no logging, write buffers shared \
         (`bench/peers/go-control-plane`). The floor keeps no versions, order, subscriptions or \
         answers: no server can do less on this stack.\n\n\
         {figures}\
         ## The engine by itself\n\n\
         {engine}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(args: &[&str]) -> Result<Asked> {
        parse(lexopt::Parser::from_args(args))
    }

    #[test]
    fn figures_are_picked_by_number_and_the_engine_is_left_out() {
        let picked = asked(&["--only", "1,4", "--only", "7", "--repeats", "5"]).unwrap();
        let choice = picked.choice(false);
        assert_eq!((choice.figures, choice.repeats), (vec![1, 4, 7], 5));
        assert!(picked.wants("servers") && picked.wants("page") && !picked.wants("engine"));
        for bad in [["--only", "99"], ["--only", "x"], ["--repeats", "0"]] {
            assert!(asked(&bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn without_a_word_everything_is_measured_three_times() {
        let all = asked(&[]).unwrap();
        assert!(all.wants("engine") && all.wants("servers") && all.wants("page"));
        assert_eq!(all.choice(false).repeats, 3);
        assert_eq!(asked(&["--quick"]).unwrap().choice(false).repeats, 1);
    }
}
