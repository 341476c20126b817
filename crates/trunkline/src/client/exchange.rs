//! Requests and responses of one server, whatever carries them.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::Notify;
use trunkline_core::client::ServerId;
use trunkline_core::message::{Mode, Request, Response};
use trunkline_core::resource::Version;
use trunkline_core::sink::{Blame, Delivery, SinkError};
use trunkline_proto::discovery::{DecodeError, Limits, Node};

use super::events::{ClientEvent, Observers, StreamInfo};
use super::judge::Judgement;
use super::shared::Shared;
use crate::wire::{ReceivedResponse, RequestWriter, read_response};

/// Requests and responses of one server.
pub(super) struct Exchange {
    pub(super) shared: Arc<Shared>,
    pub(super) id: ServerId,
    /// For observers; a file has none.
    pub(super) info: Option<StreamInfo>,
    pub(super) mode: Mode,
    /// The part of the node that the engine does not know.
    pub(super) node: Node,
    /// Told when a request may be due.
    pub(super) waker: Arc<Notify>,
    pub(super) limits: Limits,
    pub(super) observers: Arc<Observers>,
}

impl Exchange {
    /// Makes the writer of the requests of one stream.
    pub(super) fn writer(&self) -> RequestWriter {
        RequestWriter::new(self.node.clone())
    }

    /// Returns the span of all that is logged for the server.
    pub(super) fn span(&self) -> tracing::Span {
        match &self.info {
            Some(info) => info.span(),
            None => tracing::Span::none(),
        }
    }

    /// Tells observers that a stream is about to be opened.
    pub(super) fn notify_connecting(&self) {
        if let Some(info) = &self.info {
            self.observers.notify(&ClientEvent::Connecting(info));
        }
    }

    /// Tells the machine that there is a stream.
    pub(super) fn handle_connected(&self) {
        self.shared
            .change(|state, now| state.machine.handle_connected(self.id, now));
        if let Some(info) = &self.info {
            self.observers.notify(&ClientEvent::Connected(info));
        }
    }

    /// Tells the machine that the stream, or the attempt to open one, has
    /// ended. Observers learn of a failure if the machine counts the end as
    /// one.
    pub(super) fn handle_disconnected(&self, reason: &str) {
        if let Some(info) = &self.info {
            self.observers
                .notify(&ClientEvent::Disconnected(info, reason));
        }
        let is_failure = self
            .shared
            .change(|state, now| state.machine.handle_disconnected(self.id, reason, now));
        if let Some(info) = self.info.as_ref().filter(|_| is_failure) {
            self.observers.notify(&ClientEvent::Failed(&info.server));
        }
    }

    /// Takes the next request that is due, made from the newest state. The caller
    /// has to send it: the machine believes that it was.
    pub(super) fn next_request(&self) -> Option<Request> {
        self.shared
            .change_and_wake_driver(|state, now| state.machine.poll_request(self.id, now))
    }

    /// Writes a request in the form of its stream, and tells observers that it
    /// is sent, which the caller does next.
    pub(super) fn write(&self, request: Request, writer: &mut RequestWriter) -> Bytes {
        let message = writer.write(request);
        if let Some(info) = &self.info {
            self.observers.notify(&ClientEvent::Sent(info, &message));
        }
        message
    }

    /// Parses one response, has its resources judged without the lock, and
    /// applies the verdict. A response that breaks the protocol is reported to
    /// observers, and the stream goes on.
    ///
    /// # Errors
    /// The bytes are no response.
    pub(super) async fn apply_response(&self, message: Bytes) -> Result<(), DecodeError> {
        if let Some(info) = &self.info {
            self.observers
                .notify(&ClientEvent::Received(info, &message));
        }
        let response = read_response(self.mode, message, &self.limits)?;
        self.judge_response(response).await;
        Ok(())
    }

    /// Gives a response to the machine, has its resources judged, and applies the
    /// verdict.
    async fn judge_response(&self, received: ReceivedResponse) {
        let ReceivedResponse {
            mut response,
            unreadable,
        } = received;
        let set_version = match &response {
            Response::Sotw(response) => Some(response.version.clone()),
            Response::Delta(_) => None,
        };

        let (delivery, known_bodies) = self.shared.change_and_wake_driver(|state, now| {
            let known_bodies = state.values.recognize(&mut response);
            let delivery = state.machine.handle_response(self.id, response, now);
            (delivery, known_bodies)
        });

        let delivery = match delivery {
            Ok(delivery) => delivery,
            // The machine has said what is to be said to the server, if
            // anything; the stream goes on.
            Err(error) => {
                self.report_fault(&error);
                return;
            }
        };

        let judgement = self
            .shared
            .judge
            .judge(&delivery, unreadable, &known_bodies)
            .await;
        if let Some(info) = &self.info {
            self.observers.notify(&ClientEvent::Judged {
                stream: info,
                delivery: &delivery,
                verdict: &judgement.verdict,
                unused: &judgement.reports,
            });
        }

        self.apply_judgement(&delivery, judgement, set_version.as_ref());
    }

    /// Gives the verdict on a delivery to the machine, and caches the messages of
    /// the good resources, in one change. If nobody waits for the verdict any
    /// more, it changes nothing in the machine.
    fn apply_judgement(
        &self,
        delivery: &Delivery,
        judgement: Judgement,
        set_version: Option<&Version>,
    ) {
        let (url, nonce) = (&delivery.type_url, &delivery.nonce);
        let outcome = self.shared.change_and_wake_others(self.id, |state, now| {
            let verdict = judgement.verdict;
            state.rejections.record(delivery, &verdict, set_version);
            let machine = &mut state.machine;
            let outcome = machine.handle_verdict(self.id, url, nonce, verdict, now);
            // Messages come after the verdict, which drops the resources that
            // they replace.
            for (resource, message) in judgement.messages {
                state.values.insert(url, &resource, message, set_version);
            }
            outcome
        });
        if let Err(error) = outcome {
            self.report_fault(&error);
        }
    }

    /// Tells observers of an error that is the server's fault. Others, as of a
    /// stream that has ended meanwhile, are no news.
    fn report_fault(&self, error: &SinkError) {
        if let Some(info) = &self.info
            && error.blame() == Blame::Peer
        {
            self.observers.notify(&ClientEvent::Fault(info, error));
        }
    }
}
