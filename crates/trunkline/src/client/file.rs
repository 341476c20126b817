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
    /// Takes in the file whenever it is replaced, and whenever other names are
    /// subscribed to. A file with a mistake changes nothing but the error that
    /// watchers see.
    pub(super) async fn run(mut self) {
        self.exchange.connected();
        let mut names = Locators::default();
        let mut type_url = None;
        let mut last: Option<Bytes> = None;
        loop {
            let is_asked = self.drain_requests(&mut names, &mut type_url);
            let read = match last.clone().filter(|_| is_asked) {
                Some(response) => Ok(response),
                None => tokio::select! {
                    () = self.exchange.waker.notified() => continue,
                    read = self.watch.next() => read.map_err(|error| error.to_string()),
                },
            };
            let taken = match read {
                Err(reason) => Err(reason),
                Ok(response) => {
                    last = Some(response.clone());
                    let response = with_type(response, type_url.as_ref());
                    let taken = self.exchange.take(response).await;
                    taken.map_err(|error| error.to_string())
                }
            };
            if let Err(reason) = taken {
                self.exchange.shared.change(|state, _| {
                    state.machine.set_unavailable(self.source, Some(&reason));
                });
            }
        }
    }

    /// Takes the requests, which nobody reads. Returns whether they ask for
    /// other names than before, and notes the type of the last.
    fn drain_requests(&self, names: &mut Locators, type_url: &mut Option<TypeUrl>) -> bool {
        let mut is_asked = false;
        while let Some(Request::Sotw(request)) = self.exchange.next_request() {
            is_asked |= request.names != *names;
            *names = request.names;
            *type_url = request.type_url.or_else(|| type_url.take());
        }
        is_asked
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
