//! One stream of either direction: messages as bytes, whoever dialled (M12).

use bytes::Bytes;
use tokio::sync::mpsc;
use tonic::{Status, Streaming};

use crate::client::transport::{RequestSender, ResponseReceiver, Stream};

/// How messages look on a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wire {
    /// Those of the Mesh Configuration Protocol.
    #[default]
    Mcp,
    /// Those of xDS: state of the world on ADS, with collections as type URLs,
    /// as Istio speaks it today. Who dials is the sink.
    Xds,
}

/// A stream, and a name for its other end.
pub(super) struct Link {
    pub(super) peer: String,
    /// Whether secrets may go to the other end.
    pub(super) is_for_secrets: bool,
    pub(super) wire: Wire,
    pub(super) form: Form,
}

/// Who dialled.
pub(super) enum Form {
    /// This side.
    Dialled(Box<Stream>),
    /// The other.
    Accepted {
        inbound: Box<Streaming<Bytes>>,
        out: mpsc::Sender<Result<Bytes, Status>>,
    },
}

/// The half that sends.
pub(super) enum Outgoing<'a> {
    Dialled(&'a mut RequestSender),
    Accepted(&'a mpsc::Sender<Result<Bytes, Status>>),
}

/// The half that receives.
pub(super) enum Incoming<'a> {
    Dialled(&'a mut ResponseReceiver),
    Accepted(&'a mut Streaming<Bytes>),
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
    pub(super) fn halves(&mut self) -> (Outgoing<'_>, Incoming<'_>) {
        match &mut self.form {
            Form::Dialled(stream) => {
                let (sender, receiver) = stream.halves();
                (Outgoing::Dialled(sender), Incoming::Dialled(receiver))
            }
            Form::Accepted { inbound, out } => {
                (Outgoing::Accepted(out), Incoming::Accepted(inbound))
            }
        }
    }
}

impl Outgoing<'_> {
    /// Waits until a message can be sent. Nothing is lost if the wait is given
    /// up.
    pub(super) async fn ready(&mut self) -> Result<(), Why> {
        match self {
            Self::Dialled(sender) => sender.ready().await.map_err(lost),
            Self::Accepted(out) => {
                let place = out.reserve().await;
                place.map(drop).map_err(lost)
            }
        }
    }

    /// Sends a message on a stream that is ready. One that ended meanwhile
    /// loses it, and says so when it is read.
    pub(super) fn send(&mut self, message: Bytes) {
        match self {
            Self::Dialled(sender) => sender.send(message),
            Self::Accepted(out) => drop(out.try_send(Ok(message))),
        }
    }
}

impl Incoming<'_> {
    /// Waits for the next message. Nothing is lost if the wait is given up.
    pub(super) async fn next(&mut self) -> Result<Bytes, Why> {
        let message = match self {
            Self::Dialled(receiver) => receiver.next().await.map_err(lost),
            Self::Accepted(inbound) => inbound.message().await.map_err(lost),
        };
        message?.ok_or_else(|| Why::Lost("the other end closed the stream".to_owned()))
    }
}

fn lost(error: impl std::fmt::Display) -> Why {
    Why::Lost(error.to_string())
}
