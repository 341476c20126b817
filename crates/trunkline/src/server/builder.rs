//! Building a server.

use std::sync::{Arc, Weak};

use super::Server;
use super::contents::Contents;
use super::hook_set::HookSet;
use super::hooks::{Hooks, Observe};
use super::options::Options;
use super::report::{Peer, Report};
use super::shared::Shared;
use super::store::Store;

/// Builds a [`Server`].
///
/// ```
/// use trunkline::{Report, Server};
///
/// let server = Server::builder()
///     .identifier("plane-1")
///     .options(|options| options.max_age = None)
///     .observe(|peer, report| {
///         if let Report::Closed = report {
///             println!("stream {} of {} has ended", peer.stream, peer.node);
///         }
///     })
///     .build();
/// assert!(server.is_ready());
/// ```
#[derive(Default)]
pub struct Builder {
    options: Options,
    hooks: HookSet,
    contents: Vec<Arc<dyn Contents>>,
    store: Option<Arc<dyn Store>>,
}

impl Builder {
    /// Sets the name of the server in its responses (S68).
    #[must_use]
    pub fn identifier(mut self, identifier: impl Into<String>) -> Self {
        self.options.identifier = identifier.into();
        self
    }

    /// Changes settings.
    ///
    /// ```
    /// let server = trunkline::Server::builder()
    ///     .options(|options| options.streams = 5_000)
    ///     .build();
    /// ```
    #[must_use]
    pub fn options(mut self, change: impl FnOnce(&mut Options)) -> Self {
        change(&mut self.options);
        self
    }

    /// Adds hooks. There may be several: each is told, and each may object.
    #[must_use]
    pub fn hooks(mut self, hooks: impl Hooks) -> Self {
        self.hooks.0.push(Box::new(hooks));
        self
    }

    /// Adds an observer of streams, which each stream's own task calls.
    #[must_use]
    pub fn observe(self, observer: impl Fn(Peer<'_>, Report<'_>) + Send + Sync + 'static) -> Self {
        self.hooks(Observe(observer))
    }

    /// Adds a source of resources; until all of them are loaded, the server is
    /// not ready (S51).
    #[must_use]
    pub fn contents(mut self, contents: impl Contents) -> Self {
        self.contents.push(Arc::new(contents));
        self
    }

    /// Has a store keep all contents but those of files. What it has kept is
    /// served once the server has [restored](Server::restore) it.
    #[must_use]
    pub fn store(mut self, store: Arc<dyn Store>) -> Self {
        self.store = Some(store);
        self
    }

    /// Builds the server. Its contents are started later, by [`Server::start`].
    #[must_use]
    pub fn build(self) -> Server {
        let new = |this: &Weak<Shared>| {
            Shared::new(self.options, self.hooks, self.contents, self.store, this)
        };
        Server {
            shared: Arc::new_cyclic(new),
        }
    }
}

impl std::fmt::Debug for Builder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Builder")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}
