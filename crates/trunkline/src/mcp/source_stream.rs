//! One stream of a source: requests in, the newest state out.

use std::sync::Arc;

use tokio::sync::Notify;
use tonic::Status;
use trunkline_core::database::StreamId;
use trunkline_core::kind;
use trunkline_core::mcp::{Handled, McpSource as Machine};
use trunkline_proto::mcp::Collection;

use super::link::{Ended, Link, Why};
use super::source::{Open, Shared};
use super::wire;

/// A stream in the list of all, for as long as it is served.
struct Entry<'a> {
    shared: &'a Shared,
    stream: StreamId,
}

impl<'a> Entry<'a> {
    fn new(shared: &'a Shared, peer: &str, woken: &Arc<Notify>) -> Self {
        let mut state = shared.lock();
        let machine = Machine::new(&mut state.db, shared.options.served.clone());
        let stream = machine.stream();
        let open = Open {
            machine,
            peer: peer.to_owned(),
            woken: Arc::clone(woken),
        };
        state.streams.insert(stream, open);
        Self { shared, stream }
    }
}

impl Drop for Entry<'_> {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        let state = &mut *state;
        if let Some(open) = state.streams.remove(&self.stream) {
            state.past.count(&open.machine);
            open.machine.close(&mut state.db);
        }
    }
}

/// Serves a stream until it ends.
pub(super) async fn run(shared: &Shared, link: &mut Link) -> Ended {
    let woken = Arc::new(Notify::new());
    let entry = Entry::new(shared, &link.peer, &woken);
    let mut heard = false;
    let served = serve(&entry, link, &woken, &mut heard).await;
    let Err(why) = served;
    Ended { heard, why }
}

/// Takes requests, and sends a response whenever there is one and the stream
/// takes it. The response is made then, of the newest state.
async fn serve(
    entry: &Entry<'_>,
    link: &mut Link,
    woken: &Notify,
    heard: &mut bool,
) -> Result<std::convert::Infallible, Why> {
    let peer = link.peer.clone();
    let is_for_secrets = link.is_for_secrets;
    let (mut out, mut inbound) = link.halves();
    let mut may_have_news = false;
    loop {
        tokio::select! {
            biased;
            message = inbound.next() => {
                let message = message?;
                *heard = true;
                handle(entry, &peer, is_for_secrets, message)?;
                may_have_news = true;
            }
            () = woken.notified() => may_have_news = true,
            ready = out.ready(), if may_have_news => {
                ready?;
                match poll(entry) {
                    Some(message) => out.send(message),
                    None => may_have_news = false,
                }
            }
        }
    }
}

fn handle(
    entry: &Entry<'_>,
    peer: &str,
    is_for_secrets: bool,
    message: bytes::Bytes,
) -> Result<(), Why> {
    let request = wire::read_request(message);
    let request =
        request.map_err(|error| Why::Refused(Status::invalid_argument(error.to_string())))?;
    let collection = request.collection.clone();
    if !is_for_secrets && holds_secrets(collection.as_str()) {
        // An empty answer would make the sink remove what it has.
        tracing::warn!(peer, %collection, "secrets are for sinks on this machine or behind TLS that show a certificate");
        return Ok(());
    }
    let handled = {
        let mut state = entry.shared.lock();
        let state = &mut *state;
        let Some(open) = state.streams.get_mut(&entry.stream) else {
            return Err(Why::Lost("the stream is closed".to_owned()));
        };
        open.machine.handle_request(&mut state.db, request)
    };
    // A source of one collection says what it serves (M10).
    match handled.map_err(|error| Why::Refused(Status::not_found(error.to_string())))? {
        Handled::Nack(error) => {
            // An alarm: someone has to look (M11).
            tracing::warn!(peer, %collection, reason = error.message, "NACK");
        }
        Handled::Stale => tracing::debug!(peer, %collection, "a stale nonce was ignored"),
        Handled::Refused => tracing::warn!(peer, %collection, "one collection too many"),
        Handled::First | Handled::Restarted | Handled::Ack => {}
    }
    Ok(())
}

/// The next response, encoded. The lock is not held while it is encoded.
fn poll(entry: &Entry<'_>) -> Option<bytes::Bytes> {
    let response = {
        let mut state = entry.shared.lock();
        let state = &mut *state;
        let open = state.streams.get_mut(&entry.stream)?;
        open.machine.poll_resources(&mut state.db)
    };
    response.map(|response| wire::write_resources(&response))
}

/// Whether the resources of a collection are secrets: those of Envoy, or of
/// Kubernetes.
fn holds_secrets(collection: &str) -> bool {
    collection == Collection::of_type_url(kind::SDS) || collection == "k8s/v1/Secret"
}
