//! Follows a secret, and keeps the newest material that is good.

use std::sync::{Arc, PoisonError, RwLock};

use tokio::sync::watch;
use tokio::task::AbortHandle;
use trunkline_proto::envoy::envoy::extensions::transport_sockets::tls::v3::Secret;

use super::SecretError;
use crate::client::{State, Watch};

/// The newest good material of a secret. The task that follows the secret ends
/// with it.
pub(super) struct Followed<M> {
    current: Arc<RwLock<Option<Arc<M>>>>,
    /// What is wrong with the newest state of the secret; the first state is
    /// not there yet while it is `None` and there is no material.
    problem: watch::Receiver<Option<SecretError>>,
    /// `None` for material that does not change.
    task: Option<AbortHandle>,
}

impl<M: Send + Sync + 'static> Followed<M> {
    /// Starts a task in the present runtime that converts every secret of a
    /// watch. A secret that `convert` rejects leaves the last good material in
    /// use.
    pub(super) fn start(
        mut watch: Watch<Secret>,
        convert: impl Fn(&Secret) -> Result<M, SecretError> + Send + 'static,
    ) -> Self {
        let current: Arc<RwLock<Option<Arc<M>>>> = Arc::default();
        let (problem_sender, problem) = watch::channel(None);
        let shared_material = Arc::clone(&current);

        let task = tokio::spawn(async move {
            loop {
                let result = match watch.changed().await {
                    State::Pending => continue,
                    State::Ready(secret) | State::Stale(secret, _) => convert(&secret),
                    State::Failed(error) => Err(SecretError::Missing(error)),
                };
                let problem = match result {
                    Ok(material) => {
                        let mut current = shared_material
                            .write()
                            .unwrap_or_else(PoisonError::into_inner);
                        *current = Some(material.into());
                        None
                    }
                    Err(error) => {
                        tracing::warn!(%error, "a secret cannot be used; the last good one is, if any");
                        Some(error)
                    }
                };
                problem_sender.send_replace(problem);
            }
        });

        Self {
            current,
            problem,
            task: Some(task.abort_handle()),
        }
    }

    /// Wraps material that does not change: there is no task behind it.
    #[cfg(feature = "channel")]
    pub(super) fn fixed(material: M) -> Self {
        let (_, problem) = watch::channel(None);
        Self {
            current: Arc::new(RwLock::new(Some(Arc::new(material)))),
            problem,
            task: None,
        }
    }

    /// Returns the newest good material; `None` if there was none yet.
    pub(super) fn current(&self) -> Option<Arc<M>> {
        self.current
            .read()
            .unwrap_or_else(|e| e.into_inner())
            .clone()
    }

    /// Returns what is wrong with the newest state of the secret.
    pub(super) fn problem(&self) -> Option<SecretError> {
        self.problem.borrow().clone()
    }

    /// Waits until there is material to use.
    ///
    /// # Errors
    /// There is none, and the newest secret cannot be used, or nobody follows
    /// the secret any more.
    pub(super) async fn ready(&self) -> Result<(), SecretError> {
        let mut problem = self.problem.clone();
        loop {
            if self.current().is_some() {
                return Ok(());
            }
            if let Some(error) = problem.borrow_and_update().clone() {
                return Err(error);
            }
            if problem.changed().await.is_err() {
                return Err(SecretError::Lacks("a client that follows it"));
            }
        }
    }
}

impl<M> Drop for Followed<M> {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}
