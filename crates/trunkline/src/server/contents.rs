//! Sources of a server's resources.

use std::fmt;
use std::sync::Arc;

use trunkline_core::change::Change;
use trunkline_core::database::{ApplyError, ChangedName};
use trunkline_core::name::Name;
use trunkline_core::params::Constraints;
use trunkline_core::resource::{Resource, TypeUrl, Version};

use super::hooks::BoxFuture;
use super::lease::Lifetime;
use super::settle::Applied;
use super::shared::Shared;
use crate::checked::{ContentSet, Proposal, Settlement};

/// A source of a server's resources: files, a database, another server.
///
/// A server with contents refuses streams until all of them are
/// [loaded](Writer::loaded), so that a resource that is not loaded yet is not
/// taken for removed (S51).
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
    /// Keeps the server's resources up to date for as long as it runs; started
    /// with the first call to [`Server::start`](super::Server::start) or
    /// [`Server::serve`](super::Server::serve).
    fn run(self: Arc<Self>, writer: Writer) -> BoxFuture<'static, ()>;

    /// Called when a name that does not exist gets its first subscriber, so
    /// that contents can be made on demand. Called by the stream's task; should
    /// be quick.
    fn subscribed(&self, type_url: &TypeUrl, name: &Name) {
        let _ = (type_url, name);
    }

    /// Called when a name loses its last subscriber, by the stream's task;
    /// should be quick.
    fn unsubscribed(&self, type_url: &TypeUrl, name: &Name) {
        let _ = (type_url, name);
    }

    /// Called when a held change was [confirmed](super::Server::confirm), so
    /// that contents whose change was held propose it again; should be quick.
    fn confirmed(&self) {}
}

/// Lets an embedder keep a handle on its contents.
impl<C: Contents> Contents for Arc<C> {
    fn run(self: Arc<Self>, writer: Writer) -> BoxFuture<'static, ()> {
        Arc::clone(&*self).run(writer)
    }

    fn subscribed(&self, type_url: &TypeUrl, name: &Name) {
        C::subscribed(self, type_url, name);
    }

    fn unsubscribed(&self, type_url: &TypeUrl, name: &Name) {
        C::unsubscribed(self, type_url, name);
    }

    fn confirmed(&self) {
        C::confirmed(self);
    }
}

/// Changes a server's resources on behalf of its [`Contents`]; clones are the
/// same one.
///
/// ```
/// use trunkline::{Change, Name, Writer, kind};
///
/// fn remove(writer: &Writer, name: Name) {
///     if let Err(error) = writer.apply("cleanup", vec![Change::Remove(kind::CDS.into(), name)]) {
///         eprintln!("nothing was removed: {error}");
///     }
/// }
/// # let _ = remove;
/// ```
#[derive(Clone)]
pub struct Writer {
    pub(super) shared: Arc<Shared>,
    /// The index of the contents that it belongs to.
    pub(super) place: usize,
}

impl Writer {
    /// Applies all changes, or none; then wakes the streams that they concern.
    /// The origin says who made them, for logs.
    ///
    /// # Errors
    /// If the resources that would result are not sound; nothing has changed.
    pub fn apply(&self, origin: &str, changes: Vec<Change>) -> Result<Vec<Changed>, ApplyError> {
        let (changed, _) = self.shared.apply(origin, changes)?;
        Ok(changed)
    }

    /// Settles changes that an origin proposes with the contents of all
    /// origins, and applies them. The author is whoever made the changes: hooks
    /// are told, for logs.
    pub fn settle(&self, author: &str, proposal: Proposal<'_>) -> Settlement<Applied> {
        self.shared.settle(author, proposal, Lifetime::Kept)
    }

    /// Applies all resources of an origin, whose proposals were
    /// [held](crate::checked::Effect::Held) so far.
    ///
    /// # Errors
    /// If the resources that would result are not sound; nothing has changed.
    pub fn apply_held(&self, author: &str, origin: &str) -> Result<(), ApplyError> {
        self.shared.apply_held(author, origin)
    }

    /// Returns the server that it writes to.
    #[cfg(feature = "mcp")]
    pub(crate) fn server(&self) -> super::Server {
        super::Server {
            shared: Arc::clone(&self.shared),
        }
    }

    /// Reads the contents of all origins.
    pub fn read_set<T>(&self, look: impl FnOnce(&ContentSet) -> T) -> T {
        look(&self.shared.lock_set())
    }

    /// Declares the first load complete. With that of all other contents the
    /// server is ready (S51).
    pub fn loaded(&self) {
        self.shared.note_loaded(self.place);
    }
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer")
            .field("place", &self.place)
            .finish()
    }
}

/// The effect of a change on one variant of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    /// Its type.
    pub type_url: TypeUrl,
    /// Its name.
    pub name: Name,
    /// The constraints of the variant.
    pub constraints: Option<Constraints>,
    /// Its version before; `None` if it did not exist.
    pub from: Option<Version>,
    /// Its version now; `None` if it is removed.
    pub to: Option<Version>,
}

impl Changed {
    /// Lists the variants of a name that became different: those that are there
    /// now, then those that were removed. A variant is the same one if its
    /// constraints are.
    pub(super) fn of(changed: ChangedName<'_>) -> impl Iterator<Item = Self> + '_ {
        let (before, after) = (changed.before, changed.after);
        let removed = before
            .iter()
            .filter(move |variant| version_in(after, variant).is_none());
        let variants = after.iter().chain(removed);

        variants.filter_map(move |variant| {
            let from = version_in(before, variant);
            let to = version_in(after, variant);
            (from != to).then(|| Self {
                type_url: changed.type_url.clone(),
                name: changed.name.clone(),
                constraints: variant.constraints.clone(),
                from,
                to,
            })
        })
    }
}

/// Returns the version of a variant in a list of variants; `None` if it is not
/// there.
fn version_in(variants: &[Arc<Resource>], variant: &Resource) -> Option<Version> {
    let is_same = |other: &&Arc<Resource>| other.constraints == variant.constraints;
    variants
        .iter()
        .find(is_same)
        .map(|variant| variant.version.clone())
}
