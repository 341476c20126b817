//! One gRPC stream to one server: requests out, responses in and judged.

use std::convert::Infallible;
use std::sync::Arc;

use trunkline_proto::discovery::DecodeError;

use super::control_plane::ControlPlane;
use super::exchange::Exchange;
use super::transport::{Connector, Stream, StreamError};

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
        let reason = match self.connector.open(&self.server, &self.path).await {
            Err(error) => error.to_string(),
            Ok(stream) => {
                self.exchange.connected();
                let Err(end) = self.carry(stream).await;
                end.to_string()
            }
        };
        self.exchange.disconnected(&reason);
    }

    /// Carries messages. A response is read only when the one before was judged
    /// (C22), and a request is made when the transport can take it.
    async fn carry(&self, mut stream: Stream) -> Result<Infallible, End> {
        let mut writer = self.exchange.writer();
        loop {
            stream.ready().await?;
            if let Some(request) = self.exchange.next_request() {
                stream.send(self.exchange.write(request, &mut writer));
                continue;
            }
            let message = tokio::select! {
                biased;
                () = self.exchange.waker.notified() => continue,
                message = stream.next() => message?.ok_or(End::Closed)?,
            };
            self.exchange.take(message).await?;
        }
    }
}
