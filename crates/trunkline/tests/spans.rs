//! What a subscriber of tracing sees of a client: a span for each stream, and
//! what is logged in it. A program of its own: whether a subscriber of one
//! thread sees a line depends on what other threads registered before it.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "all of this is tests"
)]

#[path = "client/scripted.rs"]
#[allow(dead_code, reason = "the tests of the client use the rest")]
mod scripted;
#[path = "client/server.rs"]
#[allow(dead_code, reason = "the tests of the client use the rest")]
mod server;

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};
use trunkline::client::{Client, ClientBuilder, State, Watch};
use trunkline::envoy::config::cluster::v3::Cluster;
use trunkline::proto::acceptance::ResourceType;
use trunkline::proto::envoy::google::protobuf::Any;

use scripted::Scripted;
use server::{Serving, cluster};

/// More than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// The next state of a watch.
async fn next<T: Send + Sync + 'static>(watch: &mut Watch<T>) -> State<T> {
    let next = tokio::time::timeout(PATIENCE, watch.changed()).await;
    next.expect("a state in time")
}

/// Fields and their values as text.
#[derive(Clone, Debug, Default)]
struct Fields(BTreeMap<&'static str, String>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }
}

impl Fields {
    fn get(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }
}

/// A span, or an event with the span in which it was logged.
#[derive(Clone, Debug)]
struct Logged {
    name: &'static str,
    fields: Fields,
    span: Option<usize>,
}

/// Keeps spans and events of one thread.
#[derive(Clone, Debug, Default)]
struct Log {
    spans: Arc<Mutex<Vec<Logged>>>,
    events: Arc<Mutex<Vec<Logged>>>,
    entered: Arc<Mutex<Vec<usize>>>,
}

impl Log {
    fn logged(&self, metadata: &Metadata<'static>, fields: Fields) -> Logged {
        Logged {
            name: metadata.name(),
            fields,
            span: self.entered.lock().unwrap().last().copied(),
        }
    }

    /// The spans of streams, by the order in which they began.
    fn streams(&self) -> Vec<Logged> {
        let spans = self.spans.lock().unwrap();
        let streams = spans.iter().filter(|span| span.name == "xds_stream");
        streams.cloned().collect()
    }

    /// The events with this message, each with the number of its stream.
    fn messages(&self, message: &str) -> Vec<(String, Fields)> {
        let (spans, events) = (self.spans.lock().unwrap(), self.events.lock().unwrap());
        let events = events
            .iter()
            .filter(|event| event.fields.get("message") == message);
        let stream = |event: &Logged| match event.span {
            Some(span) => spans[span].fields.get("number").to_owned(),
            None => "none".to_owned(),
        };
        events
            .map(|event| (stream(event), event.fields.clone()))
            .collect()
    }

    /// The streams in which this message was logged.
    fn streams_with(&self, message: &str) -> Vec<String> {
        let messages = self.messages(message).into_iter();
        messages.map(|(stream, _)| stream).collect()
    }
}

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("trunkline::client")
    }

    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        let span = self.logged(attributes.metadata(), fields);
        let mut spans = self.spans.lock().unwrap();
        spans.push(span);
        Id::from_u64(spans.len() as u64)
    }

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let event = self.logged(event.metadata(), fields);
        self.events.lock().unwrap().push(event);
    }

    fn enter(&self, span: &Id) {
        let index = usize::try_from(span.into_u64()).unwrap() - 1;
        self.entered.lock().unwrap().push(index);
    }

    fn exit(&self, _: &Id) {
        self.entered.lock().unwrap().pop();
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}
}

/// A builder of a client at an address.
fn builder(address: &str) -> ClientBuilder {
    Client::builder().server(address).unwrap()
}

#[tokio::test]
async fn each_stream_has_a_span_with_its_server_path_and_number() {
    let log = Log::default();
    let _guard = tracing::subscriber::set_default(log.clone());
    let serving = Serving::start();
    serving.set(&[("a", 1)]);
    let address = serving.address.to_string();
    let client = builder(&address).build();
    let mut watch = client.subscribe::<Cluster>("a").unwrap().watch();
    assert!(next(&mut watch).await.value().is_some());
    drop(serving);
    let serving = Serving::start_at(&address);
    serving.set(&[("a", 2)]);
    while watch.changed().await.error().is_some() {}

    let streams = log.streams();
    let last = streams.len();
    assert!(last >= 2, "{streams:?}");
    for (index, stream) in streams.iter().enumerate() {
        let fields = ["server", "path", "number"].map(|field| stream.fields.get(field));
        let path =
            "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources";
        assert_eq!(fields, [&*address, path, &*(index + 1).to_string()]);
    }
    let last = last.to_string();
    assert_eq!(log.streams_with("connected"), ["1", &last]);
    assert_eq!(log.streams_with("disconnected")[0], "1");
    let responses = log.messages("response");
    let (stream, fields) = &responses[0];
    let fields = ["type_url", "resources", "rejected"].map(|field| fields.get(field));
    assert_eq!((&**stream, fields), ("1", [Cluster::TYPE_URL, "1", "0"]));
    assert_eq!(responses.last().map(|(stream, _)| &**stream), Some(&*last));
}

#[tokio::test]
async fn a_nack_is_logged_in_the_span_of_its_stream() {
    let log = Log::default();
    let _guard = tracing::subscriber::set_default(log.clone());
    let mut script = Scripted::start().await;
    let address = script.address.to_string();
    let client = builder(&address).state_of_the_world().build();
    let mut watch = client.subscribe::<Cluster>("a").unwrap().watch();
    let mut stream = script.stream().await;
    let good = Any {
        type_url: Cluster::TYPE_URL.to_owned(),
        value: prost::Message::encode_to_vec(&cluster("a", 1)),
    };
    let garbage = Any {
        value: vec![0xff],
        ..good.clone()
    };
    stream
        .send("1", Cluster::TYPE_URL, vec![good, garbage])
        .await;
    assert!(next(&mut watch).await.value().is_some());
    while stream.request().await.error_detail.is_none() {}

    let nacks = log.messages("NACK");
    let [(stream, fields)] = &nacks[..] else {
        panic!("{nacks:?}");
    };
    assert_eq!(stream, "1");
    let known = ["server", "type_url"].map(|field| fields.get(field));
    assert_eq!(known, [&*address, Cluster::TYPE_URL]);
    assert_ne!(fields.get("reason"), "");
}
