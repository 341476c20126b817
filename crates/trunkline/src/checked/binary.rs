//! A binary document, which may be large: read a part at a time, its resources
//! made on all cores.

use std::io::{self, Read, Seek};
use std::sync::Arc;
use std::thread;

use bytes::Bytes;
use trunkline_core::resource::Resource;
use trunkline_proto::Path as Field;
use trunkline_proto::discovery::Any;
use trunkline_proto::pieces::{Piece, Pieces, PiecesError, Route};
use trunkline_proto::text::{self, Raw};

use super::decode::{Decoded, FirstOfPart, place_in, text_finding};
use super::document::{Document, Item};
use super::finding::{Fault, Finding, MOST_FINDINGS};
use super::place::At;
use super::secrets::{self, SecretFiles};
use crate::wire::{Accepted, Doubt, Intake, Mistake, Parent};

/// Resources in one batch.
const BATCH: usize = 1 << 14;
/// The maximum of bytes in one batch, give or take a resource.
const BATCH_BYTES: usize = 8 << 20;
/// A batch of no more resources and bytes than these is made by the calling
/// thread: starting others would take longer.
const SMALL_BATCH: usize = 64;
const SMALL_BATCH_BYTES: usize = 64 << 10;
/// More threads than this would wait for memory.
const MOST_THREADS: usize = 8;

/// Decodes a binary document, or a part of one. The contents of files that its
/// secrets name come from `files`. The caller limits the length of the
/// document.
pub(super) fn decode(
    file: &Arc<str>,
    source: impl Read + Seek,
    first: FirstOfPart,
    files: Option<&dyn SecretFiles>,
) -> io::Result<Decoded> {
    Reading::new(file, files).read_all(source, first)
}

/// Returns the number of threads for a large batch: one for each core, but
/// [`MOST_THREADS`] at most. To know the cores the system reads files, so a
/// document without a large batch does not ask.
fn thread_count() -> usize {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    cores.min(MOST_THREADS)
}

/// A resource of the document, or a virtual host of one, that a batch converts.
enum Job {
    Whole(usize, Any),
    Host(Arc<Parent>, usize, Bytes),
}

/// The results of consecutive jobs.
struct JobResults {
    document: Document,
    mistakes: Vec<Mistake>,
    doubts: Vec<(text::Spot, Field, Doubt)>,
    /// Faults of secrets.
    secret_errors: Vec<Finding>,
    secret_warnings: Vec<Finding>,
}

/// One pass over a document.
struct Reading<'a> {
    file: &'a Arc<str>,
    files: Option<&'a dyn SecretFiles>,
    /// One for each thread; only one until there is a large batch.
    intakes: Vec<Intake>,
    /// The batch, in the order of the file.
    jobs: Vec<Job>,
    /// The bytes of the jobs.
    bytes: usize,
    /// The route configuration whose virtual hosts are read; `None` if it has a
    /// mistake.
    parent: Option<Arc<Parent>>,
    decoded: Decoded,
}

impl<'a> Reading<'a> {
    /// Returns a pass over a document that has read nothing yet.
    fn new(file: &'a Arc<str>, files: Option<&'a dyn SecretFiles>) -> Self {
        Self {
            file,
            files,
            intakes: vec![Intake::default()],
            jobs: Vec::new(),
            bytes: 0,
            parent: None,
            decoded: Decoded::empty(file),
        }
    }

    /// Reads all pieces of the document, up to the first that is malformed:
    /// that one is a finding, and the resources before it are kept.
    fn read_all(mut self, source: impl Read + Seek, start: FirstOfPart) -> io::Result<Decoded> {
        let mut pieces = Pieces::new(source);
        loop {
            match pieces.next() {
                Ok(Some((0, Piece::Host(host, body)))) => {
                    let piece = Piece::Host(start.host + host, body);
                    self.add_piece(start.resource, piece);
                }
                Ok(Some((index, piece))) => self.add_piece(start.resource + index, piece),
                Ok(None) => break,
                Err(PiecesError::Io(error)) => return Err(error),
                Err(error) => {
                    self.decoded
                        .add_error(|| malformed_finding(self.file, &error));
                    break;
                }
            }
        }

        self.run_batch();
        self.decoded.document.items.shrink_to_fit();
        Ok(self.decoded)
    }

