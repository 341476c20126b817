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
                Want::Names(names) => names.iter().for_each(|index| full.want(*kind, *index)),
                Want::Led => {}
            }
        }
        full
    }

    pub(crate) fn want(&mut self, kind: Kind, index: usize) {
        let name = self.shared.truth.recipe.name(index);
        self.subscribe(kind, Selector::Name(Name::new(&name)));
    }

    fn subscribe(&mut self, kind: Kind, ask: Selector) {
        let now = self.now();
        // The sink has no other types than those of the client's subscriptions.
        let subscription = Subscription::new(ask, self.params.clone());
        let _ = self.sink.subscribe(&kind.url().into(), subscription, now);
    }

    fn now(&self) -> Moment {
        Moment::new(self.shared.truth.start().elapsed())
    }

    pub(crate) fn connected(&mut self) {
        self.sink.handle_connected();
    }

    pub(crate) fn disconnected(&mut self) {
        self.sink.handle_disconnected("the stream ended");
    }

    pub(crate) fn say(&mut self) -> Option<Bytes> {
        let request = self.sink.poll_request(self.now())?;
        // Nothing of its contents is kept here, so nothing can be dropped.
        self.sink.take_effects();
        Some(self.writer.write(request))
    }

    /// Takes a response; false if it is none.
    pub(crate) fn hear(&mut self, raw: Bytes) -> bool {
        let bytes = raw.len();
        let Ok(mut heard) = read_response(self.mode, raw, &Limits::DEFAULT) else {
            return false;
        };
        self.keep(&mut heard.response);
        let delivery = match self.sink.handle_response(heard.response) {
            Ok(delivery) => delivery,
            Err(error) => {
                self.shared.fault(error.to_string());
                return false;
            }
        };
        let Some(kind) = Kind::of(delivery.type_url.as_str()) else {
            return false;
        };
        let mut rejected = heard.unreadable;
        self.ledger.heard(delivery.resources.len(), bytes);
        rejected.extend(self.judge(kind, &delivery));
        self.answer(kind, delivery, rejected);
        self.ledger.answered(kind);
        true
    }

    /// Shares what other clients hold as well.
    fn keep(&self, response: &mut Response) {
        let (url, resources) = match response {
            Response::Delta(response) => (&response.type_url, &mut response.resources),
            Response::Sotw(response) => (&response.type_url, &mut response.resources),
        };
        if let Some(kind) = Kind::of(url.as_str()) {
            let mut kept = resources.to_vec();
            for delivered in &mut kept {
                self.shared.keep(kind, &mut delivered.resource);
            }
            *resources = kept.into();
        }
    }

    /// Accepts the good resources, and rejects the others.
    fn judge(&mut self, kind: Kind, delivery: &Delivery) -> Vec<Rejection> {
        let leads_to = self.led.iter().find(|led| led.led_to_by() == Some(kind));
        let leads_to = leads_to.copied();
        let mut rejected = Vec::new();
        for resource in &delivery.resources {
            let name = resource.name.as_str();
            let body = resource.body.as_deref().unwrap_or_default();
            if self.rejects(kind, name, body) {
                self.ledger.refused(kind, name, body);
                let reason = "this client was told to reject it";
                rejected.push(Rejection::of(&resource.name, reason));
                continue;
            }
            let gained = self.ledger.saw(kind, name, body);
            if let (Some(index), Some(to)) = (gained, leads_to) {
                self.want(to, index);
            }
        }
        rejected
    }

    fn rejects(&self, kind: Kind, name: &str, body: &[u8]) -> bool {
        let change = match self.rejects {
            Rejects::Part { .. } => self.ledger.change(kind, name, body),
            _ => None,
        };
        self.rejects.has(name, change)
    }

    fn answer(&mut self, kind: Kind, delivery: Delivery, rejected: Vec<Rejection>) {
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
                self.ledger.gone(kind, name.as_str());
            }
        }
    }
}
