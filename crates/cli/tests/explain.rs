//! Base sets and `trunkline explain`, with a real stream.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use serde_json::Value;
use support::{Server, bad, good, until};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;
use trunkline_proto::envoy::envoy::config::core::v3::Node;
use trunkline_proto::envoy::envoy::service::discovery::v3::aggregated_discovery_service_client::AggregatedDiscoveryServiceClient;
use trunkline_proto::envoy::envoy::service::discovery::v3::{
    DeltaDiscoveryRequest, DeltaDiscoveryResponse,
};
use trunkline_proto::envoy::google::rpc::Status;

const RDS: &str = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration";
const VHDS: &str = "type.googleapis.com/envoy.config.route.v3.VirtualHost";

const ROUTES: &str = r#"resources:
- "@type": type.googleapis.com/envoy.config.route.v3.RouteConfiguration
  name: r1
  vhds: {config_source: {ads: {}, resource_api_version: V3}}
- "@type": type.googleapis.com/envoy.config.route.v3.RouteConfiguration
  name: inline
  virtual_hosts: [{name: all, domains: ["*"]}]
"#;

fn host(name: &str, domains: &str, more: &str) -> String {
    format!(
        r#"- "@type": type.googleapis.com/envoy.service.discovery.v3.Resource
  name: r1/{name}
  {more}
  resource:
    "@type": {VHDS}
    name: r1/{name}
    domains: [{domains}]
    metadata: {{filter_metadata: {{trunkline: {{base_sets: [of-{name}]}}}}}}
    routes: [{{match: {{prefix: ""}}, direct_response: {{status: 200}}}}]
"#
    )
}

fn serve(dir: &std::path::Path) -> Server {
    let settings = dir.join("settings.yaml");
    let rules = "base_sets:\n- node: {metadata: {NAMESPACE: \"*\"}}\n  \
                 sets: [\"of-{metadata.NAMESPACE}\"]\n\
                 parameters:\n- node: {metadata: {ENV: \"*\"}}\n  \
                 set: {env: \"{metadata.ENV}\"}\n";
    std::fs::write(&settings, rules).unwrap();
    let server = Server::start(&["--settings", settings.to_str().unwrap()]);
    let only = "resource_name: {name: r1/prod, dynamic_parameter_constraints: \
                {constraint: {key: env, value: prod}}}";
    let hosts = [
        ROUTES.to_owned(),
        host("wild", "foo.com, \"*.foo.com\"", ""),
        host("b", "b.foo.com", ""),
        host("prod", "p.com", only),
    ];
    good(&server.ask_with(&["apply", "-f", "-"], &hosts.concat()));
    server
}

/// A client on a delta stream, which holds the routes.
struct Client {
    requests: mpsc::Sender<DeltaDiscoveryRequest>,
    responses: Streaming<DeltaDiscoveryResponse>,
}

impl Client {
    async fn join(server: &Server) -> Self {
        let url = format!("http://{}", server.listen);
        let ads = AggregatedDiscoveryServiceClient::connect(url).await;
        let (requests, stream) = mpsc::channel(8);
        let first = DeltaDiscoveryRequest {
            node: Some(Node {
                id: "node-1".into(),
                ..Node::default()
            }),
            type_url: RDS.into(),
            resource_names_subscribe: vec!["r1".into()],
            ..DeltaDiscoveryRequest::default()
        };
        requests.send(first).await.unwrap();
        let stream = ReceiverStream::new(stream);
        let responses = ads.unwrap().delta_aggregated_resources(stream).await;
        let mut client = Self {
            requests,
            responses: responses.unwrap().into_inner(),
        };
        client.answer(None).await;
        client
    }

    async fn ask(&self, names: &[&str]) {
        let request = DeltaDiscoveryRequest {
            type_url: VHDS.into(),
            resource_names_subscribe: names.iter().map(|name| (*name).to_owned()).collect(),
            ..DeltaDiscoveryRequest::default()
        };
        self.requests.send(request).await.unwrap();
    }

