//! Random routes and requests, many of them, at a real Envoy and at the crate
//! `trunkline-traffic`. The gate has some hundred.

use crate::failure::{Failure, Result};
use crate::workspace::{Workspace, run as run_shown};

/// The requests that are put to both.
const REQUESTS: &str = "10000";

/// Puts the requests to both, and fails at the first difference.
pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let mut cargo = workspace.cargo(&["test", "--package", "interop", "--test", "traffic"]);
    cargo.env("TRAFFIC_REQUESTS", REQUESTS);
    run_shown(&mut cargo).map_err(|_| {
        Failure::new("a request is routed otherwise than by Envoy, see above which")
    })?;
    println!("{REQUESTS} requests are routed as by Envoy");
    Ok(())
}
