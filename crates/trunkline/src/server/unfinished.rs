//! The shares of unfinished requests: how many bytes of memory the requests
//! may take that have begun to arrive and are not complete.
//!
//! | scope | bound | who waits beyond it |
//! |---|---|---|
//! | connection | `Options::request_bytes` | the others of the connection |
//! | address | half of `Options::unfinished_bytes` | connections that would have more than a quarter of what is left |
//! | all | `Options::unfinished_bytes` | addresses that would have more than half of what is left |
//!
//! So an address that takes all it can gets a third, and there is room for the
//! next, always: it need not wait for the first to give something back. A
//! request that waits is not read, so the flow control of
//! HTTP/2 holds its client. One that is alone never waits, however long it is,
//! nor does one on a connection that has no more than [`SMALL_REQUESTS`] of them in all.
//! A request that arrives in one piece, as nearly all do, is not counted.
//!
//! Shares are of announced lengths: a request that has its share can be
//! finished. One that announces and does not come ends its stream (see
//! [`requests`](super::requests)).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::bounds::SMALL_REQUESTS;
use crate::listen::{Activity, ClientAddress};

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Unfinished {
    connection_bytes: usize,
    address_bytes: usize,
    all_bytes: usize,
    table: Mutex<Table>,
}

/// The unfinished requests of all connections. No entry is empty.
#[derive(Debug, Default)]
struct Table {
    bytes: usize,
    addresses: HashMap<Option<ClientAddress>, AddressEntry>,
}

#[derive(Debug, Default)]
struct AddressEntry {
    bytes: usize,
    connections: HashMap<u64, usize>,
}

/// The bytes of an unfinished request, which count until this is dropped.
#[derive(Debug)]
pub(super) struct Share {
    unfinished: Arc<Unfinished>,
    address: Option<ClientAddress>,
    connection: u64,
    bytes: usize,
}

impl Unfinished {
    /// Returns shares of which nothing is taken: of so many bytes for each
    /// connection, and for all.
    pub(super) fn new(request_bytes: usize, unfinished_bytes: usize) -> Self {
        Self {
            connection_bytes: request_bytes,
            address_bytes: unfinished_bytes / 2,
            all_bytes: unfinished_bytes,
            table: Mutex::default(),
        }
    }

    /// Takes a share of so many bytes for a request on a connection, until it
    /// is dropped. Returns `None` if the request has to wait.
    pub(super) fn try_share(self: &Arc<Self>, activity: &Activity, bytes: usize) -> Option<Share> {
        let (address, connection) = (activity.address, activity.number);
        let mut table = self.lock();
        if !self.has_room(&table, address, connection, bytes) {
            return None;
        }

        table.bytes += bytes;
        let entry = table.addresses.entry(address).or_default();
        entry.bytes += bytes;
        *entry.connections.entry(connection).or_default() += bytes;
        Some(Share {
            unfinished: Arc::clone(self),
            address,
            connection,
            bytes,
        })
    }

    /// Returns whether a request of `bytes` bytes may take its share on a
    /// connection: by the bounds of the connection, of its address and of all,
    /// or because it is small.
    fn has_room(
        &self,
        table: &Table,
        address: Option<ClientAddress>,
        connection: u64,
        bytes: usize,
    ) -> bool {
        let entry = table.addresses.get(&address);
        let address_bytes = entry.map_or(0, |entry| entry.bytes);
        let connection_bytes = entry.and_then(|entry| entry.connections.get(&connection));
        let connection_bytes = connection_bytes.copied().unwrap_or(0);

        let is_small = connection_bytes + bytes <= SMALL_REQUESTS;
        let fits_connection = fits_alone(connection_bytes, bytes, self.connection_bytes);
        is_small
            || fits_connection
                && fits_beside(
                    connection_bytes,
                    address_bytes,
                    bytes,
                    self.address_bytes,
                    4,
                )
                && fits_beside(address_bytes, table.bytes, bytes, self.all_bytes, 2)
    }

    /// Locks the table. Ignores poison: a stream that panicked ends alone.
    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns whether one that has taken `own_bytes` may take `bytes` more of a
/// bound of its own. The first request always may.
fn fits_alone(own_bytes: usize, bytes: usize, bound: usize) -> bool {
    own_bytes == 0 || own_bytes + bytes <= bound
}

/// Returns whether one that has taken `own_bytes` may take `bytes` more of a
/// bound, of which all together have taken `all_bytes`. It may if it then has
/// no more than a `part`-th of what is left, or if nobody has taken anything.
fn fits_beside(
    own_bytes: usize,
    all_bytes: usize,
    bytes: usize,
    bound: usize,
    part: usize,
) -> bool {
    let free_bytes = bound.saturating_sub(all_bytes + bytes);
    all_bytes == 0 || own_bytes + bytes <= free_bytes / part
}

impl Table {
    /// Gives back the bytes of a share. Entries without bytes are removed.
    fn remove(&mut self, address: Option<ClientAddress>, connection: u64, bytes: usize) {
        self.bytes -= bytes;
        let Some(entry) = self.addresses.get_mut(&address) else {
            return;
        };
        entry.bytes -= bytes;
        if let Some(connection_bytes) = entry.connections.get_mut(&connection) {
            *connection_bytes -= bytes;
            if *connection_bytes == 0 {
                entry.connections.remove(&connection);
            }
        }
        if entry.connections.is_empty() {
            self.addresses.remove(&address);
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut table = self.unfinished.lock();
        table.remove(self.address, self.connection, self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    fn connection(host: u8) -> Arc<Activity> {
        Activity::new(Some(ClientAddress::of(([10, 0, 0, host], 1).into())))
    }

    fn shares() -> Arc<Unfinished> {
        Arc::new(Unfinished::new(64 * MIB, 256 * MIB))
    }

    #[test]
    fn a_connection_waits_for_itself_and_nobody_else_does() {
        let unfinished = shares();
        let (greedy, other) = (connection(1), connection(1));
        let long = unfinished.try_share(&greedy, 64 * MIB).unwrap();
        assert!(unfinished.try_share(&greedy, MIB).is_none());
        let neighbour = unfinished.try_share(&other, 8 * MIB).unwrap();
        drop(long);
        let again = unfinished.try_share(&greedy, MIB).unwrap();
        drop((again, neighbour));
        assert_eq!(unfinished.lock().bytes, 0);
        assert!(unfinished.lock().addresses.is_empty());
    }

    #[test]
    fn an_address_that_takes_all_it_can_leaves_room_for_others() {
        let unfinished = shares();
        let mut taken = Vec::new();
        for host in 1..=20 {
            for connection in [(); 50].map(|()| connection(host)) {
                while let Some(share) = unfinished.try_share(&connection, MIB) {
                    taken.push(share);
                }
            }
        }
        let all = taken.iter().map(|share| share.bytes).sum::<usize>();
        assert!((128..=256).contains(&(all / MIB)), "{} MiB", all / MIB);
        let other = unfinished.try_share(&connection(99), MIB / 2);
        assert!(other.is_some(), "{} MiB", all / MIB);
        let neighbour = connection(1);
        assert!(unfinished.try_share(&neighbour, SMALL_REQUESTS).is_some());
    }

    #[test]
    fn the_longest_request_is_read_whatever_the_shares_are() {
        let unfinished = Arc::new(Unfinished::new(64 * MIB, 0));
        assert!(unfinished.try_share(&connection(1), 64 * MIB).is_some());
    }
}
