//! One gRPC stream to one server: requests out, responses in and judged.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::Notify;
use trunkline_core::client::ServerId;
use trunkline_core::message::Mode;
use trunkline_core::sink::{Blame, SinkError};
use trunkline_proto::discovery::{DecodeError, Limits, Node};

use super::events::{ClientEvent, Observers, StreamInfo};
use super::shared::Shared;
use super::transport::{Connector, Stream, StreamError};
use crate::wire::{ReceivedResponse, RequestWriter, read_response};

/// What a stream needs.
pub(super) struct StreamTask {
    pub(super) shared: Arc<Shared>,
    pub(super) connector: Connector,
    pub(super) id: ServerId,
    pub(super) info: StreamInfo,
    pub(super) mode: Mode,
    /// The part of the node that the engine does not know.
    pub(super) node: Node,
    /// Told when a request may be due.
    pub(super) waker: Arc<Notify>,
    pub(super) limits: Limits,
    pub(super) observers: Arc<Observers>,
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
        let reason = match self
            .connector
            .open(&self.info.server, &self.info.path)
            .await
        {
            Err(error) => error.to_string(),
            Ok(stream) => {
                self.shared
                    .change(|state, now| state.machine.handle_connected(self.id, now));
                self.observers.tell(&ClientEvent::Connected(&self.info));
                let Err(end) = self.carry(stream).await;
                end.to_string()
            }
        };
        self.observers
            .tell(&ClientEvent::Disconnected(&self.info, &reason));
        let is_failure = self
            .shared
            .change(|state, now| state.machine.handle_disconnected(self.id, &reason, now));
        if is_failure {
            self.observers
                .tell(&ClientEvent::Failed(&self.info.server));
        }
    }

    /// Carries messages. A response is read only when the one before was judged
    /// (C22), and a request is made when the transport can take it.
    async fn carry(&self, mut stream: Stream) -> Result<Infallible, End> {
        let mut writer = RequestWriter::new(self.node.clone());
        loop {
            self.send_due(&mut stream, &mut writer).await?;
            let message = tokio::select! {
                biased;
                () = self.waker.notified() => continue,
                message = stream.next() => message?.ok_or(End::Closed)?,
            };
            self.observers
                .tell(&ClientEvent::Received(&self.info, &message));
            self.take(message).await?;
        }
    }

    /// Sends the requests that are due, each made from the newest state.
    async fn send_due(&self, stream: &mut Stream, writer: &mut RequestWriter) -> Result<(), End> {
        loop {
            stream.ready().await?;
            let request = self
                .shared
                .change_of_stream(|state, now| state.machine.poll_request(self.id, now));
            let Some(request) = request else {
                return Ok(());
            };
            let message = writer.write(request);
            self.observers
                .tell(&ClientEvent::Sent(&self.info, &message));
            stream.send(message);
        }
    }

    /// Takes one response: reads it, has it judged, and applies the verdict.
    async fn take(&self, message: Bytes) -> Result<(), End> {
        let received = read_response(self.mode, message, &self.limits)?;
        let ReceivedResponse {
            response,
            unreadable,
        } = received;
        let delivery = self
            .shared
            .change_of_stream(|state, now| state.machine.handle_response(self.id, response, now));
        let delivery = match delivery {
            Ok(delivery) => delivery,
            // The machine has said what is to be said to the server, if
            // anything; the stream goes on.
            Err(error) => {
                self.note_fault(&error);
                return Ok(());
            }
        };

        let judgement = self.shared.judge.judge(&delivery, unreadable).await;
        self.observers.tell(&ClientEvent::Judged {
            server: &self.info.server,
            delivery: &delivery,
            verdict: &judgement.verdict,
            unused: &judgement.reports,
        });
        let (url, nonce) = (&delivery.type_url, &delivery.nonce);
        let outcome = self.shared.change(|state, now| {
            for (resource, value) in judgement.values {
                state.values.insert(&resource, value);
            }
            let verdict = judgement.verdict;
            state
                .machine
                .handle_verdict(self.id, url, nonce, verdict, now)
        });
        if let Err(error) = outcome {
            self.note_fault(&error);
        }
        Ok(())
    }

    fn note_fault(&self, error: &SinkError) {
        if error.blame() == Blame::Peer {
            self.observers
                .tell(&ClientEvent::Fault(&self.info.server, error));
        }
    }
}
