//! The settings of a server.

use std::sync::Arc;

use super::Server;
use super::report::{Observer, Peer, Report};
use super::shared::Shared;

/// See [`Server::builder`].
#[derive(Default)]
pub struct Builder {
    identifier: Option<String>,
    observer: Option<Box<Observer>>,
}

impl Builder {
    /// What the server calls itself in its responses (S68).
    #[must_use]
    pub fn identifier(mut self, identifier: impl Into<String>) -> Self {
        self.identifier = Some(identifier.into());
        self
    }

    /// Who is told what happens on streams. It is called by the stream's own
    /// task, so it should be quick.
    #[must_use]
    pub fn observe(
        mut self,
        observer: impl Fn(Peer<'_>, Report<'_>) + Send + Sync + 'static,
    ) -> Self {
        self.observer = Some(Box::new(observer));
        self
    }

    /// The server, without contents.
    #[must_use]
    pub fn build(self) -> Server {
        let identifier = self.identifier.unwrap_or_else(|| "trunkline".to_owned());
        let observer = self.observer.unwrap_or_else(|| Box::new(|_, _| {}));
        Server {
            shared: Arc::new(Shared::new(identifier, observer)),
        }
    }
}

impl std::fmt::Debug for Builder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Builder")
            .field("identifier", &self.identifier)
            .finish_non_exhaustive()
    }
}
