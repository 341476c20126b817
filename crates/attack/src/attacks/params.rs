//! The table of dynamic parameters, which all clients share.

use std::time::Duration;

use crate::error::{Error, Result};
use crate::field::Field;
use crate::peer::{Call, Peer};
use crate::wire::{self, DeltaRequest, DeltaResponse, LISTENER, Locator};

/// How long the server may take to answer the locator of a client that did
/// nothing.
const PATIENCE: Duration = Duration::from_secs(5);

/// Brings parameters on several streams until the table is full. The locator of
/// another client must then have an answer all the same.
pub(super) async fn full(field: Field) {
    let mut held = Vec::new();
    for stream in 0..4 {
        match fill(&field, stream).await {
            Ok(filled) => {
                field.note_taken(250);
                held.push(filled);
            }
            Err(error) => field.note_refused(&error),
        }
    }
    tokio::time::sleep(Duration::from_millis(500)).await;

    let asked = tokio::time::timeout(PATIENCE, ask(&field)).await;
    let fault = match &asked {
        Ok(Ok(())) => None,
        Ok(Err(error)) => Some(format!("the locator of another client: {error}")),
        Err(_) => Some("the locator of another client got no answer".to_owned()),
    };
    field.expect(fault.is_none(), fault.unwrap_or_default());
    field.hold().await;
}

/// Subscribes with 250 sets of parameters.
async fn fill(field: &Field, stream: usize) -> Result<(Peer, Call)> {
    let peer = Peer::connect(&field.xds).await?;
    let mut call = peer.call(wire::DELTA).await?;
    let mut request = DeltaRequest::first(&format!("filler-{stream}"), LISTENER, Vec::new());
    request.locators = (0..250)
        .map(|n| locator(format!("value-{stream}-{n}")))
        .collect();
    call.send(&request).await?;
    Ok((peer, call))
}

/// Subscribes as another client, and waits for any answer about the locator: the
/// resource, that it does not exist, or an error.
async fn ask(field: &Field) -> Result<()> {
    let peer = Peer::connect(&field.others.xds).await?;
    let mut call = peer.call(wire::DELTA).await?;
    let mut request = DeltaRequest::first("other", LISTENER, Vec::new());
    request.locators = vec![locator("of-another".into())];
    call.send(&request).await?;
    let response: DeltaResponse = call.next().await?;
    match response.type_url == LISTENER {
        true => Ok(()),
        false => Err(Error::Ended("an answer about another type".into())),
    }
}

fn locator(value: String) -> Locator {
    Locator {
        name: "listener-0".into(),
        params: [("key".to_owned(), value)].into(),
    }
}
