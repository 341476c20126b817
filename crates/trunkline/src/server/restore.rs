//! The way back of contents that a store has kept.
//!
//! The database is given the contents of some transactions ago, and then these
//! transactions. So it knows which names were removed and which bodies were
//! replaced, as if it had run all the time: a client that reconnects may have
//! them (S75, S82).

use std::collections::HashMap;
use std::sync::Arc;
use std::thread;

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
        let steps = LoadSteps::of(&kept.rows, &kept.recent);
        // Neither the database nor the checked contents needs the other to be
        // filled, and each takes a core for seconds if there are a million rows.
        let (loaded, settled) = thread::scope(|scope| {
            let loading = scope.spawn(|| self.load(steps));
            let settled = self.settle_stored(kept.rows);
            (loading.join(), settled)
        });
        let loaded = loaded.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        loaded.map_err(|error| Rejected {
            findings: vec![Finding::whole(&Arc::default(), Fault::Refused(error))],
        })?;
        settled?;

        self.advance_revision(kept.revision);
        for (origin, ttl) in kept.leases {
            // From the beginning: its writer could not renew it.
            let _ = self.set_lifetime(&origin, Lifetime::Leased(ttl));
        }
        Ok(())
    }

    /// Fills the checked contents with the rows of a store.
    fn settle_stored(&self, rows: Vec<(RowKey, Row)>) -> Result<(), Rejected> {
        let rows = rows.into_iter();
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
        let mut settlement = self
            .lock_set()
            .settle_rows(proposal, Keeping::Nothing, made);
        match settlement.rejections.pop() {
            None => Ok(()),
            Some(rejection) => Err(Rejected {
                findings: rejection.findings,
            }),
        }
    }

    /// Fills the database in steps.
    fn load(&self, steps: LoadSteps) -> Result<(), ApplyError> {
        in_parts(steps.earlier, |part| self.load_part(part), |_| ())?;
        let mut recent = steps.recent.into_iter();
        let loaded = recent.try_for_each(|changes| self.load_part(changes).map(drop));
        // A stricter release may refuse a state in between, which was served
        // once and will not be again.
        loaded.or_else(|_| self.load_part(steps.skip_recent).map(drop))
    }

    /// Makes changes of which neither the hooks nor the watchers are told.
    /// Returns an empty list, and the revision that they made.
    fn load_part(&self, changes: Vec<Change>) -> Result<(Vec<Changed>, u64), ApplyError> {
        let nothing = |_: ChangedName<'_>, _: &mut Vec<Changed>| ();
        self.hub.apply(Commit::new(changes)?, nothing, || None)
    }
}

/// The changes that give the database the rows of a store, by way of the state
/// before the recent changes: clients that reconnect may have resources of then.
struct LoadSteps {
    /// Makes the state before the recent changes.
    earlier: Vec<Change>,
    /// The recent changes, oldest first.
    recent: Vec<Vec<Change>>,
    /// Makes at once, of any state between, the state after them.
    skip_recent: Vec<Change>,
}

impl LoadSteps {
    /// Lists the steps to the rows of a store whose last changes are `recent`.
    fn of(rows: &[(RowKey, Row)], recent: &[Vec<RowChange>]) -> Self {
        let mut earlier_rows: HashMap<&RowKey, Option<&Row>> = HashMap::new();
        for change in recent.iter().rev().flatten() {
            earlier_rows.insert(&change.key, change.before.as_ref());
        }

        let mut earlier = Vec::with_capacity(rows.len());
        let mut newest_rows: HashMap<&RowKey, &Row> = HashMap::new();
        for (key, row) in rows {
            match earlier_rows.contains_key(key) {
                true => _ = newest_rows.insert(key, row),
                false => earlier.push(put(key, Some(row))),
            }
        }
        let replaced_rows = earlier_rows.iter().filter(|(_, row)| row.is_some());
        earlier.extend(replaced_rows.map(|(key, row)| put(key, *row)));

        let put_after = |change: &RowChange| put(&change.key, change.after.as_ref());
        let recent = recent.iter();
        let recent = recent.map(|changes| changes.iter().map(put_after).collect());
        let keys = earlier_rows.keys();
        let skip_recent = keys.map(|key| put(key, newest_rows.get(key).copied()));
        Self {
            earlier,
            recent: recent.collect(),
            skip_recent: skip_recent.collect(),
        }
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
