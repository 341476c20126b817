//! Bodies of requests, as they arrive: bounded in length, in time, and all of
//! them together. The guard has admitted a request before its body is read.
//!
//! An address that sends all that there is room for leaves an eighth of it. Of
//! that eighth an address may take as much as it then leaves, so that a change
//! of another address always finds room.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use http::StatusCode;
use trunkline::bounds;
use trunkline::memory::Memory;
use trunkline::questions::{ArriveError, BodyLimits, read_body};
use trunkline::{Connection, Limit};

use super::Admin;
use super::error::Refusal;

/// Bytes of all bodies that are arriving or being read, or somewhat more than
/// one body of the most that one may have.
pub(crate) const ALL_BODIES: usize = 256 << 20;

/// The part of the room that is for addresses which take little.
const SPARED: usize = 8;

/// The room for bodies. Clones share it.
#[derive(Clone)]
pub(crate) struct Bodies(Arc<SharedRoom>);

/// The room for all bodies.
struct SharedRoom {
    bytes: usize,
    room_use: Mutex<RoomUse>,
}

/// The room that is in use, and by whom. No address has zero bytes.
#[derive(Default)]
struct RoomUse {
    bytes: usize,
    addresses: HashMap<Option<IpAddr>, usize>,
}

impl Bodies {
    /// Makes the room for all bodies: a share of the memory of the process, but
    /// enough for one body of `body_limit` bytes.
    pub(crate) fn new(body_limit: usize, memory: &Memory) -> Self {
        let share = memory.share(ALL_BODIES, bounds::BODIES_PART);
        let one_body = body_limit.saturating_add(body_limit / (SPARED - 1) + SPARED);
        Self(Arc::new(SharedRoom {
            bytes: share.max(one_body),
            room_use: Mutex::default(),
        }))
    }

    /// Returns the room of a body of an address, which takes nothing yet.
    fn room(&self, peer: Option<SocketAddr>) -> Room {
        Room {
            shared_room: Arc::clone(&self.0),
            address: peer.map(network),
            bytes: 0,
        }
    }
}

impl SharedRoom {
    /// Returns whether an address that has `address_bytes`, of the
    /// `total_bytes` that all addresses have, may take more.
    fn has_room(&self, address_bytes: usize, total_bytes: usize, more_bytes: usize) -> bool {
        let next_total = total_bytes.saturating_add(more_bytes);
        let Some(remaining_bytes) = self.bytes.checked_sub(next_total) else {
            return false;
        };
        remaining_bytes >= self.bytes / SPARED || address_bytes + more_bytes <= remaining_bytes
    }

