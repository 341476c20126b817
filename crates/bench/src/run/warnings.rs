//! What a reader of the numbers has to know before believing them.

use std::thread::available_parallelism;

use crate::client::Shared;
use crate::options::Options;
use crate::report::Phase;

/// The part of its CPU from which the tool is likely what was measured.
const BUSY: f64 = 0.85;

/// See the module's documentation.
pub(super) fn warnings(options: &Options, phases: &[Phase], shared: &Shared) -> Vec<String> {
    let cores = available_parallelism().map_or(1, usize::from);
    let threads = match options.threads {
        0 => cores,
        some => some.min(cores),
    } as f64;
    let mut warnings = Vec::new();
    for phase in phases {
        let busy = phase.tool.cpu() / (phase.seconds * threads);
        if phase.seconds > 0.5 && busy > BUSY {
            warnings.push(format!(
                "{}: the tool was busy for {:.0} % of the time: its times are the tool's limit, \
                 not the server's (the server's CPU is not affected); use --light, more --threads \
                 or another machine",
                phase.name,
                busy * 100.0
            ));
        }
    }
    let count = shared.counters.read();
    let mut say = |number: u64, what: &str| {
        if number > 0 {
            warnings.push(format!("{number} {what}"));
        }
    };
    say(count.broken, "streams ended by themselves");
    say(count.refused, "connections could not be made");
    say(
        count.unreadable,
        "responses could not be read, or broke the protocol",
    );
    if count.broken + count.refused + count.unreadable > 0
        && let Some(fault) = shared.last_fault()
    {
        warnings.push(format!("the last fault: {fault}"));
    }
    warnings
}
