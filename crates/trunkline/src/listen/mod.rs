//! Connections: HTTP/1.1 and HTTP/2 on one port, with or without TLS, kept
//! alive by pings, and closed when they are too old (S79).
//!
//! | file | concern |
//! |---|---|
//! | `http` | the requests of a connection |
//! | `open_connections`, `address` | how many connections an address may have |
//! | `effort`, `lanes` | addresses that ask for much, and where they wait |
//! | `activity` | connections on which nothing happens |
//! | `sending`, `watched_io`, `send_mark`, `unsent` | responses that a peer does not take |

mod activity;
mod address;
mod effort;
mod http;
mod lanes;
mod open_connections;
mod send_mark;
mod sending;
mod unsent;
mod watched_io;

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ::http::{Request, Response};
use bytes::Bytes;
use hyper::body::Incoming;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

pub use crate::bind::bind;
use crate::descriptors;
pub use crate::descriptors::raise_descriptors;
use crate::server::{Connection, Limit};
use crate::tls::{PeerCertificate, Tls};

pub(crate) use activity::Activity;
use activity::Patience;
pub(crate) use address::ClientAddress;
use effort::cost;
use lanes::Lane;
pub(crate) use lanes::LaneExecutor;
pub use lanes::Lanes;
use open_connections::{OpenConnections, Place};
pub(crate) use unsent::UnsentMessage;

/// How many connections are accepted before others have their turn.
const ACCEPTED_AT_ONCE: usize = 8;
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
/// let met = |limit| eprintln!("a connection was refused or cut: {limit:?}");
/// listening.serve(listener, server.service(), met).await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Listening {
    /// TLS, if connections are encrypted.
    pub tls: Option<Tls>,
    /// Connections at once, if the process may have so many descriptors. One
    /// more is closed at once, unless an address that has more connections than
    /// its own has one without a request, which is cut in its place.
    pub connections: usize,
    /// Connections at once of one address; zero is half of all. One more is
    /// closed at once. The addresses of an IPv6 network of 64 bits are one.
    pub connections_per_address: usize,
    /// Requests at once on one connection of HTTP/2.
    pub streams: usize,
    /// How long a peer may take nothing of a response that waits for it. Then
    /// its connection is cut: it is broken, although its transport may answer
    /// pings. Zero is for ever.
    pub send_timeout: Duration,
    /// The interval of pings on an idle connection.
    pub keep_alive: Duration,
    /// The timeout of a ping.
    pub keep_alive_timeout: Duration,
    /// The age at which a connection is closed, give or take a tenth.
    pub max_age: Option<Duration>,
    /// The runtimes in which connections are accepted and served.
    pub lanes: Option<Lanes>,
    /// Cancelled to accept no more connections, and to close each open one when
    /// its requests have ended.
    pub draining: CancellationToken,
    /// Cancelled to close everything, and to wait only a moment for it.
    pub stopped: CancellationToken,
}

impl Default for Listening {
    /// Returns the settings of a small service beside a server. They differ
    /// from the defaults of [`Options`](crate::Options), by which a server
    /// listens: a server allows more connections and streams, and closes
    /// connections that are too old.
    fn default() -> Self {
        Self {
            tls: None,
            connections: 10_000,
            connections_per_address: 0,
            streams: 1_000,
            send_timeout: Duration::from_secs(60),
            keep_alive: Duration::from_secs(30),
            keep_alive_timeout: Duration::from_secs(20),
            max_age: None,
            lanes: None,
            draining: CancellationToken::new(),
            stopped: CancellationToken::new(),
        }
    }
}

/// In the extensions of a request: cancelled when its connection is about to
/// close.
#[derive(Clone, Debug, Default)]
pub(crate) struct Closing(pub(crate) CancellationToken);

/// Called with each limit that a connection meets.
type OnLimit = Arc<dyn Fn(Limit) + Send + Sync>;

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