    fn lock(&self) -> MutexGuard<'_, RoomUse> {
        self.room_use.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the host of a client, or its network: whoever has one IPv6 address
/// has all of the same 64 bits.
fn network(peer: SocketAddr) -> IpAddr {
    match peer.ip().to_canonical() {
        IpAddr::V6(address) => {
            let bits = address.to_bits() & !u128::from(u64::MAX);
            IpAddr::V6(Ipv6Addr::from_bits(bits))
        }
        address @ IpAddr::V4(_) => address,
    }
}

/// The room of one body, which is given back when this is dropped.
struct Room {
    shared_room: Arc<SharedRoom>,
    address: Option<IpAddr>,
    bytes: usize,
}

impl Room {
    /// Makes room for more bytes. Returns `false` if there is none: the caller
    /// refuses the body then.
    fn grow(&mut self, bytes: usize) -> bool {
        let mut room_use = self.shared_room.lock();
        let address_bytes = room_use.addresses.get(&self.address).copied().unwrap_or(0);
        if !self
            .shared_room
            .has_room(address_bytes, room_use.bytes, bytes)
        {
            return false;
        }
        room_use.bytes += bytes;
        room_use
            .addresses
            .insert(self.address, address_bytes + bytes);
        self.bytes += bytes;
        true
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let mut room_use = self.shared_room.lock();
        room_use.bytes -= self.bytes;
        let address_bytes = room_use.addresses.remove(&self.address).unwrap_or(0);
        if address_bytes > self.bytes {
            let remaining_bytes = address_bytes - self.bytes;
            room_use.addresses.insert(self.address, remaining_bytes);
        }
    }
}

/// A body that has arrived. Its room is given back when it is dropped.
pub(super) struct Arrived {
    pub(super) bytes: Bytes,
    _room: Room,
}

/// Reads the body of a request on a connection, of at most `max_bytes` bytes.
///
/// # Errors
/// The body is too long or too slow, it broke off, or there is no room for it.
pub(super) async fn read(
    admin: &Admin,
    connection: &Connection,
    body: axum::body::Body,
    max_bytes: usize,
) -> Result<Arrived, Refusal> {
    let mut room = admin.bodies.room(connection.peer);
    let result = read_body(body, BodyLimits::of(max_bytes), |bytes| room.grow(bytes)).await;
    match result {
        Ok(bytes) => Ok(Arrived { bytes, _room: room }),
        Err(error) => Err(refuse(admin, error)),
    }
}

/// Makes the error for a body that cannot be read, and counts the limit that it
/// hit.
fn refuse(admin: &Admin, error: ArriveError) -> Refusal {
    match error {
        ArriveError::TooLong { max } => {
            let remedy = match max == admin.body_limit {
                true => "split it, or raise --max-admin-body",
                false => "send less",
            };
            let message = format!("{error}; {remedy}");
            Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, message)
        }
        ArriveError::TooSlow => {
            admin.server.limited(Limit::SlowBodies);
            Refusal::new(StatusCode::REQUEST_TIMEOUT, error)
        }
        ArriveError::NoRoom => {
            admin.server.limited(Limit::Bodies);
            Refusal::new(StatusCode::SERVICE_UNAVAILABLE, error)
        }
        ArriveError::Broken => Refusal::bad(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    fn peer(host: u8) -> Option<SocketAddr> {
        Some(([10, 0, 0, host], 1).into())
    }

    #[test]
    fn all_bodies_have_so_much_room_and_give_it_back() {
        let bodies = Bodies::new(MIB, &Memory::new(None));
        let mut first = bodies.room(peer(1));
        assert!(first.grow(1) && first.grow(ALL_BODIES / 8 * 7 - 1));
        let mut second = bodies.room(peer(1));
        assert!(!second.grow(1), "no room is left for this address");
        drop(first);
        assert!(second.grow(1));
        drop(second);
        assert!(bodies.0.lock().addresses.is_empty());
        assert_eq!(bodies.0.lock().bytes, 0);
        assert!(!bodies.room(peer(1)).grow(ALL_BODIES));
    }

    #[test]
    fn an_address_that_takes_all_it_can_leaves_room_for_others() {
        let bodies = Bodies::new(64 * MIB, &Memory::new(Some(768 << 20)));
        let mut longest = bodies.room(peer(1));
        assert!(longest.grow(64 * MIB), "one body always has room");
        let mut rooms = vec![longest];
        for host in 1..=3 {
            let mut room = bodies.room(peer(host));
            while room.grow(64 << 10) {}
            rooms.push(room);
        }
        let mut change = bodies.room(peer(4));
        assert!(change.grow(MIB), "{} bytes", bodies.0.lock().bytes);
        assert!(!bodies.room(peer(1)).grow(1));
    }

    #[test]
    fn one_body_of_the_most_has_room_whatever_the_share_is() {
        let bodies = Bodies::new(1001, &Memory::new(Some(0)));
        assert!(bodies.room(None).grow(1001));
        assert!(bodies.room(peer(1)).grow(1001));
    }

    #[test]
    fn a_network_of_ipv6_is_one_address() {
        let of = |text: &str| network(text.parse().unwrap());
        assert_eq!(of("[2001:db8::1]:1"), of("[2001:db8::ffff:0:1]:2"));
        assert_ne!(of("[2001:db8::1]:1"), of("[2001:db8:0:1::1]:1"));
        assert_eq!(of("[::ffff:10.0.0.1]:1"), of("10.0.0.1:2"));
    }
}
