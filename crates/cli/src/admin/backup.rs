//! Backups over the API: a copy of all that is kept, secrets included.

use std::fs::File;
use std::io::Read as _;

use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use bytes::Bytes;
use http::{StatusCode, Uri, header};
use tokio::sync::mpsc;
use trunkline::Connection;

use super::error::Refusal;
use super::history::{store_of, store_refusal};
use super::query::Query;
use super::{Shared, run_blocking};

/// Bytes that are read of the copy at a time.
const BLOCK: usize = 1 << 20;
/// Blocks that wait for a slow reader.
const BLOCKS: usize = 4;

/// `POST /api/v1/backup`: responds with a copy of the store, as it is now. The
/// copy contains secrets, so a connection that others could read is refused.
pub(super) async fn back_up(
    State(admin): State<Shared>,
    Extension(connection): Extension<Connection>,
    uri: Uri,
) -> Result<Response, Refusal> {
    Query::read(&uri, &[])?;
    refuse_if_overheard(&connection)?;
    let file = run_blocking(move || store_of(&admin)?.back_up().map_err(store_refusal)).await??;
    let read_error = |error: std::io::Error| Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, error);
    let file_length = file.metadata().map_err(read_error)?.len();

    let (sender, receiver) = mpsc::channel(BLOCKS);
    tokio::task::spawn_blocking(move || read_blocks(file, &sender));
    let blocks = tokio_stream::wrappers::ReceiverStream::new(receiver);

    Response::builder()
        .header(header::CONTENT_TYPE, "application/octet-stream")
        .header(header::CONTENT_LENGTH, file_length)
        .body(Body::from_stream(blocks))
        .map_err(|error| Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, error))
}

/// Refuses a copy of the contents over a connection that others could read: the
/// copy contains secrets.
///
/// # Errors
/// The connection is neither encrypted nor within this machine.
pub(super) fn refuse_if_overheard(connection: &Connection) -> Result<(), Refusal> {
    match connection.is_private() {
        true => Ok(()),
        false => Err(Refusal::new(
            StatusCode::FORBIDDEN,
            "the contents have secrets in them: ask for them from the same machine, or over TLS",
        )),
    }
}

/// Sends the blocks of a file, until its end, an error, or the drop of the
/// receiver.
fn read_blocks(mut file: File, sender: &mpsc::Sender<std::io::Result<Bytes>>) {
    loop {
        let mut block = vec![0; BLOCK];
        let result = file.read(&mut block);

        let is_end = matches!(result, Ok(0) | Err(_));
        let message = match result {
            Ok(0) => return,
            Ok(len) => {
                block.truncate(len);
                Ok(Bytes::from(block))
            }
            Err(error) => Err(error),
        };
        if sender.blocking_send(message).is_err() || is_end {
            return;
        }
    }
}