/// Accepts a connection. Returns `None` if the client left before that; or
/// after an error of the system, when room has been made and [`ACCEPT_RETRY`]
/// is over.
async fn accept_one(
    listener: &TcpListener,
    open: &OpenConnections,
) -> Option<(TcpStream, SocketAddr)> {
    match listener.accept().await {
        Ok(socket_and_peer) => Some(socket_and_peer),
        Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => None,
        Err(_) => {
            open.make_room();
            tokio::time::sleep(ACCEPT_RETRY).await;
            None
        }
    }
}

impl Listening {
    /// Accepts connections until `draining` or `stopped` is cancelled, and then
    /// waits until all connections are closed. After `stopped`, the wait is
    /// short. `met` is called when a connection is refused, or cut
    /// because its peer is silent or takes nothing.
    pub async fn serve<B>(
        self,
        listener: TcpListener,
        service: impl Answers<B>,
        met: impl Fn(Limit) + Send + Sync + 'static,
    ) where
        B: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
        B::Error: Into<BoxError>,
    {
        let Some(lanes) = self.lanes.clone() else {
            return self.serve_here(listener, service, met).await;
        };
        let serving = lanes.front.spawn(self.serve_here(listener, service, met));
        // An error is a panic, which was logged, or the end of the runtime.
        let _ = AbortOnDropHandle::new(serving).await;
    }

    /// Serves as [`Self::serve`] does, in the present runtime.
    async fn serve_here<B>(
        self,
        listener: TcpListener,
        service: impl Answers<B>,
        report_limit: impl Fn(Limit) + Send + Sync + 'static,
    ) where
        B: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
        B::Error: Into<BoxError>,
    {
        let listening = Arc::new(self);
        let report_limit: OnLimit = Arc::new(report_limit);
        let open = listening.new_open_connections();
        let checks = open.check(Patience::new(listening.send_timeout), |limit| {
            report_limit(limit)
        });
        tokio::select! {
            () = listening.serve_all(listener, service, &open, &report_limit) => {}
            // The checks go on for as long as there are connections.
            () = checks => {}
        }
    }

    /// Returns an empty table of connections. Its limit is that of the
    /// settings, or what the descriptors of the process allow.
    fn new_open_connections(&self) -> Arc<OpenConnections> {
        let max = self.connections.min(descriptors::for_connections());
        // Without a limit of its own, an address may have half of the places.
        let per_address = match self.connections_per_address {
            0 => max.div_ceil(2),
            quota => quota,
        };
        OpenConnections::new(max, per_address)
    }

    /// Accepts connections until the server drains or stops, and then waits for
    /// the open ones.
    async fn serve_all<B>(
        self: &Arc<Self>,
        listener: TcpListener,
        service: impl Answers<B>,
        open: &Arc<OpenConnections>,
        report_limit: &OnLimit,
    ) where
        B: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
        B::Error: Into<BoxError>,
    {
        let tasks = TaskTracker::new();
        tokio::select! {
            () = self.accept(&listener, service, &tasks, open, report_limit) => {}
            () = self.draining.cancelled() => {}
            () = self.stopped.cancelled() => {}
        }

        // Without the listener, the system refuses new connections, so that
        // clients go elsewhere.
        drop(listener);
        tasks.close();

        let soon_after_stop = async {
            self.stopped.cancelled().await;
            tokio::time::sleep(LAST_MESSAGES).await;
        };
        tokio::select! {
            () = tasks.wait() => {}
            () = soon_after_stop => {}
        }
    }

    /// Accepts connections for ever, and serves each in a task of its own. A
    /// connection over a limit is closed, and an error of the system is
    /// retried.
    async fn accept<B>(
        self: &Arc<Self>,
        listener: &TcpListener,
        service: impl Answers<B>,
        tasks: &TaskTracker,
        open: &Arc<OpenConnections>,
        report_limit: &OnLimit,
    ) where
        B: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
        B::Error: Into<BoxError>,
    {
        for count in 1.. {
            if count % ACCEPTED_AT_ONCE == 0 {
                tokio::task::yield_now().await;
            }
            let Some((socket, peer)) = accept_one(listener, open).await else {
                continue;
            };

            let (place, limit) = open.open(ClientAddress::of(peer));
            if let Some(limit) = limit {
                report_limit(limit);
            }
            let Some(place) = place else {
                continue;
            };

            let connection = Connection {
                peer: Some(peer),
                local: socket.local_addr().ok(),
                ..Connection::default()
            };
            let executor = self.executor(&place.activity);
            let (listening, report_limit) = (Arc::clone(self), Arc::clone(report_limit));
            let serving =
                listening.serve_place(socket, connection, place, service.clone(), report_limit);
            executor.spawn(tasks.track_future(serving));
        }
    }

