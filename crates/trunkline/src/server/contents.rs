//! Where contents come from.

use std::fmt;
use std::sync::Arc;

use trunkline_core::change::Change;
use trunkline_core::database::{ApplyError, ChangedName};
use trunkline_core::name::Name;
use trunkline_core::params::Constraints;
use trunkline_core::resource::{Resource, TypeUrl, Version};

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

impl Changed {
    /// What became different under a name.
    pub(super) fn of(made: ChangedName<'_>) -> impl Iterator<Item = Self> + '_ {
        let find = |all: &[Arc<Resource>], which: &Resource| {
            let found = all.iter().find(|r| r.constraints == which.constraints);
            found.map(|r| r.version.clone())
        };
        let (before, after) = (made.before, made.after);
        let gone = before.iter().filter(move |r| find(after, r).is_none());
        after.iter().chain(gone).filter_map(move |which| {
            let (from, to) = (find(before, which), find(after, which));
            (from != to).then(|| Self {
                type_url: made.type_url.clone(),
                name: made.name.clone(),
                constraints: which.constraints.clone(),
                from,
                to,
            })
        })
    }
}
