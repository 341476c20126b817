//! The open connections of a listener, and the quotas of addresses.
//!
//! ```text
//!   a connection is accepted
//!     its address has its quota already ─────────────────▶ it is closed
//!     all places are taken
//!       another address has more places than its own, and
//!       some of them without a request ── the newest of ──▶ these is cut
//!       otherwise ────────────────────────────────────────▶ it is closed
//! ```
//!
//! A connection is never left to wait: those behind it would wait too.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::activity::{Activity, Patience};
use super::address::ClientAddress;
use super::effort::{Effort, cost};
use crate::server::Limit;

/// How many of an address' connections are looked at, newest first, for one
/// without a request.
const LOOKED_AT: usize = 100;

/// How many connections are checked before others have their turn.
const CHECKED_AT_ONCE: usize = 1_000;

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct OpenConnections {
    max: usize,
    max_per_address: usize,
    table: Mutex<Table>,
}

/// The open connections of each address.
#[derive(Debug, Default)]
struct Table {
    count: usize,
    addresses: HashMap<ClientAddress, Host>,
}

/// An address that has connections, or had some and costs effort still.
#[derive(Debug, Default)]
struct Host {
    /// By number.
    open: BTreeMap<u64, Arc<Activity>>,
    effort: Arc<Effort>,
}

/// The place of a connection, which it has until this is dropped.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) activity: Arc<Activity>,
    address: ClientAddress,
    connections: Arc<OpenConnections>,
}

impl OpenConnections {
    /// Returns a table without connections, with places for `max`, and for
    /// `max_per_address` of each address.
    pub(super) fn new(max: usize, max_per_address: usize) -> Arc<Self> {
        Arc::new(Self {
            max,
            max_per_address,
            table: Mutex::default(),
        })
    }

    /// Gives a connection from this address a place in the table. Returns no
    /// place if the connection is refused. Returns also the limit that was met:
    /// even with a place, if another connection was cut for it.
    pub(super) fn open(self: &Arc<Self>, address: ClientAddress) -> (Option<Place>, Option<Limit>) {
        let mut table = self.lock();
        if table.count_of(address) >= self.max_per_address {
            return (None, Some(Limit::ConnectionsPerAddress));
        }
        let is_full = table.count >= self.max;
        let limit = is_full.then_some(Limit::Connections);
        if is_full && !table.cut_silent(Some(address)) {
            return (None, limit);
        }

        let activity = table.add(address);
        let place = Place {
            activity,
            address,
            connections: Arc::clone(self),
        };
        (Some(place), limit)
    }

    /// Cuts a connection without a request, if there is one, so that the system
    /// has a descriptor again.
    pub(super) fn make_room(&self) {
        self.lock().cut_silent(None);
    }

    /// Checks all connections, again and again, and never returns.
    /// `report_limit` is called for each connection that is cut.
    pub(super) async fn check(&self, patience: Patience, report_limit: impl Fn(Limit)) {
        loop {
            tokio::time::sleep(patience.interval).await;
            let open: Vec<Arc<Activity>> = {
                let mut table = self.lock();
                table.drop_unused();
                table.iter().map(Arc::clone).collect()
            };
            for slice in open.chunks(CHECKED_AT_ONCE) {
                let cut_connections = slice.iter().filter(|activity| activity.check(patience));
                for _ in cut_connections {
                    report_limit(Limit::SendTimeout);
                }
                tokio::task::yield_now().await;
            }
        }
    }

    /// Locks the table. Ignores poison: a connection that panicked ends alone.
    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    /// Returns the number of open connections of an address.
    fn count_of(&self, address: ClientAddress) -> usize {
        self.addresses
            .get(&address)
            .map_or(0, |host| host.open.len())
    }

    /// Returns all open connections.
    fn iter(&self) -> impl Iterator<Item = &Arc<Activity>> {
        self.addresses.values().flat_map(|host| host.open.values())
    }

    /// Adds a connection, and counts its effort for its address.
    fn add(&mut self, address: ClientAddress) -> Arc<Activity> {
        let host = self.addresses.entry(address).or_default();
        host.effort.charge(cost::CONNECTION);
        let activity = Activity::with_address(Some(address), Arc::clone(&host.effort));
        host.open.insert(activity.number, Arc::clone(&activity));
        self.count += 1;
        activity
    }

