//! A file as a source: it says what a server would say.

use bytes::Bytes;
use prost::Message as _;
use trunkline_core::client::SourceId;
use trunkline_core::message::{Locators, Request};
use trunkline_core::resource::TypeUrl;
use trunkline_proto::envoy::envoy::service::discovery::v3::DiscoveryResponse;

use super::exchange::Exchange;
use super::transport::PathWatch;

/// What a watched file needs.
pub(super) struct FileTask {
    pub(super) exchange: Exchange,
    pub(super) source: SourceId,
    pub(super) watch: PathWatch,
}

impl FileTask {
    /// Applies the file as a response whenever it is replaced, and whenever the
    /// subscribed names change. A file with a mistake changes nothing but the
    /// error that watchers see.
    pub(super) async fn run(mut self) {
        self.exchange.handle_connected();
        let mut names = Locators::default();
        let mut type_url = None;
        let mut last_response: Option<Bytes> = None;
        loop {
            let names_changed = self.drain_requests(&mut names, &mut type_url);
            let response = match last_response.clone().filter(|_| names_changed) {
                Some(response) => Ok(response),
                None => tokio::select! {
                    () = self.exchange.waker.notified() => continue,
                    content = self.watch.next() => content.map_err(|error| error.to_string()),
                },
            };

            let outcome = match response {
                Err(reason) => Err(reason),
                Ok(response) => {
                    last_response = Some(response.clone());
                    let response = with_type(response, type_url.as_ref());
                    let result = self.exchange.apply_response(response).await;
                    result.map_err(|error| error.to_string())
                }
            };

            if let Err(reason) = outcome {
                self.exchange.shared.change(|state, _| {
                    state.machine.set_unavailable(self.source, Some(&reason));
                });
            }
        }
    }

    /// Discards the requests, since a file has no peer to send them to. Returns
    /// whether they changed the subscribed `names`, which it updates, as it does
    /// `type_url`.
    fn drain_requests(&self, names: &mut Locators, type_url: &mut Option<TypeUrl>) -> bool {
        let mut names_changed = false;
        while let Some(Request::Sotw(request)) = self.exchange.next_request() {
            names_changed |= request.names != *names;
            *names = request.names;
            *type_url = request.type_url.or_else(|| type_url.take());
        }
        names_changed
    }
}

/// Sets the type of a response that has none to the one that is asked for:
/// files for Envoy often leave it out.
fn with_type(response: Bytes, type_url: Option<&TypeUrl>) -> Bytes {
    let Some(type_url) = type_url else {
        return response;
    };
    match DiscoveryResponse::decode(response.clone()) {
        Ok(message) if message.type_url.is_empty() => {
            let message = DiscoveryResponse {
                type_url: type_url.to_string(),
                ..message
            };
            message.encode_to_vec().into()
        }
        // What cannot be decoded is refused by its reader.
        Ok(_) | Err(_) => response,
    }
}
