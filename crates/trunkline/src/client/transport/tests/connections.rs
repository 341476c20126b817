//! Connections: how they are made, shared and closed.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::net::{TcpListener, UnixListener};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use super::peer::{PATH, connection, echo, listen, plane, serve};
use crate::client::transport::connection::Connection;
use crate::client::transport::connector::Pace;
use crate::client::transport::watched::{Activity, Watched};
use crate::client::transport::{ConnectError, Connector, Keepalive, StreamError, TransportOptions};
use crate::client::{Address, ControlPlane};

fn connector() -> Connector {
    Connector::new(TransportOptions::default())
}

#[tokio::test]
async fn a_socket_in_the_file_system_is_an_address() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("xds.sock");
    let listener = UnixListener::bind(&path).unwrap();
    tokio::spawn(async move {
        let (socket, _) = listener.accept().await.unwrap();
        connection(socket, echo).await;
    });
    let plane = ControlPlane {
        address: Address::Unix(path),
        ..plane("", 0)
    };
    let mut stream = connector().open(&plane, PATH).await.unwrap();
    stream.ready().await.unwrap();
    stream.send("hello".into());
    assert_eq!(stream.next().await.unwrap().unwrap(), "hello");
}

#[tokio::test]
async fn a_port_where_nobody_listens_is_said_so() {
    let (listener, plane) = listen().await;
    drop(listener);
    let error = connector().connect(&plane).await.unwrap_err();
    assert!(
        matches!(&error, ConnectError::Dial { source, .. }
            if source.kind() == std::io::ErrorKind::ConnectionRefused),
        "{error}"
    );
}

#[tokio::test]
async fn a_name_without_an_address_is_said_so() {
    let error = connector().connect(&plane("no-such-host.invalid", 1)).await;
    let error = error.unwrap_err();
    assert!(matches!(error, ConnectError::Resolve { .. }), "{error}");
}

#[tokio::test]
async fn an_attempt_has_a_timeout() {
    // A listener whose queue is full does not answer; one of TLS that is silent
    // is as good.
    let (listener, mut plane) = listen().await;
    plane.security = crate::client::Security::Tls(super::certs::Authority::new().trusted());
    plane.connect_timeout = Duration::from_millis(100);
    let error = connector().connect(&plane).await.unwrap_err();
    assert!(matches!(error, ConnectError::Timeout { .. }), "{error}");
    drop(listener);
}

/// C12.
#[tokio::test]
async fn equal_control_planes_share_a_connection_that_closes_after_the_last_stream() {
    let (listener, plane) = listen().await;
    let accepted = Arc::new(AtomicUsize::new(0));
    let (closed, mut closes) = mpsc::unbounded_channel();
    let count = Arc::clone(&accepted);
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            count.fetch_add(1, Ordering::Relaxed);
            let closed = closed.clone();
            tokio::spawn(async move {
                connection(socket, echo).await;
                closed.send(()).unwrap();
            });
        }
    });
    let connector = connector();
    let (one, other) = tokio::join!(connector.open(&plane, PATH), connector.open(&plane, PATH));
    let mut other = other.unwrap();
    drop(one.unwrap());
    other.ready().await.unwrap();
    other.send("still here".into());
    assert_eq!(other.next().await.unwrap().unwrap(), "still here");
    assert_eq!(accepted.load(Ordering::Relaxed), 1);
    assert!(closes.try_recv().is_err());
    drop(other);
    timeout(Duration::from_secs(5), closes.recv())
        .await
        .unwrap();
    // The next stream has a connection of its own.
    let _stream = connector.open(&plane, PATH).await.unwrap();
    let _other = connector.dial(&plane).await.unwrap().open(PATH).await;
    while accepted.load(Ordering::Relaxed) < 3 {
        sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test]
async fn a_connection_that_the_server_left_is_replaced() {
    let (listener, plane) = listen().await;
    tokio::spawn(async move {
        loop {
            let (socket, _) = listener.accept().await.unwrap();
            tokio::spawn(async move {
                let mut connection = h2::server::handshake(socket).await.unwrap();
                let stream = connection.accept().await.unwrap().unwrap();
                echo(stream);
                connection.graceful_shutdown();
                while connection.accept().await.is_some() {}
            });
        }
    });
    let connector = connector();
    let mut streams = Vec::new();
    for _ in 0..3 {
        let mut stream = connector.open(&plane, PATH).await.unwrap();
        stream.ready().await.unwrap();
        stream.send("hello".into());
        assert_eq!(stream.next().await.unwrap().unwrap(), "hello");
        // The GOAWAY comes with the first answer, or just after it.
        sleep(Duration::from_millis(50)).await;
        streams.push(stream);
    }
}

/// A duplex pipe, whose other end is silent after it has begun HTTP/2.
#[tokio::test(start_paused = true)]
async fn a_peer_that_is_dead_is_noticed_by_its_silence() {
    let (ours, theirs) = tokio::io::duplex(1 << 20);
    let keepalive = Keepalive::default();
    let activity = Arc::new(Activity::default());
    let socket = Box::new(Watched::new(ours, Arc::clone(&activity)));
    let options = TransportOptions::default();
    let plane = plane("127.0.0.1", 1);
    let pace = Arc::new(Pace::default());
    let connection = Connection::begin(&plane, socket, &options, activity, pace);
    let connection = connection.await.unwrap();
    let mut stream = connection.open(PATH).await.unwrap();
    let begun = tokio::time::Instant::now();
    let error = stream.next().await.unwrap_err();
    assert!(
        matches!(error, StreamError::Dead(after) if after == keepalive.timeout),
        "{error}"
    );
    assert_eq!(begun.elapsed(), keepalive.interval + keepalive.timeout);
    drop(theirs);
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_answers_pings_is_alive() {
    let (ours, theirs) = tokio::io::duplex(1 << 20);
    tokio::spawn(connection(theirs, echo));
    let activity = Arc::new(Activity::default());
    let socket = Box::new(Watched::new(ours, Arc::clone(&activity)));
    let options = TransportOptions::default();
    let plane = plane("127.0.0.1", 1);
    let pace = Arc::new(Pace::default());
    let connection = Connection::begin(&plane, socket, &options, activity, pace);
    let mut stream = connection.await.unwrap().open(PATH).await.unwrap();
    let hours = Duration::from_secs(3 * 3600);
    assert!(timeout(hours, stream.next()).await.is_err());
    stream.ready().await.unwrap();
    stream.send("alive".into());
    assert_eq!(stream.next().await.unwrap().unwrap(), "alive");
}

/// gRFC A8.
#[test]
fn a_server_that_wants_fewer_pings_gets_fewer() {
    let pace = Pace::default();
    let keepalive = Keepalive::default();
    pace.note_go_away(Some(h2::Reason::NO_ERROR));
    assert_eq!(pace.slow(keepalive), keepalive);
    pace.note_go_away(Some(h2::Reason::ENHANCE_YOUR_CALM));
    assert_eq!(pace.slow(keepalive).interval, keepalive.interval * 2);
    for _ in 0..100 {
        pace.note_go_away(Some(h2::Reason::ENHANCE_YOUR_CALM));
    }
    assert_eq!(pace.slow(keepalive).interval, Duration::from_secs(3600));
}

#[tokio::test]
async fn all_addresses_of_a_name_are_tried() {
    // `localhost` has one address or two, and only one of them listens.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    serve(listener, None, echo);
    let plane = plane("localhost", port);
    let mut stream = connector().open(&plane, PATH).await.unwrap();
    stream.ready().await.unwrap();
    stream.send("hello".into());
    assert_eq!(stream.next().await.unwrap().unwrap(), "hello");
}
