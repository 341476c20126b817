//! Status codes of gRPC.

use std::fmt;

/// A status code of gRPC. A server may send one that has no name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Code(pub u32);

impl Code {
    /// The call succeeded.
    pub const OK: Self = Self(0);
    /// The call was cancelled.
    pub const CANCELLED: Self = Self(1);
    /// The server says nothing of the reason, or nothing that can be read.
    pub const UNKNOWN: Self = Self(2);
    /// The client may not do this.
    pub const PERMISSION_DENIED: Self = Self(7);
    /// A limit was reached.
    pub const RESOURCE_EXHAUSTED: Self = Self(8);
    /// The server has no such method.
    pub const UNIMPLEMENTED: Self = Self(12);
    /// The server cannot serve now.
    pub const UNAVAILABLE: Self = Self(14);
    /// The client did not say who it is, or not credibly.
    pub const UNAUTHENTICATED: Self = Self(16);

    /// Returns the name of the code; `None` if it has none.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        NAMES.get(self.0 as usize).copied()
    }
}

/// By code.
const NAMES: [&str; 17] = [
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
];

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "{}", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_their_names() {
        assert_eq!(Code::UNAVAILABLE.to_string(), "UNAVAILABLE");
        assert_eq!(Code::UNAUTHENTICATED.to_string(), "UNAUTHENTICATED");
        assert_eq!(Code(99).to_string(), "99");
    }
}
