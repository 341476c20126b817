//! The cache of a client whose receiving side is core's sink.

use std::sync::Arc;

use trunkline_core::Moment;
use trunkline_core::message::{Mode, Node};
use trunkline_core::name::{Name, Selector};
use trunkline_core::params::Params;
use trunkline_core::resource::Resource;
use trunkline_core::sink::{Rejection, Request, Response, Sink, SinkConfig, Subscription, Verdict};

use super::client::Asked;
use super::contents::is_bad;
use super::held::Held;
use crate::world::Fault;

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Sinking {
    sink: Sink,
    held: Held,
}

impl Sinking {
    /// A sink on its first stream; that of a leaf has a server without
    /// locators.
    pub(super) fn new(mode: Mode, is_leaf: bool) -> Self {
        let node = Node {
            client_features: vec!["xds.config.supports-resource-in-sotw".to_owned()],
            ..Node::default()
        };
        let mut sink = Sink::new(SinkConfig {
            locators: !is_leaf,
            ..SinkConfig::new(mode, node)
        });
        sink.handle_connected();
        Self {
            sink,
            held: Held::default(),
        }
    }

    pub(super) fn held(&self) -> &Held {
        &self.held
    }

    pub(super) fn reconnect(&mut self) {
        self.sink.handle_disconnected("cut");
        self.sink.handle_connected();
        self.absorb();
    }

    /// Begins or ends a subscription; `plain` are the parameters of one without
    /// its own.
    pub(super) fn toggle(&mut self, (url, name, params): &Asked, plain: &Params, is_new: bool) {
        let selector = match name.as_str() {
            "*" => Selector::Wildcard,
            name => Selector::Name(Name::new(name)),
        };
        let params = params.as_ref().unwrap_or(plain).clone();
        let subscription = Subscription::new(selector, params);
        if is_new {
            // Streams that carry all types refuse no type.
            drop(self.sink.subscribe(url, subscription, Moment::START));
        } else {
            self.sink.unsubscribe(url, &subscription);
        }
        self.absorb();
    }

    /// All requests that are due.
    pub(super) fn requests(&mut self, now: Moment) -> Vec<Request> {
        self.sink.handle_timeout(now);
        let requests = std::iter::from_fn(|| self.sink.poll_request(now)).collect();
        self.absorb();
        requests
    }

    /// Takes a response, and rejects what is bad of it.
    pub(super) fn take(&mut self, response: Response, now: Moment) -> Result<(), Fault> {
        let delivery = self.sink.handle_response(response);
        let delivery = delivery.map_err(|error| error.to_string())?;
        let resources = delivery.resources.iter();
        let bad = resources.filter(|resource: &&Arc<Resource>| is_bad(resource));
        let bad = bad.map(|resource| Rejection::of(&resource.name, "something is not good"));
        let verdict = Verdict::reject(bad.collect());
        let (url, nonce) = (&delivery.type_url, &delivery.nonce);
        let judged = self.sink.handle_verdict(url, nonce, verdict, now);
        judged.map_err(|error| error.to_string())?;
        self.absorb();
        Ok(())
    }

    /// Takes the effects of the sink into what is held.
    fn absorb(&mut self) {
        let effects = self.sink.take_effects();
        for place in effects.forgotten {
            self.held.remove(&place);
        }
        for change in effects.changes {
            self.held.apply(change);
        }
    }
}
