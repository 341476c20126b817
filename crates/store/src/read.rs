//! One file: its resources and their places, or its mistakes.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use trunkline::wire::Intake;
use trunkline_proto::{Path as Field, text};
use twox_hash::XxHash3_128;

use crate::binary;
use crate::item::{At, Item, Parsed};
use crate::problem::{Fault, MOST, Problem};

/// The result of reading.
pub(crate) struct Outcome {
    /// All resources, those of a file with mistakes too.
    pub(crate) parsed: Parsed,
    pub(crate) errors: Vec<Problem>,
    pub(crate) warnings: Vec<Problem>,
    /// The hash of the bytes; `None` if they could not be read.
    pub(crate) hash: Option<u128>,
}

impl Outcome {
    /// The outcome of a file of which nothing was read yet.
    pub(crate) fn empty(file: &Arc<str>) -> Self {
        Self {
            parsed: Parsed::empty(file),
            errors: Vec::new(),
            warnings: Vec::new(),
            hash: None,
        }
    }

    /// The outcome of a file that cannot be read because of a problem.
    pub(crate) fn of_problem(problem: Problem) -> Self {
        let mut outcome = Self::empty(&problem.place.file);
        outcome.errors.push(problem);
        outcome
    }

    /// Adds a mistake, unless there are many.
    pub(crate) fn wrong(&mut self, problem: impl FnOnce() -> Problem) {
        if self.errors.len() < MOST {
            self.errors.push(problem());
        }
    }

    /// Adds a warning, unless there are many.
    pub(crate) fn doubtful(&mut self, problem: impl FnOnce() -> Problem) {
        if self.warnings.len() < MOST {
            self.warnings.push(problem());
        }
    }
}

/// Reads a file. `before` is the hash of the bytes that were read before;
/// `None` is returned if they are the same.
pub(crate) fn read(
    path: &Path,
    file: &Arc<str>,
    before: Option<u128>,
    options: &text::Options,
) -> Option<Outcome> {
    let read = match text::is_binary(file) {
        true => binary::read(path, file, before, options),
        false => read_text(path, file, before, options),
    };
    read.unwrap_or_else(|error| {
        let problem = Problem::whole(file, Fault::of_path(&error));
        Some(Outcome::of_problem(problem))
    })
}

/// Reads a file of text.
fn read_text(
    path: &Path,
    file: &Arc<str>,
    before: Option<u128>,
    options: &text::Options,
) -> io::Result<Option<Outcome>> {
    let bytes = read_up_to(path, options.limits.bytes)?;
    let hash = XxHash3_128::oneshot(&bytes);
    if before == Some(hash) {
        return Ok(None);
    }
    let mut outcome = parse(file, bytes, options);
    outcome.hash = Some(hash);
    Ok(Some(outcome))
}

/// Reads the bytes of a file, up to one more than the limit, which the parser
/// then reports.
fn read_up_to(path: &Path, limit: usize) -> io::Result<Bytes> {
    let mut bytes = Vec::new();
    let limit = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    File::open(path)?.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes.into())
}

/// Parses a text, validates its resources, and takes them in.
fn parse(file: &Arc<str>, bytes: Bytes, options: &text::Options) -> Outcome {
    let document = text::read_bytes(file, bytes, options);
    let mut outcome = Outcome::empty(file);
    let problem = |error| text_problem(file, error);
    outcome.errors = document.errors.into_iter().map(problem).collect();
    outcome.warnings = document.warnings.into_iter().map(problem).collect();
    outcome.parsed.items.reserve(document.resources.len());
    let mut intake = Intake::default();
    // One after the other, so that the tree of each is freed before the next.
    for read in document.resources {
        for error in read.validate() {
            outcome.wrong(|| text_problem(file, error));
        }
        take_in(&mut outcome, &mut intake, file, &read);
    }
    outcome
}

/// Takes in a resource as its variants, and the virtual hosts that are written
/// in it; or adds the mistake that its wrapper or its conditions have.
fn take_in(outcome: &mut Outcome, intake: &mut Intake, file: &Arc<str>, read: &text::Resource) {
    let place = |inner: &Field| {
        let field = read.path.join(inner).to_string();
        At::text(read.position(inner), field)
    };
    match intake.text(read) {
        Ok(accepted) => {
            for resource in accepted.variants {
                outcome.parsed.push(Item {
                    type_url: accepted.type_url.clone(),
                    resource: Arc::new(resource),
                    at: place(&Field::default()),
                });
            }
            for host in accepted.hosts {
                outcome.parsed.push(Item {
                    type_url: intake.vhds(),
                    resource: Arc::new(host.resource),
                    at: place(&read.item("virtual_hosts", host.index)),
                });
            }
            for (inner, doubt) in accepted.doubts {
                outcome.doubtful(|| place(&inner).problem(file, Fault::Doubt(doubt)));
            }
        }
        Err(error) => {
            let (inner, error) = error.place();
            outcome.wrong(|| place(&inner).problem(file, Fault::Accept(error)));
        }
    }
}

/// The problem of a mistake in a text.
pub(crate) fn text_problem(file: &Arc<str>, error: text::TextError) -> Problem {
    let fault = Fault::Text(error.problem);
    At::text(error.at, error.path).problem(file, fault)
}
