//! A cursor: the position of one client in the view of a wildcard or a glob.

use std::collections::VecDeque;
use std::sync::Arc;

use super::CachedResource;
use super::advance::PartialAdvance;
use crate::database::{CursorId, Database, Item, Position, ResumePoint, Scope, TypeId};
use crate::name::Name;
use crate::resource::Resource;

/// The position of a client in one view.
#[derive(Debug)]
pub(crate) struct Cursor {
    pub(crate) scope: Scope,
    pub(crate) id: CursorId,
    /// The client holds the view as it was at this position, but for the
    /// exceptions.
    pub(crate) position: Position,
    /// The client reconnected: until it has ACKed the first advance, it holds
    /// the resources of this point where they differ from the view.
    pub(crate) resume_point: Option<Arc<ResumePoint>>,
    /// Whether the advance from the resume point was sent, or begun.
    pub(crate) is_resume_sent: bool,
    /// The position that the last sent advance leads to.
    pub(crate) sent_position: Position,
    /// Advances that are too large for one response: the first is being
    /// acknowledged, the last is being sent. There are several only if the
    /// client is silent for long.
    pub(crate) partial_advances: VecDeque<PartialAdvance>,
}

impl Cursor {
    /// Makes a cursor at the beginning of its view: the client holds nothing by
    /// it.
    pub(crate) fn new(scope: Scope, id: CursorId) -> Self {
        Self {
            scope,
            id,
            position: 0,
            resume_point: None,
            is_resume_sent: false,
            sent_position: 0,
            partial_advances: VecDeque::new(),
        }
    }

    /// Returns the resource that the client holds of a name by this cursor:
    /// from the acknowledged part of an advance, else from the resume point,
    /// else from the view at the cursor's position. `None` if it holds none.
    /// The caller has made sure that the name is no exception.
    pub(crate) fn held_resource(
        &self,
        db: &mut Database,
        type_id: TypeId,
        name: &Name,
    ) -> Option<CachedResource> {
        if let Some(PartialAdvance {
            changes,
            acknowledged_count,
            ..
        }) = self.partial_advances.front()
            && let Some(index) = changes.find(name)
            && index < *acknowledged_count
        {
            let item = changes.items[index].1.as_ref();
            return item.map(CachedResource::accepted);
        }

        if let Some(point) = &self.resume_point
            && let Some(resource) = point.held_resource(name)
        {
            return resource.cloned().map(CachedResource::resumed);
        }

        let entry = db.find(type_id, name)?;
        let resource = db.resource_at(self.id, entry, self.position);
        resource.as_ref().map(CachedResource::accepted)
    }

    /// Returns whether a name is in the cursor's scope.
    pub(crate) fn covers(&self, name: &Name) -> bool {
        match &self.scope {
            Scope::All => true,
            Scope::Glob(glob) => glob.matches(name),
        }
    }

    /// Moves the cursor and its pin to the head of the view: the client holds
    /// all that the view lists.
    pub(crate) fn move_to_head(&mut self, db: &mut Database) {
        let head = db.head(self.id);
        db.pin(self.id, head);
        db.unpin(self.id, self.position);
        (self.position, self.sent_position) = (head, head);
        self.resume_point = None;
    }

    /// Moves the cursor to the head of the view, and keeps the differences that
    /// the client resumed with.
    pub(crate) fn resume_at(&mut self, db: &mut Database, point: Arc<ResumePoint>) {
        self.move_to_head(db);
        self.resume_point = Some(point).filter(|point| point.len() > 0);
    }

    /// Returns the resume point, or `None` once the advance from it was begun.
    pub(crate) fn unsent_resume_point(&self) -> Option<&Arc<ResumePoint>> {
        self.resume_point.as_ref().filter(|_| !self.is_resume_sent)
    }

    /// Returns whether the view has a change that was not sent.
    pub(crate) fn has_changes(&self, db: &Database) -> bool {
        db.head(self.id) != self.sent_position || self.unsent_resume_point().is_some()
    }

