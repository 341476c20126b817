//! The end of leases: the resources of a writer that is gone are removed, in a
//! change that the guard may hold.
//!
//! One task looks after all leases. It looks at the clock several times in the
//! shortest one, not to find leases that end, but to find that it did not run:
//! a server that was suspended or stopped has not heard the renewals, and must
//! not take its writers for dead. Nor must it when most of them are silent at
//! once: then the way to the server is cut.

use std::sync::{Arc, Weak};

use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};

use super::keeping::{self, Context, Terms};
use super::lease::{LeaseEvent, Lifetime};
use super::leases::Silence;
use super::set::Accepted;
use super::settle::{Applied, reject_all};
use super::shared::Shared;
use super::store::LeaseChange;
use crate::checked::{
    ContentSet, Dangling, Document, Edit, Effect, Fault, Finding, Guard, Proposal, ResourceEdit,
    Settlement,
};

impl Shared {
    /// Does to the lease of an origin what an accepted change asks for. Returns
    /// a warning if the origin has lost its lease. The caller has locked the
    /// contents of all origins.
    pub(super) fn set_lifetime(
        self: &Arc<Self>,
        origin: &str,
        lifetime: Lifetime,
    ) -> Option<Finding> {
        match lifetime {
            Lifetime::Kept => None,
            Lifetime::Permanent => self.leases.forget(origin).then(|| {
                let origin = origin.into();
                Finding::whole(&Arc::default(), Fault::LeaseEnded { origin })
            }),
            Lifetime::Leased(ttl) => {
                self.leases.grant(origin, ttl, || self.start_expiry());
                None
            }
        }
    }

    /// Ends the lease of an origin, and removes its resources unless that is
    /// held; `None` if it has no lease.
    pub(super) fn end_lease(
        self: &Arc<Self>,
        author: &str,
        origin: &str,
        guard: Guard,
    ) -> Option<Settlement<Applied>> {
        let mut set = self.lock_set();
        let has_lease = self.leases.end(origin);
        has_lease.then(|| self.remove_leased(&mut set, author, origin, guard))
    }

    /// Starts the task of all leases; `None` without a runtime.
    fn start_expiry(self: &Arc<Self>) -> Option<JoinHandle<()>> {
        let runtime = tokio::runtime::Handle::try_current().ok()?;
        let (shared, changed) = (Arc::downgrade(self), Arc::clone(&self.leases.changed));
        Some(runtime.spawn(expire_leases(shared, changed)))
    }

    /// Removes the resources of a lease that was not renewed, and tells the
    /// hooks. Does nothing if the lease was renewed while the contents were
    /// waited for.
    fn expire(self: &Arc<Self>, origin: &str) {
        let mut set = self.lock_set();
        let Some(held_before) = self.leases.end_due(origin, self.revision()) else {
            return;
        };
        let author = format!("lease of {origin}");
        let mut settlement = self.remove_leased(&mut set, &author, origin, Guard::On);
        drop(set);

        let findings = settlement
            .rejections
            .pop()
            .map(|rejection| rejection.findings);
        match findings.as_deref() {
            None => {
                let removed = &Accepted {
                    applied: settlement.applied.unwrap_or_default(),
                    warnings: settlement.warnings,
                };
                self.hooks.lease(LeaseEvent::Expired { origin, removed });
            }
            // Nobody wants to hear the same again and again.
            Some([finding, ..]) if held_before.as_ref() != Some(finding) => {
                self.hooks.lease(LeaseEvent::Held { origin, finding });
            }
            Some(_) => {}
        }
    }

    /// Removes all resources of an origin whose lease has ended. If that is
    /// held, the lease stays as one that has ended.
    fn remove_leased(
        self: &Arc<Self>,
        set: &mut ContentSet,
        author: &str,
        origin: &str,
        guard: Guard,
    ) -> Settlement<Applied> {
        let terms = Terms::default();
        let context = Context {
            author,
            origin,
            lease: LeaseChange::Ends,
            terms: &terms,
            is_kept: true,
        };

        let mut settlement = self.settle_in(set, context, propose_removal(origin, guard));
        if settlement.applied.is_none()
            && settlement.rejections.is_empty()
            && let Err(error) = self.keep_lease(context)
        {
            settlement = reject_all(Fault::Refused(keeping::refused(&error)));
        }

        let rejection = settlement.rejections.first();
        match rejection.and_then(|rejection| rejection.findings.first()) {
            Some(finding) => self.leases.hold(origin, finding.clone(), self.revision()),
            None => {
                self.leases.forget(origin);
            }
        }
        settlement
    }
}

/// Returns the proposal to remove all resources of an origin.
fn propose_removal(origin: &str, guard: Guard) -> Proposal<'_> {
    let edit = ResourceEdit {
        replaces_origin: true,
        ..ResourceEdit::of_document(Document::empty(&"".into()))
    };
    Proposal {
        origin,
        edits: vec![Edit::Resources(edit)],
        // A writer that is gone cannot mend references of others.
        dangling: Dangling::Warn,
        is_complete: true,
        effect: Effect::Applied,
        guard,
    }
}

/// Ends leases when they are due, as long as there are leases and the server
/// lives.
async fn expire_leases(shared: Weak<Shared>, changed: Arc<Notify>) {
    let live = || shared.upgrade().filter(|s| !s.stopped.is_cancelled());
    let next_look = || {
        let shared = live()?;
        shared.leases.next_look(Instant::now(), shared.revision())
    };
    let mut silence = None;
    while let Some(look) = next_look() {
        tokio::select! {
            () = sleep_until(look.time) => {}
            () = changed.notified() => {}
        }
        let Some(shared) = live() else {
            return;
        };

        let now = Instant::now();
        if now > look.latest {
            let leases = shared.leases.restart(now);
            let late = now.duration_since(look.time);
            shared.hooks.lease(LeaseEvent::Restarted { late, leases });
            continue;
        }

        let silence_before = std::mem::replace(&mut silence, shared.leases.silence(now));
        match silence {
            Some(Silence { late, leases }) if silence_before.is_none() => {
                shared.hooks.lease(LeaseEvent::Silence { late, leases });
            }
            _ => {}
        }

        let origins = shared.leases.due(now, shared.revision());
        if origins.is_empty() {
            continue;
        }
        // To remove many resources takes long, and streams must not wait.
        let expire = move || origins.iter().for_each(|origin| shared.expire(origin));
        // An error is a panic, which was reported; other leases go on.
        let _ = tokio::task::spawn_blocking(expire).await;
    }
}
