//! One connection to one endpoint. It is made at once, and made again, after a
//! back-off, whenever it is lost, until nobody needs the endpoint.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use hashbrown::HashMap;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};
use tonic::body::Body;
use trunkline_core::sink::{Backoff, BackoffConfig};

/// How long an attempt to connect may take.
const CONNECT: Duration = Duration::from_secs(20);

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
    fn connect(address: SocketAddr) -> Self {
        let (told, link) = watch::channel(Link::Connecting);
        let task = tokio::spawn(keep_connected(address, told));
        Self {
            link,
            task: task.abort_handle(),
        }
    }

    /// How the connection stands, and a way to wait for something else.
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

/// The subchannels in use, by address.
#[derive(Debug, Default)]
pub(super) struct Pool {
    in_use: Mutex<HashMap<SocketAddr, Weak<Subchannel>>>,
}

impl Pool {
    /// The subchannel of an address, which all clusters share.
    pub(super) fn subchannel(&self, address: SocketAddr) -> Arc<Subchannel> {
        let mut in_use = self.in_use.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(subchannel) = in_use.get(&address).and_then(Weak::upgrade) {
            return subchannel;
        }
        in_use.retain(|_, subchannel| subchannel.strong_count() > 0);
        let subchannel = Arc::new(Subchannel::connect(address));
        in_use.insert(address, Arc::downgrade(&subchannel));
        subchannel
    }
}

/// Connects, and connects again, for as long as somebody looks.
async fn keep_connected(address: SocketAddr, told: watch::Sender<Link>) {
    let mut backoff = Backoff::new(BACKOFF, u64::from(address.port()));
    loop {
        let connected = timeout(CONNECT, connect(address)).await;
        let error = match connected {
            Ok(Ok((sender, lost))) => {
                told.send_replace(Link::Ready(sender));
                lost.await;
                told.send_replace(Link::Connecting);
                sleep(backoff.after_stream(true)).await;
                continue;
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("not connected after {} s", CONNECT.as_secs()),
        };
        let error = format!("{address}: {error}");
        told.send_replace(Link::Failed(error.into()));
        sleep(backoff.after_stream(false)).await;
    }
}

type Error = Box<dyn std::error::Error + Send + Sync>;

/// Makes a connection. The second value ends when it is lost.
async fn connect(
    address: SocketAddr,
) -> Result<(SendRequest<Body>, impl Future<Output = ()>), Error> {
    let socket = TcpStream::connect(address).await?;
    socket.set_nodelay(true)?;
    let builder = http2::Builder::new(TokioExecutor::new());
    let (sender, connection) = builder.handshake(TokioIo::new(socket)).await?;
    // It is a task of its own, so that calls outlive the subchannel.
    let connection = tokio::spawn(connection);
    let watched = sender.clone();
    let lost = async move {
        // A server that is about to close takes no more calls, long before
        // those in progress have ended.
        let mut connection = std::pin::pin!(connection);
        loop {
            tokio::select! {
                _ = &mut connection => return,
                () = sleep(LOOK) => {
                    if watched.is_closed() {
                        return;
                    }
                }
            }
        }
    };
    Ok((sender, lost))
}

/// How often a connection is looked at.
const LOOK: Duration = Duration::from_millis(100);