    /// Serves a connection that has a place in the table, until it is closed.
    async fn serve_place<B>(
        self: Arc<Self>,
        socket: TcpStream,
        connection: Connection,
        place: Place,
        service: impl Answers<B>,
        report_limit: OnLimit,
    ) where
        B: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
        B::Error: Into<BoxError>,
    {
        if let Ok(socket) = self.register_again(socket, &place.activity) {
            let serving = self.serve_socket(socket, connection, &place, service, &report_limit);
            serving.await;
        }
    }

    /// Returns what spawns the tasks of a connection in its lane.
    fn executor(&self, activity: &Activity) -> LaneExecutor {
        LaneExecutor {
            lanes: self.lanes.clone(),
            effort: Arc::clone(&activity.effort),
        }
    }

    /// Registers a socket that the front lane has accepted with the present
    /// runtime, if its address is served in the back lane. Counts the effort of
    /// a TLS handshake if there will be one.
    fn register_again(&self, socket: TcpStream, activity: &Activity) -> io::Result<TcpStream> {
        if self.tls.is_some() {
            activity.effort.charge(cost::HANDSHAKE);
        }
        match &self.lanes {
            Some(_) if activity.effort.lane() == Lane::Back => {
                TcpStream::from_std(socket.into_std()?)
            }
            _ => Ok(socket),
        }
    }

    /// Serves a socket until it is closed, after a TLS handshake if the
    /// listener has TLS. The identity in the client's certificate goes to
    /// `connection`. A socket whose handshake fails is closed.
    async fn serve_socket<B>(
        &self,
        socket: TcpStream,
        mut connection: Connection,
        place: &Place,
        service: impl Answers<B>,
        report_limit: &OnLimit,
    ) where
        B: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
        B::Error: Into<BoxError>,
    {
        // A connection without `TCP_NODELAY` works as well.
        let _ = socket.set_nodelay(true);
        let Some(tls) = &self.tls else {
            let http = self.serve_http(socket, connection, &place.activity, service, report_limit);
            return http.await;
        };

        let handshake = tokio::select! {
            handshake = tls.accept(socket) => handshake,
            () = place.activity.wait_until_cut() => return,
        };
        match handshake {
            Ok(stream) => {
                connection.secure = true;
                let certificate = PeerCertificate::of(&stream);
                let identity = certificate.as_ref().and_then(PeerCertificate::identity);
                connection.identity = identity.cloned();
                connection.certified = certificate.is_some();
                let http =
                    self.serve_http(stream, connection, &place.activity, service, report_limit);
                http.await;
            }
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                report_limit(Limit::SilentConnections);
            }
            // TLS tells its client why the handshake failed; a client of plain
            // text learns nothing, so the server reports that one.
            Err(error) => tls.report_failed_handshake(&error, connection.peer, connection.local),
        }
    }

    /// Waits until a connection is too old: for nine to eleven tenths of the
    /// maximum, so that clients do not reconnect all at once. Waits for ever
    /// without a maximum.
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

/// Maps a number to the range from zero to one. Consecutive numbers are far
/// apart and fill the range evenly, by Fibonacci hashing: the upper bits of a
/// product with the golden ratio.
pub(crate) fn spread(number: u64) -> f64 {
    /// The golden ratio as a fraction of 2⁶⁴.
    const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
    const BITS: u32 = 24;
    let bits = number.wrapping_mul(GOLDEN) >> (u64::BITS - BITS);
    bits as f64 / f64::from(1u32 << BITS)
}
