//! Subscriptions that ended on a stream.
//!
//! A server that tells subscriptions apart by their parameters (TP2) may send a
//! variant before it reads that the subscription which it is for has ended. The
//! name may be subscribed to with other parameters by then. Such a variant is
//! left out; it is no fault of the server.

use crate::interest::{Interest, Subscription};

/// The number of subscriptions that are remembered. Beyond it, all are
/// forgotten: a variant for one of them that is still on its way would be
/// rejected, and nothing else.
const MAX_ENDED: usize = 1024;

/// The subscriptions that ended on one stream, within a bound; `count` is their
/// number.
#[derive(Debug, Default)]
pub(super) struct EndedSubscriptions {
    subscriptions: Interest,
    count: usize,
}

impl EndedSubscriptions {
    /// Adds a subscription.
    pub(super) fn insert(&mut self, subscription: Subscription) {
        if self.count == MAX_ENDED && !self.subscriptions.has(&subscription) {
            *self = Self::default();
        }
        self.count += usize::from(self.subscriptions.insert(subscription));
    }

    /// Removes a subscription that was made again.
    pub(super) fn remove(&mut self, subscription: &Subscription) {
        self.count -= usize::from(self.subscriptions.remove(subscription));
    }

    /// Returns the subscriptions that are remembered.
    pub(super) fn as_interest(&self) -> &Interest {
        &self.subscriptions
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::{Name, Selector};
    use crate::params::Params;

    fn numbered(number: usize) -> Subscription {
        let name = Name::new(number.to_string().as_str());
        Subscription::new(Selector::Name(name), Params::default())
    }

    #[test]
    fn what_ends_again_and_again_takes_bounded_memory() {
        let mut ended = EndedSubscriptions::default();
        for number in 0..3 * MAX_ENDED {
            ended.insert(numbered(number));
            ended.insert(numbered(number));
            assert!(ended.as_interest().has(&numbered(number)));
            assert_eq!(ended.as_interest().iter().count(), ended.count);
            assert!(ended.count <= MAX_ENDED);
        }
        ended.remove(&numbered(0));
        ended.remove(&numbered(3 * MAX_ENDED - 1));
        assert_eq!(ended.count, MAX_ENDED - 1);
    }
}
