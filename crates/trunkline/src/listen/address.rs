//! The address of a client, as quotas count it.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// The host of a client. Of IPv6 the first 64 bits count: whoever has one of
/// these addresses has all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ClientAddress(IpAddr);

impl ClientAddress {
    /// Returns the address of a peer, without its port. An IPv6 address counts
    /// by its network, and an IPv4 address is the same on every kind of socket.
    pub(crate) fn of(peer: SocketAddr) -> Self {
        Self(match peer.ip().to_canonical() {
            IpAddr::V4(address) => IpAddr::V4(address),
            IpAddr::V6(address) => {
                let network = address.to_bits() & !u128::from(u64::MAX);
                IpAddr::V6(Ipv6Addr::from_bits(network))
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_host_is_one_address_whatever_it_is_written_as() {
        let of = |text: &str| ClientAddress::of(text.parse().unwrap());
        assert_eq!(of("10.0.0.1:1"), of("10.0.0.1:2"));
        assert_eq!(of("10.0.0.1:1"), of("[::ffff:10.0.0.1]:1"));
        assert_ne!(of("10.0.0.1:1"), of("10.0.0.2:1"));
        assert_eq!(of("[2001:db8::1]:1"), of("[2001:db8::ffff:0:1]:1"));
        assert_ne!(of("[2001:db8::1]:1"), of("[2001:db8:0:1::1]:1"));
    }
}
