//! Connections: HTTP/1.1 and HTTP/2 on one port, asked whether they are still
//! there, and ended when they are too old (S79).

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::Service;
use super::ending::{Closing, reached};
use super::hooks::{Connection, Limit};
use super::shared::{Phase, Shared};

/// How long a peer may take to say what it wants.
const HEADERS: Duration = Duration::from_secs(10);
/// How long to wait when connections cannot be accepted, for want of
/// descriptors as a rule.
const BREATH: Duration = Duration::from_millis(100);

/// Accepts until the server drains, then waits until its connections have
/// ended or the server is stopped.
pub(super) async fn listen(shared: Arc<Shared>, listener: TcpListener) {
    let mut phase = shared.phase();
    let places = Arc::new(Semaphore::new(shared.options.connections));
    let connections = TaskTracker::new();
    let accepting = async {
        loop {
            if places.available_permits() == 0 {
                shared.hooks.limited(Limit::Connections);
            }
            // It is never closed.
            let Ok(place) = Arc::clone(&places).acquire_owned().await else {
                return;
            };
            match listener.accept().await {
                Ok((socket, peer)) => {
                    let shared = Arc::clone(&shared);
                    connections.spawn(async move {
                        serve(shared, socket, peer).await;
                        drop(place);
                    });
                }
                Err(_) => tokio::time::sleep(BREATH).await,
            }
        }
    };
    tokio::select! {
        () = accepting => {}
        () = reached(&mut phase, Phase::Draining) => {}
    }
    // Who connects now is told by the system to go elsewhere.
    drop(listener);
    connections.close();
    tokio::select! {
        () = connections.wait() => {}
        () = async {
            reached(&mut phase, Phase::Stopped).await;
            tokio::time::sleep(BREATH).await;
        } => {}
    }
}

async fn serve(shared: Arc<Shared>, socket: TcpStream, peer: SocketAddr) {
    // A connection that cannot be told so works all the same.
    let _ = socket.set_nodelay(true);
    let connection = Connection {
        peer: Some(peer),
        local: socket.local_addr().ok(),
        ..Connection::default()
    };
    speak(shared, socket, connection).await;
}

/// Serves a connection until it ends.
async fn speak(
    shared: Arc<Shared>,
    io: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    connection: Connection,
) {
    let closing = CancellationToken::new();
    let service = {
        let (shared, closing) = (Arc::clone(&shared), closing.clone());
        hyper::service::service_fn(move |mut request: http::Request<hyper::body::Incoming>| {
            request.extensions_mut().insert(connection.clone());
            request.extensions_mut().insert(Closing(closing.clone()));
            let shared = Arc::clone(&shared);
            tower_service::Service::call(&mut Service { shared }, request)
        })
    };
    let protocol = protocol(&shared);
    let mut serving = pin!(protocol.serve_connection(TokioIo::new(io), service));
    let mut phase = shared.phase();
    let mut ages = pin!(age(&shared));
    let mut leaving = false;
    loop {
        tokio::select! {
            // What a connection died of is of no interest to others.
            _ = serving.as_mut() => return,
            () = &mut ages, if !leaving => {}
            () = reached(&mut phase, Phase::Draining), if !leaving => {}
        }
        // New streams go elsewhere; those that are open end one by one.
        leaving = true;
        serving.as_mut().graceful_shutdown();
        closing.cancel();
    }
}

fn protocol(shared: &Shared) -> auto::Builder<TokioExecutor> {
    let options = &shared.options;
    let mut protocol = auto::Builder::new(TokioExecutor::new());
    protocol
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADERS);
    protocol
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(u32::try_from(options.streams).unwrap_or(u32::MAX))
        .keep_alive_interval(Some(options.keep_alive))
        .keep_alive_timeout(options.keep_alive_timeout);
    protocol
}

/// Waits until a connection is too old: nine to eleven tenths of what it may
/// become, so that not all of them come back at once.
async fn age(shared: &Shared) {
    static CONNECTIONS: AtomicU64 = AtomicU64::new(0);
    let Some(max) = shared.options.max_age else {
        return std::future::pending().await;
    };
    let number = CONNECTIONS.fetch_add(1, Ordering::Relaxed);
    let spread = (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as f64;
    let share = 0.9 + 0.2 * spread / f64::from(1u32 << 24);
    tokio::time::sleep(max.mul_f64(share)).await;
}
