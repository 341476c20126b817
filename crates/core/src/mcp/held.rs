//! What a source knows of a sink's state of one collection.

use std::sync::Arc;

use crate::database::{CursorId, Database, Position};
use crate::mcp::ResourcesUpdate;
use crate::message::InitialVersions;

/// The state that a sink holds. A response changes it when it is ACKed.
#[derive(Debug)]
pub(super) enum Held {
    /// As the sink's first request said: names and versions, maybe none. An
    /// answer is owed, even if there is nothing to send (M10).
    Claimed(InitialVersions),
    /// The collection as it was at a position, which is pinned.
    At { position: Position, sum: u128 },
}

impl Held {
    /// Whether the sink holds the state with this sum of fingerprints, and
    /// knows that it is the newest.
    pub(super) fn is_state(&self, newest: u128) -> bool {
        matches!(self, Self::At { sum, .. } if *sum == newest)
    }

    /// The versions that have to be compared to know what the sink lacks.
    pub(super) fn claimed(&self) -> Option<&InitialVersions> {
        match self {
            Self::Claimed(versions) if !versions.is_empty() => Some(versions),
            _ => None,
        }
    }

    /// The changes to the newest state of a sink whose versions need not be
    /// compared (M7).
    pub(super) fn changes(&self, db: &mut Database, cursor: CursorId) -> ResourcesUpdate {
        match self {
            Self::Claimed(_) => changes_since_nothing(db, cursor),
            Self::At { position, .. } => changes_since(db, cursor, *position),
        }
    }
}

/// To a sink that says it holds nothing, an empty collection is sent as full
/// state, which it cannot mistake for "nothing changed" (M10).
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

/// Reads the log of the cursor's view: one changed resource costs one item,
/// however large the collection is.
fn changes_since(db: &mut Database, cursor: CursorId, position: Position) -> ResourcesUpdate {
    let changes = db.view_changes(cursor, position);
    let mut items: Vec<_> = changes.items.iter().collect();
    items.sort_by(|a, b| a.0.cmp(&b.0));
    let (mut resources, mut removed) = (Vec::new(), Vec::new());
    for (name, resource) in items {
        match resource {
            Some(resource) => resources.push(Arc::clone(resource)),
            None => removed.push(name.clone()),
        }
    }
    ResourcesUpdate::Incremental { resources, removed }
}
