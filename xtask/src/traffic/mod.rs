//! Random configurations and requests, many of them, at a real Envoy and at the
//! crate `trunkline-traffic`, of which the gate has some hundred; and what the
//! crate costs in instructions.

mod steps;

use lexopt::{Arg, ValueExt as _};

use crate::failure::{Failure, Result};
use crate::workspace::{Workspace, run as run_shown};

/// The requests that are put to both, unless another number is said.
const REQUESTS: u32 = 10_000;

/// Puts the requests to both, and fails at the first seed with a difference.
pub(crate) fn command(workspace: &Workspace, mut args: lexopt::Parser) -> Result<()> {
    let (mut requests, mut seed) = (REQUESTS, 0_u32);
    while let Some(arg) = args.next()? {
        match arg {
            Arg::Value(value) if value == "steps" => return steps::run(workspace),
            Arg::Long("requests") => requests = args.value()?.parse()?,
            Arg::Long("seed") => seed = args.value()?.parse()?,
            other => return Err(other.unexpected().into()),
        }
    }
    let mut cargo = workspace.cargo(&["test", "--package", "interop", "--test", "traffic"]);
    cargo.env("TRAFFIC_REQUESTS", requests.to_string());
    cargo.env("TRAFFIC_SEED", seed.to_string());
    run_shown(&mut cargo).map_err(|_| {
        Failure::new("a request is answered otherwise than by Envoy, see above which")
    })?;
    println!("{requests} requests are answered as by Envoy");
    Ok(())
}
