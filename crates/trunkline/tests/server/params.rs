//! Variants by a client's node, for clients that send no parameters (TP2, S62).

use std::collections::HashMap;

use prost::Message as _;
use trunkline::node::{NodeMatch, ParamRule, ParamRules};
use trunkline::{Awaited, Change, Name, Resource, Server, kind};
use trunkline_proto::envoy::envoy::config::cluster::v3::Cluster;
use trunkline_proto::envoy::envoy::config::core::v3::Node;
use trunkline_proto::envoy::envoy::service::discovery::v3::{
    DeltaDiscoveryRequest, DeltaDiscoveryResponse, ResourceLocator,
};
use trunkline_proto::envoy::xds::core::v3::ContextParams;

use crate::services::poll;
use crate::support::{Delta, Fixture, build};

fn rule(condition: Option<(&str, &str)>, key: &str, template: &str) -> ParamRule {
    let condition =
        condition.map(|(field, like)| (field.parse().unwrap(), vec![like.parse().unwrap()]));
    ParamRule {
        node: NodeMatch::new(condition),
        set: vec![(key.to_owned(), template.parse().unwrap())],
    }
}

fn variant(type_url: &str, name: &str, of: &str) -> Change {
    let body = of.to_owned().into();
    let resource = Resource {
        constraints: Some(of.parse().unwrap()),
        ..Resource::new(Name::new(name), body)
    };
    Change::Upsert(type_url.into(), resource.into())
}

/// Clusters by environment, and endpoints by zone.
async fn server(rules: Vec<ParamRule>) -> Fixture {
    let rules = ParamRules::new(rules).unwrap();
    let fixture = build(Server::builder().options(|options| options.params = rules)).await;
    let contents = vec![
        variant(kind::CDS, "a", "env=prod"),
        variant(kind::CDS, "a", "NOT env=prod"),
        variant(kind::CDS, "only-prod", "env=prod"),
        variant(kind::EDS, "e", "env=prod"),
        variant(kind::EDS, "e", "NOT env exists"),
    ];
    fixture.server.apply(contents).unwrap();
    fixture
}

fn node(cluster: &str) -> Node {
    Node {
        id: "n".into(),
        cluster: cluster.into(),
        ..Node::default()
    }
}

fn ask(type_url: &str, node: Option<Node>, names: &[&str]) -> DeltaDiscoveryRequest {
    DeltaDiscoveryRequest {
        node,
        type_url: type_url.into(),
        resource_names_subscribe: names.iter().map(|n| (*n).to_owned()).collect(),
        ..DeltaDiscoveryRequest::default()
    }
}

/// Names with the bodies that were sent, which tell for whom they are.
fn given(response: &DeltaDiscoveryResponse) -> Vec<String> {
    let one = response.resources.iter().map(|resource| {
        let body = resource.resource.as_ref().unwrap();
        let body = String::from_utf8_lossy(&body.value);
        format!("{}: {body}", resource.name)
    });
    let mut all: Vec<String> = one.collect();
    all.sort();
    all
}

async fn say(stream: &mut Delta, request: DeltaDiscoveryRequest) -> DeltaDiscoveryResponse {
    stream.requests.send(request).await.unwrap();
    let response = stream.next().await;
    stream.accept(&response).await;
    response
}

#[tokio::test]
async fn tp2_a_wildcard_set_is_filtered_by_what_the_node_says() {
    let fixture = server(vec![rule(None, "env", "{cluster}")]).await;
    for (cluster, expected) in [
        ("prod", &["a: env=prod", "only-prod: env=prod"][..]),
        ("test", &["a: NOT env=prod"]),
        ("", &["a: NOT env=prod"]),
    ] {
        let mut stream = Delta::open(&fixture).await;
        let response = say(&mut stream, ask(kind::CDS, Some(node(cluster)), &[])).await;
        assert_eq!(given(&response), expected, "{cluster}");
        // A client without parameters of its own is still told which variant it
        // has.
        assert!(response.resources.iter().all(|r| r.resource_name.is_some()));
    }
}

#[tokio::test]
async fn tp2_a_node_that_changes_moves_in_one_response_of_each_type() {
    let fixture = server(vec![rule(None, "env", "{cluster}")]).await;
    let mut stream = Delta::open(&fixture).await;
    let response = say(&mut stream, ask(kind::CDS, Some(node("prod")), &[])).await;
    assert_eq!(given(&response), ["a: env=prod", "only-prod: env=prod"]);
    let response = say(&mut stream, ask(kind::EDS, None, &["e"])).await;
    assert_eq!(given(&response), ["e: env=prod"]);
    let changed = say(&mut stream, ask(kind::EDS, Some(node("")), &[])).await;
    let (clusters, endpoints) = match changed.type_url == kind::CDS {
        true => (changed, stream.next().await),
        false => (stream.next().await, changed),
    };
    assert_eq!(given(&clusters), ["a: NOT env=prod"]);
    assert_eq!(clusters.removed_resources, ["only-prod"]);
    assert_eq!(given(&endpoints), ["e: NOT env exists"]);
    assert!(endpoints.removed_resources.is_empty());
}

