//! One gRPC stream to one server: requests out, responses in and judged.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout};
use tracing::Instrument as _;
use trunkline_proto::discovery::DecodeError;

use super::control_plane::ControlPlane;
use super::exchange::Exchange;
use super::transport::{Connector, Stream, StreamError};

/// How long a stream waits for one more subscription before it sends those that
/// were made, and how long in all.
const PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(20);

/// What a stream needs.
pub(super) struct StreamTask {
    pub(super) exchange: Exchange,
    pub(super) connector: Connector,
    pub(super) server: Arc<ControlPlane>,
    pub(super) path: String,
}

/// Why a stream ended.
#[derive(Debug, thiserror::Error)]
enum End {
    #[error("the server ended the stream")]
    Closed,
    #[error(transparent)]
    Stream(#[from] StreamError),
    #[error("the server sent what is no response: {0}")]
    Garbage(#[from] DecodeError),
}

impl StreamTask {
    /// Opens the stream and carries messages until it ends, which the machine
    /// is told.
    pub(super) async fn run(self) {
        let span = self.exchange.span();
        self.open_and_exchange().instrument(span).await;
    }

    /// Opens the stream and carries messages, and tells the machine how it ended.
    async fn open_and_exchange(self) {
        self.exchange.notify_connecting();
        let reason = match self.connector.open(&self.server, &self.path).await {
            Err(error) => error.to_string(),
            Ok(stream) => {
                self.exchange.handle_connected();
                let Err(end) = self.exchange_messages(stream).await;
                end.to_string()
            }
        };
        self.exchange.handle_disconnected(&reason);
    }

    /// Sends requests and receives responses until the stream ends. A response
    /// is read only after the one before was judged (C22), and a request is
    /// made only when the transport has room.
    async fn exchange_messages(&self, mut stream: Stream) -> Result<Infallible, End> {
        let mut writer = self.exchange.writer();
        loop {
            if stream.ready().await.is_err() {
                // The server takes no more requests; its last responses count.
                return self.drain(stream).await;
            }
            if let Some(request) = self.exchange.next_request() {
                stream.send(self.exchange.write(request, &mut writer));
                continue;
            }
            let message = tokio::select! {
                biased;
                () = self.exchange.waker.notified() => {
                    self.wait_for_pause().await;
                    continue;
                }
                message = stream.next() => message?.ok_or(End::Closed)?,
            };
            self.exchange.apply_response(message).await?;
        }
    }

    /// Waits for a pause between subscriptions. In state of the world, one
    /// request for each of several subscriptions in a row would list all names
    /// that came before, and each response would repeat their resources.
    async fn wait_for_pause(&self) {
        let deadline = Instant::now() + LONGEST_PAUSE;
        while Instant::now() < deadline {
            let next_subscription = timeout(PAUSE, self.exchange.waker.notified()).await;
            if next_subscription.is_err() {
                return;
            }
        }
    }

    /// Receives what is left of a stream that takes no more requests. Its end
    /// says why: a server that refuses a stream may reset it after its status.
    async fn drain(&self, mut stream: Stream) -> Result<Infallible, End> {
        loop {
            let message = stream.next().await?.ok_or(End::Closed)?;
            self.exchange.apply_response(message).await?;
        }
    }
}
