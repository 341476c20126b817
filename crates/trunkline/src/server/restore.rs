//! The way back of contents that a store has kept.
//!
//! The database is given the contents of some transactions ago, and then these
//! transactions. So it knows which names were removed and which bodies were
//! replaced, as if it had run all the time: a client that reconnects may have
//! them (S75, S82).

use std::collections::HashMap;
use std::sync::Arc;

use trunkline_core::change::Change;
use trunkline_core::database::{ApplyError, ChangedName, Commit};

use super::contents::Changed;
use super::lease::Lifetime;
use super::set::Rejected;
use super::settle::in_parts;
use super::shared::Shared;
use super::store::Kept;
use crate::checked::{
    AcceptedChanges, Dangling, Edit, Effect, Fault, Finding, Guard, Keeping, Proposal, Row,
    RowChange, RowEdit, RowKey,
};

/// The origin of a proposal that has all of them.
const STORE: &str = "store";

impl Shared {
    /// Makes the contents those that a store has kept. To be called before
    /// anything else is done. Hooks are not told: nothing has changed.
    pub(super) fn restore(self: &Arc<Self>, kept: Kept) -> Result<(), Rejected> {
        let loaded = self.load_earlier(&kept.rows, &kept.recent);
        loaded.map_err(|error| Rejected {
            findings: vec![Finding::whole(&Arc::default(), Fault::Refused(error))],
        })?;

        let rows = kept.rows.into_iter();
        let rows = rows.map(|(key, row)| (key, Some(row))).collect();
        let proposal = Proposal {
            origin: STORE,
            edits: vec![Edit::Rows(RowEdit { rows })],
            dangling: Dangling::Warn,
            is_complete: true,
            effect: Effect::Applied,
            guard: Guard::Off,
        };
        let made = |_: AcceptedChanges| Ok(());
        let mut set = self.lock_set();
        let mut settlement = set.settle_rows(proposal, Keeping::Nothing, made);
        if let Some(rejection) = settlement.rejections.pop() {
            return Err(Rejected {
                findings: rejection.findings,
            });
        }
        drop(set);
        self.advance_revision(kept.revision);
        for (origin, ttl) in kept.leases {
            // From the beginning: its writer could not renew it.
            let _ = self.set_lifetime(&origin, Lifetime::Leased(ttl));
        }
        Ok(())
    }

    /// Gives the database the rows that the store has now, by way of the state
    /// before the recent changes and then these changes.
    fn load_earlier(
        &self,
        rows: &[(RowKey, Row)],
        recent: &[Vec<RowChange>],
    ) -> Result<(), ApplyError> {
        let mut earlier: HashMap<&RowKey, Option<&Row>> = HashMap::new();
        for change in recent.iter().rev().flatten() {
            earlier.insert(&change.key, change.before.as_ref());
        }
        let untouched = rows.iter().filter(|(key, _)| !earlier.contains_key(key));
        let untouched = untouched.map(|(key, row)| put(key, Some(row)));
        let touched = earlier.iter().filter(|(_, row)| row.is_some());
        let touched = touched.map(|(key, row)| put(key, *row));
        let first: Vec<Change> = untouched.chain(touched).collect();
        in_parts(first, |part| self.load_part(part), |_| ())?;

        let put_after = |change: &RowChange| put(&change.key, change.after.as_ref());
        let steps = recent.iter().try_for_each(|changes| {
            let changes = changes.iter().map(put_after).collect();
            self.load_part(changes).map(drop)
        });
        // A stricter release may refuse a state in between, which was served
        // once and will not be again.
        steps.or_else(|_| {
            let now: HashMap<&RowKey, &Row> = rows.iter().map(|(key, row)| (key, row)).collect();
            let changes = earlier.keys().map(|key| put(key, now.get(key).copied()));
            self.load_part(changes.collect()).map(drop)
        })
    }

    /// Makes changes of which neither the hooks nor the watchers are told.
    /// Returns an empty list, and the revision that they made.
    fn load_part(&self, changes: Vec<Change>) -> Result<(Vec<Changed>, u64), ApplyError> {
        let nothing = |_: ChangedName<'_>, _: &mut Vec<Changed>| ();
        self.hub.apply(Commit::new(changes)?, nothing, || None)
    }
}

/// Returns the change that makes a variant what a row is; `None` is no row.
fn put(key: &RowKey, row: Option<&Row>) -> Change {
    match row {
        Some(row) => Change::Upsert(key.type_url.clone(), Arc::clone(&row.resource)),
        None => Change::RemoveVariant(
            key.type_url.clone(),
            key.name.clone(),
            key.constraints.clone(),
        ),
    }
}
