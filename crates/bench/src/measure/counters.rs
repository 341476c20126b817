//! Counters of all clients together.

use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Numbers that many clients raise at once.
        #[derive(Debug, Default)]
        pub(crate) struct Counters {
            $(pub(crate) $name: AtomicU64,)*
        }

        /// What the counters say, or by how much they rose.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
        pub struct Count {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl Counters {
            /// Returns what the counters say now.
            pub(crate) fn read(&self) -> Count {
                Count { $($name: self.$name.load(Ordering::Relaxed),)* }
            }
        }

        impl std::ops::Sub for Count {
            type Output = Self;

            fn sub(self, earlier: Self) -> Self {
                Self { $($name: self.$name.saturating_sub(earlier.$name),)* }
            }
        }
    };
}

counters! {
    /// Streams that were opened.
    streams,
    /// Responses.
    responses,
    /// Resources in them.
    resources,
    /// Bytes of them, without what HTTP/2 adds.
    bytes,
    /// Requests, acknowledgements included.
    requests,
    /// Bytes of them.
    request_bytes,
    /// Responses that were ACKed.
    acks,
    /// Responses that were NACKed.
    nacks,
    /// Resources that were rejected by clients that somebody waits for.
    rejected,
    /// Changes that arrived at a client.
    delivered,
    /// Changes that arrived as part of a newer one of the same resource.
    overtaken,
    /// Removals among the changes that arrived.
    removed,
    /// Resources that a client was sent again as it holds them.
    repeated,
    /// Revisions older than the one that the client holds.
    backwards,
    /// Contents that nobody put, or not as they were put.
    wrong,
    /// Variants that are for other clients (TP2).
    foreign,
    /// Responses that brought nothing that the client did not have.
    needless,
    /// Resources that were removed though nobody removed them.
    lost,
    /// Streams that ended though nobody ended them.
    broken,
    /// Connections and streams that could not be opened.
    refused,
    /// Responses that could not be read, or broke the protocol.
    unreadable,
}

impl Counters {
    /// Raises a counter.
    pub(crate) fn add(counter: &AtomicU64, by: usize) {
        counter.fetch_add(by as u64, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phase_is_a_difference() {
        let counters = Counters::default();
        Counters::add(&counters.bytes, 5);
        let before = counters.read();
        Counters::add(&counters.bytes, 2);
        let during = counters.read() - before;
        assert_eq!((during.bytes, during.acks), (2, 0));
    }
}
