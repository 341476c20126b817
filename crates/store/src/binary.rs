//! A binary file, which may be large: read a part at a time, its resources made
//! on all cores.

use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::path::Path;
use std::sync::Arc;
use std::thread;

use bytes::Bytes;
use trunkline::wire::{Accepted, Doubt, Intake, Mistake, Parent};
use trunkline::{Resource, TypeUrl};
use trunkline_proto::Path as Field;
use trunkline_proto::discovery::Any;
use trunkline_proto::pieces::{Piece, Pieces, PiecesError, Route};
use trunkline_proto::text;
use twox_hash::XxHash3_128;

use crate::item::{At, Item};
use crate::problem::{Fault, MOST, Problem};
use crate::read::{Outcome, text_problem};

/// Resources in one batch.
const BATCH: usize = 1 << 14;
/// The maximum of bytes in one batch, give or take a resource.
const BATCH_BYTES: usize = 8 << 20;
/// Bytes that are hashed at a time.
const HASHED_BYTES: usize = 1 << 20;
/// More threads than this would wait for memory.
const MOST_THREADS: usize = 8;

/// Reads a binary file. `before` is the hash of the bytes that were read
/// before; `None` is returned if they are the same.
pub(crate) fn read(
    path: &Path,
    file: &Arc<str>,
    before: Option<u128>,
    options: &text::Options,
) -> io::Result<Option<Outcome>> {
    let mut source = File::open(path)?;
    let (len, max) = (source.metadata()?.len(), options.limits.binary);
    if len > max {
        let fault = Fault::Text(too_long(len, max));
        return Ok(Some(Outcome::of_problem(Problem::whole(file, fault))));
    }
    let hash = hash(&mut source)?;
    if before == Some(hash) {
        return Ok(None);
    }
    source.rewind()?;
    let mut outcome = Reading::new(file).run(source)?;
    outcome.hash = Some(hash);
    Ok(Some(outcome))
}

/// Reports a file that is longer than the limit.
fn too_long(len: u64, max: u64) -> text::Problem {
    text::Problem::TooLong {
        len: usize::try_from(len).unwrap_or(usize::MAX),
        max: usize::try_from(max).unwrap_or(usize::MAX),
    }
}

/// Hashes a file a part at a time, from its beginning.
fn hash(source: &mut File) -> io::Result<u128> {
    let mut hash = XxHash3_128::new();
    let mut part = vec![0; HASHED_BYTES];
    loop {
        match source.read(&mut part)? {
            0 => return Ok(hash.finish_128()),
            len => hash.write(&part[..len]),
        }
    }
}

/// One intake for each thread.
fn intakes() -> Vec<Intake> {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let threads = cores.min(MOST_THREADS);
    (0..threads).map(|_| Intake::default()).collect()
}

/// A piece of the file, to be made into resources.
enum Job {
    Whole(usize, Any),
    Host(Arc<Parent>, usize, Bytes),
}

/// The results of some jobs.
#[derive(Default)]
struct Made {
    items: Vec<Item>,
    /// Whether one of them has constraints.
    constrained: bool,
    mistakes: Vec<Mistake>,
    doubts: Vec<(text::Spot, Field, Doubt)>,
}

/// One pass over a file.
struct Reading<'a> {
    file: &'a Arc<str>,
    /// One for each thread.
    intakes: Vec<Intake>,
    /// The batch, in the order of the file.
    jobs: Vec<Job>,
    /// The bytes of the jobs.
    bytes: usize,
    /// The route configuration whose virtual hosts are read; `None` if it has a
    /// mistake.
    parent: Option<Arc<Parent>>,
    outcome: Outcome,
}

impl<'a> Reading<'a> {
    /// A pass over a file that has read nothing yet.
    fn new(file: &'a Arc<str>) -> Self {
        Self {
            file,
            intakes: intakes(),
            jobs: Vec::new(),
            bytes: 0,
            parent: None,
            outcome: Outcome::empty(file),
        }
    }

    /// Reads all pieces of the file, up to the first that is malformed.
    fn run(mut self, source: File) -> io::Result<Outcome> {
        let mut pieces = Pieces::new(source);
        loop {
            match pieces.next() {
                Ok(Some((index, piece))) => self.piece(index, piece),
                Ok(None) => break,
                Err(PiecesError::Io(error)) => return Err(error),
                Err(error) => {
                    self.outcome.wrong(|| malformed(self.file, &error));
                    break;
                }
            }
        }
        self.run_batch();
        self.outcome.parsed.items.shrink_to_fit();
        Ok(self.outcome)
    }

