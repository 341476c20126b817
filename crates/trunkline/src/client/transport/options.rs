//! Settings of the transports.

use std::time::Duration;

/// Settings of the connections and streams of a [`Connector`](super::Connector).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransportOptions {
    /// Bytes that a server may send on a stream before they are read: what a
    /// stream holds that its owner does not read.
    pub stream_window: u32,
    /// The same for all streams of a connection. Streams that are not read must
    /// not stop the others, so it is some times that of a stream.
    pub connection_window: u32,
    /// The longest message. A stream with a longer one ends.
    pub max_message: usize,
    /// How a peer that is dead is noticed; `None` is not at all.
    pub keepalive: Option<Keepalive>,
}

impl Default for TransportOptions {
    fn default() -> Self {
        Self {
            stream_window: 1 << 20,
            connection_window: 16 << 20,
            max_message: 64 << 20,
            keepalive: Some(Keepalive::default()),
        }
    }
}

/// Pings of HTTP/2 on a connection that is silent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keepalive {
    /// The silence after which a ping is sent. It doubles, up to an hour, for a
    /// control plane that closes connections because of too many pings, as
    /// those in Go do by default (gRFC A8).
    pub interval: Duration,
    /// How long the answer to a ping may take.
    pub timeout: Duration,
}

impl Default for Keepalive {
    fn default() -> Self {
        Self {
            interval: Duration::from_secs(30),
            timeout: Duration::from_secs(10),
        }
    }
}
