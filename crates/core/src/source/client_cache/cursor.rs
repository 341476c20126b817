//! What a peer holds by a wildcard or a glob: a position in the log of a view.

use std::collections::VecDeque;
use std::sync::Arc;

use super::advance::PartialAdvance;
use crate::database::{CursorId, Database, Position, Scope, TypeId};
use crate::name::Name;
use crate::resource::Resource;

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Cursor {
    pub(crate) scope: Scope,
    pub(crate) id: CursorId,
    /// The peer holds the view as it was here, but for the exceptions.
    pub(crate) position: Position,
    /// What was sent leads up to here.
    pub(crate) sent_position: Position,
    /// Steps that are too large for one response: the first is being answered,
    /// the last is being sent. More than one only if the peer is silent for long.
    pub(crate) partial_advances: VecDeque<PartialAdvance>,
}

impl Cursor {
    /// From nothing.
    pub(crate) fn new(scope: Scope, cursor: CursorId) -> Self {
        Self {
            scope,
            id: cursor,
            position: 0,
            sent_position: 0,
            partial_advances: VecDeque::new(),
        }
    }

    /// What the peer holds under a name that is no exception.
    pub(crate) fn held_resource(
        &self,
        db: &mut Database,
        type_id: TypeId,
        name: &Name,
    ) -> Option<Arc<Resource>> {
        if let Some(partial_advance) = self.partial_advances.front()
            && let Some(place) = partial_advance
                .changes
                .find(name)
                .filter(|place| *place < partial_advance.acknowledged)
        {
            return partial_advance.changes.items[place].1.clone();
        }
        let entry = db.find(type_id, name)?;
        db.resource_at(self.id, entry, self.position)
    }

    pub(crate) fn covers(&self, name: &Name) -> bool {
        match &self.scope {
            Scope::All => true,
            Scope::Glob(glob) => glob.matches(name),
        }
    }

    /// Takes all that the view lists now as held.
    pub(crate) fn move_to_head(&mut self, db: &mut Database) {
        let head = db.head(self.id);
        db.pin(self.id, head);
        db.unpin(self.id, self.position);
        (self.position, self.sent_position) = (head, head);
    }

    /// All that the peer holds by this view, exceptions not regarded.
    pub(crate) fn held_resources(&self, db: &mut Database) -> Vec<Arc<Resource>> {
        let mut held = db.resources_at(self.id, self.position);
        let answered = self.partial_advances.front();
        let answered = answered
            .map(|partial_advance| &partial_advance.changes.items[..partial_advance.acknowledged]);
        for (name, item) in answered.into_iter().flatten() {
            match held.binary_search_by(|r| r.name.cmp(name)) {
                Ok(place) => match item {
                    Some(new) => held[place] = Arc::clone(new),
                    None => _ = held.remove(place),
                },
                Err(place) => {
                    if let Some(new) = item {
                        held.insert(place, Arc::clone(new));
                    }
                }
            }
        }
        held
    }
}
