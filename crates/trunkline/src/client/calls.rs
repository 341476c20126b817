//! Calls of an application that depend on a resource: what they are told when
//! it has an error (C45).

use tonic::Status;
use trunkline_core::sink::WatchError;
use trunkline_proto::redact;

use super::handle::Client;

impl Client {
    /// Returns the status of a call that fails because of an error of a
    /// resource: `UNAVAILABLE`, whatever the cause. That a listener does not
    /// exist is not what `NOT_FOUND` of a call means (C45).
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// use trunkline::client::{Client, State};
    /// use trunkline::envoy::config::cluster::v3::Cluster;
    ///
    /// # let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    /// # let address = port.local_addr().unwrap().to_string();
    /// # drop(port);
    /// let client = Client::builder().server(&address).unwrap().node_id("my-app").build();
    /// let mut watch = client.subscribe::<Cluster>("backend").unwrap().watch();
    /// let State::Failed(error) = watch.changed().await else {
    ///     panic!("nothing listens there");
    /// };
    /// let status = client.call_status(&error);
    /// assert_eq!(status.code(), tonic::Code::Unavailable);
    /// assert!(status.message().ends_with("(xDS node: my-app)"));
    /// # }
    /// ```
    #[must_use]
    pub fn call_status(&self, error: &WatchError) -> Status {
        Status::unavailable(self.resolution_note(error))
    }

    /// Returns a note for the message of a call that fails while a resource has
    /// an error, also an ambient one: what is wrong, and which node to ask the
    /// control plane about (C45).
    #[must_use]
    pub fn resolution_note(&self, error: &WatchError) -> String {
        let reason = redact::quoted(&error.message);
        format!("{reason} (xDS node: {})", self.running().node().id)
    }
}
