//! The task of a stream: it waits for the first of its few causes to act.

use std::sync::Arc;

use bytes::{Buf, Bytes};
use tokio::sync::mpsc;
use tonic::codec::{DecodeBuf, Decoder};
use tonic::{Status, Streaming};
use trunkline_core::message::Mode;

use super::body::Outgoing;
use super::shared::Shared;
use super::stream::Stream;

/// Leaves messages as they came: they share the bytes that were received.
#[derive(Debug, Default)]
pub(super) struct Raw;

impl Decoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, received: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(received.copy_to_bytes(received.remaining())))
    }
}

/// Runs a stream to its end and says how it ended.
pub(super) async fn run(
    shared: Arc<Shared>,
    mode: Mode,
    requests: Streaming<Bytes>,
    out: mpsc::Sender<Outgoing>,
) {
    // Of which nothing is left when the peer hears of the end.
    let status = drive(shared, mode, requests, &out).await;
    // If nobody reads it, the peer has gone.
    let _ = out.send(Outgoing::End(status)).await;
}

async fn drive(
    shared: Arc<Shared>,
    mode: Mode,
    mut requests: Streaming<Bytes>,
    out: &mpsc::Sender<Outgoing>,
) -> Status {
    let mut stopped = std::pin::pin!(shared.stopped());
    let mut stream = Stream::new(shared, mode);
    let waker = stream.waker();
    // Whether there may be something to say.
    let mut curious = false;
    loop {
        let deadline = stream.deadline().filter(|_| !curious);
        let timer = async {
            match deadline {
                Some(deadline) => tokio::time::sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            // What was asked counts before what is said.
            biased;
            () = &mut stopped => return Status::unavailable("the server is stopping"),
            () = out.closed() => return Status::cancelled("the peer has gone"),
            request = requests.message() => match request {
                Ok(Some(raw)) => {
                    if let Err(fault) = stream.handle(raw) {
                        return Status::invalid_argument(fault.to_string());
                    }
                    curious = true;
                }
                Ok(None) => return Status::ok(""),
                Err(status) => return status,
            },
            () = waker.notified() => curious = true,
            () = timer => curious = true,
            room = out.reserve(), if curious => {
                let Ok(room) = room else {
                    return Status::cancelled("the peer has gone");
                };
                match stream.poll() {
                    Some(frames) => room.send(Outgoing::Message(frames)),
                    None => curious = false,
                }
            }
        }
    }
}
