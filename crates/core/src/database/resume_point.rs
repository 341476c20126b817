//! Where reconnecting clients resume: the difference between what they hold and
//! a view, worked out once for all that hold the same (S45, S46).
//!
//! The clients of a fleet that lost its server come back with the same set, so
//! the first of them is compared name by name, and the others stand where it
//! stands.

use std::sync::{Arc, Mutex, PoisonError};

use super::view::Position;
use super::{CursorId, Database, ViewChanges};
use crate::message::InitialVersions;
use crate::name::Name;
use crate::resource::Resource;

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct ResumePoint {
    /// The position of the view that the client was compared with.
    at: Position,
    versions: InitialVersions,
    /// Names whose resource at the client is not that of the view, sorted;
    /// `None` if the client has none.
    held: Box<[(Name, Option<Arc<Resource>>)]>,
    /// How many of these resources have no known body.
    unknown_bodies: usize,
    /// How a client gets from here to the head of the view.
    changes: Mutex<Option<Arc<ViewChanges>>>,
}

impl ResumePoint {
    /// Whether it was made for these very versions.
    pub(super) fn is_for(&self, versions: &InitialVersions) -> bool {
        self.versions.is_shared_with(versions)
    }

    /// How many names differ from the view.
    pub(crate) fn len(&self) -> usize {
        self.held.len()
    }

    /// What a client holds of a name; `None` if that is what the view lists.
    pub(crate) fn held(&self, name: &Name) -> Option<Option<&Arc<Resource>>> {
        let index = self.held.binary_search_by(|(other, _)| other.cmp(name));
        Some(self.held[index.ok()?].1.as_ref())
    }

    /// The names that differ, and what a client holds of each.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &(Name, Option<Arc<Resource>>)> {
        self.held.iter()
    }

    /// Whether a client that resumes here holds a resource whose body is not
    /// known.
    pub(crate) fn has_unknown_bodies(&self) -> bool {
        self.unknown_bodies > 0
    }
}

impl Database {
    /// Where a client that holds these versions resumes in a view, if one that
    /// holds the same did before, and nothing changed since.
    pub(crate) fn resume_point(
        &mut self,
        id: CursorId,
        versions: &InitialVersions,
    ) -> Option<Arc<ResumePoint>> {
        let type_id = self.subscribers.type_id(id.subscriber);
        let view = self.subscribers.cursor(id).view;
        self.table_mut(type_id)
            .view_mut(view)
            .resume_point(versions)
    }

    /// Makes a point out of the names whose resource at the client is not that
    /// of the view now, and shares it.
    pub(crate) fn add_resume_point(
        &mut self,
        id: CursorId,
        versions: &InitialVersions,
        mut held: Vec<(Name, Option<Arc<Resource>>)>,
    ) -> Arc<ResumePoint> {
        held.sort_by(|(a, _), (b, _)| a.cmp(b));
        let resources = held.iter().filter_map(|(_, held)| held.as_ref());
        let unknown_bodies = resources.filter(|held| held.body.is_none()).count();
        let point = Arc::new(ResumePoint {
            at: self.head(id),
            versions: versions.clone(),
            held: held.into(),
            unknown_bodies,
            changes: Mutex::default(),
        });
        let type_id = self.subscribers.type_id(id.subscriber);
        let view = self.subscribers.cursor(id).view;
        let view = self.table_mut(type_id).view_mut(view);
        view.share_resume_point(&point);
        point
    }

    /// What is new to a cursor that resumes at a point. Made once for all that
    /// resume there.
    pub(crate) fn resumed_changes(
        &mut self,
        id: CursorId,
        point: &ResumePoint,
    ) -> Arc<ViewChanges> {
        let head = self.head(id);
        let made = point.changes.lock();
        let mut made = made.unwrap_or_else(PoisonError::into_inner);
        if let Some(made) = made.as_ref().filter(|made| made.to == head) {
            return Arc::clone(made);
        }
        let type_id = self.subscribers.type_id(id.subscriber);
        let mut changes = ViewChanges::new(point.at, head);
        for (name, held) in point.iter() {
            let entry = self.find(type_id, name);
            let current = entry.and_then(|entry| self.listed_resource(id, entry));
            changes.add(name, held.as_ref(), current);
        }
        let since = self.view_changes(id, point.at);
        for (name, current) in &since.items {
            if point.held(name).is_none() {
                let entry = self.find(type_id, name);
                let held = entry.and_then(|entry| self.resource_at(id, entry, point.at));
                changes.add(name, held.as_ref(), current.clone());
            }
        }
        let changes = Arc::new(changes);
        *made = Some(Arc::clone(&changes));
        changes
    }
}
