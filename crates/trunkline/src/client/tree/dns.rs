//! The hosts of clusters, by DNS.

use std::fmt;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use trunkline_core::tree::NodeId;

use super::mailbox::{Mailbox, News};

/// How often a host is resolved again without a request: Envoy's default.
const REFRESH: Duration = Duration::from_secs(5);

/// The addresses of a host, when they are known.
pub type Lookup = Pin<Box<dyn Future<Output = io::Result<Vec<SocketAddr>>> + Send>>;

/// Resolves the hosts of clusters whose endpoints come by DNS. Without one of
/// your own, the system's resolver does.
pub trait Resolve: Send + Sync + 'static {
    /// Resolves a `host:port`. It is called again for every further look.
    fn resolve(&self, target: &str) -> Lookup;
}

/// The resolver of a client.
#[derive(Clone)]
pub(in crate::client) struct Resolver(pub(in crate::client) Arc<dyn Resolve>);

/// The system's resolver.
struct System;

impl Resolve for System {
    fn resolve(&self, target: &str) -> Lookup {
        let target = target.to_owned();
        Box::pin(async move { Ok(tokio::net::lookup_host(target).await?.collect()) })
    }
}

impl Default for Resolver {
    fn default() -> Self {
        Self(Arc::new(System))
    }
}

impl fmt::Debug for Resolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Resolver")
    }
}

/// Resolves a host and puts the addresses, sorted, or the error into the mailbox;
/// again after a while and whenever that is requested (C55). It returns when the
/// trees are dropped.
pub(super) async fn follow(
    resolver: Resolver,
    target: String,
    node: NodeId,
    mailbox: Arc<Mailbox>,
    mut requests: watch::Receiver<u64>,
) {
    loop {
        let addresses = resolver.0.resolve(&target).await;
        let addresses = addresses.map(|mut addresses| {
            addresses.sort();
            addresses
        });

        let news = addresses.map_err(|error| format!("{target}: {error}"));
        mailbox.put(node, News::Addresses(news));

        tokio::select! {
        () = tokio::time::sleep(REFRESH) => {}
                    request = requests.changed() => {
        if request.is_err() {
                            return;
                        }
                    }
                }
    }
}
