//! The channel, and the life of a call.

use std::fmt;
use std::future::poll_fn;
use std::hash::{BuildHasher as _, RandomState};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use http::uri::{Authority, Scheme, Uri};
use http::{Request, Response};
use hyper::body::Incoming;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tonic::Status;
use tonic::body::Body;
use tower_service::Service;

use super::balancer::{Balancer, Pick};
use super::builder::XdsChannelBuilder;
use super::route::Router;
use super::table::Table;
use crate::client::Client;

/// How long a call that was not sent waits before it is given to an endpoint
/// again: a connection that is about to close says so a moment later.
const PAUSE: Duration = Duration::from_millis(1);

/// A channel whose calls go where a control plane says. Clones are the same
/// channel. It is what generated clients of tonic are made from.
///
/// ```no_run
/// use trunkline::channel::XdsChannel;
/// use trunkline::client::Client;
///
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let client = Client::builder().server("127.0.0.1:18000")?.node_id("me").build();
/// let channel = XdsChannel::builder(&client, "greeter").build();
/// let mut health = tonic_health::pb::health_client::HealthClient::new(channel);
/// health.check(tonic_health::pb::HealthCheckRequest::default()).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct XdsChannel {
    inner: Arc<Inner>,
}

pub(super) struct Inner {
    pub(super) tables: watch::Receiver<Option<Arc<Table>>>,
    pub(super) router: Arc<dyn Router>,
    pub(super) authority: Authority,
    pub(super) random: RandomState,
    /// How many calls there were: each has a random number of its own.
    pub(super) calls: AtomicU64,
    pub(super) follower: AbortHandle,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.follower.abort();
    }
}

impl XdsChannel {
    /// Makes a channel for a service: the name of a listener, as in
    /// `xds:///service`.
    #[must_use]
    pub fn builder(client: &Client, service: &str) -> XdsChannelBuilder {
        XdsChannelBuilder::new(client, service)
    }

    pub(super) fn new(inner: Inner) -> Self {
        Self {
            inner: Arc::new(inner),
        }
    }
}

impl fmt::Debug for XdsChannel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let authority = &self.inner.authority;
        f.debug_struct("XdsChannel")
            .field("authority", authority)
            .finish_non_exhaustive()
    }
}

impl Service<Request<Body>> for XdsChannel {
    type Response = Response<Incoming>;
    type Error = Status;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Status>> + Send>>;

    /// A call waits by itself: what it waits for depends on its route.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Status>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let inner = Arc::clone(&self.inner);
        Box::pin(async move { inner.send(request).await })
    }
}

impl Inner {
    /// Sends a call, when there is a connection for it.
    async fn send(&self, request: Request<Body>) -> Result<Response<Incoming>, Status> {
        let mut tables = self.tables.clone();
        let random = self
            .random
            .hash_one(self.calls.fetch_add(1, Ordering::Relaxed));
        let (mut call, body) = request.into_parts();
        call.uri = self.absolute(call.uri)?;
        let mut request = Request::from_parts(call, body);
        loop {
            let table = tables.borrow_and_update().clone();
            let Some(table) = table else {
                next_table(&mut tables).await?;
                continue;
            };
            let (call, body) = request.into_parts();
            let balancer = table.route(&*self.router, &call, random)?;
            request = Request::from_parts(call, body);
            match balancer.pick() {
                Pick::Failed(why) => return Err(Status::unavailable(why.to_string())),
                Pick::Wait => tokio::select! {
                    next = next_table(&mut tables) => next?,
                    () = any_change(&balancer) => {}
                },
                Pick::Ready(mut sender) => {
                    let sent = sender.try_send_request(request).await;
                    let mut error = match sent {
                        Ok(response) => return Ok(response),
                        Err(error) => error,
                    };
                    match error.take_message() {
                        // It was not sent, so another endpoint may have it.
                        Some(unsent) => {
                            request = unsent;
                            tokio::time::sleep(PAUSE).await;
                        }
                        None => return Err(Status::unavailable(error.into_error().to_string())),
                    }
                }
            }
        }
    }

    /// The address of a call, as HTTP/2 has it.
    fn absolute(&self, uri: Uri) -> Result<Uri, Status> {
        let mut parts = uri.into_parts();
        parts.scheme = Some(Scheme::HTTP);
        parts.authority = Some(self.authority.clone());
        Uri::from_parts(parts).map_err(|error| Status::invalid_argument(error.to_string()))
    }
}

/// Waits for another table.
async fn next_table(tables: &mut watch::Receiver<Option<Arc<Table>>>) -> Result<(), Status> {
    let next = tables.changed().await;
    next.map_err(|_| Status::unavailable("the client of this channel has ended"))
}

/// Waits until any connection of a cluster stands otherwise.
async fn any_change(balancer: &Balancer) {
    let changes = balancer.subchannels().map(|of| {
        let mut link = of.link().clone();
        link.mark_unchanged();
        async move { _ = link.changed().await }
    });
    let mut changes: Vec<Pin<Box<_>>> = changes.map(Box::pin).collect();
    // A connection may have been made since it was picked.
    if !matches!(balancer.pick(), Pick::Wait) {
        return;
    }
    poll_fn(|cx| {
        for change in &mut changes {
            if change.as_mut().poll(cx).is_ready() {
                return Poll::Ready(());
            }
        }
        Poll::Pending
    })
    .await;
}
