//! What a peer may make this process hold.
//!
//! Every string and count that a peer controls is measured against one of
//! these. Beyond a limit the name is refused, never the peer: no limit ends a
//! stream or causes a deletion (S72).

/// Bounds on what one stream may ask for. The defaults let a large Envoy
/// reconnect and stop a hostile peer.
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
    /// Globs one stream may subscribe to, over all its types: each may be a view.
    pub globs: usize,
    /// Types one stream may ask for.
    pub types: usize,
    /// Sets of parameters one stream may bring with its names (TP2).
    pub params: usize,
    /// Sets of parameters that the database may have met, from all streams
    /// together: they are kept for good.
    pub all_params: usize,
    /// Bytes of a NACK's text that are kept.
    pub error_bytes: usize,
    /// Bytes of bodies put into one response that can be split, unless one body
    /// is larger (S44, S80).
    pub response_bytes: usize,
}

impl Default for Limits {
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
