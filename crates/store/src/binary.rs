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
use trunkline_proto::pieces::{Piece, Pieces, PiecesError};
use trunkline_proto::text;
use twox_hash::XxHash3_128;

use crate::item::{At, Item};
use crate::problem::{Fault, MOST, Problem};
use crate::read::{Outcome, said};

/// Resources in one batch.
const BATCH: usize = 1 << 14;
/// The maximum of bytes in one batch, give or take a resource.
const BATCH_BYTES: usize = 8 << 20;
/// More threads than this would wait for memory.
const MOST_THREADS: usize = 8;

/// Reads a file, unless its bytes are those that were read before.
pub(crate) fn read(
    path: &Path,
    file: &Arc<str>,
    before: Option<u128>,
    options: &text::Options,
) -> io::Result<Option<Outcome>> {
    let mut source = File::open(path)?;
    let mut outcome = Outcome::empty(file);
    let (len, max) = (source.metadata()?.len(), options.limits.binary);
    if len > max {
        let problem = text::Problem::TooLong {
            len: usize::try_from(len).unwrap_or(usize::MAX),
            max: usize::try_from(max).unwrap_or(usize::MAX),
        };
        outcome.wrong(|| Problem::whole(file, Fault::Text(problem)));
        return Ok(Some(outcome));
    }
    let hash = hash(&mut source)?;
    if before == Some(hash) {
        return Ok(None);
    }
    source.rewind()?;
    let reading = Reading {
        file,
        intakes: intakes(),
        jobs: Vec::new(),
        bytes: 0,
        parent: None,
        outcome,
    };
    let mut outcome = reading.run(source)?;
    outcome.hash = Some(hash);
    Ok(Some(outcome))
}

fn hash(source: &mut File) -> io::Result<u128> {
    let mut hash = XxHash3_128::new();
    let mut part = vec![0; 1 << 20];
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

struct Reading<'a> {
    file: &'a Arc<str>,
    intakes: Vec<Intake>,
    jobs: Vec<Job>,
    /// The bytes of the jobs.
    bytes: usize,
    /// The route configuration whose virtual hosts are read; `None` if it has a
    /// mistake.
    parent: Option<Arc<Parent>>,
    outcome: Outcome,
}

impl Reading<'_> {
    fn run(mut self, source: File) -> io::Result<Outcome> {
        let mut pieces = Pieces::new(source);
        loop {
            match pieces.next() {
                Ok(Some((index, piece))) => self.piece(index, piece),
                Ok(None) => break,
                Err(PiecesError::Io(error)) => return Err(error),
                Err(error) => {
                    let problem = text::Problem::NotBinary {
                        message: "DiscoveryResponse",
                        reason: error.to_string(),
                    };
                    let problem = Problem::whole(self.file, Fault::Text(problem));
                    self.outcome.wrong(|| problem);
                    break;
                }
            }
        }
        self.work();
        self.outcome.parsed.items.shrink_to_fit();
        Ok(self.outcome)
    }

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
            Piece::Route(route) => {
                // In the order of the file.
                self.work();
                let mut made = Made::default();
                let intake = &mut self.intakes[0];
                let read = intake.route(self.file, index, *route);
                self.parent = made.ok(read).map(|(accepted, parent)| {
                    made.accepted(intake, accepted, parent.spot());
                    Arc::new(parent)
                });
                self.take(made);
            }
        }
        if self.jobs.len() >= BATCH || self.bytes >= BATCH_BYTES {
            self.work();
        }
    }

    /// Runs the batch.
    fn work(&mut self) {
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
        made.into_iter().for_each(|made| self.take(made));
    }

    fn take(&mut self, made: Made) {
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

fn make(file: &str, jobs: &[Job], intake: &mut Intake) -> Made {
    let mut made = Made::default();
    made.items.reserve(jobs.len());
    for job in jobs {
        match job {
            Job::Whole(index, any) => {
                let read = intake.whole(file, *index, any.clone());
                if let Some((accepted, spot)) = made.ok(read) {
                    made.accepted(intake, accepted, spot);
                }
            }
            Job::Host(parent, host, body) => {
                let read = intake.host_of(file, parent, *host, body.clone());
                if let Some(hosted) = made.ok(read) {
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
    fn ok<T>(&mut self, read: Result<T, Vec<Mistake>>) -> Option<T> {
        match read {
            Ok(value) => Some(value),
            Err(mistakes) => {
                let room = MOST.saturating_sub(self.mistakes.len());
                self.mistakes.extend(mistakes.into_iter().take(room));
                None
            }
        }
    }

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

    fn doubt(&mut self, spot: text::Spot, doubts: Vec<(Field, Doubt)>) {
        let room = MOST.saturating_sub(self.doubts.len());
        let doubts = doubts.into_iter().take(room);
        self.doubts
            .extend(doubts.map(|(inner, doubt)| (spot, inner, doubt)));
    }

    fn item(&mut self, type_url: TypeUrl, resource: Resource, spot: text::Spot) {
        self.constrained |= resource.constraints.is_some();
        self.items.push(Item {
            type_url,
            resource: Arc::new(resource),
            at: spot.into(),
        });
    }
}

fn problem(file: &Arc<str>, mistake: Mistake) -> Problem {
    match mistake {
        Mistake::Text(error) => said(file, *error),
        Mistake::Accept { spot, error } => At::from(spot).problem(file, Fault::Accept(error)),
    }
}
