//! Peers that do not read, or do not finish what they send.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use bytes::Bytes;
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
