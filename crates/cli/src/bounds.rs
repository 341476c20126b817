//! The budgets of a server: what is bounded, for whom, and what happens beyond
//! it. `docs/operations.md` shows this table; a test compares them.
//!
//! A row has its number from where the number is kept: the settings, the
//! library's [`bounds`](trunkline::bounds), or a constant of the admin API.

use std::fmt::Write as _;
use std::time::Duration;

use trunkline::Limit;
use trunkline::bounds;
use trunkline::events::LogLimits;
use trunkline::listen::Listening;
use trunkline::load::LoadLimits;
use trunkline::proto::load_stats::ReportLimits;
use trunkline::questions::{BodyLimits, QuestionLimits};
use trunkline::rest::RestLimits;

use self::Counter::{Counted, Names, Other};
use self::Scope::{Address, Connection, Message, Process, Stream};
use crate::settings::{ByteSize, Settings};
use crate::{admin, audit, log, running};

/// Whom a bound is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scope {
    Message,
    Stream,
    Connection,
    Address,
    Process,
}

/// One row.
struct Bound {
    scope: Scope,
    /// What is bounded.
    what: &'static str,
    /// The most there is, as people write it.
    most: String,
    /// What happens beyond it.
    beyond: &'static str,
    /// The key of its setting.
    key: Option<&'static str>,
    counter: Counter,
}

