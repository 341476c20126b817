//! A proxy that was sent requests for a hundred thousand hosts that do not
//! exist: it lists all of them when it reconnects (S72).

use std::collections::BTreeSet;
use std::sync::Arc;

use trunkline::status::Clients as _;
use trunkline::{Change, Facts, Name, Resource, Server, kind};
use trunkline_core::hosts::Domains;
use trunkline_proto::envoy::envoy::config::core::v3::Node;
use trunkline_proto::envoy::envoy::service::discovery::v3::{
    DeltaDiscoveryRequest, DeltaDiscoveryResponse,
};

use crate::support::{Delta, build};

const JUNK: usize = 100_000;
const LIMIT: usize = 1_000;

fn host(name: &str, domain: &str, body: &'static [u8]) -> Change {
    let facts = Facts {
        domains: Domains::new([domain]),
        ..Facts::default()
    };
    let resource = Resource {
        facts: Some(Box::new(facts)),
        ..Resource::new(Name::new(name), body.into())
    };
    Change::Upsert(kind::VHDS.into(), Arc::new(resource))
}

fn junk(number: usize) -> String {
    format!("r1/junk{number}.com")
}

/// All names that a response answers.
fn answered(response: &DeltaDiscoveryResponse) -> impl Iterator<Item = &String> {
    let resources = response.resources.iter();
    resources.flat_map(|r| r.aliases.iter().chain([&r.name]))
}

/// Reads and ACKs until a name is answered.
async fn read_until(stream: &mut Delta, name: &str, all: &mut BTreeSet<String>) -> usize {
    let mut responses = 0;
    loop {
        let response = stream.next().await;
        assert_eq!(response.type_url, kind::VHDS);
        stream.accept(&response).await;
        all.extend(answered(&response).cloned());
        responses += 1;
        if all.contains(name) {
            return responses;
        }
    }
}

#[tokio::test]
async fn s72_a_hundred_thousand_junk_hosts_are_survived() {
    let limit = |options: &mut trunkline::Options| options.limits.hosts = LIMIT;
    let fixture = build(Server::builder().options(limit)).await;
    let contents = vec![
        host("r1/web", "known.com", b"web"),
        host("r1/other", "other.com", b"other"),
    ];
    fixture.server.apply(contents).unwrap();
    let mut stream = Delta::open(&fixture).await;
    // Half of them it was told of before.
    let known = (0..JUNK / 2).map(|n| (junk(n), "-5".to_owned()));
    let names = (0..JUNK).map(junk);
    let hosts = DeltaDiscoveryRequest {
        node: Some(Node {
            id: "proxy".into(),
            user_agent_name: "envoy".into(),
            ..Node::default()
        }),
        type_url: kind::VHDS.into(),
        resource_names_subscribe: ["*".to_owned()]
            .into_iter()
            .chain(names)
            .chain(["r1/known.com".to_owned()])
            .collect(),
        initial_resource_versions: known.collect(),
        ..DeltaDiscoveryRequest::default()
    };
    stream.requests.send(hosts).await.unwrap();
    let mut all = BTreeSet::new();
    let mut responses = read_until(&mut stream, "r1/known.com", &mut all).await;
    let more = DeltaDiscoveryRequest {
        type_url: kind::VHDS.into(),
        resource_names_subscribe: vec!["r1/other.com".into()],
        ..DeltaDiscoveryRequest::default()
    };
    stream.requests.send(more).await.unwrap();
    responses += read_until(&mut stream, "r1/other.com", &mut all).await;
    let last = junk(JUNK - 1);
    while !all.contains(&last) {
        responses += read_until(&mut stream, &last, &mut all).await;
    }
    // Hosts that Envoy waits for are answered; those that it has versions of
    // are not.
    let waited = (JUNK / 2..JUNK)
        .map(junk)
        .filter(|name| !all.contains(name));
    assert_eq!(waited.count(), 0);
    let again = (0..JUNK / 2).map(junk).filter(|name| all.contains(name));
    assert_eq!(again.count(), 0);
    assert!(responses < 10, "{responses} responses");

    let clients = fixture.server.clients();
    let subscriptions = clients[0].types[0].subscriptions;
    // Two that exist, and the wildcard.
    assert!(subscriptions <= LIMIT + 3, "{subscriptions} subscriptions");
    let changed = vec![host("r1/web", "known.com", b"changed")];
    fixture.server.apply(changed).unwrap();
    let mut all = BTreeSet::new();
    read_until(&mut stream, "r1/known.com", &mut all).await;
    assert_eq!(all, ["r1/known.com".to_owned(), "r1/web".to_owned()].into());
}
