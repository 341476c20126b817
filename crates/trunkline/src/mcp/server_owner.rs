//! A server as the owner of a sink: collections of Envoy's resources become
//! contents of a control plane.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use trunkline_core::mcp::{Delivery, Rejected, Verdict};
use trunkline_core::name::Name;
use trunkline_core::resource::TypeUrl;

use super::entry::{Entries, Entry, Plan};
use super::sink::McpOwner;
use crate::Server;
use crate::checked::{Dangling, Document, Finding, Guard, ResourceEdit};
use crate::server::{BoxFuture, Lifetime, Manner};

/// How a server judges what a sink receives.
#[derive(Clone, Debug, Default)]
pub struct OwnerOptions {
    /// The treatment of a reference to a resource that is not there.
    pub dangling: Dangling,
    /// Whether a response that removes much is held, as a rejection, until it is
    /// confirmed. The first of a collection never is.
    pub guard: Guard,
    /// Labels whose values are constraints: a resource with the label
    /// `env: prod` is a variant for clients whose parameter `env` is `prod`
    /// (TP2).
    pub labels: Vec<String>,
}

/// Gives what a sink receives to a [`Server`]: each collection is an origin,
/// `mcp/` and its name, and each response is one change of it. The server
/// checks it like any other; a mistake is a NACK with the resource's name and
/// its field, and the last good contents go on being served (M11).
///
/// What is ACKed is applied, and persisted if the server has a store. Without
/// one, it asks its source again after a restart.
#[derive(Clone, Debug)]
pub struct ServerOwner {
    server: Server,
    options: OwnerOptions,
    /// What the server has taken, by collection.
    held: Arc<Mutex<BTreeMap<TypeUrl, Entries>>>,
}

impl ServerOwner {
    /// The owner that this server is.
    #[must_use]
    pub fn new(server: Server) -> Self {
        Self::with(server, OwnerOptions::default())
    }

    /// The owner that this server is, with these options.
    #[must_use]
    pub fn with(server: Server, options: OwnerOptions) -> Self {
        Self {
            server,
            options,
            held: Arc::default(),
        }
    }

    /// The collections of which a response was taken.
    pub(super) fn taken(&self) -> BTreeSet<TypeUrl> {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.keys().cloned().collect()
    }

    /// Settles a change of a collection. It blocks meanwhile. What it costs is
    /// what has changed, however large the collection is.
    fn settle(&self, delivery: Delivery) -> Verdict {
        let collection = delivery.collection;
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let is_first = !held.contains_key(&collection);
        let none = Entries::default();
        let before = held.get(&collection).unwrap_or(&none);
        let read = |resource: &_| Entry::read(resource, &self.options.labels);
        let plan = match Plan::make(before, delivery.changes, read) {
            Ok(plan) => plan,
            Err(rejected) => return Verdict::Reject(vec![rejected]),
        };

        let names: Vec<Name> = plan.names().cloned().collect();
        let edit = ResourceEdit {
            replaces_origin: plan.replaces_all(),
            removals: plan.removals(before),
            ..ResourceEdit::of_document(Document::empty(&"".into()))
        };
        let manner = Manner {
            dangling: self.options.dangling,
            guard: match is_first {
                true => Guard::Off,
                false => self.options.guard,
            },
            lifetime: Lifetime::Permanent,
        };
        let origin = format!("mcp/{collection}");
        let changed = self.server.change(&origin, plan.messages(), edit, manner);
        match changed {
            Ok(_) => {
                plan.apply(held.entry(collection).or_default());
                Verdict::Accept
            }
            Err(rejected) => {
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

/// A finding of the server, at the resource that it is about: the server names
/// a field of its list.
fn describe(finding: &Finding, names: &[Name]) -> Rejected {
    let place = finding.place.field.as_deref().unwrap_or_default();
    let field = match finding.field.is_empty() {
        true => place,
        false => &finding.field,
    };
    let in_list = field.strip_prefix("resources[");
    let in_list = in_list.and_then(|rest| rest.split_once(']'));
    let found = in_list.and_then(|(index, rest)| {
        let name = names.get(index.parse::<usize>().ok()?)?;
        Some((name.clone(), rest.trim_start_matches('.')))
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
