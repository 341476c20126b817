//! What is run, in which order, and how long it will take.
//!
//! The runs of a figure take turns, so that what changes on the machine while
//! they run concerns all of them alike.

use std::time::Duration;

use super::figures::{FIGURES, Figure, Run};
use super::samples::{self, Samples};

/// No run is given up before.
const LEAST: Duration = Duration::from_secs(180);

/// Seconds of a quick run.
const QUICK: f64 = 2.0;

/// Which runs are asked for.
#[derive(Clone, Debug)]
pub(super) struct Choice {
    pub(super) quick: bool,
    /// Numbers of figures; none is all.
    pub(super) figures: Vec<usize>,
    /// How often each is repeated.
    pub(super) repeats: usize,
    pub(super) peers_only: bool,
}

impl Choice {
    fn has(&self, figure: &Figure) -> bool {
        self.figures.is_empty() || self.figures.contains(&figure.number)
    }
}

/// One run at its turn.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) figure: &'static Figure,
    pub(super) run: &'static Run,
    /// From 1.
    pub(super) repeat: usize,
}

/// All that is to be run; `can` says which runs are possible here.
pub(super) fn steps(choice: &Choice, can: impl Fn(&Run) -> bool) -> Vec<Step> {
    let mut steps = Vec::new();
    for figure in FIGURES.iter().filter(|figure| choice.has(figure)) {
        for repeat in 1..=choice.repeats {
            let wanted = |run: &&Run| can(run) && (run.server.is_peer() || !choice.peers_only);
            steps.extend(figure.runs.iter().filter(wanted).map(|run| Step {
                figure,
                run,
                repeat,
            }));
        }
    }
    steps
}

impl Step {
    /// About how many seconds it takes: as the last time, or as the table says.
    pub(super) fn seconds(&self, samples: &Samples, quick: bool) -> f64 {
        let known = samples::seconds(&samples.of(self.figure, self.run));
        known.unwrap_or_else(|| match quick {
            true => QUICK,
            false => f64::from(self.run.seconds),
        })
    }

    /// Whether it is the same run as another, at another turn.
    pub(super) fn repeats(&self, other: &Self) -> bool {
        self.figure.number == other.figure.number && self.run == other.run
    }

    /// When it is given up: a run may well take longer on another machine.
    pub(super) fn limit(&self) -> Duration {
        LEAST.max(Duration::from_secs(u64::from(self.run.seconds) * 5))
    }

    pub(super) fn name(&self) -> String {
        let (number, repeat) = (self.figure.number, self.repeat);
        format!("figure {number}, {}, time {repeat}", self.run.name())
    }
}

/// The line before a run: where it is in the whole, and what remains.
pub(super) fn progress(steps: &[Step], at: usize, remaining: f64) -> String {
    format!(
        "[{} of {}; {} remain] {}",
        at + 1,
        steps.len(),
        duration(remaining),
        steps[at].name()
    )
}

/// A time as people say it.
pub(super) fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 90.0 => format!("about {s:.0} s"),
        s => format!("about {:.0} min", s / 60.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::figures::Server;

    fn choice(peers_only: bool) -> Choice {
        Choice {
            quick: false,
            figures: vec![7, 1],
            repeats: 2,
            peers_only,
        }
    }

    #[test]
    fn the_runs_of_a_figure_take_turns() {
        let steps = steps(&choice(false), |run| run.server != Server::Go("snapshot"));
        let order: Vec<_> = steps
            .iter()
            .map(|s| (s.figure.number, s.repeat, s.run.name()))
            .collect();
        let linear = "go-control-plane, linear cache";
        let expected = [
            (1, 1, "Trunkline"),
            (1, 1, "floor"),
            (1, 1, linear),
            (1, 2, "Trunkline"),
            (1, 2, "floor"),
            (1, 2, linear),
            (7, 1, "Trunkline, without them"),
            (7, 1, "Trunkline, with them"),
            (7, 2, "Trunkline, without them"),
            (7, 2, "Trunkline, with them"),
        ];
        assert_eq!(order, expected.map(|(f, r, n)| (f, r, n.to_owned())));
    }

    #[test]
    fn a_run_knows_its_other_turns() {
        let steps = steps(&choice(false), |_| true);
        let same = steps.iter().filter(|step| step.repeats(&steps[0]));
        let turns: Vec<_> = same.map(|step| step.repeat).collect();
        assert_eq!(turns, [1, 2]);
    }

    #[test]
    fn peers_may_be_run_alone() {
        let steps = steps(&choice(true), |_| true);
        assert!(steps.iter().all(|step| step.run.server.is_peer()));
        assert_eq!(steps.len(), 4);
    }

    #[test]
    fn progress_says_where_it_is_and_what_remains() {
        let steps = steps(&choice(false), |_| true);
        assert_eq!(
            progress(&steps, 1, 600.0),
            "[2 of 12; about 10 min remain] figure 1, floor, time 1"
        );
        assert_eq!(duration(30.0), "about 30 s");
    }
}
