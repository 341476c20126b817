//! The log of clients that speak plain text to a port of TLS.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Mutex, PoisonError};

/// The maximum of hosts that are remembered.
const MOST_REMEMBERED: usize = 1000;

/// Warns of each host once: its clients try again and again.
#[derive(Debug, Default)]
pub(crate) struct PlaintextLog(Mutex<VecDeque<IpAddr>>);

impl PlaintextLog {
    /// Logs a client that speaks plain text to a port of TLS. Further clients
    /// of the same host are not logged.
    pub(crate) fn log_client(&self, peer: SocketAddr, local: SocketAddr) {
        if !self.insert_new(peer.ip()) {
            return;
        }
        tracing::warn!(
            %peer,
            %local,
            "a client speaks plain text to a port of TLS, and is turned away; give it TLS: Envoy a \
             transport_socket on the cluster of this server, gRPC credentials of the channel, \
             `trunkline` an --admin with https://. Other clients of its host are not logged"
        );
    }

    /// Remembers a host. Returns `false` if it is remembered already.
    fn insert_new(&self, host: IpAddr) -> bool {
        let mut recent_hosts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if recent_hosts.contains(&host) {
            return false;
        }
        if recent_hosts.len() == MOST_REMEMBERED {
            recent_hosts.pop_front();
        }
        recent_hosts.push_back(host);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_new_once_until_it_is_forgotten() {
        let log = PlaintextLog::default();
        let host = |n: u32| IpAddr::from(n.to_be_bytes());
        assert!(log.insert_new(host(0)));
        assert!(!log.insert_new(host(0)));
        for n in 1..=1000 {
            assert!(log.insert_new(host(n)));
        }
        assert!(log.insert_new(host(0)));
    }
}
