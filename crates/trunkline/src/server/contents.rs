//! Where contents come from.

use std::fmt;
use std::sync::Arc;

use trunkline_core::change::Change;
use trunkline_core::database::{ApplyError, Database};
use trunkline_core::name::Name;
use trunkline_core::params::Constraints;
use trunkline_core::resource::{TypeUrl, Version};

use super::hooks::BoxFuture;
use super::shared::Shared;

/// Something that fills a server: files, a database, another server.
///
/// A server with contents refuses streams until all of them said that they are
/// [loaded](Writer::loaded), so that what is not there yet is not taken for
/// gone (S51).
///
/// ```
/// use std::sync::Arc;
/// use trunkline::{BoxFuture, Change, Contents, Resource, Server, Writer, kind};
///
/// struct Fixed;
/// impl Contents for Fixed {
///     fn run(self: Arc<Self>, writer: Writer) -> BoxFuture<'static, ()> {
///         Box::pin(async move {
///             let cluster = Resource::new("backend".into(), "...".into());
///             let change = Change::Upsert(kind::CDS.into(), Arc::new(cluster));
///             if writer.apply("fixed", vec![change]).is_ok() {
///                 writer.loaded();
///             }
///         })
///     }
/// }
/// let server = Server::builder().contents(Fixed).build();
/// assert!(!server.is_ready());
/// ```
pub trait Contents: Send + Sync + 'static {
    /// Keeps the server's contents up to date for as long as it runs; started
    /// with the first call to [`Server::start`](super::Server::start) or
    /// [`Server::serve`](super::Server::serve).
    fn run(self: Arc<Self>, writer: Writer) -> BoxFuture<'static, ()>;

    /// A name that does not exist got its first subscriber: whoever can make
    /// contents on demand may do so now. Called by the stream's task; should be
    /// quick.
    fn wanted(&self, type_url: &TypeUrl, name: &Name) {
        let _ = (type_url, name);
    }

    /// A name lost its last subscriber.
    fn unwanted(&self, type_url: &TypeUrl, name: &Name) {
        let _ = (type_url, name);
    }
}

/// So that whoever fills a server can be kept in hand.
impl<C: Contents> Contents for Arc<C> {
    fn run(self: Arc<Self>, writer: Writer) -> BoxFuture<'static, ()> {
        Arc::clone(&*self).run(writer)
    }

    fn wanted(&self, type_url: &TypeUrl, name: &Name) {
        C::wanted(self, type_url, name);
    }

    fn unwanted(&self, type_url: &TypeUrl, name: &Name) {
        C::unwanted(self, type_url, name);
    }
}

/// By which contents reach a server; clones are the same one.
#[derive(Clone)]
pub struct Writer {
    pub(super) shared: Arc<Shared>,
    /// Which of the server's contents it belongs to.
    pub(super) place: usize,
}

impl Writer {
    /// Makes all changes, or none; then tells the streams that they concern.
    /// The origin says who made them, for logs.
    ///
    /// # Errors
    /// If the contents that would result are not sound; nothing has changed.
    pub fn apply(&self, origin: &str, changes: Vec<Change>) -> Result<Vec<Changed>, ApplyError> {
        self.shared.apply(origin, changes)
    }

    /// Says that the first contents are complete.
    pub fn loaded(&self) {
        self.shared.loaded(self.place);
    }
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer")
            .field("place", &self.place)
            .finish()
    }
}

/// What a change did to one variant of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    /// Its type.
    pub type_url: TypeUrl,
    /// Its name.
    pub name: Name,
    /// Which variant.
    pub constraints: Option<Constraints>,
    /// Its version before; `None` if it did not exist.
    pub from: Option<Version>,
    /// Its version now; `None` if it is gone.
    pub to: Option<Version>,
}

/// The variants that a transaction may change, as they are before it.
pub(super) struct Before(Vec<(TypeUrl, Name, Vec<Variant>)>);

type Variant = (Option<Constraints>, Version);

impl Before {
    pub(super) fn look(db: &Database, changes: &[Change]) -> Self {
        let mut names: Vec<(TypeUrl, Name)> = Vec::new();
        for change in changes {
            match change {
                Change::Upsert(url, resource) => names.push((url.clone(), resource.name.clone())),
                Change::Remove(url, name)
                | Change::RemoveVariant(url, name, _)
                | Change::Fail(url, name, _) => names.push((url.clone(), name.clone())),
                Change::ReplaceAll(url, resources) => {
                    let held = db.find_type(url).into_iter();
                    let held = held.flat_map(|id| db.resources(id)).chain(resources);
                    names.extend(held.map(|r| (url.clone(), r.name.clone())));
                }
            }
        }
        names.sort();
        names.dedup();
        let look = |(url, name): (TypeUrl, Name)| {
            let variants = variants(db, &url, &name);
            (url, name, variants)
        };
        Self(names.into_iter().map(look).collect())
    }

    /// What is different now.
    pub(super) fn compare(self, db: &Database) -> Vec<Changed> {
        let mut changed = Vec::new();
        for (type_url, name, before) in self.0 {
            let now = variants(db, &type_url, &name);
            let find = |all: &[Variant], which: &Option<Constraints>| {
                let found = all.iter().find(|(constraints, _)| constraints == which);
                found.map(|(_, version)| version.clone())
            };
            let gone = before.iter().filter(|(c, _)| find(&now, c).is_none());
            for (constraints, _) in now.iter().chain(gone) {
                let (from, to) = (find(&before, constraints), find(&now, constraints));
                if from != to {
                    changed.push(Changed {
                        type_url: type_url.clone(),
                        name: name.clone(),
                        constraints: constraints.clone(),
                        from,
                        to,
                    });
                }
            }
        }
        changed
    }
}

fn variants(db: &Database, url: &TypeUrl, name: &Name) -> Vec<Variant> {
    let found = db.find_type(url).map(|id| db.variants(id, name));
    let variants = found.unwrap_or_default().iter();
    variants
        .map(|r| (r.constraints.clone(), r.version.clone()))
        .collect()
}
