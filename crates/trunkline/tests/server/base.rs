//! Base subscriptions: virtual hosts that a client gets without asking, by its
//! node.

use trunkline::node::{BaseRule, NodeMatch};
use trunkline::wire::accept_text;
use trunkline::{Server, kind};
use trunkline_proto::envoy::envoy::config::core::v3::{Locality, Node};
use trunkline_proto::envoy::envoy::service::discovery::v3::{
    DeltaDiscoveryRequest, DeltaDiscoveryResponse,
};
use trunkline_proto::envoy::google::protobuf::{Struct, Value, value};
use trunkline_proto::text;

use crate::support::{Delta, Fixture, build};

const ROUTE: &str = r#"
"@type": type.googleapis.com/envoy.config.route.v3.RouteConfiguration
name: r1
vhds: {config_source: {ads: {}, resource_api_version: V3}}
"#;

/// A virtual host that goes to a cluster and belongs to these sets.
fn host(name: &str, cluster: &str, sets: &str) -> String {
    format!(
        r#"
"@type": type.googleapis.com/envoy.service.discovery.v3.Resource
name: r1/{name}
resource:
  "@type": type.googleapis.com/envoy.config.route.v3.VirtualHost
  name: r1/{name}
  domains: [{name}.com]
  metadata: {{filter_metadata: {{trunkline: {{base_sets: [{sets}]}}}}}}
  routes: [{{match: {{prefix: ""}}, route: {{cluster: {cluster}}}}}]
"#
    )
}

fn put(server: &Server, texts: &[String]) {
    let changes = |text: &String| {
        let read = text::read("f.yaml", text, &text::Options::default());
        assert_eq!(read.errors, []);
        accept_text(&read.resources[0]).unwrap().changes()
    };
    server
        .apply(texts.iter().flat_map(changes).collect())
        .unwrap();
}

fn rule(field: &str, pattern: &str, sets: &[&str], hosts: &[&str]) -> BaseRule {
    let node = NodeMatch::new([(field.parse().unwrap(), vec![pattern.parse().unwrap()])]);
    let all = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
    BaseRule::new(node, all(sets), all(hosts)).unwrap()
}

async fn server() -> Fixture {
    let rules = vec![
        rule("metadata.NAMESPACE", "*", &["{metadata.NAMESPACE}"], &[]),
        rule(
            "locality.zone",
            "eu-*",
            &["nobody-is-in-it"],
            &["r1/{id}.com", "r1/unknown.com"],
        ),
    ];
    let fixture = build(Server::builder().options(|options| options.base_sets = rules)).await;
    let contents = [
        ROUTE.to_owned(),
        host("a", "c1", "ns1, ns2"),
        host("b", "c1", "ns1"),
        host("c", "c1", "ns2"),
        host("proxy", "c1", ""),
    ];
    put(&fixture.server, &contents);
    fixture
}

/// A node with its namespace and zone in its metadata, among other keys.
fn node(namespace: &str, zone: &str) -> Node {
    let text = |text: &str| Value {
        kind: Some(value::Kind::StringValue(text.into())),
    };
    let fields = [("NAMESPACE", text(namespace)), ("noise", text("x"))];
    let fields = fields.map(|(key, value)| (key.to_owned(), value));
    Node {
        id: "proxy".into(),
        metadata: Some(Struct {
            fields: fields.into_iter().collect(),
        }),
        locality: Some(Locality {
            zone: zone.into(),
            ..Locality::default()
        }),
        ..Node::default()
    }
}

