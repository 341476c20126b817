//! Connections: HTTP/1.1 and HTTP/2 on one port, with or without TLS, kept
//! alive by pings, and closed when they are too old (S79).

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

pub use crate::bind::bind;
pub use crate::descriptors::raise_descriptors;
use crate::server::Connection;
use crate::tls::{PeerCertificate, Tls};
use crate::wake::{WakeFlags, WakeListener};

/// The timeout for the headers of an HTTP/1.1 request.
const HEADERS_TIMEOUT: Duration = Duration::from_secs(10);
/// The wait after an error of `accept`, as a rule for want of descriptors.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);
/// How long connections have to send their last messages when all are closed.
const LAST_MESSAGES: Duration = Duration::from_millis(100);

/// How connections are accepted and served.
/// [`Server::serve`](crate::Server::serve) makes one of its options; with one's
/// own, the server can be wrapped in middleware.
///
/// ```no_run
/// use trunkline::Server;
/// use trunkline::listen::{self, Listening};
///
/// # async fn run() -> std::io::Result<()> {
/// let server = Server::default();
/// server.start();
/// let listener = listen::bind("127.0.0.1:18000").await?;
/// let listening = Listening { connections: 500, ..Listening::default() };
/// let full = || eprintln!("500 connections are open, the next one waits");
/// listening.serve(listener, server.service(), full).await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Listening {
    /// TLS, if connections are encrypted.
    pub tls: Option<Tls>,
    /// Connections at once; one more waits to be accepted.
    pub connections: usize,
    /// Requests at once on one connection of HTTP/2.
    pub streams: usize,
    /// The interval of pings on an idle connection.
    pub keep_alive: Duration,
    /// The timeout of a ping.
    pub keep_alive_timeout: Duration,
    /// The age at which a connection is closed, give or take a tenth.
    pub max_age: Option<Duration>,
    /// Cancelled to accept no more connections, and to close each open one when
    /// its requests have ended.
    pub draining: CancellationToken,
    /// Cancelled to close everything, and to wait only a moment for it.
    pub stopped: CancellationToken,
}

impl Default for Listening {
    /// The settings of a small service beside a server. They differ from the
    /// defaults of [`Options`](crate::Options), by which a server listens: a
    /// server allows more connections and streams, and closes connections that
    /// are too old.
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

/// In the extensions of a request: cancelled when its connection is about to
/// close.
#[derive(Clone, Debug)]
pub(crate) struct Closing(pub(crate) CancellationToken);

/// The service of a connection's requests. Each request has a [`Connection`] in
/// its extensions.
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
    /// Accepts connections until `draining` or `stopped` is cancelled, then
    /// waits until all of them are closed, but only a moment once `stopped` is
    /// cancelled. `full` is called when [`Self::connections`] are open and the
    /// next one has to wait.
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
        // New connections are refused by the system, so clients go elsewhere.
        drop(listener);
        connections.close();

