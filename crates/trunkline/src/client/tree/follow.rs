//! One node of a tree as its client follows it: the subscription and the watch
//! behind it, and what is read from them.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::task::AbortHandle;
use trunkline_core::client::{SourceId, Watched};
use trunkline_core::name::{Name, Selector};
use trunkline_core::resource::Resource;
use trunkline_core::sink::{self, Cause, WatchError};
use trunkline_core::tree::{Key, NodeId, Update};

use super::held::{Held, HeldResource};
use super::mailbox::Mailbox;
use super::place::{NodeKey, Place};
use super::references;
use crate::client::config_source::ConfigSource;
use crate::client::handle::Running;
use crate::client::settings::SourceError;
use crate::client::shared::Cell;
use crate::client::state::ErasedState;
use crate::client::subscription::Lease;
use crate::client::watch::Watching;
use crate::kind::{LEDS, SRDS};

/// The news of a node, as the machine reads them.
pub(super) type NodeUpdate = Update<Place, Held>;

/// One node as its client follows it. Dropping it ends the subscription.
pub(super) struct Following {
    pub(super) key: Arc<NodeKey>,
    source: NodeSource,
    /// The last resource, what is held of it, and what it refers to.
    last: Option<(Arc<Resource>, Held, Vec<NodeKey>)>,
}

/// Where the news of a node come from.
enum NodeSource {
    /// A watch of one name.
    Watch {
        _watch: Watching,
    },
    Collection(Box<Collection>),
    /// A task that resolves a host.
    Dns {
        task: AbortHandle,
        /// The addresses that it found last.
        last_addresses: Option<Vec<SocketAddr>>,
        /// Why it has found none since.
        failure: Option<String>,
    },
}

/// A subscription to all names of a collection.
struct Collection {
    watch: Watching,
    source: SourceId,
    subscription: sink::Subscription,
    /// The names that have a resource.
    members: BTreeSet<Name>,
}

impl Drop for Following {
    fn drop(&mut self) {
        if let NodeSource::Dns { task, .. } = &self.source {
            task.abort();
        }
    }
}

impl Following {
    /// Subscribes to the resource of a node and watches it. The news go to the
    /// mailbox; those of a resource that is known already are there on return.
    /// Static resources and members of a collection have no subscription of
    /// their own.
    ///
    /// # Errors
    /// There is no source for the node.
    pub(super) fn start(
        client: &Arc<Running>,
        node: NodeId,
        key: Arc<NodeKey>,
        mailbox: &Arc<Mailbox>,
    ) -> Result<Self, WatchError> {
        let source = match &key.source {
            Place::Invalid(reason) => return Err(invalid(reason)),
            Place::Static => NodeSource::Watch {
                _watch: watch_name(client, node, &key, mailbox, None, None),
            },
            Place::Member(source) => NodeSource::Watch {
                _watch: watch_name(client, node, &key, mailbox, Some(*source), None),
            },
            Place::Dns => NodeSource::Dns {
                task: client.trees.resolve(client, node, key.name.as_str()),
                last_addresses: None,
                failure: None,
            },
            Place::Source { source, .. } => subscribe(client, node, &key, source, mailbox)?,
        };
        Ok(Self {
            key,
            source,
            last: None,
        })
    }

    /// Returns whether the node is a collection of which the source has not
    /// answered for all names.
    pub(super) fn is_unanswered(&self, client: &Running) -> bool {
        let NodeSource::Collection(collection) = &self.source else {
            return false;
        };
        let Collection {
            source,
            subscription,
            ..
        } = &**collection;
        let type_url = &self.key.type_url;
        let shared = &client.shared;
        !shared.read(|state, _| state.machine.is_answered(*source, type_url, subscription))
    }

    /// Returns whether the node is a collection.
    pub(super) fn is_collection(&self) -> bool {
        matches!(self.source, NodeSource::Collection(_))
    }

    /// Makes the update of a state of the resource; `None` if the state is
    /// pending. References are looked for once for each resource.
    pub(super) fn read(&mut self, client: &Running, state: ErasedState) -> Option<NodeUpdate> {
        let Some((resource, value, origin)) = state.value else {
            return state.error.map(Update::Failed);
        };
        // Another error beside the same resource needs no other look at it.
        let is_last = |(last, ..): &&(Arc<Resource>, _, _)| Arc::ptr_eq(last, &resource);
        if self.last.as_ref().filter(is_last).is_none() {
            let references = references::find(client, &self.key, &value, origin);
            let held = Held::Resource(Arc::new(HeldResource {
                resource: Arc::clone(&resource),
                value,
                origin,
                routes: references.routes,
                layers: references.layers,
            }));
            self.last = Some((resource, held, references.keys));
        }
        let (_, held, keys) = self.last.as_ref()?;
        Some(Update::Value {
            value: held.clone(),
            error: state.error,
            children: keys.clone(),
        })
    }