    /// Adds a piece to the batch, and runs the batch when it is full. `index`
    /// is that of the resource. A virtual host whose route configuration has a
    /// mistake is left out.
    fn add_piece(&mut self, index: usize, piece: Piece) {
        match piece {
            Piece::Whole(any) => {
                self.bytes += any.value.len();
                self.jobs.push(Job::Whole(index, any));
            }
            Piece::Host(host, body) => {
                if let Some(parent) = &self.parent {
                    self.bytes += body.len();
                    self.jobs.push(Job::Host(Arc::clone(parent), host, body));
                }
            }
            Piece::Route(route) => self.add_route(index, *route),
        }

        let is_full = self.jobs.len() >= BATCH || self.bytes >= BATCH_BYTES;
        if is_full {
            self.run_batch();
        }
    }

    /// Adds a route configuration whose virtual hosts come next. They need it,
    /// so it is made at once and is no job of a batch.
    fn add_route(&mut self, index: usize, route: Route) {
        // Resources before it in the file are added first.
        self.run_batch();

        let mut results = JobResults::new(self.file);
        let intake = &mut self.intakes[0];
        let outcome = intake.accept_route(self.file, index, route);
        self.parent = results.keep_mistakes(outcome).map(|(accepted, parent)| {
            results.add_accepted(intake, accepted, parent.spot());
            Arc::new(parent)
        });
        self.append(results);
    }

    /// Converts the jobs of the batch into resources, on all threads if the
    /// batch is large, and adds these in the order of the file.
    fn run_batch(&mut self) {
        let jobs = std::mem::take(&mut self.jobs);
        let bytes = std::mem::take(&mut self.bytes);
        let (file, files) = (self.file, self.files);
        if jobs.len() <= SMALL_BATCH && bytes <= SMALL_BATCH_BYTES {
            let results = run_jobs(file, files, &jobs, &mut self.intakes[0]);
            return self.append(results);
        }

        if self.intakes.len() == 1 {
            self.intakes.resize_with(thread_count(), Intake::default);
        }
        let jobs_per_thread = jobs.len().div_ceil(self.intakes.len()).max(1);
        let shares = jobs.chunks(jobs_per_thread).zip(&mut self.intakes);

        let results_by_thread: Vec<JobResults> = thread::scope(|scope| {
            let start = |(jobs, intake)| scope.spawn(move || run_jobs(file, files, jobs, intake));
            // All threads are started before the first one is waited for.
            let threads: Vec<_> = shares.map(start).collect();
            threads.into_iter().map(join).collect()
        });
        for results in results_by_thread {
            self.append(results);
        }
    }

    /// Appends the results of jobs to what was decoded: resources, mistakes and
    /// warnings, each kind of these up to [`MOST_FINDINGS`].
    fn append(&mut self, results: JobResults) {
        let (file, decoded) = (self.file, &mut self.decoded);
        decoded.document.append(results.document);
        for mistake in results.mistakes {
            decoded.add_error(|| mistake_finding(file, mistake));
        }
        extend_findings(&mut decoded.errors, results.secret_errors);
        extend_findings(&mut decoded.warnings, results.secret_warnings);
        for (spot, inner, doubt) in results.doubts {
            let field = spot.path().join(&inner).to_string();
            let place = At::text(text::Position::default(), field);
            decoded.add_warning(|| place.finding(file, Fault::Doubt(doubt)));
        }
    }
}

