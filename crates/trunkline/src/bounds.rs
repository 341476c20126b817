//! Bounds that are fixed: those that no option sets.
//!
//! All bounds on what a peer can cost are here, in [`Options`](crate::Options),
//! or in one of the values that these modules have by default: [`QuestionLimits`]
//! and [`BodyLimits`] of what is asked beside discovery, [`LoadLimits`] of load
//! reports, [`RestLimits`] of polls, and [`Limits`] of the state of a stream. The
//! program shows them as one table, in `docs/operations.md`.
//!
//! [`QuestionLimits`]: crate::questions::QuestionLimits
//! [`BodyLimits`]: crate::questions::BodyLimits
//! [`LoadLimits`]: crate::load::LoadLimits
//! [`RestLimits`]: crate::rest::RestLimits
//! [`Limits`]: trunkline_core::limits::Limits

use std::time::Duration;

// A message.

/// Requests of more bytes than this are decoded aside. A shorter one takes a
/// millisecond at most.
pub const LARGE_REQUEST: usize = 256 << 10;

/// Bytes of one message of load reports: a report on ten thousand clusters of
/// three localities has three million.
pub const LOAD_MESSAGE: usize = 4 << 20;

/// The same where clients report on each endpoint.
pub const LOAD_ENDPOINT_MESSAGE: usize = 16 << 20;

/// Bytes of one message of the Mesh Configuration Protocol, either way: a full
/// state of a hundred thousand resources of six hundred bytes has as many.
pub const MCP_MESSAGE: usize = 64 << 20;

/// Bytes of one request to a source of it: a sink that reconnects lists what it
/// holds, and may ask for a full state instead.
pub const MCP_REQUEST: usize = 8 << 20;

/// Bytes of a request of CSDS: room for its matchers.
pub const STATUS_REQUEST: usize = 128 << 10;

/// Bytes of an answer of CSDS, about. Many clients with many resources are more
/// than anyone can read.
pub const STATUS_ANSWER: usize = 32 << 20;

/// Matchers in one request of CSDS.
pub const STATUS_MATCHERS: usize = 100;

/// Expressions among them: compiling one takes a while.
pub const STATUS_REGEXES: usize = 10;

/// Bytes of one expression.
pub const REGEX_LENGTH: usize = 1024;

/// Bytes of memory for one expression, and for what it remembers while it
/// matches.
pub const REGEX_MEMORY: usize = 1 << 20;

/// Bytes of a request of reflection, which is a name.
pub const REFLECTION_REQUEST: usize = 16 << 10;

/// Bytes of the headers of a request, as HTTP/2 counts them.
pub const HEADERS: u32 = 16 << 10;

// A stream.

/// How long a stream may be without its first request.
pub const FIRST_REQUEST: Duration = Duration::from_secs(30);

/// How long an incomplete message may bring nothing.
pub const NEXT_PIECE: Duration = Duration::from_secs(30);

/// Bytes of an incomplete message that have to arrive in a second, after
/// [`NEXT_PIECE`] is used up.
pub const LEAST_RATE: u32 = 64 << 10;

/// How long a stream of load reports may take to say whose it is.
pub const FIRST_LOAD: Duration = Duration::from_secs(30);

/// Bytes that a peer may send on a stream before they are read. Requests of xDS
/// are small; a long one arrives by so many bytes in each round trip.
pub const STREAM_WINDOW: u32 = 128 << 10;

// A connection.

/// How long a TLS handshake may take.
pub const HANDSHAKE: Duration = Duration::from_secs(10);

/// How long a connection may be without its first request. Clients of xDS and
/// probes connect because they have one.
pub const CONNECTION_FIRST_REQUEST: Duration = Duration::from_secs(10);

/// How long a connection may be without an open request after that. A client
/// whose stream ended waits for up to two minutes before it opens the next, and
/// should find the connection.
pub const CONNECTION_IDLE: Duration = Duration::from_secs(5 * 60);

/// How long the headers of an HTTP/1.1 request may take, and the longest that
/// such a connection is kept for the next request.
pub const HTTP1_IDLE: Duration = Duration::from_secs(10);

/// Bytes that a peer may send on all streams of a connection before they are
/// read. It is more than that of a stream, so that a stream whose requests wait
/// does not hold up the others.
pub const CONNECTION_WINDOW: u32 = 256 << 10;

/// Streams that the peer reset before they were served.
pub const RESET_STREAMS: usize = 20;

/// Bytes of unfinished requests that a connection may have at any time.
pub const SMALL_REQUESTS: usize = 64 << 10;

/// Requests in a second on one stream to a source; a sink has one for each
/// collection at first, and then one for each response.
pub const MCP_REQUESTS: u32 = 250;

/// Bytes of unfinished messages of the Mesh Configuration Protocol where it runs
/// without a server, whose bound it shares otherwise.
pub const MCP_UNFINISHED: usize = 256 << 20;

/// Streams of the Mesh Configuration Protocol on a connection: a source and a
/// sink have one.
pub const MCP_STREAMS: usize = 1;

// An address.

/// The work that an address may be at once, before it is served behind the
/// others.
pub const EFFORT_AT_ONCE: Duration = Duration::from_millis(10);

/// The work that an address may be in each second, in the long run.
pub const EFFORT_PER_SECOND: Duration = Duration::from_millis(50);

// The process.

/// The part of the memory limit that names which do not exist may weigh. They
/// take up to twice their weight while they are asked for.
pub const MISSING_PART: usize = 6;

/// The part of the memory limit for requests that are not complete.
pub const UNFINISHED_PART: usize = 8;

/// The part of the memory limit for long requests that are decoded and not
/// applied yet, as they arrived.
pub const LONG_REQUESTS_PART: usize = 24;

/// The part of the memory limit for answers that are not read.
pub const ANSWERS_PART: usize = 8;

/// The part of the memory limit for bodies of an admin API.
pub const BODIES_PART: usize = 8;

/// Connections to an address of the Mesh Configuration Protocol. Its peers are
/// control planes, of which there are few.
pub const MCP_CONNECTIONS: usize = 64;

/// Refused streams that are held open; one more ends at once. Half of them may
/// be of one address.
pub const HELD_STREAMS: usize = 10_000;

/// Bytes of long requests that are decoded and not applied yet, those of all
/// streams together. Decoded names take several times as much. Two of the
/// largest requests, or a fleet's of the usual size.
pub const LONG_REQUESTS: usize = 128 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    /// How many times as much as they count with, the things of a share take at
    /// most: names while they are asked for, and requests once they are decoded.
    const SHARES: [(usize, f64); 5] = [
        (MISSING_PART, 2.0),
        (UNFINISHED_PART, 1.0),
        (LONG_REQUESTS_PART, 4.0),
        (ANSWERS_PART, 1.0),
        (BODIES_PART, 1.0),
    ];

    #[test]
    fn all_shares_together_are_below_the_limit() {
        let shares = SHARES.map(|(part, times)| times / part as f64);
        let all: f64 = shares.iter().sum();
        assert!(all < 0.9, "{all} of the limit");
    }
}
