//! Contents that come by `apply`, over the admin API.

use std::sync::{Arc, Mutex, PoisonError};

use trunkline::{BoxFuture, Contents, Writer};

/// The contents of a server without files. They count as loaded with the first
/// `apply`: until then nothing is known, and a server that knows nothing must
/// not tell its clients that nothing exists (S51).
#[derive(Debug, Default)]
pub(crate) struct AppliedContents(Mutex<FirstApply>);

/// Whether the first `apply` has come, and the writer to tell.
#[derive(Debug, Default)]
struct FirstApply {
    writer: Option<Writer>,
    is_applied: bool,
}

impl AppliedContents {
    /// Notes that an `apply` was accepted as a whole. The server is ready from
    /// the first one on.
    pub(crate) fn note_applied(&self) {
        self.update(|first| first.is_applied = true);
    }

    /// Changes the state, and tells the writer if both are there.
    fn update(&self, change: impl FnOnce(&mut FirstApply)) {
        let mut first = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut first);
        if let Some(writer) = first.writer.as_ref().filter(|_| first.is_applied) {
            writer.loaded();
        }
    }
}

impl Contents for AppliedContents {
    fn run(self: Arc<Self>, writer: Writer) -> BoxFuture<'static, ()> {
        self.update(|first| first.writer = Some(writer));
        Box::pin(std::future::pending())
    }
}