/// Waits for a thread and returns its result. If the thread panicked, this one
/// goes on with its panic.
fn join<T>(thread: thread::ScopedJoinHandle<'_, T>) -> T {
    match thread.join() {
        Ok(result) => result,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

/// Converts jobs into resources, in their order. A job with mistakes adds these
/// in place of its resources.
fn run_jobs(
    file: &Arc<str>,
    files: Option<&dyn SecretFiles>,
    jobs: &[Job],
    intake: &mut Intake,
) -> JobResults {
    let mut results = JobResults::new(file);
    results.document.items.reserve(jobs.len());
    for job in jobs {
        match job {
            Job::Whole(index, any) => {
                let outcome = results.convert_whole(intake, file, *index, any.clone(), files);
                if let Some((accepted, spot)) = results.keep_mistakes(outcome) {
                    results.add_accepted(intake, accepted, spot);
                }
            }
            Job::Host(parent, host, body) => {
                let outcome = intake.host_of(file, parent, *host, body.clone());
                if let Some(hosted) = results.keep_mistakes(outcome) {
                    results.add_doubts(hosted.spot, hosted.doubts);
                    for resource in hosted.resources {
                        results.add_host(intake, parent, resource, hosted.spot);
                    }
                }
            }
        }
    }
    results
}

impl JobResults {
    /// Returns the results of no jobs.
    fn new(file: &Arc<str>) -> Self {
        Self {
            document: Document::empty(file),
            mistakes: Vec::new(),
            doubts: Vec::new(),
            secret_errors: Vec::new(),
            secret_warnings: Vec::new(),
        }
    }

    /// Converts a resource that is a job of its own: any but a virtual host
    /// that is written in a route configuration. Only a secret needs the
    /// contents of `files`.
    fn convert_whole(
        &mut self,
        intake: &mut Intake,
        file: &Arc<str>,
        index: usize,
        any: Any,
        files: Option<&dyn SecretFiles>,
    ) -> Result<(Accepted, text::Spot), Vec<Mistake>> {
        let raw = Raw::new(file, index, any).map_err(only_mistake)?;
        if secrets::is_secret(&raw.type_url) {
            self.convert_secret(intake, file, raw, files)
        } else {
            intake.accept_raw(file, raw)
        }
    }

    /// Converts a secret, with the contents of the files that it names. Faults
    /// of the files become findings, and leave the secret in the document.
    fn convert_secret(
        &mut self,
        intake: &mut Intake,
        file: &Arc<str>,
        raw: Raw,
        files: Option<&dyn SecretFiles>,
    ) -> Result<(Accepted, text::Spot), Vec<Mistake>> {
        let spot = raw.spot;
        let mut secret = raw.decode(file).map_err(only_mistake)?;
        let faults = secrets::read_and_check(&mut secret, files);
        let finding =
            |(inner, fault): (Field, Fault)| place_in(&secret, &inner).finding(file, fault);

        let errors = faults.errors.into_iter().map(finding);
        extend_findings(&mut self.secret_errors, errors);
        let warnings = faults.warnings.into_iter().map(finding);
        extend_findings(&mut self.secret_warnings, warnings);
        intake.validate_and_accept(spot, &secret)
    }

    /// Returns the value of a result without mistakes. Otherwise returns `None`
    /// and keeps the mistakes, up to [`MOST_FINDINGS`] in all.
    fn keep_mistakes<T>(&mut self, outcome: Result<T, Vec<Mistake>>) -> Option<T> {
        match outcome {
            Ok(value) => Some(value),
            Err(mistakes) => {
                let room = MOST_FINDINGS.saturating_sub(self.mistakes.len());
                self.mistakes.extend(mistakes.into_iter().take(room));
                None
            }
        }
    }

    /// Adds the variants of a resource, and the virtual hosts that are written
    /// in it.
    fn add_accepted(&mut self, intake: &mut Intake, mut accepted: Accepted, spot: text::Spot) {
        self.add_doubts(spot, std::mem::take(&mut accepted.doubts));
        let host_at = |host| {
            let host = Some(host);
            At::from(text::Spot { host, ..spot })
        };
        let vhds = intake.vhds();
        self.document
            .add_accepted(&vhds, accepted, &spot.into(), host_at);
    }

    /// Adds a virtual host that is written in a route configuration.
    fn add_host(&mut self, intake: &mut Intake, parent: &Parent, host: Resource, spot: text::Spot) {
        self.document.push(Item {
            type_url: intake.vhds(),
            resource: Arc::new(host),
            at: spot.into(),
            wrapper_constraints: parent.written().cloned(),
            is_inline_host: true,
        });
    }

    /// Adds warnings about a resource, but no more than [`MOST_FINDINGS`] in
    /// all.
    fn add_doubts(&mut self, spot: text::Spot, doubts: Vec<(Field, Doubt)>) {
        let room = MOST_FINDINGS.saturating_sub(self.doubts.len());
        let doubts = doubts.into_iter().take(room);
        self.doubts
            .extend(doubts.map(|(inner, doubt)| (spot, inner, doubt)));
    }
}

/// Adds findings, but no more than [`MOST_FINDINGS`] in all.
fn extend_findings(findings: &mut Vec<Finding>, more: impl IntoIterator<Item = Finding>) {
    let room = MOST_FINDINGS.saturating_sub(findings.len());
    findings.extend(more.into_iter().take(room));
}

/// Returns an error as the only mistake of its resource.
fn only_mistake(error: Box<text::TextError>) -> Vec<Mistake> {
    vec![Mistake::Text(error)]
}

/// Makes the finding of a document that is no `DiscoveryResponse`.
fn malformed_finding(file: &Arc<str>, error: &PiecesError) -> Finding {
    let problem = text::Problem::NotBinary {
        message: "DiscoveryResponse",
        reason: error.to_string(),
    };
    Finding::whole(file, Fault::Text(problem))
}

/// Makes the finding of a mistake, at the place of the resource.
fn mistake_finding(file: &Arc<str>, mistake: Mistake) -> Finding {
    match mistake {
        Mistake::Text(error) => text_finding(file, *error),
        Mistake::Accept { spot, error } => At::from(spot).finding(file, Fault::Accept(error)),
    }
}
