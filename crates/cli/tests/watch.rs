//! Events as they happen, over HTTP.
#![allow(clippy::unwrap_used, reason = "all of this is a test")]

mod support;

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;
use support::{CLUSTER, Server, good, until};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;
use trunkline_proto::envoy::envoy::config::core::v3::Node;
use trunkline_proto::envoy::envoy::service::discovery::v3::aggregated_discovery_service_client::AggregatedDiscoveryServiceClient;
use trunkline_proto::envoy::envoy::service::discovery::v3::{
    DeltaDiscoveryRequest, DeltaDiscoveryResponse,
};
use trunkline_proto::envoy::google::rpc::Status;

const CDS: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";

const ENDPOINTS: &str = r#"resources:
- "@type": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment
  cluster_name: backend
"#;

/// A response that goes on.
struct Watch {
    status: u16,
    content_type: String,
    body: BufReader<TcpStream>,
}

impl Watch {
    /// Watches; the query may be empty. The response is not cut into chunks,
    /// for HTTP/1.0 has none.
    fn open(server: &Server, query: &str, headers: &str) -> Self {
        let mut socket = TcpStream::connect(server.admin).unwrap();
        let patience = Duration::from_secs(30);
        socket.set_read_timeout(Some(patience)).unwrap();
        let request = format!(
            "GET /api/v1/watch?{query} HTTP/1.0\r\nhost: {}\r\n{headers}\r\n",
            server.admin
        );
        socket.write_all(request.as_bytes()).unwrap();
        let mut body = BufReader::new(socket);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert!(body.read_line(&mut head).unwrap() > 0, "{head}");
        }
        let content_type = head.lines().find_map(|l| l.strip_prefix("content-type: "));
        Self {
            status: head.split(' ').nth(1).unwrap().parse().unwrap(),
            content_type: content_type.unwrap_or_default().to_owned(),
            body,
        }
    }

    /// Watches from the bookmark on.
    fn start(server: &Server, query: &str) -> Self {
        let mut watch = Self::open(server, query, "");
        assert_eq!(watch.next("event"), "bookmark");
        watch
    }

    /// The next line; `None` if there is no other.
    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let length = self.body.read_line(&mut line).unwrap();
        (length > 0).then(|| line.trim_end().to_owned())
    }

    fn event(&mut self) -> Value {
        serde_json::from_str(&self.line().unwrap()).unwrap()
    }

    /// A field of the next event.
    fn next(&mut self, key: &str) -> Value {
        self.event()[key].clone()
    }

    fn events(&mut self, count: usize) -> Vec<Value> {
        (0..count).map(|_| self.event()).collect()
    }
}

/// A client on a delta stream.
struct Client {
    requests: mpsc::Sender<DeltaDiscoveryRequest>,
    responses: Streaming<DeltaDiscoveryResponse>,
}

impl Client {
    async fn connect(server: &Server, node: &str) -> Self {
        let url = format!("http://{}", server.listen);
        let ads = AggregatedDiscoveryServiceClient::connect(url).await;
        let (requests, stream) = mpsc::channel(8);
        let first = DeltaDiscoveryRequest {
            node: Some(Node {
                id: node.into(),
                ..Node::default()
            }),
            type_url: CDS.into(),
            resource_names_subscribe: vec!["*".into()],
            ..DeltaDiscoveryRequest::default()
        };
        requests.send(first).await.unwrap();
        let stream = ReceiverStream::new(stream);
        let responses = ads.unwrap().delta_aggregated_resources(stream).await;
        Self {
            requests,
            responses: responses.unwrap().into_inner(),
        }
    }

    async fn answer(&mut self, error: Option<&str>) -> DeltaDiscoveryResponse {
        let response = self.responses.message().await.unwrap().unwrap();
        let answer = DeltaDiscoveryRequest {
            type_url: CDS.into(),
            response_nonce: response.nonce.clone(),
            error_detail: error.map(|message| Status {
                code: 3,
                message: message.into(),
                ..Status::default()
            }),
            ..DeltaDiscoveryRequest::default()
        };
        self.requests.send(answer).await.unwrap();
        response
    }
}

fn apply(server: &Server, text: &str) {
    good(&server.ask_with(&["apply", "-f", "-"], text));
}

/// Makes the cluster another one.
fn apply_timeout(server: &Server, seconds: u32) {
    apply(server, &CLUSTER.replace("1s", &format!("{seconds}s")));
}

fn kinds(events: &[Value]) -> Vec<&str> {
    let kinds = events.iter().map(|event| event["event"].as_str());
    kinds.map(Option::unwrap).collect()
}

