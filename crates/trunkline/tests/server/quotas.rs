//! Quotas of addresses, and connections that make no request.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tonic::Code;
use trunkline::tls::{Tls, TlsFiles};
use trunkline::{Limit, Server};

use crate::limits::Count;
use crate::support::{Delta, Fixture, PATIENCE, bodies, build, put};

/// Another address of this host.
const OTHER: [u8; 4] = [127, 0, 0, 2];

/// Reads until the server closes the connection.
async fn wait_for_close(socket: &mut TcpStream) {
    let mut rest = Vec::new();
    let closed = tokio::time::timeout(10 * PATIENCE, socket.read_to_end(&mut rest)).await;
    // A reset is as good as an end.
    let _ = closed.expect("in time");
}

async fn connect(address: SocketAddr) -> TcpStream {
    TcpStream::connect(address).await.unwrap()
}

async fn is_served(fixture: &Fixture, mut stream: Delta) -> bool {
    fixture.server.apply(vec![put("a", b"1")]).unwrap();
    stream.ask(&["a"]).await;
    bodies(&stream.next().await) == [("a", &b"1"[..])]
}

/// Paused time advances when nothing else can happen.
#[tokio::test(start_paused = true)]
async fn a_connection_without_a_request_is_closed() {
    let silent = Arc::new(AtomicUsize::new(0));
    let count = Count(Limit::SilentConnections, Arc::clone(&silent));
    let fixture = build(Server::builder().hooks(count)).await;
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    let beginnings: [&[u8]; 4] = [b"", b"P", preface, b"POST / HTTP/1.1\r\n"];
    for (n, beginning) in beginnings.into_iter().enumerate() {
        let mut socket = connect(fixture.address).await;
        socket.write_all(beginning).await.unwrap();
        wait_for_close(&mut socket).await;
        // The connection of the fixture makes no request either; headers that
        // do not end have a timeout of their own.
        let counted = silent.load(Ordering::SeqCst);
        assert!(counted > n.min(2), "{beginning:?}: {counted}");
    }
}

/// The key is made before time is paused: it takes a while.
#[tokio::test]
async fn a_tls_handshake_that_does_not_go_on_is_closed() {
    let directory = tempfile::tempdir().unwrap();
    let key = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let [cert_file, key_file] = ["cert.pem", "key.pem"].map(|name| directory.path().join(name));
    std::fs::write(&cert_file, key.cert.pem()).unwrap();
    std::fs::write(&key_file, key.signing_key.serialize_pem()).unwrap();
    let tls = Tls::load(TlsFiles {
        cert: cert_file,
        key: key_file,
        client_ca: None,
    });

    let silent = Arc::new(AtomicUsize::new(0));
    let count = Count(Limit::SilentConnections, Arc::clone(&silent));
    let server = Server::builder().hooks(count).build();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let tls = Some(tls.unwrap());
    tokio::spawn(async move { server.serve_with(listener, tls).await });
    tokio::time::pause();
    // The beginning of a record of a handshake.
    for (n, beginning) in [&b""[..], b"\x16\x03\x01\x02\0\x01"]
        .into_iter()
        .enumerate()
    {
        let mut socket = connect(address).await;
        socket.write_all(beginning).await.unwrap();
        wait_for_close(&mut socket).await;
        assert_eq!(silent.load(Ordering::SeqCst), n + 1);
    }
}

#[tokio::test]
async fn an_address_beyond_its_quota_is_closed_at_once_and_others_are_served() {
    let refused = Arc::new(AtomicUsize::new(0));
    let builder = Server::builder()
        .hooks(Count(Limit::ConnectionsPerAddress, Arc::clone(&refused)))
        .options(|o| o.connections_per_address = 3);
    let fixture = build(builder).await;
    // That of the fixture is the first.
    let _held = [
        connect(fixture.address).await,
        connect(fixture.address).await,
    ];
    for n in 1..=10 {
        wait_for_close(&mut connect(fixture.address).await).await;
        assert_eq!(refused.load(Ordering::SeqCst), n);
    }
    let other = Delta::open_on(fixture.connect_from(OTHER).await).await;
    assert!(is_served(&fixture, other).await);
    let first = Delta::open(&fixture).await;
    assert!(is_served(&fixture, first).await);
}

#[tokio::test]
async fn silent_connections_that_take_all_places_keep_nobody_out() {
    let builder = Server::builder().options(|o| {
        o.connections = 10;
        o.connections_per_address = 10;
    });
    let fixture = build(builder).await;
    let first = Delta::open(&fixture).await;
    let mut silent = Vec::new();
    for _ in 0..9 {
        silent.push(connect(fixture.address).await);
    }
    let other = Delta::open_on(fixture.connect_from(OTHER).await).await;
    // The newest of the greediest address.
    wait_for_close(&mut silent.pop().unwrap()).await;
    assert!(is_served(&fixture, other).await);
    assert!(is_served(&fixture, first).await);
}

#[tokio::test]
async fn an_address_has_its_quota_of_streams() {
    let refused = Arc::new(AtomicUsize::new(0));
    let builder = Server::builder()
        .hooks(Count(Limit::StreamsPerPeer, Arc::clone(&refused)))
        .options(|o| {
            o.streams_per_peer = 1;
            o.refusal_delay = Duration::ZERO;
        });
    let fixture = build(builder).await;
    let first = Delta::open(&fixture).await;
    let mut second = Delta::open(&fixture).await;
    assert_eq!(second.end().await, Code::ResourceExhausted);
    assert_eq!(refused.load(Ordering::SeqCst), 1);
    let other = Delta::open_on(fixture.connect_from(OTHER).await).await;
    assert!(is_served(&fixture, other).await);
    assert!(is_served(&fixture, first).await);
}