    /// Removes a connection and returns it; `None` if it is not in the table.
    /// An address without connections is forgotten when it is at rest.
    fn remove(&mut self, address: ClientAddress, number: u64) -> Option<Arc<Activity>> {
        let host = self.addresses.get_mut(&address)?;
        let activity = host.open.remove(&number)?;
        if host.open.is_empty() && host.effort.is_at_rest() {
            self.addresses.remove(&address);
        }
        self.count -= 1;
        Some(activity)
    }

    /// Forgets the addresses that have no connections and cost no effort any
    /// more.
    fn drop_unused(&mut self) {
        let is_used = |host: &Host| !host.effort.is_at_rest() || !host.open.is_empty();
        self.addresses.retain(|_, host| is_used(host));
    }

    /// Cuts a connection without a request, the newest one of the address that
    /// has the most connections. Returns `false`, and cuts nothing, if that
    /// address has no such connection, or not more connections than `newcomer`
    /// would have.
    fn cut_silent(&mut self, newcomer: Option<ClientAddress>) -> bool {
        let by_count = self
            .addresses
            .iter()
            .max_by_key(|(_, host)| host.open.len());
        let Some((&address, Host { open, .. })) = by_count else {
            return false;
        };
        let newcomer_count = newcomer.map_or(0, |newcomer| self.count_of(newcomer) + 1);
        if open.len() <= newcomer_count {
            return false;
        }

        let mut newest = open.values().rev().take(LOOKED_AT);
        let Some(silent) = newest.find(|activity| activity.is_silent()) else {
            return false;
        };
        let number = silent.number;
        if let Some(silent) = self.remove(address, number) {
            silent.cut();
        }
        true
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let number = self.activity.number;
        self.connections.lock().remove(self.address, number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(n: u8) -> ClientAddress {
        ClientAddress::of(([10, 0, 0, n], 1).into())
    }

    fn met((place, limit): (Option<Place>, Option<Limit>)) -> (bool, Option<Limit>) {
        (place.is_some(), limit)
    }

    #[test]
    fn an_address_has_its_quota_and_no_other_waits_for_it() {
        let connections = OpenConnections::new(4, 2);
        let open = |n| connections.open(address(n));
        let greedy = [open(1), open(1)];
        assert_eq!(met(open(1)), (false, Some(Limit::ConnectionsPerAddress)));
        let other = open(2);
        assert_eq!(other.1, None);
        drop((greedy, other));
        let mut table = connections.lock();
        assert_eq!(table.count, 0);
        for host in table.addresses.values() {
            host.effort.forgive();
        }
        table.drop_unused();
        assert!(table.addresses.is_empty());
    }

    #[test]
    fn a_full_listener_cuts_the_newest_silent_one_of_the_greediest_address() {
        let connections = OpenConnections::new(4, 4);
        let open = |n| connections.open(address(n)).0;
        let busy = open(1).unwrap();
        let _request = busy.activity.begin_request();
        let [old, new] = [(); 2].map(|()| open(1).unwrap());
        let other = open(2);
        // Its own address is the greediest.
        let refused = (false, Some(Limit::Connections));
        assert_eq!(met(connections.open(address(1))), refused);

        let is_open = |place: &Place| {
            let table = connections.lock();
            table.iter().any(|a| Arc::ptr_eq(a, &place.activity))
        };
        let third = connections.open(address(3));
        assert_eq!(third.1, Some(Limit::Connections));
        assert!(third.0.is_some_and(|place| is_open(&place)));
        assert!(!is_open(&new));
        assert!(is_open(&old) && is_open(&busy));
        drop(new);
        drop((old, other, busy));
        assert_eq!(connections.lock().count, 0);
    }

    #[test]
    fn a_connection_with_a_request_is_not_cut_for_another() {
        let connections = OpenConnections::new(2, 2);
        let open = [(); 2].map(|()| connections.open(address(1)).0.unwrap());
        let _requests = open.each_ref().map(|place| place.activity.begin_request());
        let refused = (false, Some(Limit::Connections));
        assert_eq!(met(connections.open(address(2))), refused);
    }
}