#[tokio::test]
async fn tp2_dynamic_parameters_of_a_node_count_for_their_type() {
    let fixture = server(Vec::new()).await;
    let params = HashMap::from([("env".to_owned(), "prod".to_owned())]);
    let mut node = node("");
    let params = ContextParams { params };
    node.dynamic_parameters.insert(kind::CDS.into(), params);
    let mut stream = Delta::open(&fixture).await;
    let response = say(&mut stream, ask(kind::CDS, Some(node), &["a"])).await;
    assert_eq!(given(&response), ["a: env=prod"]);
    let response = say(&mut stream, ask(kind::EDS, None, &["e"])).await;
    assert_eq!(given(&response), ["e: NOT env exists"]);
}

#[tokio::test]
async fn tp2_parameters_that_come_with_a_name_are_all_that_counts_for_it() {
    let fixture = server(vec![rule(None, "env", "{cluster}")]).await;
    let mut stream = Delta::open(&fixture).await;
    let mut request = ask(kind::CDS, Some(node("prod")), &[]);
    let params = HashMap::from([("env".to_owned(), "test".to_owned())]);
    request.resource_locators_subscribe = vec![ResourceLocator {
        name: "a".into(),
        dynamic_parameters: params,
    }];
    let response = say(&mut stream, request).await;
    assert_eq!(given(&response), ["a: NOT env=prod"]);
}

#[tokio::test]
async fn tp2_who_polls_gets_the_variant_of_its_node() {
    let fixture = server(vec![
        rule(None, "env", "{metadata.labels.env}"),
        rule(Some(("locality.zone", "z")), "env", "prod"),
    ])
    .await;
    let real = Cluster {
        name: "only-prod".into(),
        ..Cluster::default()
    };
    let real = Resource {
        constraints: Some("env=prod".parse().unwrap()),
        ..Resource::new("only-prod".into(), real.encode_to_vec().into())
    };
    let real = Change::Upsert(kind::CDS.into(), real.into());
    fixture.server.apply(vec![real]).unwrap();
    for (node, found) in [
        (
            r#"{"id":"n","metadata":{"labels":{"env":"prod"},"x":[1,null]}}"#,
            true,
        ),
        (r#"{"id":"n","metadata":{"labels":{"env":"test"}}}"#, false),
        (r#"{"id":"n","locality":{"zone":"z"}}"#, true),
    ] {
        let body = format!(r#"{{"node":{node},"resource_names":["only-prod"]}}"#);
        let (code, body) = poll(&fixture, "POST", "/v3/discovery:clusters", &body).await;
        let has = body.contains("only-prod");
        assert!(code == 200 && has == found, "{node}: {code} {body}");
    }
}

#[tokio::test]
async fn tp2_a_constant_for_each_listener() {
    let listener = |like: &str| rule(Some(("listener", like)), "env", "prod");
    let fixture = server(vec![listener("127.0.0.1:*")]).await;
    let mut stream = Delta::open(&fixture).await;
    let response = say(&mut stream, ask(kind::CDS, Some(node("")), &["a"])).await;
    assert_eq!(given(&response), ["a: env=prod"]);
    let fixture = server(vec![listener("*:1")]).await;
    let mut stream = Delta::open(&fixture).await;
    let response = say(&mut stream, ask(kind::CDS, Some(node("")), &["a"])).await;
    assert_eq!(given(&response), ["a: NOT env=prod"]);
}

#[tokio::test]
async fn tp2_a_change_of_a_variant_is_awaited_from_clients_that_it_is_for() {
    let fixture = server(vec![rule(None, "env", "{cluster}")]).await;
    let mut prod = Delta::open(&fixture).await;
    say(&mut prod, ask(kind::CDS, Some(node("prod")), &["a"])).await;
    let mut test = Delta::open(&fixture).await;
    say(&mut test, ask(kind::CDS, Some(node("test")), &["a"])).await;

    let resource = Resource {
        constraints: Some("env=prod".parse().unwrap()),
        ..Resource::new(Name::new("a"), "another".into())
    };
    let change = Change::Upsert(kind::CDS.into(), resource.into());
    fixture.server.apply(vec![change]).unwrap();
    let response = prod.next().await;
    let revision = fixture.server.revision();
    let mut arrival = fixture
        .server
        .arrival(revision, Awaited::default())
        .unwrap();
    prod.accept(&response).await;
    while !arrival.look() {
        tokio::task::yield_now().await;
    }
    let clients = arrival.clients();
    let streams: Vec<u64> = clients.iter().map(|client| client.stream).collect();
    assert_eq!(streams, [0]);
}
