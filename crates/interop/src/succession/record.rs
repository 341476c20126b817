//! Which requests failed, when, and with what.

use std::collections::BTreeMap;
use std::fmt;

/// How much of an error is shown.
const SHOWN: usize = 240;

/// A request that did not get its answer.
#[derive(Debug, Clone)]
pub struct Lost {
    /// Seconds since 1970.
    pub at: f64,
    /// What the client says.
    pub text: String,
}

/// What became of the requests of one client.
#[derive(Debug, Clone)]
pub struct Tally {
    /// The client.
    pub who: String,
    /// How many requests it made.
    pub made: usize,
    /// Those that failed.
    pub lost: Vec<Lost>,
}

/// What became of all requests.
#[derive(Debug, Default)]
pub struct Record {
    /// When each round began.
    pub rounds: Vec<f64>,
    /// Who did not see the answer of a round in time.
    pub late: Vec<String>,
    /// Client by client.
    pub tallies: Vec<Tally>,
}

impl Record {
    /// Checks that every request was answered and every round was seen.
    ///
    /// # Panics
    ///
    /// When that is not so, with all that is known.
    pub fn assert_nothing_lost(&self) {
        let lost = self.tallies.iter().any(|tally| !tally.lost.is_empty());
        assert!(!lost && self.late.is_empty(), "requests were lost\n{self}");
        // A client that makes no requests loses none.
        let idle = |tally: &&Tally| tally.made < 10 * self.rounds.len();
        let idle: Vec<_> = self.tallies.iter().filter(idle).collect();
        assert!(idle.is_empty(), "too few requests: {idle:?}");
    }

    /// Takes out of the record the losses that are a client's own fault, and
    /// counts them.
    pub fn set_apart(&mut self, own_fault: impl Fn(&Lost) -> bool) -> usize {
        let losses = |tallies: &[Tally]| tallies.iter().map(|tally| tally.lost.len()).sum();
        let before: usize = losses(&self.tallies);
        for tally in &mut self.tallies {
            tally.lost.retain(|lost| !own_fault(lost));
        }
        before - losses(&self.tallies)
    }

    /// The round in which something happened, and how long after its begin.
    fn place(&self, at: f64) -> (usize, f64) {
        let round = self.rounds.partition_point(|begun| *begun <= at);
        let round = round.saturating_sub(1);
        (round, at - self.rounds.get(round).copied().unwrap_or(at))
    }
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for late in &self.late {
            writeln!(f, "{late}")?;
        }
        for tally in &self.tallies {
            let (who, made, lost) = (&tally.who, tally.made, &tally.lost);
            writeln!(f, "{who}: {} of {made} failed", lost.len())?;
            // Failures of one kind come in bursts: each is shown once for a round.
            let mut kinds: BTreeMap<(usize, String), Vec<f64>> = BTreeMap::new();
            for lost in lost {
                let (round, after) = self.place(lost.at);
                let text = lost.text.chars().take(SHOWN).collect();
                kinds.entry((round, text)).or_default().push(after);
            }
            for ((round, text), times) in kinds {
                let first = times.iter().copied().fold(f64::INFINITY, f64::min);
                let last = times.iter().copied().fold(0.0, f64::max);
                let count = times.len();
                writeln!(
                    f,
                    "    round {round}, {first:.3} to {last:.3} s: {count} times {text}"
                )?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(lost: Vec<Lost>) -> Record {
        Record {
            rounds: vec![10.0, 20.0],
            late: Vec::new(),
            tallies: vec![Tally {
                who: "one".to_owned(),
                made: 100,
                lost,
            }],
        }
    }

    fn lost(at: f64, text: &str) -> Lost {
        let text = text.to_owned();
        Lost { at, text }
    }

    #[test]
    fn failures_are_told_by_the_round_they_fell_in() {
        let shown = record(vec![
            lost(20.5, "503"),
            lost(20.25, "503"),
            lost(11.0, "404"),
        ]);
        let expected = "one: 3 of 100 failed\n    \
                        round 0, 1.000 to 1.000 s: 1 times 404\n    \
                        round 1, 0.250 to 0.500 s: 2 times 503\n";
        assert_eq!(shown.to_string(), expected);
    }

    #[test]
    fn a_fault_of_the_client_is_counted_apart() {
        let mut record = record(vec![lost(20.5, "own"), lost(20.25, "503")]);
        assert_eq!(record.set_apart(|lost| lost.text == "own"), 1);
        assert_eq!(record.tallies[0].lost.len(), 1);
    }
}