/// Where it is counted that a bound was met.
#[derive(Clone, Copy, Debug)]
enum Counter {
    /// Nowhere: the peer is told, or nothing is lost.
    None,
    /// `trunkline_limits_total` with this label.
    Counted(Limit),
    /// `trunkline_refused_names_total` with this label.
    Names(&'static str),
    /// Another metric, or a place.
    Other(&'static str),
}

/// Returns every bound of a server, each with the scope that it is for.
#[rustfmt::skip]
fn bounds_table(settings: &Settings) -> Vec<Bound> {
    let limits = &settings.limits;
    let times = &settings.times;
    let server = {
        let mut options = trunkline::Options::default();
        settings.fill(&mut options);
        options
    };
    let stream = &server.limits;
    let questions = QuestionLimits::default();
    let bodies = BodyLimits::of(limits.admin_body.0);
    let load = LoadLimits::of(settings.load.memory.0);
    let report = ReportLimits::default();
    let polls = RestLimits::default();
    let text = trunkline::proto::text::Limits::default();
    let events = LogLimits::default();
    let side = Listening::default();
    let uncounted = Counter::None;

    let row = |scope, what, most: String, beyond, key: &'static str, counter| Bound {
        scope,
        what,
        most,
        beyond,
        key: Some(key).filter(|key| !key.is_empty()),
        counter,
    };
    vec![
        row(Message, "a request of discovery", format_bytes(limits.request.0), "the stream ends with `OUT_OF_RANGE`", "max_request_bytes", uncounted),
        row(Message, "a name", format_bytes(limits.name.0), "it is answered as if it did not exist", "max_name_bytes", Names("request")),
        row(Message, "the text of a NACK", format_bytes(limits.error.0), "the rest of it is dropped", "max_error_bytes", uncounted),
        row(Message, "a response that can be split", format_bytes(limits.response.0), "it is split; one resource never is", "max_response_bytes", Other("trunkline_oversized_responses_total")),
        row(Message, "headers of a request", format_bytes(bounds::HEADERS as usize), "HTTP refuses it", "", uncounted),
        row(Message, "load reports", format!("{}; {} with `--load-endpoints`", format_bytes(bounds::LOAD_MESSAGE), format_bytes(bounds::LOAD_ENDPOINT_MESSAGE)), "the stream of reports ends with `OUT_OF_RANGE`", "", uncounted),
        row(Message, "clusters of load reports; texts and parts of one", format!("{}; {}", format_number(report.clusters), format_number(report.entries)), "the rest is refused", "", Other("`refused` of `/api/v1/loads`")),
        row(Message, "a question of CSDS", format_bytes(bounds::STATUS_REQUEST), "`OUT_OF_RANGE`", "", uncounted),
        row(Message, "matchers of it; expressions among them", format!("{}; {} of {}, {} of memory each", bounds::STATUS_MATCHERS, bounds::STATUS_REGEXES, format_bytes(bounds::REGEX_LENGTH), format_bytes(bounds::REGEX_MEMORY)), "`INVALID_ARGUMENT`", "", uncounted),
        row(Message, "an answer of CSDS", format_bytes(bounds::STATUS_ANSWER), "`RESOURCE_EXHAUSTED`, and how to ask for less", "", uncounted),
        row(Message, "a message of the Mesh Configuration Protocol, to a sink; to a source", format!("{}; {}", format_bytes(bounds::MCP_MESSAGE), format_bytes(bounds::MCP_REQUEST)), "the stream ends with `RESOURCE_EXHAUSTED`", "", uncounted),
        row(Message, "of a request to such a source: names and entries; bytes of what the sink says of itself", "1 048 576; 64 KiB".to_owned(), "the stream ends with `INVALID_ARGUMENT`", "", uncounted),
        row(Message, "a request of reflection", format_bytes(bounds::REFLECTION_REQUEST), "`OUT_OF_RANGE`", "", uncounted),
        row(Message, "the body of a poll by REST", format_bytes(polls.body_bytes), "413", "", uncounted),
        row(Message, "the body of a request to the admin API", format_bytes(limits.admin_body.0), "413", "max_admin_body", uncounted),
        row(Message, "the time of a body", format!("{} of silence; {}, and a second for each {}", format_time(bodies.silence), format_time(bodies.patience), format_bytes(bodies.rate)), "408", "", Counted(Limit::SlowBodies)),
        row(Message, "memory to read a text that is applied; some 15 000 clusters", format_u64_bytes(admin::TEXT_MEMORY), "422 at the line; `trunkline apply` sends larger files in binary parts", "", uncounted),
        row(Message, "the body of `POST /api/v1/explain`; memory to read it", format!("{}; {}", format_bytes(admin::NODE_BYTES), format_u64_bytes(admin::NODE_MEMORY)), "413; 422", "", uncounted),
        row(Message, "a file in YAML or JSON; memory to read it; its levels; values that aliases copy", format!("{}; {}; {}; {}", format_bytes(text.bytes), format_u64_bytes(text.memory), text.depth, format_number(text.expanded)), "a mistake of the file, at its line", "", uncounted),

        row(Stream, "names and globs", format_number(limits.subscriptions), "they are answered as if they did not exist", "max_subscriptions", Names("subscription")),
        row(Stream, "bytes of these names, each with 128 beside its own", format_bytes(stream.subscription_bytes), "the same", "", Names("subscription_bytes")),
        row(Stream, "hosts that no virtual host names", format_number(limits.hosts), "the same", "max_hosts", Names("host")),
        row(Stream, "globs", format_number(limits.globs), "the same", "max_globs", Names("subscription")),
        row(Stream, "types", format_number(limits.types), "the same", "max_types", Names("type")),
        row(Stream, "sets of parameters", format_number(limits.params), "the same", "max_params", Names("params")),
        row(Stream, "requests in a second", format_number(limits.requests_per_second as usize), "they wait", "max_requests_per_second", Counted(Limit::RequestRate)),
        row(Stream, "the time until its first request", format_time(bounds::FIRST_REQUEST), "`DEADLINE_EXCEEDED`", "", Counted(Limit::RequestTimeout)),
        row(Stream, "the time in which a request brings nothing; then what it has to bring in a second", format!("{}; {}", format_time(bounds::NEXT_PIECE), format_bytes(bounds::LEAST_RATE as usize)), "`DEADLINE_EXCEEDED`", "", Counted(Limit::RequestTimeout)),
        row(Stream, "requests to a source of the Mesh Configuration Protocol in a second", format_number(bounds::MCP_REQUESTS as usize), "they wait", "", Counted(Limit::RequestRate)),
        row(Stream, "collections that a sink asks for; bytes of the name of one", "1024; 1024".to_owned(), "it is not answered", "", Counted(Limit::Collections)),
        row(Stream, "bytes of the versions that a sink says it holds; of all sinks, of which a stream gets half of what is left", "32 MiB; 128 MiB".to_owned(), "they are not heeded, and a full state is sent; by delta the stream ends with `RESOURCE_EXHAUSTED`", "", Counted(Limit::HeldVersions)),
        row(Stream, "states of a collection that a sink rejected and that are remembered; bytes of the reason for each", "64; 1024".to_owned(), "the oldest is forgotten; the rest of the reason is dropped", "", uncounted),
        row(Stream, "the time until load reports name their node", format_time(bounds::FIRST_LOAD), "`DEADLINE_EXCEEDED`", "", uncounted),
        row(Stream, "responses on their way", "1".to_owned(), "the next one is built of the newest state, later", "", uncounted),
        row(Stream, "bytes that are not read yet", format_bytes(bounds::STREAM_WINDOW as usize), "HTTP/2 makes the client wait", "", uncounted),

        row(Connection, "streams", format_number(server.streams_per_connection), "HTTP/2 makes the client wait; Envoy opens another connection", "", uncounted),
        row(Connection, "streams of the Mesh Configuration Protocol", format_number(bounds::MCP_STREAMS), "HTTP/2 makes the peer wait", "", uncounted),
        row(Connection, "bytes of responses that are not taken", format_bytes(server.unsent_bytes), "its streams wait", "", Counted(Limit::Bytes)),
        row(Connection, "the time in which nothing of them is taken", format_time(times.send_timeout), "it is closed", "send_timeout", Counted(Limit::SendTimeout)),
        row(Connection, "bytes of requests that are not complete", format_bytes(limits.request.0), "they are not read until others are complete", "max_request_bytes", Counted(Limit::UnfinishedRequests)),
        row(Connection, "bytes that are not read yet", format_bytes(bounds::CONNECTION_WINDOW as usize), "HTTP/2 makes the client wait", "", uncounted),
        row(Connection, "streams that are reset before they are served", format_number(bounds::RESET_STREAMS), "it is closed", "", uncounted),
        row(Connection, "the time of a TLS handshake", format_time(bounds::HANDSHAKE), "it is closed", "", Counted(Limit::SilentConnections)),
        row(Connection, "the time until its first request", format_time(bounds::CONNECTION_FIRST_REQUEST), "it is closed", "", Counted(Limit::SilentConnections)),
        row(Connection, "the time without a request after that", format!("{}; {} over HTTP/1.1", format_time(bounds::CONNECTION_IDLE), format_time(bounds::HTTP1_IDLE)), "it is closed", "", uncounted),
        row(Connection, "its age, give or take a tenth", format_time(times.max_connection_age), "its streams end one by one", "max_connection_age", uncounted),

        row(Address, "connections", "half of all".to_owned(), "one more is closed", "max_connections_per_address", Counted(Limit::ConnectionsPerAddress)),
        row(Address, "streams, also of one identity", "half of all".to_owned(), "one more is refused with `RESOURCE_EXHAUSTED`, after `--refusal-delay`", "max_streams_per_peer", Counted(Limit::StreamsPerPeer)),
        row(Address, "work at once; in each second after that", format!("{}; {}", format_time(bounds::EFFORT_AT_ONCE), format_time(bounds::EFFORT_PER_SECOND)), "it is served behind the others", "", uncounted),
        row(Address, "bytes of requests that are not complete", share(server.unfinished_bytes / 2, 2 * bounds::UNFINISHED_PART), "they are not read until others are complete", "", Counted(Limit::UnfinishedRequests)),
        row(Address, "questions that are worked on", "half of all".to_owned(), "they wait", "", uncounted),
        row(Address, "questions that wait, and how long", format!("{}, {}", questions.peer_waiting, format_time(questions.patience)), "503, or `RESOURCE_EXHAUSTED`", "", Counted(Limit::Questions)),
        row(Address, "bytes of answers that are not read", share(questions.peer_bytes, 2 * bounds::ANSWERS_PART), "503, or `RESOURCE_EXHAUSTED`", "", Counted(Limit::AnswerBytes)),
        row(Address, "bytes of bodies of the admin API that arrive", "7/8 of all, or as much as it leaves".to_owned(), "503", "", Counted(Limit::Bodies)),

        row(Process, "memory", "that of the cgroup".to_owned(), "at nine tenths of it new streams, large answers and names that do not exist are refused; what is served stays", "memory_limit", Counted(Limit::Memory)),
        row(Process, "connections to the addresses of xDS", format_number(limits.connections), "one more is closed, or one without a request of the address that has the most", "max_connections", Counted(Limit::Connections)),
        row(Process, "connections to the admin address; to that of `--health`", format!("{}; {}", format_number(side.connections), running::HEALTH_CONNECTIONS), "the same", "", Counted(Limit::Connections)),
        row(Process, "connections to the address of `--mcp-listen`, or of `mcp source`, which has `--max-connections` for it", format_number(bounds::MCP_CONNECTIONS), "one more is closed, or one without a request of the address that has the most", "", Counted(Limit::Connections)),
        row(Process, "sources of a sink", "1".to_owned(), "one more is refused with `UNAVAILABLE`", "", Counted(Limit::Streams)),
        row(Process, "streams", format_number(limits.streams), "one more is refused with `RESOURCE_EXHAUSTED`, after `--refusal-delay`", "max_streams", Counted(Limit::Streams)),
        row(Process, "refused streams that are held", format_number(bounds::HELD_STREAMS), "one more ends at once", "", uncounted),
        row(Process, "streams of load reports", format_number(load.streams), "`RESOURCE_EXHAUSTED`", "", Counted(Limit::LoadStreams)),
        row(Process, "memory of load reports; of those of one node", format!("{}; a third of it", format_bytes(load.bytes)), "the rest is refused", "load_memory", Other("`refused` of `/api/v1/loads`")),
        row(Process, "bytes of names that do not exist", share(stream.missing_bytes, bounds::MISSING_PART), "they are answered as if they did not exist; a stream gets half of what is left", "", Names("missing_bytes")),
        row(Process, "types without contents", format_number(stream.all_types), "the same", "", Names("type")),
        row(Process, "sets of parameters; one of more than 512 bytes is several", format_number(limits.all_params), "the same", "max_all_params", Names("params")),
        row(Process, "bytes of requests that are not complete", share(server.unfinished_bytes, bounds::UNFINISHED_PART), "they are not read until others are complete; up to 64 KiB of a connection never wait", "", Counted(Limit::UnfinishedRequests)),
        row(Process, "bytes of requests that are decoded aside, those of more than 256 KiB", share(bounds::LONG_REQUESTS, bounds::LONG_REQUESTS_PART), "they wait in order", "", Counted(Limit::LongRequests)),
        row(Process, "questions that are worked on", "as many as processors, 2 at least".to_owned(), "they wait; `status`, `types` and `explain` have a line of their own", "", uncounted),
        row(Process, "bytes of answers that are not read", share(questions.bytes, bounds::ANSWERS_PART), "503, or `RESOURCE_EXHAUSTED`", "", Counted(Limit::AnswerBytes)),
        row(Process, "the time in which nothing of an answer is taken", format_time(questions.stall), "it is given up, and breaks off", "", Counted(Limit::UnreadAnswers)),
        row(Process, "bytes of bodies of the admin API that arrive", share(admin::ALL_BODIES, bounds::BODIES_PART), "503", "", Counted(Limit::Bodies)),
        row(Process, "changes of several requests that are not complete", format_number(admin::MOST_OPEN), "the oldest is given up", "", uncounted),
        row(Process, "requests that wait for clients", format_number(admin::MOST_WAITS), "503", "", uncounted),
        row(Process, "events that are kept; readers of them", format!("{}, {}; {}", format_number(events.events), format_bytes(events.bytes), events.readers), "the oldest go; 503", "", uncounted),
        row(Process, "lines of the log that wait", format_bytes(log::MOST_BYTES), "they are dropped", "", Other("trunkline_log_dropped_lines_total")),
        row(Process, "lines of the audit that wait, and how long a change waits for them", format!("{}, {}", format_bytes(audit::MOST_BYTES), format_time(audit::PATIENCE)), "they are dropped; with `--audit-required` the change is refused", "audit_required", Other("trunkline_audit_failures_total")),
    ]
}

/// Writes the bounds as a table in Markdown.
pub(crate) fn to_markdown_table(settings: &Settings) -> String {
    let mut text =
        "| for each | what | at most | beyond it | flag | counter |\n|---|---|---|---|---|---|\n"
            .to_owned();
    for bound in bounds_table(settings) {
        let Bound {
            what, most, beyond, ..
        } = &bound;
        let scope = bound.scope.name();
        let flag = bound
            .key
            .map(|key| format!("`--{}`", key.replace('_', "-")));
        let flag = flag.unwrap_or_default();
        let counter = bound.counter.to_markdown();

        // Writing to a text does not fail.
        let _ = writeln!(
            text,
            "| {scope} | {what} | {most} | {beyond} | {flag} | {counter} |"
        );
    }
    text
}

impl Scope {
    /// Returns the word for the scope in the table.
    fn name(self) -> &'static str {
        match self {
            Self::Message => "message",
            Self::Stream => "stream",
            Self::Connection => "connection",
            Self::Address => "address",
            Self::Process => "process",
        }
    }
}

