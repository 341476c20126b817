//! Limits on received messages. Every number here has a typed error or a
//! refusal.

/// Bounds on what is decoded.
///
/// Two kinds, because no limit that a real client could reach may end an ADS
/// stream (S72): names that are too long are *refused* one by one and the rest
/// of the message stands; a message that no real client sends is an *error*.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one message. Error. At least 64 MiB, see S80.
    pub message_bytes: usize,
    /// Strings, map entries and nested messages in one message, counted
    /// together before anything is allocated. Error. A client that subscribes
    /// to a million names with their versions passes.
    pub entries: usize,
    /// Bytes of one resource name. Refused, the message stands.
    pub name_bytes: usize,
    /// Bytes of a type URL, version, nonce or parameter. Error.
    pub text_bytes: usize,
    /// Bytes of the text of an `error_detail`: the rest is cut off, because
    /// it is for people only (S64).
    pub error_bytes: usize,
    /// Levels of `DynamicParameterConstraints` in each other. Error.
    pub constraint_depth: usize,
    /// Bytes of a node. Error.
    pub node_bytes: usize,
}

impl Limits {
    /// The limits of a server that has no reason to choose others.
    pub const DEFAULT: Self = Self {
        message_bytes: 256 << 20,
        entries: 4 << 20,
        name_bytes: 16 << 10,
        text_bytes: 16 << 10,
        error_bytes: 64 << 10,
        constraint_depth: 16,
        node_bytes: 16 << 20,
    };
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}
