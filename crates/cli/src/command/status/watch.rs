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

/// Prints the status until a signal ends the program.
///
/// # Errors
/// The server cannot be reached at first, or refuses the request. If it is lost
/// later, that is said once, and it is tried again.
pub(super) async fn run(request: &StatusRequest<'_>) -> Result<()> {
    let is_terminal = std::io::stdout().is_terminal();
    let mut shown: Option<Status> = None;
    let mut is_lost = false;
    loop {
        match request.send().await {
            Ok(status) => {
                let is_new = is_lost || shown.as_ref().map(still) != Some(still(&status));
                is_lost = false;
                if is_terminal {
                    print(format!("{CLEAR}{}", request.write(&status)).as_bytes())?;
                } else if is_new {
                    let blank = if shown.is_some() { "\n" } else { "" };
                    print(format!("{blank}{}", request.write(&status)).as_bytes())?;
                }
                shown = Some(status);
            }
            Err(failure) if shown.is_some() && failure.is_unreachable() => {
                if !std::mem::replace(&mut is_lost, true) {
                    eprintln!("warning: {failure} Trying again.");
                }
            }
            Err(failure) => return Err(failure),
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

/// Returns a status without the fields that change although nothing happens.
fn still(status: &Status) -> Status {
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
