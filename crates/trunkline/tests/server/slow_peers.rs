//! Peers that do not read, or do not finish what they send.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use bytes::Bytes;
use http::Request;
use http_body::{Body, Frame};
use hyper::client::conn::http2::SendRequest;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use trunkline::listen::Listening;
use trunkline::{Limit, Server};

use crate::limits::Count;
use crate::support::{Delta, Fixture, PATIENCE, bodies, build, put};

/// More than a transport takes of a message before it waits for its peer.
static LONG: [u8; 1 << 20] = [7; 1 << 20];

/// A stream that has a name and follows its changes.
async fn follower(fixture: &Fixture, name: &str) -> Delta {
    let mut stream = Delta::open_on(fixture.connect().await).await;
    stream.ask(&[name]).await;
    let response = stream.next().await;
    stream.accept(&response).await;
    stream
}

#[tokio::test]
async fn a_client_that_never_reads_delays_nobody() {
    let waited = Arc::new(AtomicUsize::new(0));
    // One message beyond the bound, and the streams of a connection wait.
    let builder = Server::builder()
        .hooks(Count(Limit::Bytes, Arc::clone(&waited)))
        .options(|o| o.unsent_bytes = 1);
    let fixture = build(builder).await;
    let contents = vec![put("long", &LONG), put("a", b"0")];
    fixture.server.apply(contents).unwrap();
    let mut victim = follower(&fixture, "a").await;

    let narrow = fixture.connect_narrow().await;
    let mut stuck = Vec::new();
    for _ in 0..20 {
        let stream = Delta::open_on(narrow.clone()).await;
        stream.ask(&["long"]).await;
        stuck.push(stream);
    }
    for n in 0..50 {
        let body: &'static [u8] = [&b"1"[..], b"2"][n % 2];
        fixture.server.apply(vec![put("a", body)]).unwrap();
        let response = victim.next().await;
        assert_eq!(bodies(&response), [("a", body)]);
        victim.accept(&response).await;
    }
    // They had to wait, for each other.
    while waited.load(Ordering::SeqCst) < 10 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test]
async fn a_peer_that_takes_nothing_is_cut_and_the_others_go_on() {
    let cut = Arc::new(AtomicUsize::new(0));
    let builder = Server::builder()
        .hooks(Count(Limit::SendTimeout, Arc::clone(&cut)))
        .options(|o| o.send_timeout = Duration::from_millis(400));
    let mut fixture = build(builder).await;
    let contents = vec![put("long", &LONG), put("a", b"1")];
    fixture.server.apply(contents).unwrap();
    let mut victim = follower(&fixture, "a").await;
    let stuck = Delta::open_on(fixture.connect_narrow().await).await;
    stuck.ask(&["long"]).await;

    let closed = tokio::time::timeout(PATIENCE, fixture.closed.recv()).await;
    assert_eq!(closed.unwrap(), Some(1));
    assert_eq!(cut.load(Ordering::SeqCst), 1);
    fixture.server.apply(vec![put("a", b"2")]).unwrap();
    assert_eq!(bodies(&victim.next().await), [("a", &b"2"[..])]);
}

#[tokio::test]
async fn an_http1_response_that_is_not_read_ends_its_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let listening = Listening {
        send_timeout: Duration::from_millis(400),
        ..Listening::default()
    };
    let long = Bytes::from(vec![0; 64 << 20]);
    let router = Router::new().fallback(async move || long);
    let (met, mut limits) = mpsc::unbounded_channel();
    tokio::spawn(listening.serve(listener, router, move |limit| {
        let _ = met.send(limit);
    }));

    let mut socket = TcpStream::connect(address).await.unwrap();
    let request = b"GET / HTTP/1.1\r\nhost: a\r\n\r\n";
    socket.write_all(request).await.unwrap();
    let limit = tokio::time::timeout(PATIENCE, limits.recv()).await;
    assert_eq!(limit.unwrap(), Some(Limit::SendTimeout));
}

/// The body of a request of which a test sends what it likes.
struct Piped(mpsc::UnboundedReceiver<Bytes>);

impl Body for Piped {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = self.0.poll_recv(cx);
        piece.map(|piece| piece.map(|piece| Ok(Frame::data(piece))))
    }
}

/// A stream on which bytes are sent as they are.
struct Raw {
    pieces: mpsc::UnboundedSender<Bytes>,
    _response: http::Response<hyper::body::Incoming>,
}

async fn connect_raw(fixture: &Fixture) -> SendRequest<Piped> {
    let socket = TcpStream::connect(fixture.address).await.unwrap();
    let handshake =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(socket));
    let (sender, connection) = handshake.await.unwrap();
    tokio::spawn(connection);
    sender
}

async fn open_raw(fixture: &Fixture, sender: &mut SendRequest<Piped>) -> Raw {
    let service = "envoy.service.discovery.v3.AggregatedDiscoveryService";
    let uri = format!(
        "http://{}/{service}/DeltaAggregatedResources",
        fixture.address
    );
    let (pieces, body) = mpsc::unbounded_channel();
    let request = Request::post(uri).body(Piped(body)).unwrap();
    Raw {
        pieces,
        _response: sender.send_request(request).await.unwrap(),
    }
}

#[tokio::test]
async fn unfinished_requests_stay_within_their_share_and_others_go_on() {
    const LENGTH: usize = 1 << 20;
    const STREAMS: usize = 20;
    let waited = Arc::new(AtomicUsize::new(0));
    let builder = Server::builder()
        .hooks(Count(Limit::UnfinishedRequests, Arc::clone(&waited)))
        .options(|o| {
            o.request_bytes = LENGTH + 100;
            o.unfinished_bytes = 16 * LENGTH;
        });
    let fixture = build(builder).await;
    fixture.server.apply(vec![put("a", b"1")]).unwrap();

    let mut sender = connect_raw(&fixture).await;
    let mut hostile = Vec::new();
    for _ in 0..STREAMS {
        let stream = open_raw(&fixture, &mut sender).await;
        let prefix = [&[0][..], &(LENGTH as u32).to_be_bytes()].concat();
        stream.pieces.send(prefix.into()).unwrap();
        hostile.push(stream);
    }
    // There is a share for one of them; the others are not read on.
    while waited.load(Ordering::SeqCst) < STREAMS - 1 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    for stream in &hostile {
        stream.pieces.send(vec![0; LENGTH / 2].into()).unwrap();
    }

    // Too long for one piece, as that of an Envoy that reconnects.
    let mut honest = Delta::open_on(fixture.connect().await).await;
    let names: Vec<String> = (0..10_000).map(|n| format!("a-name-{n:020}")).collect();
    let mut names: Vec<&str> = names.iter().map(|name| &**name).collect();
    names.push("a");
    honest.ask(&names).await;
    let response = honest.next().await;
    assert_eq!(bodies(&response), [("a", &b"1"[..])]);
    assert_eq!(waited.load(Ordering::SeqCst), STREAMS - 1);
}
