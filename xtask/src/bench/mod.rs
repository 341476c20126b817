//! Measures, and writes `docs/benchmarks.md` from what was found.
//!
//! | part | measures | leaves behind |
//! |---|---|---|
//! | `engine` | core by itself | `target/bench/engine.md` |
//! | `servers` | the library, the floor and peers, by `trunkline-bench` | a report for each run under `target/bench` |
//! | `peers` | of these, the peers only | the same |
//! | `page` | nothing | the page, from what is there |
//!
//! Without a part, all of them in this order. A bar on counts that is missed
//! fails the command, after the page is written; a time or a figure of a server
//! never does, but wrong contents at a client do.

mod engine;
mod figures;
mod machine;
mod picture;
mod reports;
mod servers;
mod times;

use std::fs;

use lexopt::Arg;

use crate::failure::{Failure, Result};
use crate::workspace::{Workspace, capture};

const PAGE: &str = "docs/benchmarks.md";
const PICTURES: &str = "docs/benchmarks";

/// What is asked for.
#[derive(Default)]
struct Asked {
    quick: bool,
    parts: Vec<String>,
    figures: Vec<usize>,
}

/// Runs the parts that are asked for.
pub(crate) fn command(workspace: &Workspace, args: lexopt::Parser) -> Result<()> {
    let asked = parse(args)?;
    let wants = |part: &str| asked.parts.is_empty() || asked.parts.iter().any(|p| p == part);
    let kept = match wants("engine") {
        true => engine::measure(workspace, asked.quick)?,
        false => true,
    };
    if wants("servers") {
        servers::measure(workspace, asked.quick, &asked.figures, false)?;
    } else if wants("peers") {
        servers::measure(workspace, asked.quick, &asked.figures, true)?;
    }
    if wants("page") && !asked.quick {
        write(workspace)?;
    }
    match kept {
        true => Ok(()),
        false => Err(Failure::new("a bar is missed; see the table above")),
    }
}

/// A smoke test: the tool runs and clients hold what they should. No time
/// matters, and no page is written.
pub(crate) fn gate(workspace: &Workspace) -> Result<()> {
    servers::measure(workspace, true, &[], false)
}

fn parse(mut args: lexopt::Parser) -> Result<Asked> {
    let mut asked = Asked::default();
    while let Some(arg) = args.next()? {
        match arg {
            Arg::Long("quick") => asked.quick = true,
            Arg::Long("figure") => {
                let number = args.value()?.to_string_lossy().parse();
                let wrong = |_| Failure::new("--figure takes the number of a figure");
                asked.figures.push(number.map_err(wrong)?);
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

fn write(workspace: &Workspace) -> Result<()> {
    let engine = engine::found(workspace)?;
    let (figures, pictures) = reports::tables(&servers::folder(workspace, false));
    let machine = machine::describe(workspace)?;
    let go = capture(workspace.program("go").arg("version")).unwrap_or_default();
    let text = page(&machine, go.trim(), &figures, &engine);
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

fn page(machine: &str, go: &str, figures: &str, engine: &str) -> String {
    format!(
        "# Benchmarks\n\n\
         What Trunkline costs, beside what the same HTTP/2 stack costs when it only writes the \
         same bytes (the floor), and beside go-control-plane. This page is written by\n\n\
         ```sh\ncargo xtask bench\n```\n\n\
         Machine: {machine}. {go}.\n\n\
         ## Servers\n\n\
         Each run starts a server as a process of its own, on one core, and `trunkline-bench` on \
         another. The main figure is the server's CPU, user and system, for each change that \
         arrives at a client: unlike a time it does not depend on how fast clients are, and with \
         one core for all of them times are mostly theirs. Memory is what the system counts as \
         resident. go-control-plane is v0.14.0 with gRPC 1.85.0, one linear cache or one \
         snapshot for all nodes, no callbacks and no logging, write buffers shared \
         (`bench/peers/go-control-plane`). The floor keeps no versions, order, subscriptions or \
         answers: no server can do less on this stack.\n\n\
         {figures}\
         ## The engine by itself\n\n\
         {engine}"
    )
}