    async fn answer(&mut self, error: Option<&str>) {
        let response = self.responses.message().await.unwrap().unwrap();
        let answer = DeltaDiscoveryRequest {
            type_url: response.type_url,
            response_nonce: response.nonce,
            error_detail: error.map(|message| Status {
                code: 13,
                message: message.into(),
                ..Status::default()
            }),
            ..DeltaDiscoveryRequest::default()
        };
        self.requests.send(answer).await.unwrap();
    }
}

/// The explanation, without the versions.
fn explain(server: &Server, node: &str, host: &str) -> String {
    let args = ["explain", "--node", node, "--route", "r1", "--host", host];
    versionless(&good(&server.ask(&args)))
}

fn versionless(said: &str) -> String {
    let mut parts = said.split("version ");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |said, part| {
        let rest = part.trim_start_matches(|c: char| c.is_ascii_hexdigit());
        assert_eq!(part.len() - rest.len(), 16, "{part}");
        format!("{said}version V{rest}")
    })
}

/// Waits until there is a line of the explanation that ends like this.
fn wait(server: &Server, host: &str, end: &str) {
    until(end, || {
        let said = explain(server, "node-1", host);
        said.lines().any(|line| line.ends_with(end)).then_some(())
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connected_client_is_explained_from_asking_to_rejecting() {
    let dir = tempfile::tempdir().unwrap();
    let server = serve(dir.path());
    let mut client = Client::join(&server).await;
    wait(&server, "a.foo.com", "did not ask for it");
    client.ask(&["r1/a.foo.com"]).await;
    wait(&server, "a.foo.com", "version V");
    let sent = explain(&server, "node-1", "A.foo.com");
    let expected = "asked for     r1/a.foo.com
virtual host  r1/wild, by its domain *.foo.com
given         r1/a.foo.com version V, domains a.foo.com: for this host alone, because *.foo.com would hide b.foo.com of r1/b
base set      no: no rule is for this node
client        stream 0: asked for it, and has yet to answer to r1/a.foo.com version V

CONSIDERED  VIRTUAL HOST  FOR
*.foo.com   r1/wild       everybody  is the one
";
    assert_eq!(sent, expected);
    client.answer(None).await;
    wait(
        &server,
        "a.foo.com",
        "asked for it, and holds r1/a.foo.com version V",
    );
    client.ask(&["r1/b.foo.com"]).await;
    client.answer(Some("no such\x1b cluster")).await;
    wait(&server, "b.foo.com", ": no such  cluster");
    let said = explain(&server, "node-1", "b.foo.com");
    assert!(
        said.contains("b.foo.com   r1/b          everybody  is the one\n"),
        "{said}"
    );
    assert!(
        said.contains("*.foo.com   r1/wild       everybody  comes after it\n"),
        "{said}"
    );
    // It is told that there is none, so that its request does not wait.
    client.answer(None).await;
    client.ask(&["r1/junk"]).await;
    client.answer(None).await;
    wait(
        &server,
        "junk",
        "asked for it, and knows that there is none",
    );
    let said = explain(&server, "node-1", "p.com");
    assert!(said.contains("is not for this client"), "{said}");
    assert!(said.contains("env=prod"), "{said}");
}

#[test]
fn a_node_in_a_file_is_explained_with_its_base_set() {
    let dir = tempfile::tempdir().unwrap();
    let server = serve(dir.path());
    let file = dir.path().join("envoy.yaml");
    let text = "node: {id: e, metadata: {NAMESPACE: b}}\nadmin: {}\n";
    std::fs::write(&file, text).unwrap();
    let file = file.to_str().unwrap();
    let said = explain(&server, file, "b.foo.com");
    let expected = "base set      yes, it comes without being asked for, by the set of-b\n";
    assert!(said.contains(expected), "{said}");
    assert!(!said.contains("client "), "{said}");
    let said = explain(&server, file, "foo.com");
    assert!(
        said.contains("base set      no: it is in none of of-b\n"),
        "{said}"
    );
    assert!(said.contains(": without its wildcards, because "), "{said}");

    let json = &[
        "explain", "--node", file, "--route", "r1", "--host", "x", "-o", "json",
    ];
    let json: Value = serde_json::from_str(&good(&server.ask(json))).unwrap();
    assert_eq!(json["given"], Value::Null);
    assert_eq!(json["base"]["rules"][0], "metadata.NAMESPACE=*");

    std::fs::write(file, "node: {idd: e}").unwrap();
    let output = server.ask(&["explain", "--node", file, "--route", "r1", "--host", "x"]);
    let said = bad(&output, 1);
    assert!(said.contains("envoy.yaml:1:8: "), "{said}");
    assert!(said.contains("did you mean \"id\"?"), "{said}");
}

#[test]
fn tp2_the_variant_of_a_node_or_of_parameters_is_explained() {
    let dir = tempfile::tempdir().unwrap();
    let server = serve(dir.path());
    let file = dir.path().join("node.yaml");
    std::fs::write(&file, "id: e\nmetadata: {ENV: prod}\n").unwrap();
    let file = file.to_str().unwrap();
    let said = explain(&server, file, "p.com");
    assert!(
        said.contains("parameters    env=prod (by the rule for metadata.ENV=*)\n"),
        "{said}"
    );
    assert!(said.contains("in its variant for env=prod"), "{said}");

    let variant = |who: &[&str]| {
        let args = [&["explain", "vhds", "r1/prod"], who].concat();
        versionless(&good(&server.ask(&args)))
    };
    let expected = "asked for     vhds r1/prod
parameters    env=prod (by the rule for metadata.ENV=*)
given         version V, the variant for env=prod
";
    assert_eq!(variant(&["--node", file]), expected);
    let expected = "asked for     vhds r1/prod
parameters    env=test (by the question)
given         that it does not exist: no variant is for this client

OTHERS FOR  VERSION           NOT FULFILLED
";
    let said = variant(&["--params", "env=test"]);
    assert!(said.starts_with(expected), "{said}");
    assert!(said.trim_end().ends_with("env=prod"), "{said}");

    let error = bad(
        &server.ask(&["explain", "vhds", "r1/prd", "--params", ""]),
        1,
    );
    assert!(
        error.contains("there is no vhds \"r1/prd\"; did you mean \"r1/prod\"?"),
        "{error}"
    );
    let error = bad(
        &server.ask(&["explain", "vhds", "r1/prod", "--params", "env"]),
        1,
    );
    assert!(error.contains("params: at byte 3: expected ="), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_explained_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let server = serve(dir.path());
    let _client = Client::join(&server).await;
    let wrong = |node: &str, route: &str, host: &str| {
        let args = ["explain", "--node", node, "--route", route, "--host", host];
        bad(&server.ask(&args), 1)
    };
    for (node, route, host, said) in [
        (
            "node-2",
            "r1",
            "x",
            "no client with the node id \"node-2\" is connected; did you mean \"node-1\"?",
        ),
        (
            "none.yaml",
            "r1",
            "x",
            "--node none.yaml: there is no such file",
        ),
        (
            "node-1",
            "r2",
            "x",
            "there is no route configuration \"r2\"; did you mean \"r1\"?",
        ),
        ("node-1", "inline", "x", "\"inline\" has no `vhds`"),
        ("node-1", "r1", "a/b", "\"a/b\" is no host"),
    ] {
        let error = wrong(node, route, host);
        assert!(error.contains(said), "{error}");
    }
    let (status, _) = server.get("/api/v1/explain?route=r1&host=x");
    assert_eq!(status, 400);
    let (status, _) = server.get("/api/v1/explain?node=node-1&route=inline&host=x");
    assert_eq!(status, 409);
}
