//! One stream of a source: requests in, the newest state out.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::Notify;
use tonic::Status;
use trunkline_core::database::SLICE;
use trunkline_core::kind;
use trunkline_core::mcp::{
    Handled, PublisherStream, RequestResources, Resources, ResourcesUpdate, SourceError, Stage,
};
use trunkline_core::resource::TypeUrl;
use trunkline_proto::discovery::{DecodeError, Frames, Limits};
use trunkline_proto::mcp::Collection;

use super::link::{Ended, Link, Why, Wire};
use super::source::{Open, Shared};
use super::{delta_xds, wire, xds};
use crate::bounds::{LARGE_REQUEST, MCP_REQUESTS};
use crate::server::{Limit, Pace, RequestBounds};

/// A stream in the list of all, for as long as it is served.
struct Entry<'a> {
    shared: &'a Arc<Shared>,
    stream: PublisherStream,
}

impl<'a> Entry<'a> {
    /// Opens a stream of the source. It is closed when the value is dropped.
    fn new(shared: &'a Arc<Shared>, peer: &str, woken: &Arc<Notify>) -> Self {
        let mut state = shared.lock();
        let stream = state.publisher.open();
        let open = Open {
            peer: peer.to_owned(),
            woken: Arc::clone(woken),
        };
        state.streams.insert(stream, open);
        Self { shared, stream }
    }
}

impl Drop for Entry<'_> {
    /// Closes the stream, and keeps its counters.
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        let closed = state.publisher.close(self.stream, self.shared.now());
        state.ended_streams.nacks += closed.nacks;
        state.ended_streams.stale += closed.stale;
        state.streams.remove(&self.stream);
        drop(state);
        let names = closed.outdated.len();
        drop_aside(closed.outdated, names);
        self.shared.look_at_soak();
    }
}

/// Drops what `names` names refer to: on a thread of its own if they are many.
fn drop_aside<T: Send + 'static>(outdated: T, names: usize) {
    match tokio::runtime::Handle::try_current() {
        Ok(runtime) if names > SLICE => drop(runtime.spawn_blocking(move || drop(outdated))),
        _ => drop(outdated),
    }
}

/// Serves a stream until it ends.
pub(super) async fn run(shared: &Arc<Shared>, link: &mut Link) -> Ended {
    let woken = Arc::new(Notify::new());
    let entry = Entry::new(shared, &link.peer, &woken);
    let mut heard = false;
    let Err(why) = serve(&entry, link, &woken, &mut heard).await;
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
    let mut reader = Reader {
        wire: link.wire,
        is_for_secrets: link.is_for_secrets,
        bounds: link.bounds.clone(),
        type_urls: BTreeMap::new(),
    };
    let mut pace = Pace::new(MCP_REQUESTS);
    let (mut outgoing, mut incoming) = link.halves();
    let mut may_have_news = false;
    loop {
        // A sink whose requests come too fast is made to wait.
        let next_request = pace.next_request_at();
        if next_request.is_some() {
            reader.report_limit(Limit::RequestRate);
        }

        let message = async {
            if let Some(time) = next_request {
                tokio::time::sleep_until(time).await;
            }
            incoming.next().await
        };
        tokio::select! {
            biased;
            message = message => {
                let message = message?;
                *heard = true;
                pace.take();
                handle(entry, &peer, &mut reader, message).await?;
                may_have_news = true;
            }
            () = woken.notified() => may_have_news = true,
            ready = outgoing.ready(), if may_have_news => {
                ready?;
                match poll(entry, &reader) {
                    Polled::Message(message) => outgoing.send(message),
                    Polled::Slice => entry.shared.give_way().await,
                    Polled::Nothing => may_have_news = false,
                }
            }
        }
    }
}

/// Handles a request. A long one is read on a thread of its own, one at a time:
/// what it says takes several times its bytes.
async fn handle(
    entry: &Entry<'_>,
    peer: &str,
    reader: &mut Reader,
    message: Bytes,
) -> Result<(), Why> {
    if message.len() <= LARGE_REQUEST {
        let read = Read::new(message, reader.wire)?;
        return take(entry, peer, reader, read);
    }
    let _alone = entry.shared.reading.lock().await;
    let wire = reader.wire;
    let reading = tokio::task::spawn_blocking(move || Read::new(message, wire));
    let read = match reading.await {
        Ok(read) => read?,
        // Only a runtime that shuts down cancels it.
        Err(error) if error.is_cancelled() => return Err(Why::Lost(error.to_string())),
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    };
    take(entry, peer, reader, read)
}

