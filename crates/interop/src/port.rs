//! Free ports on loopback.

use std::net::{Ipv4Addr, TcpListener};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

/// Below the ports that systems hand to outgoing connections, so a port that
/// is free now is not taken by one before the peer listens on it.
const FIRST: u16 = 20_000;
const COUNT: u16 = 10_000;

/// A port of loopback on which nothing listens, and that this process has not
/// given out before.
///
/// Where something may choose its own port, let it listen on port 0 instead.
///
/// # Panics
///
/// When every port of the range is taken.
#[must_use]
pub fn free_port() -> u16 {
    static GIVEN: AtomicU32 = AtomicU32::new(0);
    // Test binaries that run at the same time start at different places.
    let start = process::id().wrapping_mul(101);
    for _ in 0..COUNT {
        let step = start.wrapping_add(GIVEN.fetch_add(1, Ordering::Relaxed));
        let offset = u16::try_from(step % u32::from(COUNT)).unwrap_or_default();
        let port = FIRST + offset;
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return port;
        }
    }
    panic!("no free port from {FIRST} to {}", FIRST + COUNT - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_port_is_given_twice() {
        let first = free_port();
        let held = TcpListener::bind((Ipv4Addr::LOCALHOST, first)).unwrap();
        assert_ne!(free_port(), first);
        drop(held);
        assert_ne!(free_port(), first);
    }
}
