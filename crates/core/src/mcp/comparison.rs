//! Compares the versions that a sink says it holds with a state of its
//! collection. This is done in slices, so that nobody waits for a sink that
//! lists a million names (S85).
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

/// A comparison that goes on; see the module's documentation.
#[derive(Debug)]
pub(super) struct Comparison {
    /// The position of the state, pinned while the comparison goes on.
    pub(super) position: Position,
    /// The sum of fingerprints of that state.
    pub(super) sum: u128,
    /// The versions that the sink says it holds.
    claimed_versions: InitialVersions,
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
    pub(super) fn new(claimed_versions: &InitialVersions, position: Position, sum: u128) -> Self {
        Self {
            position,
            sum,
            claimed_versions: claimed_versions.clone(),
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

    /// Visits claimed names. Those that the collection does not have are
    /// removed.
    fn visit_claimed(&mut self, db: &mut Database, cursor: CursorId, budget: &mut usize) {
        let unvisited_versions = &self.claimed_versions.as_slice()[self.visited_names..];
        let slice = &unvisited_versions[..unvisited_versions.len().min(*budget)];
        for (name, _) in slice {
            if db.named_resource_at(cursor, name, self.position).is_none() {
                self.removed.push(name.clone());
            }
        }
        self.visited_names += slice.len();
        *budget -= slice.len();
    }

    /// Visits slots of the collection. Resources that the sink lacks, or holds
    /// at another version, are sent. Returns whether all slots were visited.
    fn visit_listed(&mut self, db: &mut Database, cursor: CursorId, budget: &mut usize) -> bool {
        let slot_count = db.slots(cursor);
        let end = slot_count.min(self.visited_slots + *budget);
        // There may be fewer slots than before, if names at the end are gone.
        let slots = self.visited_slots.min(end)..end;
        *budget -= slots.len();
        for resource in db.resources_in_slots(cursor, slots, self.position) {
            if self.claimed_versions.get(&resource.name) != Some(&resource.version) {
                self.resources.insert(resource.name.clone(), resource);
            }
        }
        self.visited_slots = end;
        end == slot_count
    }

    /// Returns the number of names that its update has so far.
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