/// A request that is read and checked.
struct Read {
    request: RequestResources,
    /// Over xDS, the type URL by which it asks for its collection.
    type_url: Option<String>,
}

impl Read {
    /// Reads a request and checks it. An error ends the stream.
    fn new(message: Bytes, wire: Wire) -> Result<Self, Why> {
        let refuse = |error: DecodeError| Why::Refused(Status::invalid_argument(error.to_string()));
        let (request, type_url) = match wire {
            Wire::Mcp => (wire::read_request(message, &LIMITS).map_err(refuse)?, None),
            Wire::Xds => with_type_url(xds::read_request(message, &LIMITS).map_err(refuse)?),
            Wire::DeltaXds => {
                with_type_url(delta_xds::read_request(message, &LIMITS).map_err(refuse)?)
            }
        };
        request
            .check()
            .map_err(|error| Why::Refused(status_of(&error)))?;
        Ok(Self { request, type_url })
    }
}

/// Returns a request of xDS, which always has a type URL.
fn with_type_url(
    (request, type_url): (RequestResources, String),
) -> (RequestResources, Option<String>) {
    (request, Some(type_url))
}

/// Takes a request. An error ends the stream.
fn take(entry: &Entry<'_>, peer: &str, reader: &mut Reader, read: Read) -> Result<(), Why> {
    let Read { request, type_url } = read;
    reader.note_type_url(&request.collection, type_url);
    let collection = request.collection.clone();
    if !reader.is_for_secrets && holds_secrets(collection.as_str()) {
        // An empty answer would make the sink remove what it has.
        tracing::warn!(peer, %collection, "secrets are for sinks on this machine or behind TLS that show a certificate");
        return Ok(());
    }

    let handled = handle_request(entry, peer, request);
    // A source of one collection says what it serves (M10).
    let handled = handled.map_err(|error| Why::Refused(status_of(&error)))?;
    report(handled, peer, &collection, reader)
}

/// Handles a request in the publisher. What the request makes outdated is
/// dropped without the lock.
fn handle_request(
    entry: &Entry<'_>,
    peer: &str,
    request: RequestResources,
) -> Result<Handled, SourceError> {
    // Versions that are not heeded are dropped with this clone.
    let versions = request.initial_versions.clone();
    let (handled, outdated) = {
        let mut state = entry.shared.lock();
        let now = entry.shared.now();
        let old_stage = state.publisher.stage().cloned();
        let handled = state.publisher.handle_request(entry.stream, request, now);
        if let Some(Stage::Stopped { reason, .. }) = state.publisher.stage()
            && !matches!(old_stage, Some(Stage::Stopped { .. }))
        {
            tracing::error!(
                peer,
                reason,
                "a canary rejects an update, which goes to no other sink"
            );
        }
        (handled, state.publisher.take_outdated(entry.stream))
    };

    let names = versions.len() + outdated.len();
    drop_aside((versions, outdated), names);
    entry.shared.look_at_soak();
    handled
}

/// Logs how a request was handled, and reports the limits that it met. An error
/// ends the stream.
fn report(handled: Handled, peer: &str, collection: &TypeUrl, reader: &Reader) -> Result<(), Why> {
    match handled {
        Handled::Nack(error) => {
            // An alarm: someone has to look (M11).
            tracing::warn!(peer, %collection, reason = error.message, "NACK");
        }
        Handled::Stale => tracing::debug!(peer, %collection, "a stale nonce was ignored"),
        Handled::Refused => {
            reader.report_limit(Limit::Collections);
            let collection = collection.as_str();
            let collection = &collection[..collection.floor_char_boundary(SHOWN_NAME)];
            tracing::warn!(
                peer,
                collection,
                "one collection too many, or its name is too long"
            );
        }
        Handled::VersionsIgnored => {
            reader.report_limit(Limit::HeldVersions);
            tracing::warn!(peer, %collection, "the sink holds more versions than there is room for");
            if reader.wire == Wire::DeltaXds {
                // Delta has no form for what it gets instead, a full state.
                let status = Status::resource_exhausted(
                    "initial_resource_versions: more than there is room for; ask without",
                );
                return Err(Why::Refused(status));
            }
        }
        Handled::First | Handled::Restarted | Handled::Ack => {}
    }
    Ok(())
}

/// Returns the status of a stream that ends because of a request.
fn status_of(error: &SourceError) -> Status {
    match error {
        SourceError::NotServed { .. } => Status::not_found(error.to_string()),
        SourceError::Node { .. } => Status::invalid_argument(error.to_string()),
    }
}

/// What a poll brought.
enum Polled {
    /// The next response, encoded.
    Message(Frames),
    /// None yet: what the sink says it holds is being compared.
    Slice,
    Nothing,
}

