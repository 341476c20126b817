//! A client as real ones are: the engine's own sink, which holds its resources.

use std::sync::Arc;

use bytes::Bytes;
use trunkline::wire::{RequestWriter, read_response};
use trunkline_core::Moment;
use trunkline_core::change::Change;
use trunkline_core::message::Mode;
use trunkline_core::name::{Name, Selector};
use trunkline_core::params::Params;
use trunkline_core::sink::{
    Delivery, FetchTimeout, Rejection, Response, Sink, SinkConfig, StreamScope, Subscription,
    Verdict,
};
use trunkline_proto::discovery::Limits;

use super::ledger::Ledger;
use super::rejects::Rejects;
use super::shared::Shared;
use super::spec::{Spec, Want};
use crate::contents::Kind;
use crate::measure::Counters;

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Full {
    sink: Sink,
    mode: Mode,
    writer: RequestWriter,
    params: Params,
    shared: Arc<Shared>,
    pub(crate) ledger: Ledger,
    rejects: Rejects,
    led: Vec<Kind>,
}

impl Full {
    /// Makes a client that subscribes to what its spec says, over streams that
    /// come later.
    pub(crate) fn new(spec: &Spec, shared: Arc<Shared>, ledger: Ledger) -> Self {
        let config = SinkConfig {
            scope: match spec.only {
                None => StreamScope::Aggregated,
                Some(kind) => StreamScope::Single(kind.url().into()),
            },
            // A server that is slow is measured, not abandoned.
            fetch_timeout: FetchTimeout::Never,
            locators: !spec.params().is_empty(),
            ..SinkConfig::new(spec.mode, spec.node())
        };
        let led = |(kind, want): &(Kind, Want)| (*want == Want::Led).then_some(*kind);
        let mut full = Self {
            sink: Sink::new(config),
            mode: spec.mode,
            writer: spec.writer(),
            params: spec.params(),
            shared,
            ledger,
            rejects: spec.rejects.clone(),
            led: spec.wants.iter().filter_map(led).collect(),
        };
        for (kind, want) in &spec.wants {
            match want {
                Want::All => full.subscribe(*kind, Selector::Wildcard),
                Want::Names(names) => names
                    .iter()
                    .for_each(|index| full.subscribe_name(*kind, *index)),
                Want::Led => {}
            }
        }
        full
    }

    /// Subscribes to the resource at a place of a type, by its name.
    pub(crate) fn subscribe_name(&mut self, kind: Kind, index: usize) {
        let name = self.shared.truth.recipe.name(index);
        self.subscribe(kind, Selector::Name(Name::new(&name)));
    }

    /// Subscribes to a selector of a type, with the client's parameters.
    fn subscribe(&mut self, kind: Kind, selector: Selector) {
        let now = self.now();
        // The sink has no other types than those of the client's subscriptions.
        let subscription = Subscription::new(selector, self.params.clone());
        let _ = self.sink.subscribe(&kind.url().into(), subscription, now);
    }

    /// Returns the time of the sink's clock.
    fn now(&self) -> Moment {
        Moment::new(self.shared.truth.start().elapsed())
    }

    /// Begins a stream.
    pub(crate) fn handle_connected(&mut self) {
        self.sink.handle_connected();
    }

    /// Ends a stream.
    pub(crate) fn handle_disconnected(&mut self) {
        self.sink.handle_disconnected("the stream ended");
    }

    /// Returns the next request, encoded, if there is one to send.
    pub(crate) fn poll_request(&mut self) -> Option<Bytes> {
        let request = self.sink.poll_request(self.now())?;
        // Nothing of its contents is kept here, so nothing can be dropped.
        self.sink.take_effects();
        Some(self.writer.write(request))
    }

    /// Takes a response, and acknowledges it. Returns false if the bytes are no
    /// response, or one that breaks the protocol.
    pub(crate) fn handle_response(&mut self, raw: Bytes) -> bool {
        let bytes = raw.len();
        let Ok(mut heard) = read_response(self.mode, raw, &Limits::DEFAULT) else {
            return false;
        };
        self.share_resources(&mut heard.response);
        let delivery = match self.sink.handle_response(heard.response) {
            Ok(delivery) => delivery,
            Err(error) => {
                self.shared.note_fault(error.to_string());
                return false;
            }
        };
        let Some(kind) = Kind::of(delivery.type_url.as_str()) else {
            return false;
        };
        let mut rejected = heard.unreadable;
        self.ledger.count_response(delivery.resources.len(), bytes);
        rejected.extend(self.judge(kind, &delivery));
        self.acknowledge(kind, delivery, rejected);
        self.ledger.finish_response(kind);
        true
    }

    /// Replaces the resources of a response by equal ones that other clients
    /// hold.
    fn share_resources(&self, response: &mut Response) {
        let (url, resources) = match response {
            Response::Delta(response) => (&response.type_url, &mut response.resources),
            Response::Sotw(response) => (&response.type_url, &mut response.resources),
        };
        if let Some(kind) = Kind::of(url.as_str()) {
            let mut kept = resources.to_vec();
            for delivered in &mut kept {
                self.shared.share(kind, &mut delivered.resource);
            }
            *resources = kept.into();
        }
    }

    /// Notes the resources of a delivery as accepted or rejected, and
    /// subscribes to the names that accepted ones lead to. Returns the
    /// rejections.
    fn judge(&mut self, kind: Kind, delivery: &Delivery) -> Vec<Rejection> {
        let leads_to = self.led.iter().find(|led| led.led_to_by() == Some(kind));
        let leads_to = leads_to.copied();
        let mut rejected = Vec::new();
        for resource in &delivery.resources {
            let name = resource.name.as_str();
            let body = resource.body.as_deref().unwrap_or_default();
            if self.rejects(kind, name, body) {
                self.ledger.note_rejected(kind, name, body);
                let reason = "this client was told to reject it";
                rejected.push(Rejection::of(&resource.name, reason));
                continue;
            }
            let gained = self.ledger.note_accepted(kind, name, body);
            if let (Some(index), Some(to)) = (gained, leads_to) {
                self.subscribe_name(to, index);
            }
        }
        rejected
    }

    /// Returns whether the client is to reject this resource.
    fn rejects(&self, kind: Kind, name: &str, body: &[u8]) -> bool {
        let change = match self.rejects {
            Rejects::Part { .. } => self.ledger.revision_of_change(kind, name, body),
            _ => None,
        };
        self.rejects.has(name, change)
    }

    /// Counts an ACK, or a NACK with these rejections, and gives the sink its
    /// verdict. Notes the removals that come of it.
    fn acknowledge(&mut self, kind: Kind, delivery: Delivery, rejected: Vec<Rejection>) {
        let counters = &self.shared.counters;
        Counters::add(
            match rejected.is_empty() {
                true => &counters.acks,
                false => &counters.nacks,
            },
            1,
        );
        let verdict = Verdict::reject(rejected);
        let now = self.now();
        let judged = self
            .sink
            .handle_verdict(&delivery.type_url, &delivery.nonce, verdict, now);
        if judged.is_err() {
            return;
        }
        for change in self.sink.take_effects().changes {
            if let Change::Remove(_, name) | Change::RemoveVariant(_, name, _) = change {
                self.ledger.note_removed(kind, name.as_str());
            }
        }
    }
}
