//! The quotas of streams: how many there are, of all clients, of each address
//! and of each identity.
//!
//! A refused stream counts for its address while it is held (S78), so a client
//! cannot hold more of them than it may have streams. It does not count among
//! all: those that are refused take no place from those that are not.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::options::Options;
use super::shared::Shared;
use crate::bounds::HELD_STREAMS;
use crate::listen::ClientAddress;

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Quotas {
    max_streams: usize,
    max_per_peer: usize,
    counts: Mutex<Counts>,
}

/// Streams that are open. No entry is zero.
#[derive(Debug, Default)]
struct Counts {
    admitted_streams: usize,
    held_streams: usize,
    addresses: HashMap<ClientAddress, usize>,
    held_addresses: HashMap<ClientAddress, usize>,
    identities: HashMap<Arc<str>, usize>,
}

/// Why a stream has no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Full {
    /// There are too many.
    Streams,
    /// Its address or its identity has too many.
    Peer,
}

/// The places of a stream, which it has until this is dropped.
#[derive(Debug)]
pub(super) struct Admission {
    shared: Arc<Shared>,
    address: Option<ClientAddress>,
    identity: Option<Arc<str>>,
    stage: Stage,
}

/// How far a stream has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Asking,
    Admitted,
    Held,
}

impl Quotas {
    /// Returns quotas by the options, of which nothing is taken. Without a
    /// quota of its own, an address or identity may have half of all streams.
    pub(super) fn new(options: &Options) -> Self {
        let max_per_peer = match options.streams_per_peer {
            0 => options.streams.div_ceil(2),
            quota => quota,
        };
        Self {
            max_streams: options.streams,
            max_per_peer,
            counts: Mutex::default(),
        }
    }

    /// Locks the counts. Ignores poison: a stream that panicked ends alone.
    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Admission {
    /// Counts a stream for its address. It is neither admitted nor refused yet.
    pub(super) fn ask(shared: &Arc<Shared>, address: Option<ClientAddress>) -> Self {
        if let Some(address) = address {
            let mut counts = shared.quotas.lock();
            *counts.addresses.entry(address).or_default() += 1;
        }
        Self {
            shared: Arc::clone(shared),
            address,
            identity: None,
            stage: Stage::Asking,
        }
    }

    /// Gives a stream its places among all streams and for its identity. The
    /// error says which of them has none left.
    pub(super) fn admit(&mut self, identity: Option<&str>) -> Result<(), Full> {
        let quotas = &self.shared.quotas;
        let mut counts = quotas.lock();
        let address_count = self.address.and_then(|a| counts.addresses.get(&a).copied());
        let identity_count = identity.and_then(|i| counts.identities.get(i).copied());
        // The count of the address has this stream in it already.
        let is_beyond = address_count.is_some_and(|count| count > quotas.max_per_peer)
            || identity_count.is_some_and(|count| count >= quotas.max_per_peer);
        if counts.admitted_streams >= quotas.max_streams {
            return Err(Full::Streams);
        }
        if is_beyond {
            return Err(Full::Peer);
        }

        counts.admitted_streams += 1;
        self.stage = Stage::Admitted;
        self.identity = identity.map(Arc::from);
        if let Some(identity) = &self.identity {
            *counts.identities.entry(Arc::clone(identity)).or_default() += 1;
        }
        Ok(())
    }

    /// Counts the stream as one that was refused and is held. Returns false if
    /// it must not be held, because there are too many such streams, of all
    /// clients or of its address; then it keeps only its place for the address.
    pub(super) fn hold(&mut self) -> bool {
        let shared = Arc::clone(&self.shared);
        let mut counts = shared.quotas.lock();
        self.give_back(&mut counts);
        let address = self.address;
        let address_count = address.and_then(|a| counts.held_addresses.get(&a).copied());
        if counts.held_streams >= HELD_STREAMS
            || address_count.is_some_and(|count| count >= HELD_STREAMS / 2)
        {
            return false;
        }
        if let Some(address) = address {
            *counts.held_addresses.entry(address).or_default() += 1;
        }
        counts.held_streams += 1;
        self.stage = Stage::Held;
        true
    }

    /// Gives back all places but that of the address.
    fn give_back(&mut self, counts: &mut Counts) {
        match std::mem::replace(&mut self.stage, Stage::Asking) {
            Stage::Asking => {}
            Stage::Admitted => counts.admitted_streams -= 1,
            Stage::Held => {
                counts.held_streams -= 1;
                if let Some(address) = self.address {
                    count_down(&mut counts.held_addresses, address);
                }
            }
        }
        if let Some(identity) = self.identity.take() {
            count_down(&mut counts.identities, identity);
        }
    }
}

impl Drop for Admission {
    /// Gives back all places, that of the address included.
    fn drop(&mut self) {
        let shared = Arc::clone(&self.shared);
        let mut counts = shared.quotas.lock();
        self.give_back(&mut counts);
        if let Some(address) = self.address {
            count_down(&mut counts.addresses, address);
        }
    }
}

/// Counts one less under a key, and removes the entry at zero.
fn count_down<K: Eq + Hash>(counts: &mut HashMap<K, usize>, key: K) {
    if let Some(count) = counts.get_mut(&key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Server;
    use super::*;

    fn shared(streams: usize, per_peer: usize) -> Arc<Shared> {
        let options = |options: &mut Options| {
            options.streams = streams;
            options.streams_per_peer = per_peer;
        };
        Server::builder().options(options).build().shared
    }

    fn address(host: u8) -> Option<ClientAddress> {
        Some(ClientAddress::of(([10, 0, 0, host], 1).into()))
    }

    #[test]
    fn a_peer_has_its_quota_by_address_and_by_identity() {
        let shared = shared(10, 2);
        let admit = |host, identity| {
            let mut admission = Admission::ask(&shared, address(host));
            admission.admit(identity).map(|()| admission)
        };
        let open = [admit(1, None).unwrap(), admit(1, None).unwrap()];
        assert_eq!(admit(1, None).unwrap_err(), Full::Peer);
        let named = [2, 3].map(|host| admit(host, Some("proxy")).unwrap());
        assert_eq!(admit(4, Some("proxy")).unwrap_err(), Full::Peer);
        let other = admit(4, Some("other")).unwrap();
        drop((open, named, other));
        let counts = shared.quotas.lock();
        assert!(counts.addresses.is_empty() && counts.identities.is_empty());
        assert_eq!((counts.admitted_streams, counts.held_streams), (0, 0));
    }

    #[test]
    fn a_refused_stream_counts_for_its_address_only() {
        let shared = shared(2, 2);
        let mut refused = Admission::ask(&shared, address(1));
        assert!(refused.hold());
        let mut first = Admission::ask(&shared, address(1));
        assert_eq!(first.admit(None), Ok(()));
        let mut same = Admission::ask(&shared, address(1));
        assert_eq!(same.admit(None), Err(Full::Peer));
        let others = [2, 3].map(|host| Admission::ask(&shared, address(host)));
        let [mut second, mut third] = others;
        assert_eq!(second.admit(None), Ok(()));
        assert_eq!(third.admit(None), Err(Full::Streams));
        drop(first);
        assert_eq!(third.admit(None), Ok(()));
    }
}
