//! `trunkline watch`: events of a Trunkline server, or what any control plane
//! sends to a client.

mod live;
mod server_events;

use crate::cli::{self, WatchOutput};
use crate::failure::{Failure, Result};

/// Prints what happens until the program is stopped, or nobody reads it.
pub(super) fn run(args: &cli::Watch) -> Result<()> {
    check_flags(args)?;
    match args.plane.is_named() {
        true => live::run(args),
        false => server_events::run(args),
    }
}

/// Checks the combinations of flags that the parser of the command line cannot
/// check.
///
/// # Errors
/// Two flags exclude each other, or a flag needs one that is missing.
fn check_flags(args: &cli::Watch) -> Result<()> {
    let plane = &args.plane;
    if plane.output == WatchOutput::Dot && !plane.tree {
        return Err(Failure::usage("-o dot draws a tree; add --tree"));
    }
    if plane.is_named() {
        return match args.nodes.len() {
            0 | 1 => Ok(()),
            _ => Err(Failure::usage(
                "--node is the id that this client has; give it once",
            )),
        };
    }

    if let Some(word) = args.words.first() {
        return Err(Failure::usage(format!(
            "{word:?}: which control plane? Give --server ADDR, such as 127.0.0.1:18000, or \
             --bootstrap FILE. For events of a Trunkline server write `trunkline watch --type \
             {word}`, and for its resources `trunkline get {word} --watch`"
        )));
    }

    refuse_plane_flags(plane)
}

/// Refuses the flags that are for resources of a control plane. The command line
/// names no control plane.
fn refuse_plane_flags(plane: &cli::Plane) -> Result<()> {
    let plane_flags = [
        ("--delta", plane.delta),
        ("--sotw", plane.sotw),
        ("--param", !plane.params.is_empty()),
        ("--once", plane.once),
        ("--output", plane.output != WatchOutput::Summary),
        ("--record", plane.record.is_some()),
        ("--tree", plane.tree),
    ];
    match plane_flags.iter().find(|(_, is_given)| *is_given) {
        None => Ok(()),
        Some((flag, _)) => Err(Failure::usage(format!(
            "{flag} is for resources of a control plane; give a type and --server ADDR, or \
             --bootstrap FILE"
        ))),
    }
}
