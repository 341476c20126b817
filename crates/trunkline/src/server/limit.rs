//! Limits of a server, as hooks and metrics are told of them.

/// A limit of a server that was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Limit {
    /// A stream was refused: there are too many.
    Streams,
    /// A connection was closed: there are too many. The one that was closed is
    /// a new one, or one without a request.
    Connections,
    /// Requests had to wait: the stream makes too many in a second.
    RequestRate,
    /// A response had to wait: the client has not taken earlier ones of the
    /// same connection.
    Bytes,
    /// A stream was refused: the first contents are not there yet (S51).
    NotReady,
    /// A stream or a question was refused: the process is near its memory limit.
    Memory,
    /// A resource with a private key in it was withheld from a client that is
    /// not one for secrets.
    Keys,
    /// The text of a NACK was dropped: the client was sent more secrets than
    /// the text can be compared with.
    ErrorText,
    /// A connection was closed: its address has too many.
    ConnectionsPerAddress,
    /// A stream was refused: its address or its identity has too many.
    StreamsPerPeer,
    /// A connection was closed: it made no request.
    SilentConnections,
    /// A connection was closed: its peer took nothing of what waited for it.
    SendTimeout,
    /// A long request had to wait: other requests of the same connection or
    /// address, or of all, are not complete.
    UnfinishedRequests,
    /// A stream ended: a request did not come, or not all of it.
    RequestTimeout,
    /// A long request had to wait for those of others.
    LongRequests,
    /// A question was refused: too many are being answered.
    Questions,
    /// A question was refused: too many bytes of answers are not read yet.
    AnswerBytes,
    /// An answer was given up: its asker took nothing of it.
    UnreadAnswers,
    /// The body of a request was refused: too many are arriving.
    Bodies,
    /// The body of a request was refused: it did not arrive in time.
    SlowBodies,
    /// A stream of load reports was refused: there are too many.
    LoadStreams,
    /// A collection of MCP was not answered: its sink asks for too many, or its
    /// name is too long.
    Collections,
    /// Versions that a sink of MCP says it holds were ignored: there are too
    /// many. It is sent a full state.
    HeldVersions,
}

impl Limit {
    /// Every limit.
    pub const ALL: [Self; 23] = [
        Self::Streams,
        Self::Connections,
        Self::RequestRate,
        Self::Bytes,
        Self::NotReady,
        Self::Memory,
        Self::Keys,
        Self::ErrorText,
        Self::ConnectionsPerAddress,
        Self::StreamsPerPeer,
        Self::SilentConnections,
        Self::SendTimeout,
        Self::UnfinishedRequests,
        Self::RequestTimeout,
        Self::LongRequests,
        Self::Questions,
        Self::AnswerBytes,
        Self::UnreadAnswers,
        Self::Bodies,
        Self::SlowBodies,
        Self::LoadStreams,
        Self::Collections,
        Self::HeldVersions,
    ];

    /// Returns the label of the limit in metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Streams => "streams",
            Self::Connections => "connections",
            Self::RequestRate => "request_rate",
            Self::Bytes => "bytes",
            Self::NotReady => "not_ready",
            Self::Memory => "memory",
            Self::Keys => "keys",
            Self::ErrorText => "error_text",
            Self::ConnectionsPerAddress => "connections_per_address",
            Self::StreamsPerPeer => "streams_per_peer",
            Self::SilentConnections => "silent_connections",
            Self::SendTimeout => "send_timeout",
            Self::UnfinishedRequests => "unfinished_requests",
            Self::RequestTimeout => "request_timeout",
            Self::LongRequests => "long_requests",
            Self::Questions => "questions",
            Self::AnswerBytes => "answer_bytes",
            Self::UnreadAnswers => "unread_answers",
            Self::Bodies => "bodies",
            Self::SlowBodies => "slow_bodies",
            Self::LoadStreams => "load_streams",
            Self::Collections => "collections",
            Self::HeldVersions => "held_versions",
        }
    }
}