impl Counter {
    /// Writes the counter for the table; an empty text if nothing counts the
    /// bound.
    fn to_markdown(self) -> String {
        match self {
            Self::None => String::new(),
            Self::Counted(limit) => format!("`{}`", limit.as_str()),
            Self::Names(reason) => format!("names: `{reason}`"),
            Self::Other(place) if place.starts_with('`') => place.to_owned(),
            Self::Other(metric) => format!("`{metric}`"),
        }
    }
}

/// Writes a number of bytes in the largest unit of which it is a multiple.
fn format_bytes(bytes: usize) -> String {
    let text = ByteSize(bytes).to_string();
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit()).len();
    match text.split_at(digits) {
        (number, "") => format!("{number} bytes"),
        (number, unit) => format!("{number} {unit}"),
    }
}

/// Writes a bound of so many bytes, and of no more than one of `part` parts of the
/// memory limit.
fn share(bytes: usize, part: usize) -> String {
    format!("{}, and 1/{part} of `memory`", format_bytes(bytes))
}

/// Writes a number of bytes as [`format_bytes`] does.
fn format_u64_bytes(bytes: u64) -> String {
    format_bytes(usize::try_from(bytes).unwrap_or(usize::MAX))
}

/// Writes a number; from 10 000 on, in groups of three digits.
fn format_number(number: usize) -> String {
    let digits = number.to_string();
    let first_group_len = digits.len() % 3;
    let mut text = digits[..first_group_len].to_owned();
    for group in digits.as_bytes()[first_group_len..].chunks(3) {
        if !text.is_empty() && number >= 10_000 {
            text.push(' ');
        }
        text.extend(group.iter().map(|digit| char::from(*digit)));
    }
    text
}

