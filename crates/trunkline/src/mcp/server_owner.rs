//! A server as the owner of a sink: collections of Envoy's resources become
//! contents of a control plane.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use trunkline_core::change::{Change, Transaction};
use trunkline_core::mcp::{Delivery, Rejected, Verdict};
use trunkline_core::name::Name;
use trunkline_core::resource::{Resource, TypeUrl};

use super::sink::McpOwner;
use super::wire::read_resource;
use crate::checked::Finding;
use crate::server::BoxFuture;
use crate::{ResourceMessage, Server};

/// Gives what a sink receives to a [`Server`]: each collection is an origin,
/// `mcp/` and its name, and each response is one change of it. The server
/// checks it like any other; a mistake is a NACK with the resource's name and
/// its field, and the last good contents go on being served (M11).
///
/// A server has no store, so what is ACKed is applied and not persisted: after
/// a restart it asks its source again.
#[derive(Clone, Debug)]
pub struct ServerOwner {
    server: Server,
    /// The resources of each collection that the server has taken.
    held: Arc<Mutex<BTreeMap<TypeUrl, Collection>>>,
}

type Collection = BTreeMap<Name, Arc<Resource>>;

impl ServerOwner {
    /// The owner that this server is.
    #[must_use]
    pub fn new(server: Server) -> Self {
        Self {
            server,
            held: Arc::default(),
        }
    }

    /// Settles a change of a collection. It blocks meanwhile.
    fn settle(&self, delivery: Delivery) -> Verdict {
        let collection = delivery.collection;
        let held = self.held.lock();
        let mut held = held.unwrap_or_else(PoisonError::into_inner);
        let before = held.get(&collection).cloned().unwrap_or_default();
        let after = apply(before, delivery.changes);
        let messages = match after
            .values()
            .map(|r| message(r))
            .collect::<Result<Vec<_>, _>>()
        {
            Ok(messages) => messages,
            Err(rejected) => return Verdict::Reject(vec![rejected]),
        };
        let origin = format!("mcp/{collection}");
        match self.server.set(&origin, messages) {
            Ok(_) => {
                held.insert(collection, after);
                Verdict::Accept
            }
            Err(rejected) => {
                let names: Vec<_> = after.keys().collect();
                let findings = rejected.findings.iter();
                Verdict::Reject(findings.map(|finding| describe(finding, &names)).collect())
            }
        }
    }
}

impl McpOwner for ServerOwner {
    /// Settles aside: checks of a large collection take a while.
    fn apply(&self, delivery: Delivery) -> BoxFuture<'_, Verdict> {
        let owner = self.clone();
        Box::pin(async move {
            let settled = tokio::task::spawn_blocking(move || owner.settle(delivery)).await;
            settled.unwrap_or_else(|_| {
                // A panic, which was logged, or the end of the runtime.
                Verdict::Reject(vec![Rejected {
                    name: None,
                    reason: "the change could not be checked".to_owned(),
                }])
            })
        })
    }
}

/// The collection after a change of it.
fn apply(mut collection: Collection, changes: Transaction) -> Collection {
    for change in changes {
        match change {
            Change::ReplaceAll(_, all) => {
                let all = all.into_iter().map(|r| (r.name.clone(), r));
                collection = all.collect();
            }
            Change::Upsert(_, resource) => {
                collection.insert(resource.name.clone(), resource);
            }
            Change::Remove(_, name) | Change::RemoveVariant(_, name, _) => {
                collection.remove(&name);
            }
            // No sink delivers one.
            Change::Fail(..) => {}
        }
    }
    collection
}

/// The body of a resource, as a server takes it.
fn message(resource: &Resource) -> Result<ResourceMessage, Rejected> {
    let fault = |reason: String| Rejected {
        name: Some(resource.name.clone()),
        reason,
    };
    let read = read_resource(resource).map_err(|error| fault(error.to_string()))?;
    let body = read.body.ok_or_else(|| fault("body: needed".to_owned()))?;
    let type_url = TypeUrl::new(&body.type_url);
    Ok(ResourceMessage::encoded(&type_url, body.value))
}

/// A finding of the server, at the resource that it is about: the server names
/// a field of its list, and resources are listed by name.
fn describe(finding: &Finding, names: &[&Name]) -> Rejected {
    let place = finding.place.field.as_deref().unwrap_or_default();
    let field = match finding.field.is_empty() {
        true => place,
        false => &finding.field,
    };
    let in_list = field.strip_prefix("resources[");
    let in_list = in_list.and_then(|rest| rest.split_once(']'));
    let found = in_list.and_then(|(index, rest)| {
        let name = names.get(index.parse::<usize>().ok()?)?;
        Some(((*name).clone(), rest.trim_start_matches('.')))
    });
    let (name, field) = match found {
        Some((name, field)) => (Some(name), field),
        None => (None, field),
    };
    let colon = if field.is_empty() { "" } else { ": " };
    Rejected {
        name,
        reason: format!("{field}{colon}{}", finding.fault),
    }
}