    /// Adds a piece to the batch, and runs the batch when it is full. `index`
    /// is that of the resource.
    fn piece(&mut self, index: usize, piece: Piece) {
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
            Piece::Route(route) => self.route(index, *route),
        }
        if self.jobs.len() >= BATCH || self.bytes >= BATCH_BYTES {
            self.run_batch();
        }
    }

    /// Makes a route configuration whose virtual hosts come next. They need it,
    /// so it is no job of a batch.
    fn route(&mut self, index: usize, route: Route) {
        // In the order of the file.
        self.run_batch();
        let mut made = Made::default();
        let intake = &mut self.intakes[0];
        let read = intake.route(self.file, index, route);
        self.parent = made.good(read).map(|(accepted, parent)| {
            made.accepted(intake, accepted, parent.spot());
            Arc::new(parent)
        });
        self.add(made);
    }

    /// Makes resources of the jobs of the batch on all threads, and adds them
    /// in the order of the file.
    fn run_batch(&mut self) {
        let jobs = std::mem::take(&mut self.jobs);
        self.bytes = 0;
        let file = self.file;
        let each = jobs.len().div_ceil(self.intakes.len()).max(1);
        let parts = jobs.chunks(each).zip(&mut self.intakes);
        let made: Vec<Made> = thread::scope(|scope| {
            let make = |(jobs, intake)| scope.spawn(move || make(file, jobs, intake));
            let workers: Vec<_> = parts.map(make).collect();
            let made = workers.into_iter().map(|worker| match worker.join() {
                Ok(made) => made,
                Err(panic) => std::panic::resume_unwind(panic),
            });
            made.collect()
        });
        made.into_iter().for_each(|made| self.add(made));
    }

    /// Adds results of jobs to the outcome.
    fn add(&mut self, made: Made) {
        self.outcome.parsed.items.extend(made.items);
        self.outcome.parsed.constrained |= made.constrained;
        for mistake in made.mistakes {
            let file = self.file;
            self.outcome.wrong(|| problem(file, mistake));
        }
        for (spot, inner, doubt) in made.doubts {
            let field = spot.path().join(&inner).to_string();
            let at = At::text(text::Position::default(), field);
            self.outcome
                .doubtful(|| at.problem(self.file, Fault::Doubt(doubt)));
        }
    }
}

/// Makes resources of some jobs.
fn make(file: &str, jobs: &[Job], intake: &mut Intake) -> Made {
    let mut made = Made::default();
    made.items.reserve(jobs.len());
    for job in jobs {
        match job {
            Job::Whole(index, any) => {
                let read = intake.whole(file, *index, any.clone());
                if let Some((accepted, spot)) = made.good(read) {
                    made.accepted(intake, accepted, spot);
                }
            }
            Job::Host(parent, host, body) => {
                let read = intake.host_of(file, parent, *host, body.clone());
                if let Some(hosted) = made.good(read) {
                    made.doubt(hosted.spot, hosted.doubts);
                    for resource in hosted.resources {
                        made.item(intake.vhds(), resource, hosted.spot);
                    }
                }
            }
        }
    }
    made
}

impl Made {
    /// Returns a result without a mistake; the mistakes of another are kept.
    fn good<T>(&mut self, read: Result<T, Vec<Mistake>>) -> Option<T> {
        match read {
            Ok(value) => Some(value),
            Err(mistakes) => {
                let room = MOST.saturating_sub(self.mistakes.len());
                self.mistakes.extend(mistakes.into_iter().take(room));
                None
            }
        }
    }

    /// Adds the variants of a resource, and the virtual hosts that are written
    /// in it.
    fn accepted(&mut self, intake: &mut Intake, accepted: Accepted, spot: text::Spot) {
        for resource in accepted.variants {
            self.item(accepted.type_url.clone(), resource, spot);
        }
        for host in accepted.hosts {
            let spot = text::Spot {
                host: Some(host.index),
                ..spot
            };
            self.item(intake.vhds(), host.resource, spot);
        }
        self.doubt(spot, accepted.doubts);
    }

    /// Adds warnings, unless there are many.
    fn doubt(&mut self, spot: text::Spot, doubts: Vec<(Field, Doubt)>) {
        let room = MOST.saturating_sub(self.doubts.len());
        let doubts = doubts.into_iter().take(room);
        self.doubts
            .extend(doubts.map(|(inner, doubt)| (spot, inner, doubt)));
    }

    /// Adds one resource at its place.
    fn item(&mut self, type_url: TypeUrl, resource: Resource, spot: text::Spot) {
        self.constrained |= resource.constraints.is_some();
        self.items.push(Item {
            type_url,
            resource: Arc::new(resource),
            at: spot.into(),
        });
    }
}

/// Reports a file that is no `DiscoveryResponse`.
fn malformed(file: &Arc<str>, error: &PiecesError) -> Problem {
    let problem = text::Problem::NotBinary {
        message: "DiscoveryResponse",
        reason: error.to_string(),
    };
    Problem::whole(file, Fault::Text(problem))
}

/// Reports a mistake in a binary file at its place.
fn problem(file: &Arc<str>, mistake: Mistake) -> Problem {
    match mistake {
        Mistake::Text(error) => text_problem(file, *error),
        Mistake::Accept { spot, error } => At::from(spot).problem(file, Fault::Accept(error)),
    }
}
