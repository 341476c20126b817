//! One connection to one endpoint. It is made at once, and made again, after a
//! back-off, whenever it is lost, until nobody needs the endpoint.

use std::hash::{BuildHasher as _, RandomState};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use hashbrown::HashMap;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinHandle};
use tokio::time::{Instant, sleep, timeout};
use tonic::body::Body;
use trunkline_core::sink::{Backoff, BackoffConfig};

use super::first_bytes::FirstBytes;
use super::tls::Tls;

/// How long an attempt to connect may take.
const CONNECT: Duration = Duration::from_secs(20);

/// How often a connection is looked at.
const LOOK: Duration = Duration::from_millis(100);

/// The wait after a connection that failed: gRPC's.
const BACKOFF: BackoffConfig = BackoffConfig {
    base: Duration::from_secs(1),
    max: Duration::from_secs(120),
    floor: Duration::from_millis(100),
};

/// How a connection stands.
#[derive(Clone, Debug)]
pub(super) enum Link {
    /// It is being made, for the first time or after one that worked.
    Connecting,
    /// Calls can be sent.
    Ready(SendRequest<Body>),
    /// The last attempt failed; another one follows.
    Failed(Arc<str>),
}

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Subchannel {
    link: watch::Receiver<Link>,
    task: AbortHandle,
}

impl Subchannel {
    /// Makes a subchannel, and the task that keeps it connected. `changes`
    /// counts every change of its connection.
    fn connect(target: Target, changes: watch::Sender<u64>) -> Self {
        let (link_sender, link) = watch::channel(Link::Connecting);
        let links = LinkSender {
            link: link_sender,
            changes,
        };
        let task = tokio::spawn(keep_connected(target, links));
        Self {
            link,
            task: task.abort_handle(),
        }
    }

    /// Returns how the connection stands, as a receiver that is told of each
    /// change.
    pub(super) fn link(&self) -> &watch::Receiver<Link> {
        &self.link
    }
}

impl Drop for Subchannel {
    /// Calls in progress go on: they belong to the connection.
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Tells calls how a connection stands.
struct LinkSender {
    link: watch::Sender<Link>,
    changes: watch::Sender<u64>,
}

impl LinkSender {
    /// Replaces how the connection stands, and counts the change.
    fn send(&self, link: Link) {
        self.link.send_replace(link);
        self.changes.send_modify(|count| *count += 1);
    }
}

/// What is connected to, and how.
#[derive(Clone, Debug)]
struct Target {
    address: SocketAddr,
    tls: Option<Arc<Tls>>,
}

/// What tells subchannels apart: the address, and whose TLS. Its holder keeps
/// the latter alive, so that no other takes its place.
type Key = (SocketAddr, Option<usize>);

/// The subchannels in use, by address, and what all clusters of a channel share
/// besides: a count of changes, a clock, and random numbers.
#[derive(Debug)]
pub(super) struct Pool {
    in_use: Mutex<HashMap<Key, Weak<Subchannel>>>,
    /// How often any endpoint became usable or ceased to be.
    changes: watch::Sender<u64>,
    start: Instant,
    /// The key of random numbers, which are the hashes of a count of draws.
    random: RandomState,
    draws: AtomicU64,
}

impl Default for Pool {
    fn default() -> Self {
        Self {
            in_use: Mutex::default(),
            changes: watch::Sender::new(0),
            start: Instant::now(),
            random: RandomState::new(),
            draws: AtomicU64::new(0),
        }
    }
}

impl Pool {
    /// Returns the time that the rules of traffic see, from the start of the
    /// pool.
    pub(super) fn now(&self) -> Duration {
        self.start.elapsed()
    }

    /// Returns a random number.
    pub(super) fn random(&self) -> u64 {
        let draw = self.draws.fetch_add(1, Ordering::Relaxed);
        self.random.hash_one(draw)
    }

    /// Returns how often any endpoint became usable or ceased to be, so far.
    pub(super) fn changes(&self) -> u64 {
        *self.changes.borrow()
    }

    /// Notes that an endpoint became usable, or ceased to be.
    pub(super) fn note_change(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    /// Returns a receiver that is told of the next change.
    pub(super) fn next_change(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Returns the subchannel of an address, and makes it if none is in use.
    /// Clusters with the same TLS share it.
    pub(super) fn subchannel(
        &self,
        address: SocketAddr,
        tls: Option<&Arc<Tls>>,
    ) -> Arc<Subchannel> {
        let key = (address, tls.map(|tls| Arc::as_ptr(tls).addr()));
        let mut in_use = self.in_use.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(subchannel) = in_use.get(&key).and_then(Weak::upgrade) {
            return subchannel;
        }

        in_use.retain(|_, subchannel| subchannel.strong_count() > 0);
        let target = Target {
            address,
            tls: tls.cloned(),
        };
        let subchannel = Arc::new(Subchannel::connect(target, self.changes.clone()));
        in_use.insert(key, Arc::downgrade(&subchannel));
        subchannel
    }
}

/// Connects, and connects again after a back-off, until the task is aborted.
async fn keep_connected(target: Target, links: LinkSender) {
    let address = target.address;
    let mut backoff = Backoff::new(BACKOFF, u64::from(address.port()));
    loop {
        let attempt = timeout(CONNECT, connect(&target)).await;
        let error = match attempt {
            Ok(Ok((sender, connection))) => {
                links.send(Link::Ready(sender));
                connection.wait_until_lost().await;
                links.send(Link::Connecting);
                sleep(backoff.after_stream(true)).await;
                continue;
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("not connected after {} s", CONNECT.as_secs()),
        };
        let error = format!("{address}: {error}");
        links.send(Link::Failed(error.into()));
        sleep(backoff.after_stream(false)).await;
    }
}

type Error = Box<dyn std::error::Error + Send + Sync>;

/// Makes a connection to a target, with TLS if the target has it.
async fn connect(target: &Target) -> Result<(SendRequest<Body>, Connection), Error> {
    let socket = TcpStream::connect(target.address).await?;
    socket.set_nodelay(true)?;
    match &target.tls {
        None => handshake(socket).await,
        Some(tls) => handshake(tls.connect(target.address.ip(), socket).await?).await,
    }
}

/// Begins HTTP/2 on a stream of bytes. Waits until the server has said
/// something, which a proxy without a server does not.
async fn handshake<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    stream: S,
) -> Result<(SendRequest<Body>, Connection), Error> {
    let builder = http2::Builder::new(TokioExecutor::new());
    let (stream, first_bytes) = FirstBytes::new(stream);
    let (sender, connection) = builder.handshake(TokioIo::new(stream)).await?;
    // It is a task of its own, so that calls outlive the subchannel.
    let task = tokio::spawn(async move { _ = connection.await });
    let closed_early = "it was closed before the server spoke HTTP/2";
    first_bytes.await.map_err(|_| closed_early)?;
    let connection = Connection {
        task,
        sender: sender.clone(),
    };
    Ok((sender, connection))
}

/// A connection, to notice when it is lost.
struct Connection {
    task: JoinHandle<()>,
    sender: SendRequest<Body>,
}

impl Connection {
    /// Waits until the connection is lost. A server that is about to close
    /// takes no more calls, long before those in progress have ended.
    async fn wait_until_lost(mut self) {
        loop {
            tokio::select! {
                _ = &mut self.task => return,
                () = sleep(LOOK) => {
                    if self.sender.is_closed() {
                        return;
                    }
                }
            }
        }
    }
}