/// Polls for the next response. The lock is not held while it is encoded.
fn poll(entry: &Entry<'_>, reader: &Reader) -> Polled {
    let (response, is_comparing) = {
        let mut state = entry.shared.lock();
        let response = state.publisher.poll_resources(entry.stream);
        (response, state.publisher.is_comparing(entry.stream))
    };
    match response {
        Some(response) => Polled::Message(reader.write(&response)),
        None if is_comparing => Polled::Slice,
        None => Polled::Nothing,
    }
}

/// Returns whether the resources of a collection are secrets: those of Envoy,
/// or of Kubernetes.
fn holds_secrets(collection: &str) -> bool {
    collection == Collection::of_type_url(kind::SDS) || collection == "k8s/v1/Secret"
}

/// Returns a response without the resources that have a private key in them, as
/// a server of xDS withholds them from such clients.
fn withhold_keys(response: &Resources) -> Resources {
    let mut response = response.clone();
    let (ResourcesUpdate::FullState(resources) | ResourcesUpdate::Incremental { resources, .. }) =
        &mut response.update;
    let count = resources.len();
    resources.retain(|resource| !resource.facts().holds_keys());
    if resources.len() < count {
        let withheld = count - resources.len();
        tracing::warn!(
            collection = %response.collection,
            withheld,
            "resources with private keys are for sinks on this machine or behind TLS that show a certificate"
        );
    }
    response
}

/// Bytes of the name of a refused collection in the log.
const SHOWN_NAME: usize = 256;

/// Collections whose type URLs are remembered.
const MOST_COLLECTIONS: usize = 1024;

/// Limits of requests, of which none is longer than
/// [`MCP_REQUEST`](crate::bounds::MCP_REQUEST): as many versions as these bytes
/// have in practice.
const LIMITS: Limits = Limits {
    entries: 1 << 20,
    ..Limits::DEFAULT
};

/// Reads and writes the messages of a stream.
struct Reader {
    wire: Wire,
    is_for_secrets: bool,
    bounds: Option<RequestBounds>,
    /// Over xDS, the type URL by which each collection was asked for.
    type_urls: BTreeMap<TypeUrl, String>,
}

impl Reader {
    /// Reports that a limit was met. Without a server nobody is told.
    fn report_limit(&self, limit: Limit) {
        if let Some(bounds) = &self.bounds {
            bounds.report_limit(limit);
        }
    }

    /// Remembers the type URL by which a collection was asked for.
    fn note_type_url(&mut self, collection: &TypeUrl, type_url: Option<String>) {
        // No more than a stream may ask for are answered.
        if let Some(type_url) = type_url
            && self.type_urls.len() < MOST_COLLECTIONS
        {
            self.type_urls.insert(collection.clone(), type_url);
        }
    }

    /// Writes a response in the form of the stream. Keys are withheld from a
    /// sink that may not have them.
    fn write(&self, response: &Resources) -> Frames {
        let without_keys;
        let response = match self.is_for_secrets {
            true => response,
            false => {
                without_keys = withhold_keys(response);
                &without_keys
            }
        };
        match (self.wire, self.type_urls.get(&response.collection)) {
            (Wire::Xds, Some(type_url)) => xds::write_resources(response, type_url),
            (Wire::DeltaXds, Some(type_url)) => delta_xds::write_resources(response, type_url),
            _ => wire::write_resources(response),
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use trunkline_core::facts::{Facts, RareFacts};
    use trunkline_core::name::Name;
    use trunkline_core::resource::{Nonce, Resource, Version};

    use super::*;

    #[test]
    fn a_resource_with_a_key_is_left_out_and_its_removal_is_not() {
        let resource = |name, holds_keys| {
            let rare = RareFacts {
                holds_keys,
                ..RareFacts::default()
            };
            let mut resource = Resource::new(Name::new(name), Bytes::from_static(b"body"));
            resource.facts = Some(Box::new(Facts {
                rare: rare.boxed(),
                ..Facts::default()
            }));
            Arc::new(resource)
        };
        let removed = vec![Name::new("gone")];
        let response = |resources| Resources {
            collection: TypeUrl::new("envoy/cluster/v3/clusters"),
            version: Version::new("1"),
            nonce: Nonce::new("1"),
            update: ResourcesUpdate::Incremental {
                resources,
                removed: removed.clone(),
            },
        };

        let (plain, with_key) = (resource("plain", false), resource("with-key", true));
        let sent = withhold_keys(&response(vec![with_key, Arc::clone(&plain)]));
        assert_eq!(sent, response(vec![plain]));
    }
}
