//! Bounds on the memory that a client can make this process use.
//!
//! Every string and count that a client controls is compared with one of them.
//! A name beyond a limit is refused, never the client: no limit ends a stream
//! or causes a deletion (S72).

/// Bounds on the subscriptions of one stream. The defaults let a large Envoy
/// reconnect and stop a hostile client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes in one resource name.
    pub name_bytes: usize,
    /// Names and globs one stream may subscribe to, over all its types.
    pub subscriptions: usize,
    /// Hosts of which a client could invent any number, that one stream may
    /// subscribe to: those that do not exist, and those that get a copy of a
    /// wildcard for themselves. A proxy requests every host that anybody sends
    /// it.
    pub hosts: usize,
    /// Globs one stream may subscribe to, over all its types: each may be a
    /// view.
    pub globs: usize,
    /// Types one stream may subscribe to.
    pub types: usize,
    /// Sets of parameters one stream may send with its names (TP2).
    pub params: usize,
    /// Sets of parameters that the database keeps, from all streams together.
    pub all_params: usize,
    /// Bytes of a NACK's text that are kept.
    pub error_bytes: usize,
    /// Bytes of bodies in one response of a kind that can be split; a larger
    /// body has a response to itself (S44, S80).
    pub response_bytes: usize,
}

impl Default for Limits {
    /// Returns limits that a large Envoy stays below.
    fn default() -> Self {
        Self {
            name_bytes: 4096,
            subscriptions: 1_000_000,
            hosts: 10_000,
            globs: 256,
            types: 64,
            params: 256,
            all_params: 1_000_000,
            error_bytes: 4096,
            response_bytes: 3 << 20,
        }
    }
}
