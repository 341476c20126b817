//! What a source of the Mesh Configuration Protocol costs with 100 000 resources
//! in one collection: memory, full states, changes, and sinks that resume.
//!
//! Sinks are light: they count bytes and ACK, over loopback and in this process,
//! so its CPU is that of both sides.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a program for developers, which may end with a panic"
)]

use std::time::{Duration, Instant};

use prost::Message as _;
use trunkline::client::transport::{Connector, Stream, TransportOptions};
use trunkline::listen::{self, Listening};
use trunkline::mcp::{self, McpResource, McpSource, Metadata};
use trunkline_proto::discovery::{Inbound as _, Limits};
use trunkline_proto::mcp::{RequestResources, Resource, Resources, SOURCE_METHOD};

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const COLLECTION: &str = "istio/networking/v1/serviceentries";
const OTHER: &str = "istio/networking/v1/gateways";
const RESOURCES: usize = 100_000;
/// Bytes of a body.
const BODY: usize = 400;
const SINKS: usize = 10;
const CHANGES: usize = 200;
/// Long enough that a message which should not come would have come.
const SILENCE: Duration = Duration::from_millis(500);

fn entry(number: usize, edition: usize) -> McpResource {
    let mut body = format!("edition {edition} of {number} ");
    body.extend(std::iter::repeat_n('x', BODY.saturating_sub(body.len())));
    let labels = [("app".to_owned(), format!("app-{}", number % 100))];
    McpResource {
        metadata: Some(Metadata {
            name: format!("namespace-{}/service-{number}", number % 500),
            labels: labels.into(),
            ..Metadata::default()
        }),
        ..mcp::resource("", "type.googleapis.com/example.Entry", body)
    }
}

/// A sink of one collection.
struct Sink {
    stream: Stream,
    request: RequestResources,
}

/// What a response was.
struct Taken {
    bytes: usize,
    resources: Vec<bytes::Bytes>,
}

impl Sink {
    async fn connect(address: &str, collection: &str, incremental: bool) -> Self {
        let connector = Connector::new(TransportOptions {
            max_message: 256 << 20,
            ..TransportOptions::default()
        });
        let source = mcp::plaintext(address.parse().unwrap());
        let stream = connector.open(&source, SOURCE_METHOD).await.unwrap();
        let request = RequestResources {
            collection: collection.to_owned(),
            incremental,
            ..RequestResources::default()
        };
        Self { stream, request }
    }

    async fn say(&mut self, request: &RequestResources) -> usize {
        let message = request.encode_to_vec();
        let bytes = message.len();
        self.stream.ready().await.unwrap();
        self.stream.send(message.into());
        bytes
    }

    /// Asks for the collection.
    async fn ask(&mut self) -> usize {
        let request = self.request.clone();
        let bytes = self.say(&request).await;
        self.request.initial_resource_versions.clear();
        bytes
    }

    /// Takes a response, and ACKs it.
    async fn take(&mut self) -> Taken {
        let raw = self.stream.next().await.unwrap().unwrap();
        let bytes = raw.len();
        let read = Resources::decode_checked(raw, &Limits::DEFAULT).unwrap();
        let ack = RequestResources {
            response_nonce: read.message.nonce,
            ..self.request.clone()
        };
        self.say(&ack).await;
        Taken {
            bytes,
            resources: read.message.resources,
        }
    }
}

/// Resident bytes of this process.
fn memory() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kibibytes: usize = line
        .unwrap()
        .trim()
        .trim_end_matches(" kB")
        .parse()
        .unwrap();
    kibibytes << 10
}

/// Seconds of CPU of this process.
fn cpu() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let (_, rest) = stat.rsplit_once(')').unwrap();
    let ticks = rest.split_whitespace().skip(11).take(2);
    ticks
        .map(|ticks| ticks.parse::<f64>().unwrap())
        .sum::<f64>()
        / 100.0
}

fn row(what: &str, figure: &str) {
    println!("| {what} | {figure} |");
}

fn mib(bytes: usize) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}

fn seconds(begun: Instant, cpu_before: f64) -> String {
    let (elapsed, used) = (begun.elapsed().as_secs_f64(), cpu() - cpu_before);
    format!("{elapsed:.2} s, {used:.2} s of CPU")
}

#[tokio::main]
async fn main() {
    println!("| what | figure |\n|---|---|");
    let source = McpSource::default();
    let before = memory();
    let entries: Vec<McpResource> = (0..RESOURCES).map(|number| entry(number, 0)).collect();
    source.set(COLLECTION, entries).unwrap();
    source.set(OTHER, [entry(0, 0)]).unwrap();
    let held = memory() - before;
    let each = held / RESOURCES;
    row(
        &format!("memory of {RESOURCES} resources with bodies of {BODY} bytes"),
        &format!("{}, {each} bytes each", mib(held)),
    );

    let listener = listen::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let serving = tokio::spawn(source.clone().listen(listener, Listening::default()));

    let (mut one, versions) = full_state(&address).await;
    let mut sinks = many_full_states(&address).await;
    changes(&source, &address, &mut sinks).await;
    whole_each_time(&source, &address, &mut sinks, &mut one).await;
    resume(&address, versions).await;
    row("memory of source and sinks at the end", &mib(memory()));
    serving.abort();
}

