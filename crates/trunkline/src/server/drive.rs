//! The task of a stream: it waits for the first of its few causes to act.

use std::sync::Arc;

use bytes::{Buf, Bytes};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tonic::codec::{DecodeBuf, Decoder};
use tonic::{Status, Streaming};

use super::body::Outgoing;
use super::flight::{self, Ticket};
use super::hooks::Limit;
use super::pace::Pace;
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

/// Closes its stream, whatever ends the task.
struct Open(Arc<Stream>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Runs a stream until the peer ends it, it fails, or `ending` says that it has
/// to; says how it ended.
pub(super) async fn drive(
    shared: &Shared,
    stream: Stream,
    mut requests: Streaming<Bytes>,
    out: &mpsc::Sender<Outgoing>,
    ending: impl Future<Output = Status>,
) -> Status {
    let open = Open(Arc::new(stream));
    let stream = &open.0;
    let mut ending = std::pin::pin!(ending);
    let mut pace = Pace::new(shared.options.requests_per_second);
    // Whether there may be something to say.
    let mut curious = false;
    // What the transport may still have, and until when that counts.
    let mut flying: Option<(Arc<Ticket>, Instant)> = None;
    loop {
        let due = stream.deadline().filter(|_| !curious);
        let late = flying.as_ref().map(|(_, until)| *until);
        let paced = pace.wait();
        tokio::select! {
            // What was asked counts before what is said.
            biased;
            status = &mut ending => return status,
            () = out.closed() => return Status::cancelled("the peer has gone"),
            request = requests.message(), if paced.is_none() => match request {
                Ok(Some(raw)) => {
                    pace.take();
                    if let Err(fault) = stream.handle(raw) {
                        return Status::invalid_argument(fault.to_string());
                    }
                    curious = true;
                }
                Ok(None) => return Status::ok(""),
                Err(status) => return status,
            },
            () = stream.woken() => curious = true,
            () = until(paced) => shared.hooks.limited(Limit::RequestRate),
            () = until(due) => curious = true,
            () = until(late) => {
                if let Some((ticket, _)) = flying.take() {
                    ticket.land();
                }
            }
            room = room(shared, out), if curious => {
                let Some(room) = room else {
                    return Status::cancelled("the peer has gone");
                };
                match stream.poll() {
                    Some(frames) => {
                        let ticket = shared.flight.start(frames.len());
                        flying = Some((Arc::clone(&ticket), Instant::now() + flight::PATIENCE));
                        room.send(Outgoing::Message(frames, ticket));
                    }
                    None => curious = false,
                }
            }
        }
    }
}

/// Waits until the body can take a message and others leave room for it.
async fn room<'a>(
    shared: &Shared,
    out: &'a mpsc::Sender<Outgoing>,
) -> Option<mpsc::Permit<'a, Outgoing>> {
    let room = out.reserve().await.ok()?;
    if let Some(limit) = shared.flight.room().await {
        shared.hooks.limited(limit);
    }
    Some(room)
}

async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}