        let soon_after_stop = async {
            listening.stopped.cancelled().await;
            tokio::time::sleep(LAST_MESSAGES).await;
        };
        tokio::select! {
            () = connections.wait() => {}
            () = soon_after_stop => {}
        }
    }

    /// Accepts connections for ever, and serves each in a task of its own.
    /// While [`Self::connections`] are open, the next one waits, and `full` is
    /// called once for it. An error of the system is retried.
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
            // The semaphore is never closed.
            let Ok(place) = Arc::clone(&places).acquire_owned().await else {
                return;
            };
            match listener.accept().await {
                Ok((socket, peer)) => {
                    let listening = Arc::clone(self);
                    let service = service.clone();
                    let connection = Connection {
                        peer: Some(peer),
                        local: socket.local_addr().ok(),
                        ..Connection::default()
                    };
                    tasks.spawn(async move {
                        listening.serve_socket(socket, connection, service).await;
                        drop(place);
                    });
                }
                Err(_) => tokio::time::sleep(ACCEPT_RETRY).await,
            }
        }
    }

    /// Serves a socket until it is closed, after a TLS handshake if there is
    /// TLS. The client's certificate becomes a part of `connection`. A socket
    /// whose handshake fails is closed.
    async fn serve_socket<B>(
        &self,
        socket: TcpStream,
        mut connection: Connection,
        service: impl Answers<B>,
    ) where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        // A connection without `TCP_NODELAY` works as well.
        let _ = socket.set_nodelay(true);
        let Some(tls) = &self.tls else {
            return self.serve_http(socket, connection, service).await;
        };

        match tls.accept(socket).await {
            Ok(stream) => {
                connection.secure = true;
                let certificate = PeerCertificate::of(&stream);
                let identity = certificate.as_ref().and_then(PeerCertificate::identity);
                connection.identity = identity.cloned();
                connection.certified = certificate.is_some();
                self.serve_http(stream, connection, service).await;
            }
            // The client knows why, unless it does not speak TLS.
            Err(error) => tls.note_failed(&error, connection.peer, connection.local),
        }
    }

    /// Serves the HTTP requests of a connection until it ends. Once it has to
    /// close, it takes no more requests, and [`Closing`] tells the open ones.
    async fn serve_http<B>(
        &self,
        io: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        connection: Connection,
        service: impl Answers<B>,
    ) where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let closing = CancellationToken::new();
        let extension = Closing(closing.clone());

        let service = hyper::service::service_fn(move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(connection.clone());
            request.extensions_mut().insert(extension.clone());
            service.clone().call(request)
        });
        let protocol = self.http_protocol();
        let mut serving = pin!(protocol.serve_connection(TokioIo::new(io), service));
        let mut until_closing = pin!(self.wait_until_closing());

        // A connection is polled for every message and closes once, so the wait
        // for its close is polled only when its own waker raised a flag.
        let mut flags = WakeListener::new(WakeFlags::new());
        let mut is_closing = false;
        std::future::poll_fn(|cx| {
            let may_close = flags.take_raised(cx) != 0 && !is_closing;
            if may_close && until_closing.as_mut().poll(&mut flags.context()).is_ready() {
                // New streams go elsewhere; open ones end one by one.
                is_closing = true;
                serving.as_mut().graceful_shutdown();
                closing.cancel();
            }
            // The error of a connection concerns nobody else.
            serving.as_mut().poll(cx).map(drop)
        })
        .await;
    }

    /// Waits until a connection has to close: it is too old, or the server
    /// drains or stops.
    async fn wait_until_closing(&self) {
        tokio::select! {
            () = self.wait_until_too_old() => {}
            () = self.draining.cancelled() => {}
            () = self.stopped.cancelled() => {}
        }
    }

    /// Makes a server of HTTP/1.1 and HTTP/2 with the timeouts and limits of
    /// the listener.
    fn http_protocol(&self) -> auto::Builder<TokioExecutor> {
        let mut protocol = auto::Builder::new(TokioExecutor::new());
        protocol
            .http1()
            .timer(TokioTimer::new())
            .header_read_timeout(HEADERS_TIMEOUT);
        protocol
            .http2()
            .timer(TokioTimer::new())
            .max_concurrent_streams(u32::try_from(self.streams).unwrap_or(u32::MAX))
            .keep_alive_interval(Some(self.keep_alive))
            .keep_alive_timeout(self.keep_alive_timeout);
        protocol
    }

    /// Waits until a connection is too old: nine to eleven tenths of the
    /// maximum, so that clients do not reconnect all at once. Waits for ever if
    /// there is no maximum.
    async fn wait_until_too_old(&self) {
        static CONNECTIONS: AtomicU64 = AtomicU64::new(0);
        let Some(max) = self.max_age else {
            return std::future::pending().await;
        };
        let number = CONNECTIONS.fetch_add(1, Ordering::Relaxed);
        let part = 0.9 + 0.2 * spread(number);
        tokio::time::sleep(max.mul_f64(part)).await;
    }
}

/// Maps numbers evenly to the range from zero to one, neighbours far apart, by
/// Fibonacci hashing: the upper bits of a product with the golden ratio.
pub(crate) fn spread(number: u64) -> f64 {
    /// The golden ratio as a fraction of 2⁶⁴.
    const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
    const BITS: u32 = 24;
    let bits = number.wrapping_mul(GOLDEN) >> (u64::BITS - BITS);
    bits as f64 / f64::from(1u32 << BITS)
}
