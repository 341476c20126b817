//! Who a client is and what it subscribes to, decided before it connects.

use std::collections::BTreeMap;

use bytes::Bytes;
use prost::Message as _;
use trunkline::wire::RequestWriter;
use trunkline_core::message::{Mode, Node};
use trunkline_core::params::Params;
use trunkline_proto::discovery::{self, ContextParams};
use trunkline_proto::envoy::google::protobuf::{Struct, Value, value};

use super::ledger::Complete;
use super::rejects::Rejects;
use crate::contents::{self, Kind};
use crate::options::{Asking, Options, Told, Variant};

/// How a client behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Habit {
    /// As it should.
    Good,
    /// NACKs every response, or some changes.
    Rejects,
    /// Does not read, for ever or for so long.
    Sleeps(Option<std::time::Duration>),
}

/// A client's subscription to a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Want {
    /// The wildcard.
    All,
    /// These places.
    Names(Vec<usize>),
    /// The names that resources of another type lead to.
    Led,
}

/// See the module's documentation.
#[derive(Clone, Debug)]
pub(crate) struct Spec {
    /// Which one.
    pub(crate) number: usize,
    pub(crate) mode: Mode,
    pub(crate) habit: Habit,
    /// Keeps revisions only.
    pub(crate) light: bool,
    /// The type of its stream, if it has one for each.
    pub(crate) only: Option<Kind>,
    pub(crate) wants: Vec<(Kind, Want)>,
    pub(crate) complete: Complete,
    /// Subscribes to names one after another, so many in a second.
    pub(crate) demand: Option<f64>,
    /// Which resources it rejects.
    pub(crate) rejects: Rejects,
    /// Of which kind it is, if there are several.
    pub(crate) category: Option<usize>,
    told: Told,
}

impl Spec {
    /// Makes the specs of the streams of all clients. `driven` says whether the
    /// tool puts contents, which clients then hold at the end.
    pub(crate) fn all(options: &Options, driven: bool) -> Vec<Self> {
        let mut random = fastrand::Rng::with_seed(options.seed);
        let mut specs = Vec::new();
        let others = options.nackers + options.slow_readers;
        for number in 0..options.clients + others {
            let habit = match number.checked_sub(options.clients) {
                None => Habit::Good,
                Some(n) if n < options.nackers => Habit::Rejects,
                Some(_) => Habit::Sleeps(options.slow_for.map(std::time::Duration::from_secs_f64)),
            };
            specs.extend(Self::of_client(options, driven, number, habit, &mut random));
        }
        specs
    }

    /// Makes the specs of the streams of one client: one, or one for each type.
    fn of_client(
        options: &Options,
        driven: bool,
        number: usize,
        habit: Habit,
        random: &mut fastrand::Rng,
    ) -> Vec<Self> {
        let names = names(options, random);
        let want = |kind: Kind| (kind, want(options, kind, &names));
        let spec = |only: Option<Kind>, wants: Vec<(Kind, Want)>| Self {
            number,
            mode: match options.mode {
                Variant::Delta => Mode::Delta,
                Variant::Sotw => Mode::Sotw,
            },
            habit,
            light: options.light && habit == Habit::Good,
            only,
            complete: complete(options, driven, habit, wants.len()),
            wants,
            demand: (options.ask == Asking::Demand).then_some(options.demand_rate),
            rejects: rejects(options, habit),
            category: (options.categories > 0).then(|| number % options.categories),
            told: options.told(),
        };
        match options.per_type {
            false => vec![spec(
                None,
                options.types.iter().copied().map(want).collect(),
            )],
            true => {
                let kinds = options.types.iter().copied();
                kinds
                    .map(|kind| spec(Some(kind), vec![want(kind)]))
                    .collect()
            }
        }
    }

    /// Returns the node, as far as the protocol engine knows it.
    pub(crate) fn node(&self) -> Node {
        Node {
            id: format!("bench-{}", self.number),
            cluster: "bench".into(),
            user_agent: "trunkline-bench".into(),
            client_features: Vec::new(),
            params: Params::default(),
        }
    }

    /// Returns the parameters that go with each of its subscriptions.
    pub(crate) fn params(&self) -> Params {
        let category = self.category.filter(|_| self.told == Told::Locators);
        category.map(contents::params).unwrap_or_default()
    }

