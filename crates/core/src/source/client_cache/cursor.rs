//! What a peer holds by a wildcard or a glob: a position in the log of a view.

use std::collections::VecDeque;
use std::sync::Arc;

use super::CachedResource;
use super::advance::PartialAdvance;
use crate::database::{CursorId, Database, Position, ResumePoint, Scope, TypeId};
use crate::name::Name;
use crate::resource::Resource;

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Cursor {
    pub(crate) scope: Scope,
    pub(crate) id: CursorId,
    /// The peer holds the view as it was here, but for the exceptions.
    pub(crate) position: Position,
    /// The client reconnected: until it has ACKed the first advance, it holds
    /// what it said at this point where that is not what the view has.
    pub(crate) resume_point: Option<Arc<ResumePoint>>,
    /// Whether the advance from the resume point was sent, or begun.
    pub(crate) is_resume_sent: bool,
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
            resume_point: None,
            is_resume_sent: false,
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
    ) -> Option<CachedResource> {
        if let Some(partial_advance) = self.partial_advances.front()
            && let Some(place) = partial_advance
                .changes
                .find(name)
                .filter(|place| *place < partial_advance.acknowledged)
        {
            let item = partial_advance.changes.items[place].1.as_ref();
            return item.map(CachedResource::accepted);
        }
        if let Some(point) = &self.resume_point
            && let Some(held) = point.held(name)
        {
            return held.cloned().map(CachedResource::resumed);
        }
        let entry = db.find(type_id, name)?;
        let held = db.resource_at(self.id, entry, self.position);
        held.as_ref().map(CachedResource::accepted)
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
        self.resume_point = None;
    }

    /// The cursor stands where a client resumes, at the head of the view.
    pub(crate) fn resume_at(&mut self, db: &mut Database, point: Arc<ResumePoint>) {
        self.move_to_head(db);
        self.resume_point = Some(point).filter(|point| point.len() > 0);
    }

    /// The resume point, until the advance from it begins.
    pub(crate) fn unsent_resume_point(&self) -> Option<&Arc<ResumePoint>> {
        self.resume_point.as_ref().filter(|_| !self.is_resume_sent)
    }

    /// Whether the view has something that was not sent.
    pub(crate) fn has_changes(&self, db: &Database) -> bool {
        db.head(self.id) != self.sent_position || self.unsent_resume_point().is_some()
    }

    /// The client has ACKed an advance, or never has to.
    pub(super) fn move_to(&mut self, position: Position) {
        self.position = position;
        self.resume_point = None;
        self.partial_advances
            .retain(|partial_advance| partial_advance.changes.to > position);
    }

    /// All that the peer holds by this view, exceptions not regarded.
    pub(crate) fn held_resources(&self, db: &mut Database) -> Vec<Arc<Resource>> {
        let mut held = db.resources_at(self.id, self.position);
        if let Some(point) = &self.resume_point {
            held.retain(|resource| point.held(&resource.name).is_none());
            held.extend(point.iter().filter_map(|(_, held)| held.clone()));
            held.sort_by(|a, b| a.name.cmp(&b.name));
        }
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
