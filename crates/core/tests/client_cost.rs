//! The cost of one change at a client does not depend on how much it holds.
#![allow(clippy::unwrap_used, reason = "all of this is tests")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use trunkline_core::Moment;
use trunkline_core::client::{Action, Client, FallbackPolicy, ServerConfig, ServerId, Watched};
use trunkline_core::kind::CDS;
use trunkline_core::message::{DeltaResponse, Mode, Node, WireResource};
use trunkline_core::name::{Name, Selector};
use trunkline_core::params::Params;
use trunkline_core::resource::{Resource, TypeUrl};
use trunkline_core::sink::{BackoffConfig, SinkConfig, Verdict};

const NOW: Moment = Moment::START;
const CHANGES: usize = 50;

/// A client that watches all clusters of one server.
fn connected() -> (Client, ServerId) {
    let url = TypeUrl::from(CDS);
    let mut client = Client::new(1);
    let server = client.add_server(ServerConfig {
        sink: SinkConfig::new(Mode::Delta, Node::default()),
        backoff: BackoffConfig::default(),
        rate_limit: None,
    });
    let source = client.add_source(vec![server], FallbackPolicy::Grpc);
    client
        .subscribe(source, &url, Selector::Wildcard, NOW)
        .unwrap();
    client.watch(Watched {
        type_url: url,
        selector: Selector::Wildcard,
        params: Params::default(),
        source: Some(source),
    });
    assert_eq!(client.poll_action(NOW), Some(Action::Connect(server)));
    client.handle_connected(server, NOW);
    (client, server)
}

/// A response with these clusters, whose bodies are the nonce.
fn response(nonce: usize, numbers: impl Iterator<Item = usize>) -> DeltaResponse {
    let body = Bytes::from(nonce.to_string());
    let resources = numbers.map(|number| {
        let name = Name::new(number.to_string().as_str());
        WireResource::full(Arc::new(Resource::new(name, body.clone())))
    });
    DeltaResponse {
        type_url: CDS.into(),
        nonce: nonce.to_string().as_str().into(),
        resources: resources.collect::<Vec<_>>().into(),
        removed: Vec::new(),
        removed_variants: Vec::new(),
        errors: Vec::new(),
    }
}

/// Receives a response, accepts it, acknowledges it and reads what has changed.
fn take(client: &mut Client, server: ServerId, response: DeltaResponse) -> usize {
    let delivery = client.handle_response(server, response, NOW).unwrap();
    let (url, nonce) = (&delivery.type_url, &delivery.nonce);
    client
        .handle_verdict(server, url, nonce, Verdict::accept(), NOW)
        .unwrap();
    while client.poll_request(server, NOW).is_some() {}
    let mut changes = 0;
    while let Some(watch) = client.poll_watch() {
        changes += client.take_changes(watch).len();
    }
    changes
}

/// The shortest time that a change of one of so many resources takes.
fn shortest_change(resources: usize) -> Duration {
    let (mut client, server) = connected();
    while client.poll_request(server, NOW).is_some() {}
    assert_eq!(
        take(&mut client, server, response(0, 0..resources)),
        resources
    );
    let times = (1..=CHANGES).map(|nonce| {
        let number = nonce * 37 % resources;
        let response = response(nonce, std::iter::once(number));
        let begin = Instant::now();
        assert_eq!(take(&mut client, server, response), 1);
        begin.elapsed()
    });
    times.min().unwrap()
}

/// Fifty times as many resources would take fifty times as long, if the work
/// grew with them. Larger trees and colder caches are allowed for.
#[test]
fn c24_one_change_takes_as_long_in_a_hundred_thousand_resources() {
    let (few, many) = (shortest_change(2_000), shortest_change(100_000));
    println!("one of 2 000: {few:?}, one of 100 000: {many:?}");
    assert!(many < few * 8, "{few:?} and {many:?}");
}