    /// Returns what writes its requests, with the rest of its node.
    pub(crate) fn writer(&self) -> RequestWriter {
        let Some(category) = self.category else {
            return RequestWriter::default();
        };
        match self.told {
            Told::Metadata => RequestWriter::new(discovery::Node {
                metadata: Some(metadata(contents::category_name(category))),
                ..discovery::Node::default()
            }),
            Told::Parameters => RequestWriter::new(discovery::Node {
                dynamic_parameters: self.dynamic_parameters(category),
                ..discovery::Node::default()
            }),
            Told::Locators => RequestWriter::default(),
        }
    }

    /// Returns the parameters of a client of a category, the same for each of
    /// its types.
    fn dynamic_parameters(&self, category: usize) -> BTreeMap<String, ContextParams> {
        let params = [(contents::KEY.to_owned(), contents::category_name(category))];
        let params = ContextParams {
            params: params.into(),
        };
        let kinds = self.wants.iter().map(|(kind, _)| kind.url().to_owned());
        kinds.map(|url| (url, params.clone())).collect()
    }

    /// Returns the path of the gRPC method that it calls.
    pub(crate) fn path(&self) -> &'static str {
        match (self.only, self.mode) {
            (None, Mode::Sotw) => {
                "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources"
            }
            (None, Mode::Delta) => {
                "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources"
            }
            (Some(kind), Mode::Sotw) => kind.methods()[0],
            (Some(kind), Mode::Delta) => kind.methods()[1],
        }
    }
}

/// Chooses the names that a client subscribes to; none unless clients subscribe
/// by names from the start.
fn names(options: &Options, random: &mut fastrand::Rng) -> Vec<usize> {
    if options.ask != Asking::Named {
        return Vec::new();
    }
    let some = options.names.min(options.resources);
    let mut names = random.choose_multiple(0..options.resources, some);
    names.sort_unstable();
    names
}

/// Returns what a client subscribes to of a type. `names` are those that were
/// chosen for it.
fn want(options: &Options, kind: Kind, names: &[usize]) -> Want {
    let led = |from: Kind| options.types.contains(&from);
    match (options.ask, kind.led_to_by()) {
        (Asking::Named, _) => Want::Names(names.to_vec()),
        (Asking::Demand, _) => Want::Names(Vec::new()),
        // A stream of one type does not see the others.
        (Asking::Wildcard, Some(_)) if options.per_type => {
            Want::Names((0..options.resources).collect())
        }
        (Asking::Wildcard, Some(from)) if led(from) => Want::Led,
        (Asking::Wildcard, _) => Want::All,
    }
}

/// Returns which resources a client rejects.
fn rejects(options: &Options, habit: Habit) -> Rejects {
    match (habit, options.nack_part, &options.nack) {
        (Habit::Rejects, None, _) => Rejects::Everything,
        (Habit::Rejects, Some(part), _) => Rejects::Part {
            part,
            seed: options.seed,
        },
        (_, _, Some(name)) => Rejects::Name(name.clone()),
        (_, _, None) => Rejects::Nothing,
    }
}

/// Returns when a client of `kinds` types has its first configuration.
fn complete(options: &Options, driven: bool, habit: Habit, kinds: usize) -> Complete {
    let everything = habit == Habit::Rejects && options.nack_part.is_none();
    match (habit, driven, options.ask) {
        _ if everything => Complete::Never,
        (Habit::Sleeps(_), _, _) => Complete::Never,
        (_, false, _) => Complete::Answered(kinds),
        (_, _, Asking::Wildcard) => Complete::Holding(kinds * options.resources),
        (_, _, Asking::Named) => Complete::Holding(kinds * options.names.min(options.resources)),
        (_, _, Asking::Demand) => Complete::Holding(kinds),
    }
}

/// Returns the encoded metadata of a node of a category.
fn metadata(category: String) -> Bytes {
    let category = Value {
        kind: Some(value::Kind::StringValue(category)),
    };
    let metadata = Struct {
        fields: [(contents::KEY.to_owned(), category)].into(),
    };
    metadata.encode_to_vec().into()
}
