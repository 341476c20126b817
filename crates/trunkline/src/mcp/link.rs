//! One stream of either direction: messages as bytes, whoever dialled (M12).

use std::task::{Context, Poll};

use bytes::Bytes;
use tokio::sync::mpsc;
use tonic::Status;
use trunkline_proto::discovery::Frames;

use crate::client::transport::{RequestSender, ResponseReceiver, Stream};
use crate::listen::BoxError;
use crate::server::{Limit, RequestBounds, WholeMessages};

/// How messages look on a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wire {
    /// Those of the Mesh Configuration Protocol.
    #[default]
    Mcp,
    /// Those of xDS: state of the world on ADS, with collections as type URLs,
    /// as Istio speaks it today. Who dials is the sink.
    Xds,
    /// The same by delta: incremental updates, and versions to resume with.
    DeltaXds,
}

/// A stream, and a name for its other end.
pub(super) struct Link {
    pub(super) peer: String,
    /// Whether secrets may go to the other end.
    pub(super) is_for_secrets: bool,
    pub(super) wire: Wire,
    /// The bounds of the address where it was accepted.
    pub(super) bounds: Option<RequestBounds>,
    pub(super) form: Form,
}

/// Who dialled.
pub(super) enum Form {
    /// This side.
    Dialled(Box<Stream>),
    /// The other.
    Accepted {
        inbound: Box<dyn Messages>,
        answers: Answers,
    },
}

/// Where the messages go that an accepted stream is answered with.
pub(super) type Answers = mpsc::Sender<Result<Frames, Status>>;

/// The messages of an accepted stream, each of them whole.
pub(super) trait Messages: Send {
    /// Polls for the next one; `None` if the other end has closed its half.
    fn poll_message(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Status>>>;
}

impl<B> Messages for WholeMessages<B>
where
    B: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Send + Unpin,
{
    fn poll_message(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Status>>> {
        Self::poll_message(self, cx)
    }
}

/// The half that sends.
pub(super) enum Outgoing<'a> {
    Dialled(&'a mut RequestSender),
    Accepted(&'a Answers),
}

/// The half that receives.
pub(super) enum Incoming<'a> {
    Dialled(&'a mut ResponseReceiver),
    Accepted(&'a mut dyn Messages),
}

/// How a stream ended.
#[derive(Debug)]
pub(super) struct Ended {
    /// Whether a message came: then the next attempt to dial is soon.
    pub(super) heard: bool,
    pub(super) why: Why,
}

/// Who ended a stream.
#[derive(Debug)]
pub(super) enum Why {
    /// The other end, well or not, in words.
    Lost(String),
    /// This end, because of this.
    Refused(Status),
}

impl Link {
    /// Reports that a limit was met. Without a server nobody is told.
    pub(super) fn report_limit(&self, limit: Limit) {
        if let Some(bounds) = &self.bounds {
            bounds.report_limit(limit);
        }
    }

    /// Splits the link, so that it can send while it waits for a message.
    pub(super) fn halves(&mut self) -> (Outgoing<'_>, Incoming<'_>) {
        match &mut self.form {
            Form::Dialled(stream) => {
                let (sender, receiver) = stream.halves();
                (Outgoing::Dialled(sender), Incoming::Dialled(receiver))
            }
            Form::Accepted { inbound, answers } => (
                Outgoing::Accepted(answers),
                Incoming::Accepted(inbound.as_mut()),
            ),
        }
    }
}

impl Outgoing<'_> {
    /// Waits until a message can be sent. Nothing is lost if the future is
    /// dropped.
    pub(super) async fn ready(&mut self) -> Result<(), Why> {
        match self {
            Self::Dialled(sender) => sender.ready().await.map_err(lost_stream),
            Self::Accepted(answers) => {
                let permit = answers.reserve().await;
                permit.map(drop).map_err(lost_stream)
            }
        }
    }

    /// Sends a message on a stream that is [ready](Self::ready). The message is
    /// lost if the stream ended meanwhile; the next read reports that end.
    pub(super) fn send(&mut self, message: Frames) {
        match self {
            Self::Dialled(sender) => sender.send(message.to_bytes()),
            Self::Accepted(answers) => drop(answers.try_send(Ok(message))),
        }
    }
}

impl Incoming<'_> {
    /// Waits for the next message; the end of the stream is an error. Nothing
    /// is lost if the future is dropped.
    pub(super) async fn next(&mut self) -> Result<Bytes, Why> {
        let message = match self {
            Self::Dialled(receiver) => receiver.next().await.map_err(lost_stream)?,
            Self::Accepted(inbound) => {
                let next = std::future::poll_fn(|cx| inbound.poll_message(cx)).await;
                // What is too long, or does not arrive, ends the stream with
                // words for the other end.
                next.transpose().map_err(Why::Refused)?
            }
        };
        message.ok_or_else(|| Why::Lost("the other end closed the stream".to_owned()))
    }
}

/// Returns how a stream ended that the other end closed, or the transport lost.
fn lost_stream(error: impl std::fmt::Display) -> Why {
    Why::Lost(error.to_string())
}
