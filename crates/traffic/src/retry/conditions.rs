//! Conditions under which a request is tried again (41, 43).

use crate::headers::Headers;

/// A set of conditions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Conditions(u32);

/// One condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum Condition {
    ServerError,
    GatewayError,
    Reset,
    ResetBeforeRequest,
    ConnectFailure,
    RateLimited,
    Retriable4xx,
    RefusedStream,
    StatusCodes,
    Headers,
    Cancelled,
    DeadlineExceeded,
    Internal,
    ResourceExhausted,
    Unavailable,
}

/// The words of `retry_on`, and of `x-envoy-retry-on`.
const WORDS: &[(&str, Condition)] = &[
    ("5xx", Condition::ServerError),
    ("gateway-error", Condition::GatewayError),
    ("reset", Condition::Reset),
    ("reset-before-request", Condition::ResetBeforeRequest),
    ("connect-failure", Condition::ConnectFailure),
    ("envoy-ratelimited", Condition::RateLimited),
    ("retriable-4xx", Condition::Retriable4xx),
    ("refused-stream", Condition::RefusedStream),
    ("retriable-status-codes", Condition::StatusCodes),
    ("retriable-headers", Condition::Headers),
];

/// The words of gRPC, in `retry_on` and in `x-envoy-retry-grpc-on`, and the
/// status of each.
const GRPC_WORDS: &[(&str, Condition, &[u8])] = &[
    ("cancelled", Condition::Cancelled, b"1"),
    ("deadline-exceeded", Condition::DeadlineExceeded, b"4"),
    ("resource-exhausted", Condition::ResourceExhausted, b"8"),
    ("internal", Condition::Internal, b"13"),
    ("unavailable", Condition::Unavailable, b"14"),
];

/// Why there is no response of the upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reset {
    /// No connection was made.
    ConnectFailure,
    /// The connection ended, before any byte of the request was sent or after.
    ConnectionTermination {
        /// Whether the request was sent.
        was_sent: bool,
    },
    /// The stream was refused, and certainly not processed.
    RefusedStream,
    /// The stream was reset, by the upstream or after a timeout here.
    Stream,
    /// The upstream broke the protocol.
    ProtocolError,
    /// A circuit breaker refused it.
    Overflow,
}

impl Conditions {
    /// Reads a list of words. Unknown ones mean nothing, as in Envoy.
    #[must_use]
    pub fn parse(words: &str) -> Self {
        let mut conditions = Self::default();
        for word in words.split(',').map(str::trim) {
            let http = WORDS.iter().find(|(listed, _)| *listed == word);
            let grpc = GRPC_WORDS.iter().find(|(listed, ..)| *listed == word);
            let condition = http.map(|(_, condition)| *condition);
            if let Some(condition) = condition.or(grpc.map(|(_, condition, _)| *condition)) {
                conditions.add(condition);
            }
        }
        conditions
    }

    pub(super) fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(super) fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(super) fn add(&mut self, condition: Condition) {
        self.0 |= 1 << condition as u32;
    }

    pub(super) fn has(self, condition: Condition) -> bool {
        self.0 & (1 << condition as u32) != 0
    }

    /// Returns whether the status of a response is one to try again on.
    pub(super) fn covers_status(self, status: u16) -> bool {
        (self.has(Condition::ServerError) && (500..600).contains(&status))
            || (self.has(Condition::GatewayError) && (502..=504).contains(&status))
            || (self.has(Condition::Retriable4xx) && status == 409)
    }

    /// Returns whether the gRPC status in a response's headers is one to try
    /// again on, also for a request that is not of gRPC.
    pub(super) fn covers_grpc(self, response: &Headers) -> bool {
        let Some(status) = response.get("grpc-status") else {
            return false;
        };
        let mut words = GRPC_WORDS.iter();
        words.any(|(_, condition, code)| *code == status && self.has(*condition))
    }

    /// Returns whether a reset is one to try again on.
    pub(super) fn covers_reset(self, reset: Reset) -> bool {
        if reset == Reset::Overflow {
            return false;
        }
        let was_sent = match reset {
            Reset::ConnectFailure => false,
            Reset::ConnectionTermination { was_sent } => was_sent,
            _ => true,
        };
        let of_all = [
            Condition::ServerError,
            Condition::GatewayError,
            Condition::Reset,
        ];
        of_all.iter().any(|condition| self.has(*condition))
            || (self.has(Condition::ResetBeforeRequest) && !was_sent)
            || (self.has(Condition::ConnectFailure) && reset == Reset::ConnectFailure)
            || (self.has(Condition::RefusedStream) && reset == Reset::RefusedStream)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d41_resets_are_covered_by_their_words() {
        let sent = Reset::ConnectionTermination { was_sent: true };
        let unsent = Reset::ConnectionTermination { was_sent: false };
        // words, reset, whether it is tried again
        let cases = [
            ("5xx", Reset::ConnectFailure, true),
            ("gateway-error", sent, true),
            ("connect-failure", Reset::ConnectFailure, true),
            ("connect-failure", sent, false),
            ("reset-before-request", unsent, true),
            ("reset-before-request", sent, false),
            ("refused-stream", Reset::RefusedStream, true),
            ("refused-stream", Reset::Stream, false),
            ("5xx", Reset::Overflow, false),
            ("unknown, reset", Reset::ProtocolError, true),
        ];
        for (words, reset, expected) in cases {
            let covers = Conditions::parse(words).covers_reset(reset);
            assert_eq!(covers, expected, "{words} {reset:?}");
        }
    }
}
