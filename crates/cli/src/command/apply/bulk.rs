//! Sends a file in parts.

use std::hash::{BuildHasher as _, RandomState};
use std::io::{Read, Seek};

use http::Method;
use serde::Deserialize;

use super::parts::{Origin, Part, Parts};
use crate::client::{BINARY, Call, Client, Detail, DetailPrinter};
use crate::command::places::Places;
use crate::command::wait::MadeChange;
use crate::command::{parse_body, print};
use crate::failure::{Failure, Result};
use crate::output::count_of;
use crate::progress::Progress;
use crate::report::{Report, Severity};

/// The maximum of warnings that are shown.
const MOST_WARNINGS: usize = 20;

/// A file that is applied in parts.
pub(super) struct Bulk<'a> {
    pub(super) client: &'a Client,
    pub(super) report: &'a Report,
    pub(super) places: &'a Places,
    /// The number of its resources.
    pub(super) total: usize,
    /// The parameters of each request.
    pub(super) query: String,
}

/// The outcome of a part.
#[derive(Debug, Default, Deserialize)]
struct Outcome {
    counts: Counts,
    unchanged: usize,
    revision: u64,
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
    /// The revision of the contents after the last part.
    revision: u64,
    warnings: usize,
}

impl Bulk<'_> {
    /// Sends the parts in order, and prints a summary of their changes. Reads the
    /// next part before it sends one, since a request has to say whether its
    /// part is the last.
    ///
    /// # Errors
    /// A part is refused or cannot be sent. Then none of the parts is applied.
    pub(super) async fn run<R: Read + Seek>(&self, source: R) -> Result<MadeChange> {
        // The server keeps the parts of one change together by this name.
        let id = format!("{:016x}", RandomState::new().hash_one(self.total));
        let mut parts = Parts::new(source);
        let mut sum = Sum::default();
        let mut progress = Progress::new("sent", self.total);

        let mut number = 0;
        let mut next_part = self.read_part(&mut parts)?;
        while let Some(part) = next_part {
            next_part = self.read_part(&mut parts)?;
            let is_last = next_part.is_none();
            let path = self.part_path(&id, number, &part, is_last);
            let outcome = self.send(&path, &part).await?;

            self.print_warnings(&outcome.warnings, sum.warnings);
            sum.add(&outcome, &part);
            progress.show(sum.resources);
            number += 1;
        }

        progress.end();
        self.print_summary(&sum)?;
        Ok(MadeChange {
            revision: sum.revision,
            changed: None,
        })
    }

    /// Returns the path of the request for a part. `id` is the name of the
    /// change, `number` the index of the part.
    fn part_path(&self, id: &str, number: u64, part: &Part, is_last: bool) -> String {
        let Origin {
            resource,
            first_host,
        } = part.first;
        let last_flag = match is_last {
            true => "&last=true",
            false => "",
        };
        format!(
            "/api/v1/resources?{}&summary=true&bulk={id}&part={number}{last_flag}\
             &first={resource}&first_host={first_host}",
            self.query
        )
    }

    /// Reads the next part of the file; `None` after the last.
    ///
    /// # Errors
    /// The file is not valid. It was when its resources were counted, so it has
    /// changed.
    fn read_part<R: Read + Seek>(&self, parts: &mut Parts<R>) -> Result<Option<Part>> {
        let change_failure = |error| {
            let files = self.places.names();
            Failure::wrong(format!("{files}: {error}; was it changed meanwhile?"))
        };
        parts.next_part().map_err(change_failure)
    }

    /// Sends a part to `path`, and returns its outcome. Mistakes in the part
    /// are reported with their places in the file.
    async fn send(&self, path: &str, part: &Part) -> Result<Outcome> {
        let call = Call {
            method: Method::POST,
            path,
            content_type: BINARY,
            body: part.body.clone(),
            file: "",
        };
        let printer = DetailPrinter {
            report: self.report,
            locate: &|detail| self.places.locate(detail),
        };
        let response = self.client.call_with_places(call, &printer).await?;
        parse_body(&response)
    }

    /// Prints the warnings about a part to standard error, with their places in
    /// the file, until [`MOST_WARNINGS`] are shown of the whole file.
    /// `earlier_count` is the number of warnings about earlier parts.
    fn print_warnings(&self, warnings: &[Detail], earlier_count: usize) {
        let room = MOST_WARNINGS.saturating_sub(earlier_count);
        for warning in warnings.iter().take(room) {
            let message = self.places.locate(warning.clone());
            eprint!("{}", self.report.show(Severity::Warning, &message));
        }
    }

    /// Prints the numbers of changes to standard output. Before that, prints the
    /// number of warnings that [`Self::print_warnings`] left out, if any, to
    /// standard error.
    fn print_summary(&self, sum: &Sum) -> Result<()> {
        let hidden_count = sum.warnings.saturating_sub(MOST_WARNINGS);
        if hidden_count > 0 {
            let message = format!("and {hidden_count} more");
            eprint!("{}", self.report.headline(Severity::Warning, &message));
        }

        let Counts {
            created,
            changed,
            deleted,
        } = sum.counts;
        let (total, unchanged, revision) = (sum.resources, sum.unchanged, sum.revision);
        let resources = count_of(total, "resource");
        let text = format!(
            "{resources}: {created} created, {changed} changed, {deleted} deleted, \
             {unchanged} unchanged (revision {revision})\n"
        );

        print(text.as_bytes())
    }
}

impl Sum {
    /// Adds the outcome of `part`. Its revision replaces that of earlier parts.
    fn add(&mut self, outcome: &Outcome, part: &Part) {
        self.resources += part.resources;
        self.counts.created += outcome.counts.created;
        self.counts.changed += outcome.counts.changed;
        self.counts.deleted += outcome.counts.deleted;
        self.unchanged += outcome.unchanged;
        self.revision = outcome.revision;
        self.warnings += outcome.warnings.len();
    }
}
