//! All hooks of a server as one.

use std::time::Duration;

use tonic::Status;
use trunkline_core::database::ApplyError;
use trunkline_core::resource::TypeUrl;

use super::contents::Changed;
use super::hooks::{Call, Hooks, Limit};
use super::lease::LeaseEvent;
use super::report::{Peer, Report};

/// The hooks of a server. Each is told of every event; a decision has to be
/// allowed by all.
#[derive(Default)]
pub(super) struct HookSet(pub(super) Vec<Box<dyn Hooks>>);

impl HookSet {
    /// Returns whether there are any hooks.
    pub(super) fn has_any(&self) -> bool {
        !self.0.is_empty()
    }

    /// Asks all hooks, in their order, until one refuses; its status is the
    /// error. Returns the first identity that one of them knows; `None` if none
    /// does.
    pub(super) async fn authenticate(&self, call: &Call) -> Result<Option<String>, Status> {
        let mut identity = None;
        for hooks in &self.0 {
            let hook_identity = hooks.authenticate(call).await?;
            identity = identity.or(hook_identity);
        }
        Ok(identity)
    }

    /// Returns whether all hooks let a client see a type.
    pub(super) fn authorise(&self, peer: Peer<'_>, type_url: &TypeUrl) -> bool {
        self.0.iter().all(|hooks| hooks.authorise(peer, type_url))
    }

    /// Tells all hooks what happened on a stream.
    pub(super) fn report(&self, peer: Peer<'_>, report: Report<'_>) {
        for hooks in &self.0 {
            hooks.report(peer, report);
        }
    }

    /// Returns whether one of the hooks reads requests.
    pub(super) fn reads_requests(&self) -> bool {
        self.0.iter().any(|hooks| hooks.reads_requests())
    }

    /// Returns whether one of the hooks decides about changes.
    pub(super) fn vetoes_changes(&self) -> bool {
        self.0.iter().any(|hooks| hooks.vetoes_changes())
    }

    /// Asks all hooks about a change, in their order, until one refuses it.
    /// Those that had allowed it are told that it is withdrawn.
    pub(super) fn changing(&self, origin: &str, changed: &[Changed]) -> Result<(), ApplyError> {
        for (index, hooks) in self.0.iter().enumerate() {
            if let Err(reason) = hooks.changing(origin, changed) {
                let veto = ApplyError::Vetoed { reason };
                for earlier in &self.0[..index] {
                    earlier.withdrawn(origin, &veto);
                }
                return Err(veto);
            }
        }
        Ok(())
    }

    /// Tells all hooks that a change which they allowed was refused.
    pub(super) fn withdrawn(&self, origin: &str, reason: &ApplyError) {
        for hooks in &self.0 {
            hooks.withdrawn(origin, reason);
        }
    }

    /// Tells all hooks of a change that was made.
    pub(super) fn changed(&self, revision: u64, origin: &str, changed: &[Changed]) {
        for hooks in &self.0 {
            hooks.changed(revision, origin, changed);
        }
    }

    /// Tells all hooks how long a change took to reach its subscribers.
    pub(super) fn converged(&self, took: Duration) {
        for hooks in &self.0 {
            hooks.converged(took);
        }
    }

    /// Tells all hooks how long a change took to its first response.
    pub(super) fn pushed(&self, type_url: &TypeUrl, took: Duration) {
        for hooks in &self.0 {
            hooks.pushed(type_url, took);
        }
    }

    /// Tells all hooks what happened to leases.
    pub(super) fn lease(&self, event: LeaseEvent<'_>) {
        for hooks in &self.0 {
            hooks.lease(event);
        }
    }

    /// Tells all hooks that a limit was met.
    pub(super) fn limited(&self, limit: Limit) {
        for hooks in &self.0 {
            hooks.limited(limit);
        }
    }
}