/// An Envoy that has just started, or one that has these versions already: it
/// subscribes to its clusters and its routes, and then to virtual hosts without
/// naming any.
async fn join(fixture: &Fixture, node: Node, have: &[(&str, &str)]) -> (Delta, Vec<String>) {
    let mut stream = Delta::open(fixture).await;
    // A client that reconnects is pushed nothing that may need clusters before
    // it has subscribed to these (S82).
    let clusters = DeltaDiscoveryRequest {
        node: Some(node),
        type_url: kind::CDS.into(),
        ..DeltaDiscoveryRequest::default()
    };
    stream.requests.send(clusters).await.unwrap();
    let clusters = stream.next().await;
    assert_eq!(clusters.type_url, kind::CDS);
    stream.accept(&clusters).await;
    let routes = DeltaDiscoveryRequest {
        type_url: kind::RDS.into(),
        resource_names_subscribe: vec!["r1".into()],
        ..DeltaDiscoveryRequest::default()
    };
    stream.requests.send(routes).await.unwrap();
    let routes = stream.next().await;
    assert_eq!(routes.type_url, kind::RDS);
    stream.accept(&routes).await;
    let have = have.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned()));
    let hosts = DeltaDiscoveryRequest {
        type_url: kind::VHDS.into(),
        initial_resource_versions: have.collect(),
        ..DeltaDiscoveryRequest::default()
    };
    stream.requests.send(hosts).await.unwrap();
    let hosts = stream.next().await;
    stream.accept(&hosts).await;
    let names = names(&hosts);
    (stream, names)
}

fn names(response: &DeltaDiscoveryResponse) -> Vec<String> {
    assert_eq!(response.type_url, kind::VHDS);
    let mut names: Vec<String> = response.resources.iter().map(|r| r.name.clone()).collect();
    names.sort();
    names
}

#[tokio::test]
async fn s23_a_base_set_follows_what_the_node_says() {
    let fixture = server().await;
    for (namespace, zone, expected) in [
        ("ns1", "", &["r1/a", "r1/b"][..]),
        ("ns2", "us-1", &["r1/a", "r1/c"]),
        ("ns2", "eu-1", &["r1/a", "r1/c", "r1/proxy"]),
        ("ns3", "", &[]),
        ("", "eu-1", &["r1/proxy"]),
    ] {
        let (_stream, names) = join(&fixture, node(namespace, zone), &[]).await;
        assert_eq!(names, expected, "{namespace} {zone}");
    }
}

#[tokio::test]
async fn s45_who_comes_back_is_sent_what_changed_of_its_base_set() {
    let fixture = server().await;
    let version = |name: &str| {
        fixture.server.read(|db| {
            let hosts = db.find_type(&kind::VHDS.into()).unwrap();
            db.variants(hosts, &name.into())[0].version.to_string()
        })
    };
    let (a, b) = (version("r1/a"), version("r1/b"));
    put(&fixture.server, &[host("b", "c2", "ns1")]);
    let have = [("r1/a", &*a), ("r1/b", &*b)];
    let (_stream, names) = join(&fixture, node("ns1", ""), &have).await;
    assert_eq!(names, ["r1/b"]);
}

#[tokio::test]
async fn s23_a_member_of_a_base_set_can_be_unsubscribed() {
    let fixture = server().await;
    let (mut stream, _) = join(&fixture, node("ns1", ""), &[]).await;
    put(&fixture.server, &[host("a", "c2", "ns1")]);
    let changed = stream.next().await;
    assert_eq!(names(&changed), ["r1/a"]);
    stream.accept(&changed).await;
    let leave = DeltaDiscoveryRequest {
        type_url: kind::VHDS.into(),
        resource_names_unsubscribe: vec!["r1/a.com".into()],
        ..DeltaDiscoveryRequest::default()
    };
    stream.requests.send(leave).await.unwrap();
    // Requests are handled in order: the response to this one shows that the
    // one before was handled.
    let ask = DeltaDiscoveryRequest {
        type_url: kind::VHDS.into(),
        resource_names_subscribe: vec!["r1/c.com".into()],
        ..DeltaDiscoveryRequest::default()
    };
    stream.requests.send(ask).await.unwrap();
    let answer = stream.next().await;
    assert_eq!(names(&answer), ["r1/c"]);
    stream.accept(&answer).await;
    put(&fixture.server, &[host("a", "c3", "ns1")]);
    put(&fixture.server, &[host("b", "c3", "ns1")]);
    assert_eq!(names(&stream.next().await), ["r1/b"]);
}
