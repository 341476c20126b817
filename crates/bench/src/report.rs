//! What was found, for programs; [`crate::table`] shows it to people.

use serde::Serialize;

use crate::contents::Kind;
use crate::measure::{Count, Quantiles, Usage, Work};
use crate::options::{Asking, Options, Told, Variant};

/// What was found.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// What was measured.
    pub scenario: Scenario,
    /// Seconds until a server that the tool started accepted connections.
    pub started_in: Option<f64>,
    /// Programs that wanted to run on the machine before this began.
    pub load: Option<f64>,
    /// Bytes of the server's memory that the first stream took, what is made
    /// for it and kept for others included; none if there was no other.
    pub memory_of_first_stream: Option<f64>,
    /// What happened, one after the other.
    pub phases: Vec<Phase>,
    /// Whether clients held the right contents at the end.
    pub check: Check,
    /// What a reader of the numbers has to know.
    pub warnings: Vec<String>,
}

/// What was measured.
#[derive(Clone, Debug, Serialize)]
pub struct Scenario {
    /// Which server.
    pub server: String,
    /// Clients that behave.
    pub clients: usize,
    /// Which variant of the protocol.
    pub mode: Variant,
    /// A stream for each type.
    pub per_type: bool,
    /// What clients ask for.
    pub ask: Asking,
    /// Of which types.
    pub types: Vec<Kind>,
    /// Resources of each type.
    pub resources: usize,
    /// Variants of each.
    pub variants: usize,
    /// Kinds of clients.
    pub categories: usize,
    /// How they say which kind they are, if there are several.
    pub told_by: Option<Told>,
    /// Bytes of one resource, as it was put.
    pub size: usize,
    /// Connections that are shared; 0 is one each.
    pub connections: usize,
    /// Clients keep revisions only.
    pub light: bool,
    /// The part of the changes that were removals.
    pub removals: f64,
    /// Clients that never read, and that reject everything.
    pub slow_readers: usize,
    /// Clients that reject everything.
    pub nackers: usize,
    /// The part of the changes that they reject, if that is not everything.
    pub nack_part: Option<f64>,
    /// The program, as it was called.
    pub command: String,
}

impl Scenario {
    /// Describes a measurement by its flags. `size` is the length of one
    /// resource in bytes.
    pub(crate) fn of(options: &Options, server: String, size: usize) -> Self {
        Self {
            server,
            clients: options.clients,
            mode: options.mode,
            per_type: options.per_type,
            ask: options.ask,
            types: options.types.clone(),
            resources: options.resources,
            variants: options.variants,
            categories: options.categories,
            told_by: (options.categories > 0).then(|| options.told()),
            size,
            connections: options.connections,
            light: options.light,
            removals: options.removals,
            slow_readers: options.slow_readers,
            nackers: options.nackers,
            nack_part: options.nack_part,
            command: command(),
        }
    }
}

/// Returns the command line, with the program by its name only.
fn command() -> String {
    let mut args = std::env::args();
    let program = args.next().unwrap_or_default();
    let name = program.rsplit('/').next().unwrap_or_default().to_owned();
    std::iter::once(name)
        .chain(args)
        .collect::<Vec<_>>()
        .join(" ")
}

/// One thing that happened.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Phase {
    /// What.
    pub name: &'static str,
    /// Seconds it took.
    pub seconds: f64,
    /// What clients counted.
    pub count: Count,
    /// What the server used; none if its process is not known.
    pub server: Option<Usage>,
    /// What its engine did; none of a server that does not tell.
    pub work: Option<Work>,
    /// Its memory when the phase began.
    pub server_memory_before: Option<u64>,
    /// What the tool itself used.
    pub tool: Usage,
    /// Milliseconds from being told to connect to the first configuration.
    pub first_configuration: Option<Quantiles>,
    /// Milliseconds from a change to its arrival at each client.
    pub convergence: Option<Quantiles>,
    /// The same at clients that reject some changes, of those that they take.
    pub convergence_of_nackers: Option<Quantiles>,
    /// Milliseconds from subscribing to a name to its resource.
    pub answer: Option<Quantiles>,
    /// Microseconds of the server's CPU for each change at each client.
    pub cpu_per_update: Option<f64>,
    /// Bytes of the server's memory for each stream after the first; for that,
    /// if there is no other.
    pub memory_per_stream: Option<f64>,
    /// Bytes of resources that changed, times the clients that hold them.
    pub changed_bytes: Option<u64>,
}

/// Whether clients held the right contents at the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Check {
    /// Resources at clients that were not the newest.
    pub stale: u64,
    /// Resources that clients should have had and did not.
    pub missing: u64,
    /// Resources that nobody put, or not as they were put.
    pub wrong: u64,
    /// Variants that are for other clients.
    pub foreign: u64,
    /// Resources that went backwards from one revision to an older one.
    pub backwards: u64,
    /// Resources that were removed from clients though nobody removed them.
    pub lost: u64,
}

impl Report {
    /// Returns whether everything that clients held was right.
    #[must_use]
    pub fn is_correct(&self) -> bool {
        self.check == Check::default()
    }
}
