//! The channel, as tonic sees it.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Request, Response};
use tonic::Status;
use tonic::body::Body;
use tower_service::Service;

use super::builder::XdsChannelBuilder;
use super::call::Inner;
use super::reply::ReplyBody;
use crate::client::Client;

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

impl XdsChannel {
    /// Makes a channel for a service: the name of a listener, as in
    /// `xds:///service`.
    #[must_use]
    pub fn builder(client: &Client, service: &str) -> XdsChannelBuilder {
        XdsChannelBuilder::new(client, service)
    }

    /// Makes a channel whose table is followed already.
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
    type Response = Response<ReplyBody>;
    type Error = Status;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Status>> + Send>>;

    /// Is always ready. A call waits by itself, because what it waits for
    /// depends on its route.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Status>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let inner = Arc::clone(&self.inner);
        Box::pin(async move { inner.send(request).await })
    }
}