    /// Reads the addresses of a host; `None` if they, or the failure to find them,
    /// are the same as before. Addresses that were found stay in use, however often
    /// they cannot be found again.
    pub(super) fn read_addresses(
        &mut self,
        result: Result<Vec<SocketAddr>, String>,
    ) -> Option<NodeUpdate> {
        let NodeSource::Dns {
            last_addresses,
            failure,
            ..
        } = &mut self.source
        else {
            return None;
        };
        match result {
            Ok(addresses) if failure.is_none() && last_addresses.as_ref() == Some(&addresses) => {
                None
            }
            Ok(addresses) => {
                *failure = None;
                *last_addresses = Some(addresses.clone());
                Some(Update::Value {
                    value: Held::Addresses(addresses.into()),
                    error: None,
                    children: Vec::new(),
                })
            }
            Err(message) if failure.as_ref() == Some(&message) => None,
            Err(message) => {
                *failure = Some(message.clone());
                let cause = match last_addresses {
                    Some(_) => Cause::Unreachable,
                    None => Cause::Silent,
                };
                let message = message.into();
                Some(Update::Failed(WatchError { cause, message }))
            }
        }
    }

    /// Takes the changed names of a collection, and makes the update that has
    /// all its members as children; `None` if the node is no collection.
    pub(super) fn read_names(&mut self, client: &Running) -> Option<NodeUpdate> {
        let NodeSource::Collection(collection) = &mut self.source else {
            return None;
        };
        let id = collection.watch.id;
        let changes = client
            .shared
            .read(|state, _| state.machine.take_changes(id));
        for (name, state) in changes {
            match state.value {
                Some(_) => collection.members.insert(name),
                None => collection.members.remove(&name),
            };
        }

        let members = collection.members.iter().map(|name| Key {
            host: self.key.host.clone(),
            params: self.key.params.clone(),
            ..Key::new(
                self.key.type_url.as_str(),
                name.clone(),
                Place::Member(collection.source),
            )
        });
        Some(Update::Value {
            value: Held::Collection,
            error: None,
            children: members.collect(),
        })
    }
}

/// Subscribes to the resource or the collection of a node at its source, and
/// watches it.
///
/// # Errors
/// The client has no such source.
fn subscribe(
    client: &Arc<Running>,
    node: NodeId,
    key: &NodeKey,
    source: &ConfigSource,
    mailbox: &Arc<Mailbox>,
) -> Result<NodeSource, WatchError> {
    let selector = selector_of(key);
    let lease = lease(client, key, source, selector.clone());
    let lease = lease.map_err(|error| invalid(&error.to_string()))?;
    let id = lease.source;
    if let Selector::Name(_) = selector {
        let lease = Some(Arc::new(lease));
        return Ok(NodeSource::Watch {
            _watch: watch_name(client, node, key, mailbox, Some(id), lease),
        });
    }

    let cell = Cell::Collection(node, Arc::clone(mailbox));
    let subscription = lease.subscription.clone();
    let lease = Some(Arc::new(lease));
    Ok(NodeSource::Collection(Box::new(Collection {
        watch: watch(client, key, selector, Some(id), cell, lease),
        source: id,
        subscription,
        members: BTreeSet::new(),
    })))
}

/// Watches the name of a node.
fn watch_name(
    client: &Arc<Running>,
    node: NodeId,
    key: &NodeKey,
    mailbox: &Arc<Mailbox>,
    source: Option<SourceId>,
    lease: Option<Arc<Lease>>,
) -> Watching {
    let cell = Cell::Node(node, Arc::clone(mailbox));
    let selector = Selector::Name(key.name.clone());
    watch(client, key, selector, source, cell, lease)
}

/// Returns the selector that a node subscribes to: a glob or the wildcard for a
/// collection, which only scopes and endpoints have, and else its name.
fn selector_of(key: &NodeKey) -> Selector {
    let name = Selector::Name(key.name.clone());
    if ![LEDS, SRDS].contains(&key.type_url.as_str()) {
        return name;
    }
    // A text that is no selector is a name that nobody has.
    Selector::parse(key.name.as_str(), key.name.as_str().len()).unwrap_or(name)
}

/// Subscribes at the source of a node.
fn lease(
    client: &Arc<Running>,
    key: &NodeKey,
    source: &ConfigSource,
    selector: Selector,
) -> Result<Lease, SourceError> {
    let subscription = sink::Subscription {
        params: params(client, key, &selector),
        selector,
    };
    client.lease(source, key.type_url.clone(), subscription)
}

/// Returns the dynamic parameters of a node: its own over those of the client
/// (TP2), or the client's alone if both together exceed the limits.
fn params(client: &Running, key: &NodeKey, selector: &Selector) -> trunkline_core::params::Params {
    let defaults = client.settings.params_of(&key.type_url, selector);
    let params = defaults.iter().chain(key.params.iter());
    trunkline_core::params::Params::new(params).unwrap_or_else(|_| defaults.clone())
}

/// Watches a selector for a node, whose news go to the cell. The lease lives as
/// long as the watch.
fn watch(
    client: &Arc<Running>,
    key: &NodeKey,
    selector: Selector,
    source: Option<SourceId>,
    cell: Cell,
    lease: Option<Arc<Lease>>,
) -> Watching {
    let subject = Watched {
        type_url: key.type_url.clone(),
        params: params(client, key, &selector),
        selector,
        source,
    };
    Watching {
        id: client.add_watch(subject, cell),
        client: Arc::clone(client),
        _lease: lease,
    }
}

/// Makes the error of a node that has no source.
fn invalid(reason: &str) -> WatchError {
    WatchError {
        cause: Cause::Rejected,
        message: reason.into(),
    }
}
