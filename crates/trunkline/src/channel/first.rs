//! The first endpoint that can be connected to, which has all calls for as long
//! as its connection holds (A62).

use std::sync::Arc;

use trunkline_traffic::balance::Host;

use super::endpoints::Chosen;
use super::subchannel::Link;

/// Endpoints in their order, and the one that has the calls.
#[derive(Debug)]
pub(super) struct First {
    order: Vec<Arc<Host>>,
    current: Option<Box<str>>,
}

impl First {
    /// Makes the order, a random one if there is a source of random numbers.
    /// The endpoint that had the calls before keeps them if it is there still.
    pub(super) fn new(
        mut order: Vec<Arc<Host>>,
        previous: Option<&Self>,
        random: Option<&mut dyn FnMut() -> u64>,
    ) -> Self {
        if let Some(random) = random {
            for last in (1..order.len()).rev() {
                #[expect(clippy::cast_possible_truncation, reason = "less than a length")]
                let other = (random() % (last as u64 + 1)) as usize;
                order.swap(last, other);
            }
        }

        let current = previous.and_then(|first| first.current.as_deref());
        let current = current.filter(|current| order.iter().any(|host| host.address() == *current));
        Self {
            current: current.map(Into::into),
            order,
        }
    }

    /// Chooses the endpoint of a call: the one of the calls before, or the
    /// first that does not fail. Returns `Wait` if that one is being connected
    /// to.
    pub(super) fn choose(&mut self, link: impl Fn(&Host) -> Link) -> Chosen {
        let current = self.current.take();
        let current = self
            .order
            .iter()
            .find(|host| current.as_deref() == Some(host.address()));
        if let Some(host) = current
            && let Link::Ready(sender) = link(host)
        {
            self.current = Some(host.address().into());
            return Chosen::Ready(Arc::clone(host), sender);
        }

        let mut failure: Arc<str> = "it has no healthy endpoint".into();
        for host in &self.order {
            match link(host) {
                Link::Ready(sender) => {
                    self.current = Some(host.address().into());
                    return Chosen::Ready(Arc::clone(host), sender);
                }
                Link::Connecting => return Chosen::Wait,
                Link::Failed(why) => failure = why,
            }
        }
        Chosen::Failed(failure)
    }
}
