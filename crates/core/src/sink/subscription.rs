//! One subscription of a sink.

use crate::name::{Name, Selector};
use crate::params::Params;

/// One subscription of a sink: a selector, and the dynamic parameters that it
/// goes with (TP2).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Subscription {
    /// The wildcard, a glob or a name.
    pub selector: Selector,
    /// The parameters; without any, the subscription is plain.
    pub params: Params,
}

impl From<Selector> for Subscription {
    /// A plain subscription.
    fn from(selector: Selector) -> Self {
        Self {
            selector,
            params: Params::default(),
        }
    }
}

impl From<Name> for Subscription {
    /// A plain subscription to one name.
    fn from(name: Name) -> Self {
        Selector::Name(name).into()
    }
}
