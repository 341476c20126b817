//! Warnings that a reader of the numbers has to know.

use std::fs;
use std::thread::{self, available_parallelism};
use std::time::Duration;

use crate::client::Shared;
use crate::options::Options;
use crate::report::Phase;

/// The part of its CPU from which the tool is likely what was measured.
const BUSY: f64 = 0.85;

/// Programs that want to run, for each core, from which others disturb.
const LOADED: f64 = 0.25;

/// How often the system is asked what runs, and how long it is left alone
/// between.
const LOOKS: u32 = 20;
const PAUSE: Duration = Duration::from_millis(10);

/// Returns how many programs want to run, before the measurement adds its own;
/// `None` where the system does not tell. Looks at the system for a moment,
/// because its own average of a minute would count a measurement that has just
/// ended.
pub(super) fn load() -> Option<f64> {
    let mut sum = 0;
    for _ in 0..LOOKS {
        sum += running(&fs::read_to_string("/proc/loadavg").ok()?)?;
        thread::sleep(PAUSE);
    }
    Some(f64::from(sum) / f64::from(LOOKS))
}

/// Reads how many programs run beside this one, from `/proc/loadavg`.
fn running(loadavg: &str) -> Option<u32> {
    let (running, _) = loadavg.split_whitespace().nth(3)?.split_once('/')?;
    Some(running.parse::<u32>().ok()?.saturating_sub(1))
}

/// Returns the number of cores of the machine, not only those that this process
/// may use.
fn cores() -> usize {
    let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
    let is_core = |line: &&str| {
        let rest = line.strip_prefix("cpu");
        rest.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    match stat.lines().filter(is_core).count() {
        0 => available_parallelism().map_or(1, usize::from),
        some => some,
    }
}

/// Returns the warning about a machine that was busy before anything was
/// measured; `None` if it was not.
pub(super) fn of_load(load: f64, cores: usize) -> Option<String> {
    (load > LOADED * cores as f64).then(|| {
        format!(
            "the machine was busy with other work when this began (load {load:.1} on {cores} \
             cores): CPU and times are higher than on a quiet one, and not to be compared"
        )
    })
}

/// Returns the warnings about a measurement: a busy machine, a busy tool, and
/// streams that failed. `load` is what [`load()`] returned before it.
pub(super) fn warnings(
    options: &Options,
    phases: &[Phase],
    shared: &Shared,
    load: Option<f64>,
) -> Vec<String> {
    let own = available_parallelism().map_or(1, usize::from);
    let threads = match options.threads {
        0 => own,
        some => some.min(own),
    } as f64;
    let mut warnings: Vec<String> = load
        .and_then(|load| of_load(load, cores()))
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
        assert_eq!(of_load(0.4, 2), None);
        assert!(of_load(1.6, 2).unwrap().contains("load 1.6 on 2 cores"));
    }

    #[test]
    fn the_one_that_asks_is_no_load() {
        assert_eq!(running("3.10 2.00 1.00 3/512 4711\n"), Some(2));
        assert_eq!(running("3.10 2.00 1.00 0/512 4711\n"), Some(0));
        assert_eq!(running("3.10"), None);
        assert!(cores() > 0);
    }
}