/// Formats a time in milliseconds, seconds or whole minutes.
fn format_time(time: Duration) -> String {
    match time {
        time if time < Duration::from_secs(1) => format!("{} ms", time.as_millis()),
        time if time.as_secs() % 60 == 0 && time.as_secs() > 60 => {
            format!("{} minutes", time.as_secs() / 60)
        }
        time => format!("{} s", time.as_secs()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::is_key;

    const PAGE: &str = "../../docs/operations.md";
    const BEGIN: &str = "<!-- written by `trunkline settings --print-bounds` -->\n\n";
    const END: &str = "\n<!-- end of the table -->\n";

    /// To write the page anew, set `TRUNKLINE_WRITE_DOCS`.
    #[test]
    fn the_page_of_the_documentation_has_this_table() {
        let page = std::fs::read_to_string(PAGE).unwrap();
        let (before, rest) = page.split_once(BEGIN).expect("a place for the table");
        let (old, after) = rest.split_once(END).expect("the end of the table");
        let table = to_markdown_table(&Settings::new());
        if std::env::var_os("TRUNKLINE_WRITE_DOCS").is_some() {
            let written = format!("{before}{BEGIN}{table}{END}{after}");
            std::fs::write(PAGE, written).unwrap();
            return;
        }
        for (line, (old, new)) in old.lines().zip(table.lines()).enumerate() {
            assert_eq!(old, new, "line {line} of the table of bounds in {PAGE}");
        }
        assert_eq!(old, table);
    }

    #[test]
    fn every_flag_is_one_and_every_limit_is_in_the_table() {
        let table = bounds_table(&Settings::new());
        for key in table.iter().filter_map(|bound| bound.key) {
            assert!(is_key(key), "{key}");
        }
        // Not bounds on what a peer costs: contents that are not there yet, and
        // secrets.
        let others = [Limit::NotReady, Limit::Keys, Limit::ErrorText];
        let is_told = |limit: &Limit| {
            let mut counters = table.iter().map(|bound| bound.counter);
            counters.any(|counter| matches!(counter, Counted(told) if told == *limit))
        };
        for limit in Limit::ALL.iter().filter(|limit| !others.contains(limit)) {
            assert!(is_told(limit), "{limit:?}");
        }
    }

    #[test]
    fn numbers_are_written_as_people_read_them() {
        assert_eq!(format_bytes(64 << 20), "64 MiB");
        assert_eq!(format_bytes(1000), "1000 bytes");
        assert_eq!(format_number(20), "20");
        assert_eq!(format_number(4096), "4096");
        assert_eq!(format_number(65_536), "65 536");
        assert_eq!(format_number(1_000_000), "1 000 000");
        assert_eq!(format_time(Duration::from_secs(300)), "5 minutes");
        assert_eq!(format_time(Duration::from_millis(50)), "50 ms");
    }
}