    /// Returns the number of changes of the view that were not sent.
    pub(crate) fn unsent_count(&self, db: &Database) -> usize {
        let distance = db.head(self.id).saturating_sub(self.sent_position);
        let change_count = usize::try_from(distance).unwrap_or(usize::MAX);
        let partial_advance = self.partial_advances.back();
        let unsent_items = partial_advance.map_or(0, |partial_advance| {
            partial_advance.changes.items.len() - partial_advance.sent_count
        });
        change_count.saturating_add(unsent_items)
    }

    /// Moves the cursor to the end of an advance that the client has
    /// acknowledged, or need not acknowledge. The resume point and the partial
    /// advances up to there are dropped.
    pub(super) fn move_to(&mut self, position: Position) {
        self.position = position;
        self.resume_point = None;
        self.partial_advances
            .retain(|partial_advance| partial_advance.changes.to > position);
    }

    /// Returns all resources that the client holds by this view, sorted by
    /// name. Exceptions are among them.
    pub(crate) fn held_resources(&self, db: &mut Database) -> Vec<Arc<Resource>> {
        let mut held_resources = db.resources_at(self.id, self.position);
        if let Some(point) = &self.resume_point {
            held_resources.retain(|resource| point.held_resource(&resource.name).is_none());
            held_resources.extend(point.iter().filter_map(|(_, resource)| resource.clone()));
            held_resources.sort_by(|left, right| left.name.cmp(&right.name));
        }

        for (name, item) in self.acknowledged_items() {
            let slot = held_resources.binary_search_by(|resource| resource.name.cmp(name));
            match (slot, item) {
                (Ok(index), Some(resource)) => held_resources[index] = Arc::clone(resource),
                (Ok(index), None) => _ = held_resources.remove(index),
                (Err(index), Some(resource)) => held_resources.insert(index, Arc::clone(resource)),
                (Err(_), None) => {}
            }
        }
        held_resources
    }

    /// Returns the acknowledged items of a partial advance.
    fn acknowledged_items(&self) -> &[Item] {
        self.partial_advances.front().map_or(&[], |partial| {
            &partial.changes.items[..partial.acknowledged_count]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::Change;
    use crate::message::InitialVersions;
    use crate::params::Params;
    use crate::resource::TypeUrl;

    /// A database with one resource, and a cursor at the beginning.
    fn cursor() -> (Database, Cursor) {
        let mut db = Database::new();
        let url = TypeUrl::from("t");
        let (stream, type_id) = (db.open_stream(), db.type_id(&url));
        let params = db.intern_params(Params::default());
        let subscriber = db.add_subscriber(stream, type_id, params);
        let resource = Arc::new(Resource::new("a".into(), "x".into()));
        db.apply(vec![Change::Upsert(url, resource)]).unwrap();
        let id = db.open_cursor(subscriber, &Scope::All);
        (db, Cursor::new(Scope::All, id))
    }

    #[test]
    fn a_client_that_resumes_with_the_whole_view_is_sent_nothing() {
        let (mut db, mut cursor) = cursor();
        assert!(cursor.has_changes(&db));
        let versions = InitialVersions::default();
        let point = db.add_resume_point(cursor.id, &versions, Vec::new());
        cursor.resume_at(&mut db, point);
        assert!(!cursor.has_changes(&db));
        let point = db.add_resume_point(cursor.id, &versions, vec![("a".into(), None)]);
        cursor.resume_at(&mut db, point);
        assert!(cursor.has_changes(&db));
    }

    #[test]
    fn a_partial_advance_is_forgotten_once_it_is_made() {
        let (mut db, mut cursor) = cursor();
        let changes = db.view_changes(cursor.id, 0);
        let partial = PartialAdvance {
            changes: Arc::clone(&changes),
            sent_count: 1,
            acknowledged_count: 0,
        };
        cursor.partial_advances.push_back(partial);
        cursor.move_to(0);
        assert_eq!(cursor.partial_advances.len(), 1);
        cursor.move_to(changes.to);
        assert_eq!(cursor.partial_advances.len(), 0);
    }
}
