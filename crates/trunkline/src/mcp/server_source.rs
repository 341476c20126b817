//! The contents of a server as the collections of a source.
//!
//! ```text
//!   files ─▶ Server: checked, the last good state ── hook ──▶ names that changed
//!                         │                                      │
//!                         └── read ──▶ resources of collections ◀┘ ──▶ McpSource
//! ```
//!
//! The server checks what it is given as it would for clients of xDS, so a
//! mistake is found before any sink hears of it.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use prost::Message as _;
use tokio::sync::Notify;
use trunkline_core::change::{Change, Transaction};
use trunkline_core::database::Database;
use trunkline_core::facts::{Facts, RareFacts};
use trunkline_core::name::Name;
use trunkline_core::params::Constraints;
use trunkline_core::resource::{Resource, TypeUrl};
use trunkline_proto::discovery::Any;
use trunkline_proto::mcp::{Collection, Metadata, Resource as McpResource};

use super::source::McpSource;
use super::{CONSTRAINTS, wire};
use crate::Server;
use crate::server::{Changed, Hooks};

/// Keeps the collections of a source equal to the contents of a server, of
/// which it is a hook.
#[derive(Clone, Debug, Default)]
pub struct ServerCollections {
    news: Arc<News>,
}

/// The variants that changed since they were read last. A name that changes
/// often is here once, so a source that is behind skips states.
#[derive(Debug, Default)]
struct News {
    variants: Mutex<BTreeSet<Variant>>,
    woken: Notify,
}

/// A variant of a name.
type Variant = (TypeUrl, Name, Option<Constraints>);

impl Hooks for ServerCollections {
    /// Notes the variants: their states are read when the source takes them.
    fn changed(&self, _: u64, _: &str, changed: &[Changed]) {
        let variants = changed.iter().map(|change| {
            let Changed {
                type_url,
                name,
                constraints,
                ..
            } = change;
            (type_url.clone(), name.clone(), constraints.clone())
        });
        self.news.lock().extend(variants);
        self.news.woken.notify_one();
    }
}

impl News {
    /// Locks the variants. Ignores poison: a set of names is never half
    /// changed.
    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeSet<Variant>> {
        self.variants.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ServerCollections {
    /// Brings the contents of the server to the source, as soon as the server
    /// is ready and then whenever they change. `first` is called once the
    /// source has the first of them: before that it must not be asked (S51).
    pub async fn run(self, server: Server, source: McpSource, first: impl FnOnce()) {
        server.ready().await;
        self.bring(&server, &source);
        first();
        loop {
            self.news.woken.notified().await;
            self.bring(&server, &source);
        }
    }

    /// Brings the variants that have changed, as one change; nothing if there
    /// are none.
    fn bring(&self, server: &Server, source: &McpSource) {
        let variants = std::mem::take(&mut *self.news.lock());
        if variants.is_empty() {
            return;
        }
        let changes: Transaction = server.read(|db| {
            let changes = variants.iter().map(|variant| change_of(db, variant));
            changes.collect()
        });
        if let Err(error) = source.apply(changes) {
            // Names of variants are made here, so none is there twice.
            tracing::error!(%error, "a change was not brought to the collections");
        }
    }
}

/// Returns the change of a collection that follows from a changed variant: its
/// upsert, or its removal if the server has it no more.
fn change_of(db: &Database, (type_url, name, constraints): &Variant) -> Change {
    let collection = TypeUrl::new(Collection::of_type_url(type_url.as_str()));
    let variants = db.find_type(type_url).map(|id| db.variants(id, name));
    let mut variants = variants.unwrap_or_default().iter();
    match variants.find(|variant| variant.constraints == *constraints) {
        Some(resource) => {
            let entry = to_collection(type_url, resource);
            Change::Upsert(collection, Arc::new(entry))
        }
        None => Change::Remove(collection, name_of(name, constraints.as_ref())),
    }
}

/// Returns the name of a variant in its collection.
fn name_of(name: &Name, constraints: Option<&Constraints>) -> Name {
    match constraints {
        None => name.clone(),
        Some(constraints) => Name::new(&format!("{name}[{constraints}]")),
    }
}

/// Converts a resource of a server into one of a collection. A resource of a
/// manifest is one already.
fn to_collection(type_url: &TypeUrl, resource: &Resource) -> Resource {
    let body = resource.body.clone().unwrap_or_default();
    if Collection::is_name(type_url.as_str())
        && let Ok(read) = McpResource::decode(body.clone())
    {
        return wire::to_core(read);
    }

    let constraints = resource.constraints.as_ref();
    let annotation = constraints.map(|text| (CONSTRAINTS.to_owned(), text.to_string()));
    let name = name_of(&resource.name, constraints);
    let mut entry = wire::to_core(McpResource {
        metadata: Some(Metadata {
            name: name.as_str().to_owned(),
            annotations: annotation.into_iter().collect(),
            ..Metadata::default()
        }),
        body: Some(Any {
            type_url: type_url.to_string(),
            value: body,
        }),
    });
    // Of the facts, only that the resource may not go to everybody concerns a
    // collection.
    if resource.facts().holds_keys() {
        let rare = RareFacts {
            holds_keys: true,
            ..RareFacts::default()
        };
        entry.facts = Some(Box::new(Facts {
            rare: rare.boxed(),
            ..Facts::default()
        }));
    }
    entry
}
