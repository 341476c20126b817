//! Changes of a server with a store: kept first, then made. What is kept is
//! durable: [`Store::commit`] returns when it is synced to the disk. A change
//! that may wait for others takes the way of `queue`.
//!
//! ```text
//! accepted edits ─▶ hooks may refuse ─▶ store.commit ─▶ database ─▶ hooks are told
//!                                          │ fails
//!                                          └─▶ the edits are rejected: nothing changed
//! ```
//!
//! The contents of all origins and other changes are locked meanwhile, so the
//! revision that a transaction will make is known before it is made.

use std::sync::Arc;
use std::time::Instant;

use trunkline_core::change::Change;
use trunkline_core::database::ApplyError;

use super::lease::Lifetime;
use super::precondition::Precondition;
use super::settle::{Applied, PART};
use super::shared::Shared;
use super::store::{
    LeaseChange, Store, StoreError, StoredTransaction, TransactionInfo, count_rows, now_in_millis,
};
use crate::checked::{AcceptedChanges, Edit, Effect, Keeping, Proposal, RowChange};

/// The terms on which a change is made.
#[derive(Clone, Debug, Default)]
pub struct Terms {
    /// What must hold.
    pub precondition: Precondition,
    /// What it means for the lease of its origin.
    pub lifetime: Lifetime,
    /// Its key, if it may be requested again, and the hash of the request. The
    /// store finds the change by its key.
    pub idempotency: Option<(String, u64)>,
    /// The revision whose contents it restores, if it does.
    pub restores: Option<u64>,
}

impl Terms {
    /// Returns whether these terms compare the contents with something. Then
    /// all changes before have to be made first.
    pub(super) fn compare_contents(&self) -> bool {
        self.precondition != Precondition::default() || self.idempotency.is_some()
    }
}

/// What a store is told of a change beside its rows.
#[derive(Clone, Copy)]
pub(super) struct Context<'a> {
    pub(super) author: &'a str,
    pub(super) origin: &'a str,
    pub(super) lease: LeaseChange,
    pub(super) terms: &'a Terms,
    /// Whether the store keeps it.
    pub(super) is_kept: bool,
}

/// The most resources that a change which waits for the store with others
/// writes: a larger one is made by itself.
const MOST_QUEUED: usize = 1000;

impl Shared {
    /// Returns whether a change may wait for the store together with others: the
    /// database and the hooks need not be asked before it is kept.
    pub(super) fn may_queue(&self, context: Context<'_>, proposal: &Proposal<'_>) -> bool {
        let is_small = |edit: &Edit| match edit {
            Edit::Resources(edit) => {
                !edit.replaces_origin && edit.document.items.len() <= MOST_QUEUED
            }
            Edit::Rows(_) | Edit::File { .. } => false,
        };
        self.store.is_some()
            && proposal.effect == Effect::Applied
            && proposal.edits.iter().all(is_small)
            && context.lease == LeaseChange::Kept
            && !context.terms.compare_contents()
            && !self.hooks.vetoes_changes()
    }

    /// Returns whether the rows of a change are kept, and so are to be listed.
    pub(super) fn keeping(&self, context: Context<'_>, effect: Effect) -> Keeping {
        let is_kept = context.is_kept && self.store.is_some() && effect == Effect::Applied;
        match is_kept {
            true => Keeping::Rows,
            false => Keeping::Nothing,
        }
    }

    /// Makes accepted changes. If there is a store and rows change, the store
    /// keeps them before.
    pub(super) fn apply_accepted(
        self: &Arc<Self>,
        context: Context<'_>,
        accepted: AcceptedChanges,
    ) -> Result<Applied, ApplyError> {
        let AcceptedChanges { changes, rows } = accepted;
        match &self.store {
            Some(store) if !rows.is_empty() => self.apply_kept(store, context, changes, rows),
            _ if self.is_first_load(&changes) => self.apply_first(context.author, changes),
            _ => self.apply(context.author, changes).map(Applied::from),
        }
    }

    /// Has the store keep changes, and makes them. If the database refuses them
    /// then, the store keeps their inverse.
    fn apply_kept(
        self: &Arc<Self>,
        store: &Arc<dyn Store>,
        context: Context<'_>,
        changes: Vec<Change>,
        rows: Vec<RowChange>,
    ) -> Result<Applied, ApplyError> {
        let (author, accepted) = (context.author, Instant::now());
        let _changing = self.lock_changing();
        if self.hooks.vetoes_changes() {
            let planned = self.preview(&changes);
            self.hooks.changing(author, &planned)?;
        }

        let is_first = self.is_first_load(&changes);
        let parts = match is_first {
            true => changes.len().div_ceil(PART),
            false => 1,
        };
        let revision = self.revision() + parts as u64;
        let transaction = context.transaction(revision, rows);
        let withdraw = |error: ApplyError| {
            self.hooks.withdrawn(author, &error);
            error
        };
        let kept = store.commit(std::slice::from_ref(&transaction));
        kept.map_err(|error| withdraw(refused(&error)))?;

        let applied = match is_first {
            true => self.apply_parts(author, changes, accepted),
            false => {
                let applied = self.apply_allowed(author, changes, accepted);
                applied.map(Applied::from)
            }
        };
        applied.map_err(|error| {
            // Resources that are beside the checked contents contradict these.
            // If this is not kept, the next start says so.
            let _ = store.commit(&[transaction.inverse(revision + 1)]);
            self.advance_revision(revision + 1);
            withdraw(error)
        })
    }

    /// Has the store keep a change of a lease that comes with no other change.
    /// It makes a revision. Does nothing without a store.
    ///
    /// # Errors
    /// It is not kept.
    pub(super) fn keep_lease(&self, context: Context<'_>) -> Result<(), StoreError> {
        let Some(store) = &self.store else {
            return Ok(());
        };
        let _changing = self.lock_changing();
        let revision = self.revision() + 1;
        store.commit(&[context.transaction(revision, Vec::new())])?;
        self.advance_revision(revision);
        Ok(())
    }

    /// Raises the revision to this one. No resource has changed, so all clients
    /// have it at once.
    pub(super) fn advance_revision(&self, revision: u64) {
        self.hub.advance_revision(revision);
        self.hub.wake();
    }
}

/// Makes the error of a change that a store did not keep.
pub(super) fn refused(error: &StoreError) -> ApplyError {
    ApplyError::Vetoed {
        reason: format!("the change cannot be kept: {error}"),
    }
}

impl Context<'_> {
    /// Makes the transaction of a store.
    pub(super) fn transaction(self, revision: u64, changes: Vec<RowChange>) -> StoredTransaction {
        StoredTransaction {
            info: TransactionInfo {
                revision,
                at: now_in_millis(),
                author: self.author.to_owned(),
                origin: self.origin.to_owned(),
                restores: self.terms.restores,
                counts: count_rows(&changes),
            },
            changes,
            lease: self.lease,
            repeatable: self.terms.idempotency.clone(),
        }
    }
}
