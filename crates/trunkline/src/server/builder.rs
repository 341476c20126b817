//! How a server is made.

use std::sync::Arc;

use super::Server;
use super::contents::Contents;
use super::hook_set::HookSet;
use super::hooks::{Hooks, Observe};
use super::options::Options;
use super::report::{Peer, Report};
use super::shared::Shared;

/// See [`Server::builder`].
#[derive(Default)]
pub struct Builder {
    options: Options,
    hooks: HookSet,
    contents: Vec<Arc<dyn Contents>>,
}

impl Builder {
    /// What the server calls itself in its responses (S68).
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

    /// Adds somebody who takes part. There may be several: each is told, and
    /// each may object.
    #[must_use]
    pub fn hooks(mut self, hooks: impl Hooks) -> Self {
        self.hooks.0.push(Box::new(hooks));
        self
    }

    /// Adds somebody who is told what happens on streams, called by the
    /// stream's own task.
    #[must_use]
    pub fn observe(self, observer: impl Fn(Peer<'_>, Report<'_>) + Send + Sync + 'static) -> Self {
        self.hooks(Observe(observer))
    }

    /// Adds something that fills the server; until all of them are loaded, the
    /// server is not ready (S51).
    #[must_use]
    pub fn contents(mut self, contents: impl Contents) -> Self {
        self.contents.push(Arc::new(contents));
        self
    }

    /// The server.
    #[must_use]
    pub fn build(self) -> Server {
        let shared =
            Arc::new_cyclic(|this| Shared::new(self.options, self.hooks, self.contents, this));
        Server { shared }
    }
}

impl std::fmt::Debug for Builder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Builder")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}
