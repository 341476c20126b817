//! The Mesh Configuration Protocol with peers in Python, whose messages are
//! made from `mcp.proto`: each role, in each direction of dialling.
#![allow(clippy::unwrap_used, reason = "all of this is tests")]

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use interop::Script;
use tokio::runtime::Runtime;
use trunkline::listen::{self, Listening};
use trunkline::mcp::{
    Delivery, McpSink, McpSource, Rejected, SinkOptions, Verdict, plaintext, resource,
};
use trunkline::{Change, Name};

/// More than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

fn peer(arguments: &[&str]) -> Script {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/py/mcp.py");
    let proto = concat!(env!("CARGO_MANIFEST_DIR"), "/../proto/src/mcp/mcp.proto");
    Script::start(&script, &[&[proto], arguments].concat(), &[])
}

fn address_of(peer: &mut Script) -> String {
    format!("127.0.0.1:{}", peer.wait_for_line("port ", PATIENCE))
}

/// A source with two resources.
fn source() -> McpSource {
    let source = McpSource::default();
    let listed = ["ns/foo", "ns/bar"].map(|name| resource(name, "t/T", "v0"));
    source.set("A", listed).unwrap();
    source
}

/// What a sink in Python gets of a source here, which changes meanwhile.
fn check_sink(peer: &mut Script, source: &McpSource) {
    let mut sees = |line: &str| drop(peer.wait_for_line(line, PATIENCE));
    sees("received 1 incremental ns/bar@v0 ns/foo@v0");
    source.upsert("A", resource("ns/baz", "t/T", "v0")).unwrap();
    sees("received 2 incremental ns/baz@v0");
    source.upsert("A", resource("ns/bad", "t/T", "v0")).unwrap();
    sees("received 3 incremental ns/bad@v0");
    // The rejected set is not sent again, a changed one is (M5).
    let left = ["ns/bar", "ns/baz"].map(|name| resource(name, "t/T", "v1"));
    source.set("A", left).unwrap();
    sees("received 4 incremental -ns/foo ns/bar@v1 ns/baz@v1");
    let status = source.status();
    assert_eq!((status.nacks, status.stale), (1, 0));
    assert_eq!(status.streams[0].node.id, "python");
}

type Held = Arc<Mutex<Vec<Name>>>;

/// A sink whose owner keeps names, and rejects those that are bad.
fn sink() -> (McpSink, Held) {
    let held = Held::default();
    let owned = Arc::clone(&held);
    let judge = move |delivery: Delivery| {
        let mut names = owned.lock().unwrap().clone();
        for change in delivery.changes {
            match change {
                Change::ReplaceAll(_, all) => {
                    names = all.iter().map(|resource| resource.name.clone()).collect();
                }
                Change::Upsert(_, resource) => names.push(resource.name.clone()),
                Change::Remove(_, name) => names.retain(|held| *held != name),
                other => panic!("{other:?}"),
            }
        }
        names.sort();
        names.dedup();
        if let Some(bad) = names.iter().find(|name| name.as_str().contains("bad")) {
            return Verdict::Reject(vec![Rejected {
                name: Some(bad.clone()),
                reason: "spec: bad".to_owned(),
            }]);
        }
        *owned.lock().unwrap() = names;
        Verdict::Accept
    };
    (McpSink::new(SinkOptions::of("rust", ["A"]), judge), held)
}

/// What a source in Python hears of a sink here.
fn check_source(peer: &mut Script, held: &Held) {
    let mut hears = |line: &str| drop(peer.wait_for_line(line, PATIENCE));
    hears("asked - first A");
    for nonce in 1..=3 {
        hears(&format!("asked {nonce} ACK"));
    }
    hears("asked 4 ns/bad: spec: bad");
    hears("asked 5 ACK");
    // The last step is a full state.
    assert_eq!(*held.lock().unwrap(), [Name::new("ns/last")]);
}

/// Binds a free port, and returns its address.
fn bind(runtime: &Runtime) -> (tokio::net::TcpListener, String) {
    let listener = runtime.block_on(listen::bind("127.0.0.1:0")).unwrap();
    let address = listener.local_addr().unwrap().to_string();
    (listener, address)
}

#[test]
fn m12_a_sink_in_python_dials_a_source() {
    let (runtime, source) = (Runtime::new().unwrap(), source());
    let (listener, address) = bind(&runtime);
    runtime.spawn(source.clone().listen(listener, Listening::default()));
    let mut peer = peer(&["sink", "dial", &address]);
    check_sink(&mut peer, &source);
}

#[test]
fn m12_a_source_dials_a_sink_in_python() {
    let (runtime, source) = (Runtime::new().unwrap(), source());
    let mut peer = peer(&["sink", "listen"]);
    let address = address_of(&mut peer).parse().unwrap();
    runtime.spawn(source.clone().dial(plaintext(address)));
    check_sink(&mut peer, &source);
}

#[test]
fn m12_a_sink_dials_a_source_in_python() {
    let (runtime, (sink, held)) = (Runtime::new().unwrap(), sink());
    let mut peer = peer(&["source", "listen"]);
    let address = address_of(&mut peer).parse().unwrap();
    runtime.spawn(sink.dial(plaintext(address)));
    check_source(&mut peer, &held);
}

#[test]
fn m12_a_source_in_python_dials_a_sink() {
    let (runtime, (sink, held)) = (Runtime::new().unwrap(), sink());
    let (listener, address) = bind(&runtime);
    runtime.spawn(sink.listen(listener, Listening::default()));
    let mut peer = peer(&["source", "dial", &address]);
    check_source(&mut peer, &held);
}
