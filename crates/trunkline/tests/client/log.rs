//! What a client logs: each line of a stream is in its span, and what a
//! bootstrap may not mean is a warning.

use std::fmt::{Debug, Write as _};
use std::sync::{Arc, Mutex};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};
use trunkline::client::{Bootstrap, Client};
use trunkline::envoy::config::cluster::v3::Cluster;

use super::next;
use super::server::Serving;

/// Notes spans and lines as text: the spans that a line is in, and then itself.
#[derive(Clone, Default)]
struct Noting(Arc<Mutex<Notes>>);

#[derive(Default)]
struct Notes {
    /// By their numbers, from 1.
    spans: Vec<String>,
    entered: Vec<Id>,
    lines: Vec<String>,
}

struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, " {field}={value:?}").unwrap();
    }
}

impl Subscriber for Noting {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("trunkline")
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut text = Text(span.metadata().name().to_owned());
        span.record(&mut text);
        let mut notes = self.0.lock().unwrap();
        notes.spans.push(text.0);
        Id::from_u64(notes.spans.len() as u64)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut text = Text(event.metadata().level().to_string());
        event.record(&mut text);
        let mut notes = self.0.lock().unwrap();
        let span = notes.entered.last().map(|id| id.into_u64() as usize - 1);
        let span = span.map(|span| notes.spans[span].clone());
        notes
            .lines
            .push(format!("{}: {}", span.unwrap_or_default(), text.0));
    }

    fn enter(&self, span: &Id) {
        self.0.lock().unwrap().entered.push(span.clone());
    }

    fn exit(&self, _: &Id) {
        self.0.lock().unwrap().entered.pop();
    }
}

impl Noting {
    /// The lines that contain a text.
    fn lines(&self, with: &str) -> Vec<String> {
        let notes = self.0.lock().unwrap();
        let lines = notes.lines.iter().filter(|line| line.contains(with));
        lines.cloned().collect()
    }
}

#[tokio::test]
async fn what_happens_on_a_stream_is_logged_in_its_span() {
    let noting = Noting::default();
    let _guard = tracing::subscriber::set_default(noting.clone());
    let serving = Serving::start();
    serving.set(&[("a", 1)]);
    let address = serving.address.to_string();
    let client = Client::builder().server(&address).unwrap().build();
    let mut a = client.subscribe::<Cluster>("a").unwrap().watch();
    assert!(next(&mut a).await.value().is_some());
    let span = format!(
        "xds_stream server={address} \
         path=\"/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources\" \
         number=1: "
    );
    for (with, count) in [("connected", 1), ("response", 1)] {
        let lines = noting.lines(with);
        assert_eq!(lines.len(), count, "{lines:?}");
        assert!(lines[0].starts_with(&span), "{lines:?}");
    }
}

#[tokio::test]
async fn a_token_that_would_go_over_plaintext_is_warned_of() {
    let noting = Noting::default();
    let _guard = tracing::subscriber::set_default(noting.clone());
    let bootstrap = |address: &str| {
        let text = format!(
            r#"{{"xds_servers": [{{"server_uri": "{address}",
              "channel_creds": [{{"type": "insecure"}}],
              "call_creds": [{{"type": "jwt_token_file", "config": {{"jwt_token_file": "/t"}}}}]
            }}]}}"#
        );
        Bootstrap::from_grpc("b.json", &text).unwrap()
    };
    drop(
        Client::builder()
            .bootstrap(bootstrap("127.0.0.1:1"))
            .build(),
    );
    assert_eq!(noting.lines("WARN"), [""; 0]);

    drop(
        Client::builder()
            .bootstrap(bootstrap("xds.example.com:1"))
            .build(),
    );
    let lines = noting.lines("WARN");
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(
        lines[0].contains("b.json:1:18: xds_servers[0]: the token of the control plane is sent"),
        "{lines:?}"
    );
}
