//! Connections: HTTP/1.1 and HTTP/2 on one port, behind TLS or not, asked
//! whether they are still there, and ended when they are too old (S79).

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::bell::{Bell, Listener};
pub use crate::bind::bind;
pub use crate::descriptors::raise_descriptors;
use crate::server::Connection;
use crate::tls::{PeerCertificate, Tls};

/// How long a peer may take to say what it wants.
const HEADERS: Duration = Duration::from_secs(10);
/// How long to wait when connections cannot be accepted, for want of
/// descriptors as a rule.
const BREATH: Duration = Duration::from_millis(100);

/// How connections are accepted and served.
#[derive(Clone, Debug)]
pub struct Listening {
    /// With what they are encrypted.
    pub tls: Option<Tls>,
    /// How many there may be at once; one more waits to be accepted.
    pub connections: usize,
    /// How many requests there may be at once on one connection of HTTP/2.
    pub streams: usize,
    /// How often a silent connection is asked whether it is still there.
    pub keep_alive: Duration,
    /// How long it may take to answer.
    pub keep_alive_timeout: Duration,
    /// How old a connection may become, give or take a tenth.
    pub max_age: Option<Duration>,
    /// Cancelled when no more connections are wanted, and those that are open
    /// are to end when their requests have.
    pub draining: CancellationToken,
    /// Cancelled when everything is to end.
    pub stopped: CancellationToken,
}

impl Default for Listening {
    fn default() -> Self {
        Self {
            tls: None,
            connections: 10_000,
            streams: 1_000,
            keep_alive: Duration::from_secs(30),
            keep_alive_timeout: Duration::from_secs(20),
            max_age: None,
            draining: CancellationToken::new(),
            stopped: CancellationToken::new(),
        }
    }
}

/// In the extensions of a request: its connection is about to end.
#[derive(Clone, Debug)]
pub(crate) struct Closing(pub(crate) CancellationToken);

/// What serves the requests of a connection. Each finds a [`Connection`] in its
/// extensions.
pub trait Answers<B>:
    tower_service::Service<
        Request<Incoming>,
        Response = Response<B>,
        Error = Infallible,
        Future: Send + 'static,
    > + Clone
    + Send
    + 'static
{
}

impl<B, S> Answers<B> for S where
    S: tower_service::Service<
            Request<Incoming>,
            Response = Response<B>,
            Error = Infallible,
            Future: Send + 'static,
        > + Clone
        + Send
        + 'static
{
}

/// Any error of a body.
pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;

impl Listening {
    /// Accepts until it is to drain, then waits until all connections have
    /// ended or have to. `full` is told when there are too many.
    pub async fn serve<B>(self, listener: TcpListener, service: impl Answers<B>, full: impl Fn())
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let listening = Arc::new(self);
        let connections = TaskTracker::new();
        tokio::select! {
            () = listening.accept(&listener, service, &connections, full) => {}
            () = listening.draining.cancelled() => {}
            () = listening.stopped.cancelled() => {}
        }
        // Who connects now is told by the system to go elsewhere.
        drop(listener);
        connections.close();
        tokio::select! {
            () = connections.wait() => {}
            () = async {
                listening.stopped.cancelled().await;
                // What was said last should arrive.
                tokio::time::sleep(BREATH).await;
            } => {}
        }
    }

    async fn accept<B>(
        self: &Arc<Self>,
        listener: &TcpListener,
        service: impl Answers<B>,
        tasks: &TaskTracker,
        full: impl Fn(),
    ) where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let places = Arc::new(Semaphore::new(self.connections));
        loop {
            if places.available_permits() == 0 {
                full();
            }
            // It is never closed.
            let Ok(place) = Arc::clone(&places).acquire_owned().await else {
                return;
            };
            match listener.accept().await {
                Ok((socket, peer)) => {
                    let (listening, service) = (Arc::clone(self), service.clone());
                    let connection = Connection {
                        peer: Some(peer),
                        local: socket.local_addr().ok(),
                        ..Connection::default()
                    };
                    tasks.spawn(async move {
                        listening.begin(socket, connection, service).await;
                        drop(place);
                    });
                }
                Err(_) => tokio::time::sleep(BREATH).await,
            }
        }
    }

    async fn begin<B>(
        &self,
        socket: TcpStream,
        mut connection: Connection,
        service: impl Answers<B>,
    ) where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        // A connection that cannot be told so works all the same.
        let _ = socket.set_nodelay(true);
        let Some(tls) = &self.tls else {
            return self.speak(socket, connection, service).await;
        };
        // Whoever does not get through the handshake knows why.
        if let Ok(stream) = tls.accept(socket).await {
            connection.secure = true;
            let certificate = PeerCertificate::of(&stream);
            let identity = certificate.as_ref().and_then(PeerCertificate::identity);
            connection.identity = identity.map(|identity| identity.as_str().to_owned());
            connection.certified = certificate.is_some();
            self.speak(stream, connection, service).await;
        }
    }

    /// Serves a connection until it ends.
    async fn speak<B>(
        &self,
        io: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        connection: Connection,
        service: impl Answers<B>,
    ) where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let closing = CancellationToken::new();
        let told = closing.clone();
        let service = hyper::service::service_fn(move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(connection.clone());
            request.extensions_mut().insert(Closing(told.clone()));
            service.clone().call(request)
        });
        let protocol = self.protocol();
        let mut serving = pin!(protocol.serve_connection(TokioIo::new(io), service));
        let mut over = pin!(self.over());
        let mut listener = Listener::new(Bell::new());
        let mut leaving = false;
        std::future::poll_fn(|cx| {
            // A connection is polled for every message, and seldom over.
            if listener.heard(cx) != 0
                && !leaving
                && over.as_mut().poll(&mut listener.context()).is_ready()
            {
                // New streams go elsewhere; those that are open end one by one.
                leaving = true;
                serving.as_mut().graceful_shutdown();
                closing.cancel();
            }
            // What a connection died of is of no interest to others.
            serving.as_mut().poll(cx).map(drop)
        })
        .await;
    }

    /// Waits until a connection has to end: it is too old, or all have to.
    async fn over(&self) {
        tokio::select! {
            () = self.age() => {}
            () = self.draining.cancelled() => {}
        }
    }

    fn protocol(&self) -> auto::Builder<TokioExecutor> {
        let mut protocol = auto::Builder::new(TokioExecutor::new());
        protocol
            .http1()
            .timer(TokioTimer::new())
            .header_read_timeout(HEADERS);
        protocol
            .http2()
            .timer(TokioTimer::new())
            .max_concurrent_streams(u32::try_from(self.streams).unwrap_or(u32::MAX))
            .keep_alive_interval(Some(self.keep_alive))
            .keep_alive_timeout(self.keep_alive_timeout);
        protocol
    }

    /// Waits until a connection is too old: nine to eleven tenths of what it
    /// may become, so that not all of them come back at once.
    async fn age(&self) {
        static CONNECTIONS: AtomicU64 = AtomicU64::new(0);
        let Some(max) = self.max_age else {
            return std::future::pending().await;
        };
        let number = CONNECTIONS.fetch_add(1, Ordering::Relaxed);
        tokio::time::sleep(max.mul_f64(0.9 + 0.2 * spread(number))).await;
    }
}

/// Spreads numbers evenly over the range from zero to one, neighbours far from
/// each other.
pub(crate) fn spread(number: u64) -> f64 {
    let bits = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    bits as f64 / f64::from(1u32 << 24)
}
