//! Types that nobody knows.

use bytes::{Bytes, BytesMut};

use crate::field::Field;
use crate::peer::Peer;
use crate::wire::{self, DeltaRequest};

/// Types on one stream: more than it may ask for.
const ON_A_STREAM: usize = 100;

/// Asks for 200 000 types, a hundred on a stream.
pub(super) async fn unknown(field: Field) {
    let (peers, streams) = (field.pick(20, 2), field.pick(100, 4));
    field
        .crowd(peers, |index, field| async move {
            let peer = Peer::connect(&field.xds).await?;
            let mut calls = Vec::new();
            for stream in 0..streams {
                let mut call = peer.call(wire::DELTA).await?;
                call.send_bytes(requests(index, stream)).await?;
                field.note_taken(ON_A_STREAM);
                calls.push(call);
                if field.is_over() {
                    break;
                }
            }
            field.hold().await;
            Ok(())
        })
        .await;
}

/// The requests of one stream, as one piece: HTTP/2 takes a flood of small
/// frames for an attack of its own, and ends the connection.
fn requests(index: usize, stream: usize) -> Bytes {
    let mut all = BytesMut::new();
    for n in 0..ON_A_STREAM {
        let type_url = format!("type.googleapis.com/attack.T{index}x{stream}x{n}");
        let request = DeltaRequest::first("types", &type_url, vec!["a".to_owned()]);
        all.extend_from_slice(&wire::frame(&request));
    }
    all.freeze()
}