fn ids(events: &[Value]) -> Vec<&str> {
    let ids = events.iter().map(|event| event["id"].as_str());
    ids.map(Option::unwrap).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_acks_and_nacks_are_events_and_a_cut_loses_none() {
    let server = Server::start(&[]);
    let mut watch = Watch::open(&server, "", "");
    assert_eq!(watch.status, 200);
    assert_eq!(watch.content_type, "application/x-ndjson");
    let bookmark = watch.event();
    assert_eq!(bookmark["event"], "bookmark");
    assert_eq!(bookmark["revision"], 0);

    apply(&server, CLUSTER);
    let mut client = Client::connect(&server, "node-1").await;
    client.answer(None).await;
    let first = watch.events(3);
    assert_eq!(kinds(&first), ["changed", "connected", "acked"]);
    apply_timeout(&server, 2);
    let secret = "bad cluster: private_key { inline_string: \"swordfish\" }";
    client.answer(Some(secret)).await;
    let mut events = first;
    events.extend(watch.events(2));
    drop(client);
    events.push(watch.event());
    let [changed, connected, acked, again, nacked, disconnected] = &events[..] else {
        panic!("{events:?}");
    };

    assert_eq!(changed["revision"], 1);
    assert!(changed["author"].as_str().unwrap().starts_with("api "));
    assert!(changed["time"].as_str().unwrap().ends_with('Z'));
    let created = &changed["changed"][0];
    assert_eq!(
        (&created["type"], &created["name"]),
        (&CDS.into(), &"backend".into())
    );
    assert_eq!(
        (&created["from"], &created["to"]),
        (&Value::Null, &again["changed"][0]["from"])
    );
    assert_eq!(changed["counts"]["created"], 1);
    assert_eq!(connected["node"], "node-1");
    assert!(connected["address"].is_string());
    assert_eq!(
        (&acked["type"], &acked["revision"]),
        (&CDS.into(), &1.into())
    );
    assert_eq!(acked["stream"], connected["stream"]);
    assert_eq!(again["counts"]["changed"], 1);
    assert_eq!(
        (&nacked["event"], &nacked["revision"]),
        (&"nacked".into(), &2.into())
    );
    assert_eq!(nacked["rejected"][0]["name"], "backend");
    let error = nacked["error"].as_str().unwrap();
    assert!(
        error.contains("bad cluster") && !error.contains("swordfish"),
        "{error}"
    );
    assert_eq!(disconnected["event"], "disconnected");

    // From wherever it was cut, all that follows comes, each once.
    for (passed, id) in [std::slice::from_ref(&bookmark), &events[..]]
        .concat()
        .iter()
        .enumerate()
    {
        let id = id["id"].as_str().unwrap();
        let mut resumed = Watch::start(&server, &format!("after={id}"));
        apply_timeout(&server, 10 + u32::try_from(passed).unwrap());
        events.push(watch.event());
        let rest = resumed.events(events.len() - passed);
        assert_eq!(ids(&rest), ids(&events[passed..]));
    }
    let mut from = Watch::start(&server, "from=1");
    assert_eq!(ids(&from.events(3)), ids(&events[1..4]));
}

#[test]
fn events_that_are_not_there_are_gone_and_mistakes_are_told() {
    let server = Server::start(&[]);
    apply(&server, CLUSTER);
    let id = Watch::open(&server, "", "").next("id");
    let (log, _) = id.as_str().unwrap().split_once('-').unwrap();
    let asked = |query: &str| server.get(&format!("/api/v1/watch?{query}"));
    for gone in ["from=2", "after=1-1"] {
        let (status, body) = asked(gone);
        assert_eq!(status, 410, "{gone}: {body}");
        assert!(body.contains("GET /api/v1/resources"), "{body}");
    }
    assert!(
        asked("from=2")
            .1
            .contains("revision 1, and have not been at 2")
    );
    let future = format!("after={log}-9");
    let mistakes = [
        future.as_str(),
        "after=x",
        "from=x",
        "from=1&after=1-1",
        "event=acknowledged",
        "type=bananas",
        "nod=a",
    ];
    for mistake in mistakes {
        let (status, body) = asked(mistake);
        assert_eq!(status, 400, "{mistake}: {body}");
    }
    // What the list shows can be watched from.
    let (_, list) = server.get("/api/v1/resources?summary=true");
    let list: Value = serde_json::from_str(&list).unwrap();
    let mut watch = Watch::start(&server, &format!("from={}", list["revision"]));
    apply_timeout(&server, 2);
    assert_eq!(watch.next("revision"), 2);
}

#[test]
fn browsers_get_server_sent_events_and_resume_by_their_header() {
    let server = Server::start(&[]);
    let accept = "accept: text/event-stream\r\n";
    let mut watch = Watch::open(&server, "", accept);
    assert_eq!(watch.content_type, "text/event-stream");
    apply(&server, CLUSTER);
    apply_timeout(&server, 2);
    let mut sent = Vec::new();
    for kind in ["bookmark", "changed", "changed"] {
        let id = watch.line().unwrap();
        let id = id.strip_prefix("id: ").unwrap().to_owned();
        assert_eq!(watch.line().unwrap(), format!("event: {kind}"));
        let data = watch.line().unwrap();
        let data: Value = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
        assert_eq!(data["id"], id.as_str());
        assert_eq!(watch.line().unwrap(), "");
        sent.push((id, data));
    }
    // A browser repeats the query that it began with.
    let header = format!("last-event-id: {}\r\n", sent[1].0);
    let mut resumed = Watch::open(&server, "from=0", &header);
    assert_eq!(resumed.event()["event"], "bookmark");
    assert_eq!(resumed.event(), sent[2].1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_filter_picks_types_events_and_nodes() {
    let server = Server::start(&[]);
    let mut endpoints = Watch::start(&server, "type=eds&event=changed");
    let mut acks = Watch::start(&server, "event=acked&event=nacked");
    let mut node = Watch::start(&server, "node=second");
    let both = CLUSTER.to_owned() + ENDPOINTS.strip_prefix("resources:\n").unwrap();
    apply(&server, &both);
    let mut first = Client::connect(&server, "first").await;
    first.answer(None).await;
    assert_eq!(acks.next("node"), "first");
    let mut second = Client::connect(&server, "second").await;
    second.answer(None).await;
    assert_eq!(acks.next("node"), "second");
    apply_timeout(&server, 2);
    apply(&server, &ENDPOINTS.replace("backend", "other"));

    // A change of several types is shown without the others.
    let events = endpoints.events(2);
    for (event, revision) in events.iter().zip([1, 3]) {
        assert_eq!(event["revision"], revision);
        assert_eq!(event["counts"]["created"], 1);
        assert_eq!(event["changed"].as_array().unwrap().len(), 1);
    }
    // A change has no node, and passes.
    let events = node.events(3);
    assert_eq!(kinds(&events), ["changed", "connected", "acked"]);
    assert_eq!(events[1]["node"], "second");
}

#[test]
fn one_reader_too_many_is_refused_until_another_ends() {
    let server = Server::start(&[]);
    let mut readers: Vec<Watch> = (0..64).map(|_| Watch::start(&server, "")).collect();
    let (status, body) = server.get("/api/v1/watch");
    assert_eq!(status, 503);
    assert!(body.contains("64 readers"), "{body}");
    readers.pop();
    until("a place", || {
        (Watch::open(&server, "", "").status == 200).then_some(())
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_response_ends_when_the_server_drains() {
    let mut server = Server::start(&["--drain-time", "600s"]);
    apply(&server, CLUSTER);
    let mut watch = Watch::start(&server, "event=changed");
    // The streams end one by one, so the server goes on for a while.
    let mut clients = Vec::new();
    for node in ["a", "b", "c", "d"] {
        clients.push(Client::connect(&server, node).await);
    }
    server.running.signal(rustix::process::Signal::TERM);
    assert_eq!(watch.line(), None);
    let (status, body) = server.get("/api/v1/watch");
    assert_eq!(status, 503, "{body}");
    assert!(body.contains("about to stop"), "{body}");
    server.running.signal(rustix::process::Signal::TERM);
    server.running.wait();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replacement_shows_no_client_a_state_between() {
    let server = Server::start(&[]);
    apply(&server, CLUSTER);
    let mut client = Client::connect(&server, "node-1").await;
    client.answer(None).await;
    let mut watch = Watch::start(&server, "event=changed");
    let names = |clusters: std::ops::Range<usize>| -> String {
        let one = |n: usize| format!("- {{'@type': {CDS}, name: c{n}}}\n");
        format!("resources:\n{}", clusters.map(one).collect::<String>())
    };
    let replace = |text: &str| {
        let args = ["apply", "-f", "-", "--replace", "--yes"];
        good(&server.ask_with(&args, text));
    };

    replace(&names(0..3));
    let response = client.answer(None).await;
    assert_eq!(response.resources.len(), 3);
    assert_eq!(response.removed_resources, ["backend"]);
    assert_eq!(watch.event()["counts"]["deleted"], 1);
    // Also in parts: the first ones are not applied before the last.
    replace(&names(3..30_003));
    let changed = watch.event();
    assert_eq!(changed["revision"], 3);
    assert_eq!(changed["counts"]["created"], 30_000);
    assert_eq!(changed["counts"]["deleted"], 3);
}
