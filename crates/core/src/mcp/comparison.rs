//! What a sink says it holds, compared with a state of its collection in slices,
//! so that nobody waits for a sink that lists a million names (S85).
//!
//! ```text
//!   position, pinned ─▶ claimed names ─▶ names of the collection ─▶ update
//!                       gone: removed    other version: resource
//! ```
//!
//! The state is the one at the position where the comparison began. What changes
//! meanwhile is the next update, after the sink has ACKed this one (M2).

use std::collections::BTreeMap;
use std::sync::Arc;

use super::message::ResourcesUpdate;
use crate::database::{CursorId, Database, Position};
use crate::message::InitialVersions;
use crate::name::Name;
use crate::resource::Resource;

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Comparison {
    /// Pinned while the comparison goes on.
    pub(super) position: Position,
    /// The sum of fingerprints of that state.
    pub(super) sum: u128,
    claimed: InitialVersions,
    /// How many of the claimed names were visited.
    visited_names: usize,
    /// How many slots of the collection were visited.
    visited_slots: usize,
    /// New and changed resources, in the order in which they are sent.
    resources: BTreeMap<Name, Arc<Resource>>,
    removed: Vec<Name>,
}

impl Comparison {
    /// Begins a comparison with the state at a position, which the caller pins.
    pub(super) fn new(claimed: &InitialVersions, position: Position, sum: u128) -> Self {
        Self {
            position,
            sum,
            claimed: claimed.clone(),
            visited_names: 0,
            visited_slots: 0,
            resources: BTreeMap::new(),
            removed: Vec::new(),
        }
    }

    /// Visits as many names as the budget has, and subtracts them. Returns
    /// whether the comparison is complete.
    pub(super) fn advance(
        &mut self,
        db: &mut Database,
        cursor: CursorId,
        budget: &mut usize,
    ) -> bool {
        self.visit_claimed(db, cursor, budget);
        *budget > 0 && self.visit_listed(db, cursor, budget)
    }

    /// Visits claimed names: those that are gone are removed.
    fn visit_claimed(&mut self, db: &mut Database, cursor: CursorId, budget: &mut usize) {
        let rest = &self.claimed.as_slice()[self.visited_names..];
        let slice = &rest[..rest.len().min(*budget)];
        for (name, _) in slice {
            if db.named_resource_at(cursor, name, self.position).is_none() {
                self.removed.push(name.clone());
            }
        }
        self.visited_names += slice.len();
        *budget -= slice.len();
    }

    /// Visits slots of the collection: what the sink lacks, or holds at another
    /// version, is sent. Returns whether all were visited.
    fn visit_listed(&mut self, db: &mut Database, cursor: CursorId, budget: &mut usize) -> bool {
        let all = db.slots(cursor);
        let end = all.min(self.visited_slots + *budget);
        // There are fewer slots than before where names of the end are gone.
        let slots = self.visited_slots.min(end)..end;
        *budget -= slots.len();
        for resource in db.resources_in_slots(cursor, slots, self.position) {
            if self.claimed.get(&resource.name) != Some(&resource.version) {
                self.resources.insert(resource.name.clone(), resource);
            }
        }
        self.visited_slots = end;
        end == all
    }

    /// The number of names that it lists.
    pub(super) fn len(&self) -> usize {
        self.resources.len() + self.removed.len()
    }

    /// Returns the changes from what the sink holds to the state that it was
    /// compared with (M7).
    pub(super) fn into_update(self) -> ResourcesUpdate {
        ResourcesUpdate::Incremental {
            resources: self.resources.into_values().collect(),
            removed: self.removed,
        }
    }
}
