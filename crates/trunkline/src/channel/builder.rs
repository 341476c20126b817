//! Makes a channel, and the task that follows its configuration.

use std::sync::Arc;

use http::uri::Authority;
use tokio::sync::watch;

use super::call::{Inner, random_id};
use super::fault::ActiveFaults;
use super::service::XdsChannel;
use super::subchannel::Pool;
use super::table::{Maker, Table};
use crate::client::Client;

/// Makes an [`XdsChannel`] step by step.
pub struct XdsChannelBuilder {
    client: Client,
    listener: String,
    authority: String,
}

impl XdsChannelBuilder {
    /// Begins a channel for a service, which is also its authority until
    /// another is set.
    pub(super) fn new(client: &Client, service: &str) -> Self {
        Self {
            client: client.clone(),
            listener: service.to_owned(),
            authority: service.to_owned(),
        }
    }

    /// Sets the authority of calls, by which a virtual host is chosen; by
    /// default the name of the service.
    #[must_use]
    pub fn authority(mut self, authority: &str) -> Self {
        authority.clone_into(&mut self.authority);
        self
    }

    /// Starts the channel, in the present runtime. It connects to the control
    /// plane at once; calls wait until there is a configuration.
    #[must_use]
    pub fn build(self) -> XdsChannel {
        let listener = self.listener.as_str();
        let mut watch = self.client.listener_for_host(listener, &self.authority);
        // The task follows the listener, and makes a table of each snapshot.
        let (table_sender, tables) = watch::channel(None::<Arc<Table>>);
        let pool = Arc::new(Pool::default());
        let maker = Maker {
            client: self.client.clone(),
            authority: self.authority.clone(),
            pool: Arc::clone(&pool),
        };
        let follower = tokio::spawn(async move {
            loop {
                let snapshot = watch.changed().await;
                let previous_table = table_sender.borrow().clone();
                let table = maker.make_table(&snapshot, previous_table.as_deref());
                table_sender.send_replace(Some(Arc::new(table)));
            }
        });

        // A name that is no authority of a URI, such as one of xdstp, is only
        // the name of a listener.
        let authority = Authority::try_from(self.authority.as_str());
        let authority = authority.unwrap_or_else(|_| Authority::from_static("service"));
        XdsChannel::new(Inner {
            tables,
            pool,
            name: self.authority,
            authority,
            id: random_id(),
            faults: ActiveFaults::default(),
            follower: follower.abort_handle(),
        })
    }
}
