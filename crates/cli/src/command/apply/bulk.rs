//! Sends a file in parts.

use std::hash::{BuildHasher as _, RandomState};
use std::io::{IsTerminal as _, Read, Seek};
use std::time::{Duration, Instant};

use http::Method;
use serde::Deserialize;
use tokio::runtime::Runtime;

use super::parts::{Part, Parts};
use super::places::Places;
use crate::client::{Client, Detail};
use crate::command::{print, runtime};
use crate::failure::{Failure, Result};

/// The interval of progress lines.
const EVERY: Duration = Duration::from_secs(1);
/// The maximum of warnings that are shown.
const MOST_WARNINGS: usize = 20;

/// A file that is applied in parts.
pub(super) struct Bulk<'a> {
    pub(super) client: &'a Client,
    pub(super) places: &'a Places,
    /// The number of its resources.
    pub(super) total: usize,
}

/// The outcome of a part.
#[derive(Debug, Default, Deserialize)]
struct Outcome {
    counts: Counts,
    unchanged: usize,
    warnings: Vec<Detail>,
}

#[derive(Debug, Default, Deserialize)]
struct Counts {
    created: usize,
    changed: usize,
    deleted: usize,
}

/// The sum of all parts so far.
#[derive(Debug, Default)]
struct Sum {
    resources: usize,
    counts: Counts,
    unchanged: usize,
    warnings: usize,
}

impl Bulk<'_> {
    pub(super) fn run<R: Read + Seek>(&self, source: R) -> Result<()> {
        let runtime = runtime()?;
        // The server tells the parts of this change from those of others by it.
        let id = format!("{:016x}", RandomState::new().hash_one(self.total));
        let mut parts = Parts::new(source);
        let mut next = self.read(&mut parts)?;
        let mut sum = Sum::default();
        let mut progress = Progress::new(self.total);
        let mut number = 0;
        while let Some(part) = next {
            next = self.read(&mut parts)?;
            let last = if next.is_none() { "&last=true" } else { "" };
            let path = format!("/api/v1/resources?summary=true&bulk={id}&part={number}{last}");
            let outcome = self
                .send(&runtime, &path, &part)
                .map_err(|failure| self.stopped(&sum, failure))?;
            self.add(&mut sum, outcome, &part);
            progress.tell(sum.resources);
            number += 1;
        }
        progress.end();
        self.summary(&sum)
    }

    fn read<R: Read + Seek>(&self, parts: &mut Parts<R>) -> Result<Option<Part>> {
        let file = &self.places.file;
        parts
            .next()
            .map_err(|error| Failure::wrong(format!("{file}: {error}; was it changed meanwhile?")))
    }

    fn send(&self, runtime: &Runtime, path: &str, part: &Part) -> Result<Outcome> {
        let translate = |detail| self.places.translate(detail, &part.origins);
        let asked = self.client.ask_about(
            (Method::POST, path, "application/x-protobuf"),
            part.body.clone(),
            &self.places.file,
            &translate,
        );
        let answer = runtime.block_on(asked)?;
        serde_json::from_slice(&answer)
            .map_err(|error| Failure::wrong(format!("the answer is not understood: {error}")))
    }

    fn add(&self, sum: &mut Sum, outcome: Outcome, part: &Part) {
        sum.resources += part.resources;
        sum.counts.created += outcome.counts.created;
        sum.counts.changed += outcome.counts.changed;
        sum.counts.deleted += outcome.counts.deleted;
        // A continued route configuration was counted before.
        let again = part.origins.iter().filter(|(_, host)| *host > 0).count();
        sum.unchanged += outcome.unchanged.saturating_sub(again);
        for warning in outcome.warnings {
            sum.warnings += 1;
            if sum.warnings <= MOST_WARNINGS {
                let warning = self.places.translate(warning, &part.origins);
                eprintln!("warning: {}", warning.in_file(&self.places.file));
            }
        }
    }

    /// A failure, with the state that it leaves behind.
    fn stopped(&self, sum: &Sum, failure: Failure) -> Failure {
        let (done, total) = (sum.resources, self.total);
        failure.and(format!(
            "\n{done} of the {total} resources were applied before that and stay; the others \
             were not; put it right and apply the whole file again"
        ))
    }

    fn summary(&self, sum: &Sum) -> Result<()> {
        let more = sum.warnings.saturating_sub(MOST_WARNINGS);
        if more > 0 {
            eprintln!("warning: and {more} more");
        }
        let Counts {
            created,
            changed,
            deleted,
        } = sum.counts;
        let (all, unchanged) = (sum.resources, sum.unchanged);
        let text = format!(
            "{all} resources: {created} created, {changed} changed, {deleted} deleted, \
             {unchanged} unchanged\n"
        );
        print(text.as_bytes())
    }
}

/// The progress, now and then, on standard error.
struct Progress {
    total: usize,
    told: Instant,
    /// A line that is written over, or lines.
    over: bool,
    any: bool,
}

impl Progress {
    fn new(total: usize) -> Self {
        Self {
            total,
            told: Instant::now(),
            over: std::io::stderr().is_terminal(),
            any: false,
        }
    }

    fn tell(&mut self, done: usize) {
        if self.told.elapsed() < EVERY {
            return;
        }
        self.told = Instant::now();
        self.any = true;
        let percent = done * 100 / self.total.max(1);
        let line = format!("applied {done} of {} resources ({percent}%)", self.total);
        match self.over {
            true => eprint!("\r{line}"),
            false => eprintln!("{line}"),
        }
    }

    fn end(&self) {
        if self.over && self.any {
            eprintln!();
        }
    }
}
