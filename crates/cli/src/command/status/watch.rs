//! `trunkline status --watch`: the status again and again. A terminal is drawn
//! anew; into a file or a pipe goes a block for each change.

use std::io::IsTerminal as _;
use std::time::Duration;

use serde_json::Value;

use super::super::print;
use super::{Status, StatusRequest};
use crate::failure::Result;

/// The pause between two requests.
const INTERVAL: Duration = Duration::from_secs(1);
/// Moves the cursor of a terminal to its first line, and clears what is below.
const CLEAR: &str = "\x1b[H\x1b[J";
/// Fields that change although nothing happens.
const CLOCKS: [&str; 2] = ["unanswered_ms", "last_sent_ms"];

/// Prints the status until a signal ends the program. On a terminal, the newest
/// status replaces the one before; elsewhere, only a new status is printed.
///
/// # Errors
/// The first request fails, or a later one is refused. If the connection is
/// lost later, a warning is printed and the request is repeated.
pub(super) async fn run(request: &StatusRequest<'_>) -> Result<()> {
    let is_terminal = std::io::stdout().is_terminal();
    let mut last_status: Option<Status> = None;
    let mut is_lost = false;
    loop {
        match request.fetch_status().await {
            Ok(status) => {
                let is_new = is_lost
                    || last_status.as_ref().map(without_clocks) != Some(without_clocks(&status));
                is_lost = false;

                if is_terminal {
                    print(format!("{CLEAR}{}", request.format_status(&status)).as_bytes())?;
                } else if is_new {
                    let separator = if last_status.is_some() { "\n" } else { "" };
                    print(format!("{separator}{}", request.format_status(&status)).as_bytes())?;
                }
                last_status = Some(status);
            }
            // The connection may come back, if there ever was one.
            Err(failure) if last_status.is_some() && failure.is_unreachable() => {
                if !std::mem::replace(&mut is_lost, true) {
                    eprintln!("warning: {failure} Trying again.");
                }
            }
            Err(failure) => return Err(failure),
        }

        tokio::time::sleep(INTERVAL).await;
    }
}

/// Returns a status without the fields that grow with time, so that two
/// statuses can be compared.
fn without_clocks(status: &Status) -> Status {
    let mut status = status.clone();
    for client in &mut status.clients {
        let states = client["types"].as_array_mut().into_iter().flatten();
        for state in states.filter_map(Value::as_object_mut) {
            for clock in CLOCKS {
                state.remove(clock);
            }
        }
    }
    status
}
