//! What a reader of the numbers has to know before believing them.

use std::thread::available_parallelism;

use crate::client::Shared;
use crate::options::Options;
use crate::report::Phase;

/// The part of its CPU from which the tool is likely what was measured.
const BUSY: f64 = 0.85;

/// Programs that want to run, for each core, from which others disturb.
const LOADED: f64 = 0.75;

/// How many programs wanted to run in the last minute, before the measurement
/// added its own; none where the system does not tell.
pub(super) fn load() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    text.split_whitespace().next()?.parse().ok()
}

/// What to say of a machine that was busy before anything was measured.
pub(super) fn of_load(load: f64, cores: usize) -> Option<String> {
    (load > LOADED * cores as f64).then(|| {
        format!(
            "the machine was busy with other work when this began (load {load:.1} on {cores} \
             cores): CPU and times are higher than on a quiet one, and not to be compared"
        )
    })
}

/// See the module's documentation.
pub(super) fn warnings(
    options: &Options,
    phases: &[Phase],
    shared: &Shared,
    load: Option<f64>,
) -> Vec<String> {
    let cores = available_parallelism().map_or(1, usize::from);
    let threads = match options.threads {
        0 => cores,
        some => some.min(cores),
    } as f64;
    let mut warnings: Vec<String> = load
        .and_then(|load| of_load(load, cores))
        .into_iter()
        .collect();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_machine_is_told_of() {
        assert_eq!(of_load(1.4, 2), None);
        assert!(of_load(1.6, 2).unwrap().contains("load 1.6 on 2 cores"));
    }
}
