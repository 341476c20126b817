//! A file as a source: it says what a server would say.

use bytes::Bytes;
use trunkline_core::client::SourceId;
use trunkline_core::message::{Locators, Request};

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
        self.exchange.connected();
        let mut names = Locators::default();
        let mut last_response: Option<Bytes> = None;
        loop {
            let names_changed = self.drain_requests(&mut names);
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
                    let applied = self.exchange.apply_response(response).await;
                    applied.map_err(|error| error.to_string())
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
    /// whether they changed the subscribed `names`, which it updates.
    fn drain_requests(&self, names: &mut Locators) -> bool {
        let mut names_changed = false;
        while let Some(Request::Sotw(request)) = self.exchange.next_request() {
            names_changed |= request.names != *names;
            *names = request.names;
        }
        names_changed
    }
}
