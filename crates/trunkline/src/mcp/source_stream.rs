//! One stream of a source: requests in, the newest state out.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::Notify;
use tonic::Status;
use trunkline_core::kind;
use trunkline_core::mcp::{
    Handled, PublisherStream, RequestResources, Resources, ResourcesUpdate, Stage,
};
use trunkline_core::resource::TypeUrl;
use trunkline_proto::discovery::DecodeError;
use trunkline_proto::mcp::Collection;

use super::link::{Ended, Link, Why, Wire};
use super::source::{Open, Shared};
use super::{wire, xds};

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
        let (nacks, stale) = state.publisher.close(self.stream, self.shared.now());
        state.past.nacks += nacks;
        state.past.stale += stale;
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
        asked: BTreeMap::new(),
    };
    let (mut out, mut inbound) = link.halves();
    let mut may_have_news = false;
    loop {
        tokio::select! {
            biased;
            message = inbound.next() => {
                let message = message?;
                *heard = true;
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
fn poll(entry: &Entry<'_>, reader: &Reader) -> Option<bytes::Bytes> {
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

/// Reads and writes the messages of a stream.
struct Reader {
    wire: Wire,
    is_for_secrets: bool,
    /// Over xDS, the type URL by which each collection was asked for.
    asked: BTreeMap<TypeUrl, String>,
}

impl Reader {
    fn read(&mut self, message: bytes::Bytes) -> Result<RequestResources, DecodeError> {
        match self.wire {
            Wire::Mcp => wire::read_request(message),
            Wire::Xds => {
                let (request, asked) = xds::read_request(message)?;
                // No more than a stream may ask for are answered.
                if self.asked.len() < MOST_ASKED {
                    self.asked.insert(request.collection.clone(), asked);
                }
                Ok(request)
            }
        }
    }

    fn write(&self, response: &Resources) -> bytes::Bytes {
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
