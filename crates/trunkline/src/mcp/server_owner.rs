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
    /// Whether a response that removes much is held, as a rejection, until it
    /// is confirmed. The first of a collection never is.
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
    entries: Arc<Mutex<BTreeMap<TypeUrl, Entries>>>,
}

impl ServerOwner {
    /// Makes this server the owner of collections, with default options.
    #[must_use]
    pub fn new(server: Server) -> Self {
        Self::with(server, OwnerOptions::default())
    }

    /// Makes this server the owner of collections, with these options.
    #[must_use]
    pub fn with(server: Server, options: OwnerOptions) -> Self {
        Self {
            server,
            options,
            entries: Arc::default(),
        }
    }

    /// Returns the collections of which a response was taken.
    pub(super) fn loaded_collections(&self) -> BTreeSet<TypeUrl> {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.keys().cloned().collect()
    }

    /// Settles a change of a collection, and blocks until that is done. The
    /// effort grows with what has changed, not with the size of the collection.
    fn settle(&self, delivery: Delivery) -> Verdict {
        let collection = delivery.collection;
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let is_first = !entries.contains_key(&collection);
        let no_entries = Entries::default();
        let old_entries = entries.get(&collection).unwrap_or(&no_entries);
        let read = |resource: &_| Entry::read(resource, &self.options.labels);
        let plan = match Plan::make(old_entries, delivery.changes, read) {
            Ok(plan) => plan,
            Err(fault) => return Verdict::Reject(vec![fault]),
        };

        let names: Vec<Name> = plan.names().cloned().collect();
        let edit = ResourceEdit {
            replaces_origin: plan.replaces_all(),
            removals: plan.removals(old_entries),
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
        match self.server.change(&origin, plan.messages(), edit, manner) {
            Ok(_) => {
                plan.apply(entries.entry(collection).or_default());
                Verdict::Accept
            }
            Err(rejection) => {
                let findings = rejection.findings.iter();
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
            let verdict = tokio::task::spawn_blocking(move || owner.settle(delivery)).await;
            verdict.unwrap_or_else(|_| {
                // A panic, which was logged, or the end of the runtime.
                Verdict::Reject(vec![Rejected {
                    name: None,
                    reason: "the change could not be checked".to_owned(),
                }])
            })
        })
    }
}

/// Converts a finding of the server. The server names a field of a list of
/// resources, so the index leads to one of `names`; a finding of no resource
/// has no name.
fn describe(finding: &Finding, names: &[Name]) -> Rejected {
    let place = finding.place.field.as_deref().unwrap_or_default();
    let field = match finding.field.is_empty() {
        true => place,
        false => &finding.field,
    };
    let in_list = field.strip_prefix("resources[");
    let in_list = in_list.and_then(|suffix| suffix.split_once(']'));
    let resource_field = in_list.and_then(|(index, suffix)| {
        let name = names.get(index.parse::<usize>().ok()?)?;
        Some((name.clone(), suffix.trim_start_matches('.')))
    });
    let (name, field) = match resource_field {
        Some((name, field)) => (Some(name), field),
        None => (None, field),
    };
    let colon = if field.is_empty() { "" } else { ": " };
    Rejected {
        name,
        reason: format!("{field}{colon}{}", finding.fault),
    }
}
