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
    /// Bytes of the names one stream may subscribe to, over all its types. A
    /// name counts with its own bytes and
    /// [`NAME_OVERHEAD`](crate::database::NAME_OVERHEAD).
    pub subscription_bytes: usize,
    /// Bytes of the names that do not exist and that streams subscribe to, from
    /// all streams together, counted likewise. A stream may subscribe to
    /// another such name while its own names take no more than what is left of
    /// this.
    pub missing_bytes: usize,
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
    /// Types without contents that all streams together may subscribe to. A
    /// stream may subscribe to another one while it has no more types than what
    /// is left of this.
    pub all_types: usize,
    /// Sets of parameters one stream may send with its names (TP2).
    pub params: usize,
    /// Sets of parameters that the database keeps, from all streams together;
    /// one of more than 512 bytes counts as several. A stream may bring another
    /// set while it has no more than are left. The sets of nodes are always
    /// kept.
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
            subscription_bytes: 256 << 20,
            missing_bytes: 512 << 20,
            hosts: 10_000,
            globs: 256,
            types: 64,
            all_types: 16_384,
            params: 256,
            all_params: 1_000_000,
            error_bytes: 4096,
            response_bytes: 3 << 20,
        }
    }
}
