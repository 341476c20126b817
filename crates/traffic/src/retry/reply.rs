//! Replies of the proxy itself, where there is no response of an upstream
//! (facts 5).

use super::conditions::Reset;

/// A reply of the proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply {
    /// No connection, or one that ended before the response.
    Reset(Reset),
    /// The cluster has no endpoint.
    NoHealthyUpstream,
    /// The response took too long.
    ResponseTimeout,
    /// An attempt took too long, and no other is made.
    PerTryTimeout,
    /// A timeout that the client wants answered by 204.
    NoContent,
    /// Nothing was sent either way for too long.
    IdleTimeout,
    /// The stream lasted too long.
    StreamDuration,
    /// The stream to the upstream lasted too long.
    UpstreamStreamDuration,
}

impl Reply {
    pub(super) fn reset(reset: Reset) -> Self {
        Self::Reset(reset)
    }

    /// Returns the HTTP status, for a request that was received as a whole.
    #[must_use]
    pub fn status(self) -> u16 {
        match self {
            Self::Reset(Reset::ProtocolError) => 502,
            Self::Reset(_) | Self::NoHealthyUpstream => 503,
            Self::NoContent => 204,
            Self::ResponseTimeout
            | Self::PerTryTimeout
            | Self::IdleTimeout
            | Self::StreamDuration
            | Self::UpstreamStreamDuration => 504,
        }
    }

    /// Returns the body.
    #[must_use]
    pub fn body(self) -> String {
        match self {
            Self::Reset(reset) => {
                let reason = match reset {
                    Reset::ConnectFailure => "remote connection failure",
                    Reset::ConnectionTermination { .. } => "connection termination",
                    Reset::RefusedStream => "remote refused stream reset",
                    Reset::Stream => "remote reset",
                    Reset::ProtocolError => "protocol error",
                    Reset::Overflow => "overflow",
                };
                format!(
                    "upstream connect error or disconnect/reset before headers. reset reason: {reason}"
                )
            }
            Self::NoHealthyUpstream => "no healthy upstream".to_owned(),
            Self::ResponseTimeout | Self::PerTryTimeout => "upstream request timeout".to_owned(),
            Self::NoContent => String::new(),
            Self::IdleTimeout => "stream timeout".to_owned(),
            Self::StreamDuration => "downstream duration timeout".to_owned(),
            Self::UpstreamStreamDuration => "upstream max stream duration reached".to_owned(),
        }
    }

    /// Returns the response flag of the access log; empty if there is none.
    #[must_use]
    pub fn flag(self) -> &'static str {
        match self {
            Self::Reset(Reset::ConnectFailure) => "UF",
            Self::Reset(Reset::ConnectionTermination { .. }) => "UC",
            Self::Reset(Reset::ProtocolError) => "UPE",
            Self::Reset(Reset::Overflow) => "UO",
            Self::Reset(Reset::RefusedStream | Reset::Stream) => "UR",
            Self::NoHealthyUpstream => "UH",
            Self::ResponseTimeout | Self::PerTryTimeout | Self::NoContent => "UT",
            Self::IdleTimeout => "SI",
            Self::StreamDuration => "",
            Self::UpstreamStreamDuration => "UMSDR",
        }
    }

    /// Returns the gRPC status, where the request is of gRPC: the response then
    /// is a 200 without body, and the text is in `grpc-message`.
    #[must_use]
    pub fn grpc_status(self) -> u8 {
        match self {
            Self::StreamDuration => 4,
            Self::NoContent => 0,
            _ => 14,
        }
    }
}
