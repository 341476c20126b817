//! One subscription of a sink.

use crate::message::Locator;
use crate::name::{Name, Selector};
use crate::params::Params;

/// One subscription of a sink: a selector, and the dynamic parameters that it
/// goes with (TP2).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Subscription {
    /// The wildcard, a glob or a name.
    pub selector: Selector,
    /// The parameters. A subscription without any is plain: the server takes
    /// those of the stream.
    pub params: Params,
}

impl Subscription {
    /// Makes a subscription with these parameters; it is plain if there are
    /// none.
    #[must_use]
    pub fn new(selector: Selector, params: Params) -> Self {
        Self { selector, params }
    }

    /// Returns the subscription as a request has it.
    pub(crate) fn locator(&self) -> Locator {
        let own_params = Some(&self.params).filter(|params| !params.is_empty());
        Locator {
            name: self.selector.as_str().to_owned(),
            params: own_params.cloned(),
        }
    }
}

impl From<Selector> for Subscription {
    /// Makes a plain subscription.
    fn from(selector: Selector) -> Self {
        Self::new(selector, Params::default())
    }
}

impl From<Name> for Subscription {
    /// Makes a plain subscription to one name.
    fn from(name: Name) -> Self {
        Selector::Name(name).into()
    }
}
