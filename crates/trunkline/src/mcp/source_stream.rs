//! One stream of a source: requests in, the newest state out.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::Notify;
use tonic::Status;
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
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        let closed = state.publisher.close(self.stream, self.shared.now());
        state.past.nacks += closed.nacks;
        state.past.stale += closed.stale;
        state.streams.remove(&self.stream);
        drop(state);
        self.shared.look_at_soak();
    }
}

/// Serves a stream until it ends.
pub(super) async fn run(shared: &Arc<Shared>, link: &mut Link) -> Ended {
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
    let mut reader = Reader {
        wire: link.wire,
        is_for_secrets: link.is_for_secrets,
        bounds: link.bounds.clone(),
        asked: BTreeMap::new(),
    };
    let mut pace = Pace::new(MCP_REQUESTS);
    let (mut out, mut inbound) = link.halves();
    let mut may_have_news = false;
    loop {
        let is_fast = pace.next_request_at();
        if is_fast.is_some() {
            reader.met(Limit::RequestRate);
        }
        let message = async {
            if let Some(until) = is_fast {
                tokio::time::sleep_until(until).await;
            }
            inbound.next().await
        };
        tokio::select! {
            biased;
            message = message => {
                let message = message?;
                *heard = true;
                pace.take();
                // What a long one says takes several times its bytes.
                let _alone = match message.len() > LARGE_REQUEST {
                    true => Some(entry.shared.reading.lock().await),
                    false => None,
                };
                handle(entry, &peer, &mut reader, message)?;
                may_have_news = true;
            }
            () = woken.notified() => may_have_news = true,
            ready = out.ready(), if may_have_news => {
                ready?;
                match poll(entry, &reader) {
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
    reader: &mut Reader,
    message: bytes::Bytes,
) -> Result<(), Why> {
    let request = reader.read(message);
    let request =
        request.map_err(|error| Why::Refused(Status::invalid_argument(error.to_string())))?;
    let collection = request.collection.clone();
    if !reader.is_for_secrets && holds_secrets(collection.as_str()) {
        // An empty answer would make the sink remove what it has.
        tracing::warn!(peer, %collection, "secrets are for sinks on this machine or behind TLS that show a certificate");
        return Ok(());
    }
    let handled = {
        let mut state = entry.shared.lock();
        let now = entry.shared.now();
        let before = state.publisher.stage().cloned();
        let handled = state.publisher.handle_request(entry.stream, request, now);
        if let Some(Stage::Stopped { reason, .. }) = state.publisher.stage()
            && !matches!(before, Some(Stage::Stopped { .. }))
        {
            tracing::error!(
                peer,
                reason,
                "a canary rejects an update, which goes to no other sink"
            );
        }
        handled
    };
    entry.shared.look_at_soak();
    // A source of one collection says what it serves (M10).
    match handled.map_err(|error| Why::Refused(status_of(&error)))? {
        Handled::Nack(error) => {
            // An alarm: someone has to look (M11).
            tracing::warn!(peer, %collection, reason = error.message, "NACK");
        }
        Handled::Stale => tracing::debug!(peer, %collection, "a stale nonce was ignored"),
        Handled::Refused => {
            reader.met(Limit::Collections);
            tracing::warn!(peer, %collection, "one collection too many, or its name is too long");
        }
        Handled::VersionsIgnored => {
            reader.met(Limit::HeldVersions);
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

fn status_of(error: &SourceError) -> Status {
    match error {
        SourceError::NotServed { .. } => Status::not_found(error.to_string()),
        SourceError::Node { .. } => Status::invalid_argument(error.to_string()),
    }
}

/// The next response, encoded. The lock is not held while it is encoded.
fn poll(entry: &Entry<'_>, reader: &Reader) -> Option<Frames> {
    let response = {
        let mut state = entry.shared.lock();
        state.publisher.poll_resources(entry.stream)
    };
    response.map(|response| reader.write(&response))
}

/// Whether the resources of a collection are secrets: those of Envoy, or of
/// Kubernetes.
fn holds_secrets(collection: &str) -> bool {
    collection == Collection::of_type_url(kind::SDS) || collection == "k8s/v1/Secret"
}

/// Leaves out resources with a private key in them, as a server of xDS withholds
/// them from such clients.
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

/// Collections whose type URLs are remembered.
const MOST_ASKED: usize = 1024;

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
    asked: BTreeMap<TypeUrl, String>,
}

impl Reader {
    /// A bound was met, which is counted where there is a server.
    fn met(&self, limit: Limit) {
        if let Some(bounds) = &self.bounds {
            bounds.met(limit);
        }
    }

    fn read(&mut self, message: bytes::Bytes) -> Result<RequestResources, DecodeError> {
        let (request, asked) = match self.wire {
            Wire::Mcp => return wire::read_request(message, &LIMITS),
            Wire::Xds => xds::read_request(message, &LIMITS)?,
            Wire::DeltaXds => delta_xds::read_request(message, &LIMITS)?,
        };
        // No more than a stream may ask for are answered.
        if self.asked.len() < MOST_ASKED {
            self.asked.insert(request.collection.clone(), asked);
        }
        Ok(request)
    }

    fn write(&self, response: &Resources) -> Frames {
        let without_keys;
        let response = match self.is_for_secrets {
            true => response,
            false => {
                without_keys = withhold_keys(response);
                &without_keys
            }
        };
        match (self.wire, self.asked.get(&response.collection)) {
            (Wire::Xds, Some(asked)) => xds::write_resources(response, asked),
            (Wire::DeltaXds, Some(asked)) => delta_xds::write_resources(response, asked),
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
