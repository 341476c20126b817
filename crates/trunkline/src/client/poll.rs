//! Polls of one server by REST: each poll is a stream of one request.

use std::sync::Arc;
use std::time::Duration;

use tracing::Instrument as _;
use trunkline_core::message::Request;
use trunkline_core::resource::TypeUrl;
use trunkline_proto::discovery::DecodeError;

use super::control_plane::ControlPlane;
use super::exchange::Exchange;
use super::transport::{Connector, PollError};

/// What polls need.
pub(super) struct PollTask {
    pub(super) exchange: Exchange,
    pub(super) connector: Connector,
    pub(super) server: Arc<ControlPlane>,
    pub(super) type_url: TypeUrl,
    /// The time between two polls, to which jitter is added.
    pub(super) refresh_delay: Duration,
    /// How long a poll may take.
    pub(super) request_timeout: Duration,
}

/// Why polls ended.
#[derive(Debug, thiserror::Error)]
enum End {
    #[error(transparent)]
    Poll(#[from] PollError),
    #[error("the server sent what is no response: {0}")]
    Garbage(#[from] DecodeError),
}

impl PollTask {
    /// Polls until a poll fails, and tells the machine, which says when to try
    /// again.
    pub(super) async fn run(self) {
        let span = self.exchange.span();
        self.poll_on().instrument(span).await;
    }

    /// Polls for ever, with a pause after each poll that requests cut short, until
    /// a poll fails.
    async fn poll_on(self) {
        self.exchange.notify_connecting();
        loop {
            self.exchange.handle_connected();
            if let Err(end) = self.poll().await {
                return self.exchange.handle_disconnected(&end.to_string());
            }
            // Clients that started together shall not poll together.
            let jitter = self.refresh_delay.mul_f64(jitter_part());
            tokio::select! {
                () = tokio::time::sleep(self.refresh_delay + jitter) => {}
                () = self.exchange.waker.notified() => {}
            }
        }
    }

    /// Sends the request that is due, and applies its response. Of the requests
    /// that follow from the response, a NACK is sent at once. Others are
    /// discarded: the version in a poll says which resources were accepted, so
    /// the next poll is the ACK.
    async fn poll(&self) -> Result<(), End> {
        let mut writer = self.exchange.writer();
        let mut was_answered = false;
        while let Some(request) = self.exchange.next_request() {
            if was_answered && !is_rejection(&request) {
                continue;
            }
            let request = self.exchange.write(request, &mut writer);
            let (server, type_url) = (&self.server, &self.type_url);
            let response = self
                .connector
                .poll(server, type_url, request, self.request_timeout);
            let response = response.await?;

            // The response to a NACK is discarded: the next poll repeats it.
            if let (Some(response), false) = (response, was_answered) {
                self.exchange.apply_response(response).await?;
            }
            was_answered = true;
        }
        Ok(())
    }
}

/// Returns whether a request is a NACK.
fn is_rejection(request: &Request) -> bool {
    matches!(request, Request::Sotw(request) if request.error.is_some())
}

/// Returns the part of the refresh delay that is added to it: a random one, up to
/// a tenth.
fn jitter_part() -> f64 {
    use std::hash::{BuildHasher as _, RandomState};
    let random = RandomState::new().hash_one(0) % 1000;
    random as f64 / 10_000.0
}
