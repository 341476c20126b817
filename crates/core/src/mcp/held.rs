//! The state of one collection at a sink, as its source knows it.

use std::sync::Arc;

use crate::database::{CursorId, Database, Position};
use crate::mcp::ResourcesUpdate;
use crate::message::InitialVersions;

/// The state that a sink holds. A response changes it when it is ACKed.
#[derive(Debug)]
pub(super) enum HeldState {
    /// The names and versions in the sink's first request, maybe none. An
    /// answer is owed, even if there is nothing to send (M10).
    Claimed(InitialVersions),
    /// The collection as it was at a position, which is pinned.
    AtPosition { position: Position, sum: u128 },
}

impl HeldState {
    /// Returns whether the sink holds the state with this sum of fingerprints.
    /// Always false before the first ACK: an answer is owed then.
    pub(super) fn is_state(&self, newest_sum: u128) -> bool {
        matches!(self, Self::AtPosition { sum, .. } if *sum == newest_sum)
    }

    /// Returns the versions that have to be compared to find out what the sink
    /// lacks; `None` if it says that it holds nothing, or has ACKed a response.
    pub(super) fn claimed_versions(&self) -> Option<&InitialVersions> {
        match self {
            Self::Claimed(versions) if !versions.is_empty() => Some(versions),
            _ => None,
        }
    }

    /// Returns the changes from the state that the sink holds to the newest one
    /// (M7). A sink with claimed versions is taken for one that holds nothing:
    /// the caller compares these versions instead.
    pub(super) fn changes(&self, db: &mut Database, cursor: CursorId) -> ResourcesUpdate {
        match self {
            Self::Claimed(_) => changes_since_nothing(db, cursor),
            Self::AtPosition { position, .. } => changes_since(db, cursor, *position),
        }
    }
}

/// Returns the changes for a sink that says it holds nothing. An empty
/// collection is sent as full state, which the sink cannot mistake for "nothing
/// changed" (M10).
fn changes_since_nothing(db: &mut Database, cursor: CursorId) -> ResourcesUpdate {
    let resources = db.list(cursor);
    match resources.is_empty() {
        true => ResourcesUpdate::FullState(resources),
        false => ResourcesUpdate::Incremental {
            resources,
            removed: Vec::new(),
        },
    }
}

/// Returns the changes since a position, sorted by name. They are read from the
/// log of the cursor's view, so one changed resource costs one item, however
/// large the collection is.
fn changes_since(db: &mut Database, cursor: CursorId, position: Position) -> ResourcesUpdate {
    let changes = db.view_changes(cursor, position);
    let mut items: Vec<_> = changes.items.iter().collect();
    items.sort_by(|left, right| left.0.cmp(&right.0));

    let (mut resources, mut removed) = (Vec::new(), Vec::new());
    for (name, resource) in items {
        match resource {
            Some(resource) => resources.push(Arc::clone(resource)),
            None => removed.push(name.clone()),
        }
    }
    ResourcesUpdate::Incremental { resources, removed }
}