/// A full state for one sink. Returns it, and the versions that it got.
async fn full_state(address: &str) -> (Sink, Vec<(String, String)>) {
    let mut one = Sink::connect(address, COLLECTION, true).await;
    let (begun, used) = (Instant::now(), cpu());
    one.ask().await;
    let taken = one.take().await;
    let what = "the full state for one sink";
    row(
        what,
        &format!("{}, {}", mib(taken.bytes), seconds(begun, used)),
    );
    let read = |raw: &bytes::Bytes| {
        let metadata = Resource::decode(raw.clone()).unwrap().metadata.unwrap();
        (metadata.name, metadata.version)
    };
    (one, taken.resources.iter().map(read).collect())
}

/// The full state for several sinks at once.
async fn many_full_states(address: &str) -> Vec<Sink> {
    let mut sinks = Vec::new();
    for _ in 0..SINKS {
        sinks.push(Sink::connect(address, COLLECTION, true).await);
    }
    let (begun, used, before) = (Instant::now(), cpu(), memory());
    for sink in &mut sinks {
        sink.ask().await;
    }
    let mut bytes = 0;
    for sink in &mut sinks {
        bytes += sink.take().await.bytes;
    }
    let more = memory().saturating_sub(before);
    row(
        &format!("the same for {SINKS} sinks at once"),
        &format!(
            "{}, {}, {} more memory after it",
            mib(bytes),
            seconds(begun, used),
            mib(more)
        ),
    );
    sinks
}

/// Changes of one resource each, for those who asked and those who did not.
async fn changes(source: &McpSource, address: &str, sinks: &mut [Sink]) {
    let mut others = Vec::new();
    for _ in 0..SINKS {
        let mut other = Sink::connect(address, OTHER, true).await;
        other.ask().await;
        other.take().await;
        others.push(other);
    }
    let (mut times, mut longest, mut listed) = (Vec::new(), 0, 0);
    let used = cpu();
    for change in 1..=CHANGES {
        let begun = Instant::now();
        source
            .upsert(COLLECTION, entry(change * 7, change))
            .unwrap();
        for sink in &mut *sinks {
            let taken = sink.take().await;
            longest = longest.max(taken.bytes);
            listed += taken.resources.len();
        }
        times.push(begun.elapsed());
    }
    let used = (cpu() - used) * 1e6 / (CHANGES * SINKS) as f64;
    assert_eq!(listed, CHANGES * SINKS, "a change is one resource");
    times.sort();
    let (median, slowest) = (times[CHANGES / 2], times[CHANGES * 99 / 100]);
    row(
        &format!("a change of one resource until {SINKS} sinks have it"),
        &format!(
            "{:.2} ms in the median, {:.2} ms at the 99th percentile; {used:.0} µs of CPU for a sink, both sides",
            median.as_secs_f64() * 1e3,
            slowest.as_secs_f64() * 1e3
        ),
    );
    row("the longest response of these", &format!("{longest} bytes"));
    let mut heard = 0;
    for other in &mut others {
        let next = tokio::time::timeout(SILENCE / 10, other.stream.next());
        heard += usize::from(next.await.is_ok());
    }
    assert_eq!(heard, 0, "a sink of another collection hears nothing");
    row(
        &format!("responses to {SINKS} sinks of another collection meanwhile"),
        &heard.to_string(),
    );
}

/// A change for a sink that wants full states.
async fn whole_each_time(source: &McpSource, address: &str, sinks: &mut [Sink], one: &mut Sink) {
    let mut whole = Sink::connect(address, COLLECTION, false).await;
    whole.ask().await;
    whole.take().await;
    // The first sink was not read meanwhile: all changes are one response.
    let coalesced = one.take().await;
    let rest = match coalesced.resources.len() {
        1 => one.take().await.resources.len(),
        _ => 0,
    };
    let changed = coalesced.resources.len() + rest;
    row(
        &format!("responses to a sink that does not read during {CHANGES} changes"),
        &format!("2, of {changed} resources"),
    );
    let (begun, used) = (Instant::now(), cpu());
    source.upsert(COLLECTION, entry(1, CHANGES + 1)).unwrap();
    let taken = whole.take().await;
    row(
        "a change of one resource for a sink that wants full states",
        &format!("{}, {}", mib(taken.bytes), seconds(begun, used)),
    );
    for sink in sinks {
        sink.take().await;
    }
}

/// A sink that holds all but what changed, and resumes.
async fn resume(address: &str, versions: Vec<(String, String)>) {
    let mut resumed = Sink::connect(address, COLLECTION, true).await;
    resumed.request.initial_resource_versions = versions.into_iter().collect();
    let (begun, used) = (Instant::now(), cpu());
    let asked = resumed.ask().await;
    let taken = resumed.take().await;
    row(
        &format!(
            "a sink that resumes, {} resources behind",
            taken.resources.len()
        ),
        &format!(
            "{} asked, {} bytes answered, {}",
            mib(asked),
            taken.bytes,
            seconds(begun, used)
        ),
    );
}
