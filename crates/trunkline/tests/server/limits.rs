//! Limits, and streams before the contents are loaded.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::watch;
use tonic::Code;
use trunkline::{BoxFuture, Contents, Hooks, Limit, Server, Writer, kind};
use trunkline_proto::envoy::envoy::service::discovery::v3::DeltaDiscoveryRequest;

use crate::support::{Delta, bodies, build, put};

/// Counts one limit.
pub(crate) struct Count(pub(crate) Limit, pub(crate) Arc<AtomicUsize>);

impl Hooks for Count {
    fn limited(&self, limit: Limit) {
        if limit == self.0 {
            self.1.fetch_add(1, Ordering::SeqCst);
        }
    }
}

#[tokio::test]
async fn s78_a_stream_too_many_is_refused_and_the_others_go_on() {
    let refused = Arc::new(AtomicUsize::new(0));
    let builder = Server::builder()
        .hooks(Count(Limit::Streams, Arc::clone(&refused)))
        .options(|o| {
            o.streams = 1;
            o.refusal_delay = Duration::ZERO;
        });
    let mut fixture = build(builder).await;
    fixture.server.apply(vec![put("a", b"1")]).unwrap();
    let mut first = Delta::open(&fixture).await;
    first.ask(&["a"]).await;
    let response = first.next().await;
    first.accept(&response).await;
    // On a connection of its own: HTTP/2 would hold it back otherwise.
    let mut second = Delta::open_on(fixture.connect().await).await;
    second.ask(&["a"]).await;
    assert_eq!(second.end().await, Code::ResourceExhausted);
    assert_eq!(refused.load(Ordering::SeqCst), 1);
    fixture.server.apply(vec![put("a", b"2")]).unwrap();
    assert_eq!(bodies(&first.next().await), [("a", &b"2"[..])]);
    drop(first);
    fixture.closed.recv().await.unwrap();
}

#[tokio::test]
async fn requests_that_come_too_fast_wait_and_are_not_lost() {
    let waited = Arc::new(AtomicUsize::new(0));
    let builder = Server::builder()
        .hooks(Count(Limit::RequestRate, Arc::clone(&waited)))
        .options(|o| o.requests_per_second = 20);
    let fixture = build(builder).await;
    let mut stream = Delta::open(&fixture).await;
    for n in 0..30 {
        stream.ask(&[&n.to_string()]).await;
    }
    let mut answered = 0;
    while answered < 30 {
        let response = stream.next().await;
        answered += response.removed_resources.len();
        stream.accept(&response).await;
    }
    assert!(waited.load(Ordering::SeqCst) > 0);
}

/// Loaded when it is told so.
struct Late(watch::Receiver<bool>);

impl Contents for Late {
    fn run(self: Arc<Self>, writer: Writer) -> BoxFuture<'static, ()> {
        let mut go = self.0.clone();
        Box::pin(async move {
            writer.apply("late", vec![put("a", b"1")]).unwrap();
            go.wait_for(|go| *go).await.unwrap();
            writer.loaded();
        })
    }
}

#[tokio::test]
async fn s51_nothing_is_served_before_the_first_contents_are_complete() {
    let (go, late) = watch::channel(false);
    let builder = Server::builder().contents(Late(late)).options(|o| {
        o.ready_patience = Duration::from_millis(10);
        o.refusal_delay = Duration::ZERO;
    });
    let fixture = build(builder).await;
    let mut early = Delta::open(&fixture).await;
    early.ask(&["a", "b"]).await;
    assert_eq!(early.end().await, Code::Unavailable);
    assert!(!fixture.server.is_ready());
    go.send(true).unwrap();
    fixture.server.ready().await;
    let mut stream = Delta::open(&fixture).await;
    stream.ask(&["a", "b"]).await;
    let response = stream.next().await;
    assert_eq!(bodies(&response), [("a", &b"1"[..])]);
    assert_eq!(response.removed_resources, ["b"]);
}

#[tokio::test]
async fn a_stream_that_comes_early_may_wait_for_the_first_contents() {
    let (go, late) = watch::channel(false);
    let fixture = build(Server::builder().contents(Late(late))).await;
    let mut stream = Delta::open(&fixture).await;
    stream.ask(&["a"]).await;
    go.send(true).unwrap();
    assert_eq!(bodies(&stream.next().await), [("a", &b"1"[..])]);
}

#[tokio::test]
async fn a_burst_of_changes_is_one_response() {
    let builder = Server::builder().options(|o| o.debounce = Duration::from_millis(200));
    let fixture = build(builder).await;
    let mut stream = Delta::open(&fixture).await;
    stream.ask(&["a", "b"]).await;
    let response = stream.next().await;
    stream.accept(&response).await;
    // A request gets its response at once, so the ACK has to be there before.
    stream.ask(&["c"]).await;
    let response = stream.next().await;
    stream.accept(&response).await;
    tokio::time::sleep(Duration::from_millis(20)).await;
    fixture.server.apply(vec![put("a", b"1")]).unwrap();
    tokio::task::yield_now().await;
    fixture.server.apply(vec![put("b", b"1")]).unwrap();
    let response = stream.next().await;
    assert_eq!(response.resources.len(), 2);
}

#[tokio::test]
async fn s72_a_bad_name_costs_itself_only() {
    let fixture = build(Server::builder().options(|o| o.limits.name_bytes = 100)).await;
    fixture.server.apply(vec![put("a", b"1")]).unwrap();
    let mut stream = Delta::open(&fixture).await;
    stream.ask(&["", "a", &"x".repeat(101)]).await;
    let response = stream.next().await;
    assert_eq!(bodies(&response), [("a", &b"1"[..])]);
    stream.accept(&response).await;
    let other = DeltaDiscoveryRequest {
        type_url: kind::SDS.into(),
        resource_names_subscribe: vec!["s".into()],
        ..Default::default()
    };
    stream.requests.send(other).await.unwrap();
    loop {
        let response = stream.next().await;
        stream.accept(&response).await;
        if response.type_url == kind::SDS {
            assert_eq!(response.removed_resources, ["s"]);
            break;
        }
    }
}
