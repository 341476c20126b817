//! Resume points: the difference between the resources of a client that
//! reconnects and a view, made once for all clients that hold the same (S45,
//! S46).
//!
//! The clients of a fleet that lost its server reconnect with the same set. So
//! the first of them is compared name by name, and the others share its point.

use std::sync::{Arc, Mutex, PoisonError};

use super::view::Position;
use super::{CursorId, Database, ViewChanges};
use crate::message::InitialVersions;
use crate::name::Name;
use crate::resource::Resource;

/// The difference between a client's resources and a view; see the module's
/// documentation.
#[derive(Debug)]
pub(crate) struct ResumePoint {
    /// The position of the view that the client was compared with.
    position: Position,
    versions: InitialVersions,
    /// Names whose resource at the client is not that of the view, sorted;
    /// `None` if the client has none.
    differences: Box<[(Name, Option<Arc<Resource>>)]>,
    /// How many of these resources have no known body.
    unknown_bodies: usize,
    /// The advance from this point to the head of the view.
    changes: Mutex<Option<Arc<ViewChanges>>>,
}

impl ResumePoint {
    /// Returns whether the point was made for these versions.
    pub(super) fn is_for(&self, versions: &InitialVersions) -> bool {
        self.versions.is_shared_with(versions)
    }

    /// Returns how many names differ from the view.
    pub(crate) fn len(&self) -> usize {
        self.differences.len()
    }

    /// Returns the resource that a client holds under a name that differs from
    /// the view, or `Some(None)` if it holds none. `None` if the name does not
    /// differ.
    pub(crate) fn held_resource(&self, name: &Name) -> Option<Option<&Arc<Resource>>> {
        let index = self
            .differences
            .binary_search_by(|(other, _)| other.cmp(name));
        Some(self.differences[index.ok()?].1.as_ref())
    }

    /// Returns the names that differ, and the resource that a client holds
    /// under each.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &(Name, Option<Arc<Resource>>)> {
        self.differences.iter()
    }

    /// Returns whether a client that resumes here holds a resource whose body
    /// is not known.
    pub(crate) fn has_unknown_bodies(&self) -> bool {
        self.unknown_bodies > 0
    }
}

impl Database {
    /// Returns the point at which a client with these versions resumes, if one
    /// with the same versions did before and the view has not changed since.
    pub(crate) fn resume_point(
        &mut self,
        id: CursorId,
        versions: &InitialVersions,
    ) -> Option<Arc<ResumePoint>> {
        self.view_mut(id).resume_point(versions)
    }

    /// Makes a point at the head of the cursor's view for a client with these
    /// versions, and shares it with other clients. `differences` are the names
    /// whose resource at the client is not the one that the view lists.
    pub(crate) fn add_resume_point(
        &mut self,
        id: CursorId,
        versions: &InitialVersions,
        mut differences: Vec<(Name, Option<Arc<Resource>>)>,
    ) -> Arc<ResumePoint> {
        differences.sort_by(|(left, _), (right, _)| left.cmp(right));
        let resources = differences
            .iter()
            .filter_map(|(_, resource)| resource.as_ref());
        let unknown_bodies = resources.filter(|resource| resource.body.is_none()).count();

        let point = Arc::new(ResumePoint {
            position: self.head(id),
            versions: versions.clone(),
            differences: differences.into(),
            unknown_bodies,
            changes: Mutex::default(),
        });
        self.view_mut(id).share_resume_point(&point);
        point
    }

    /// Returns the advance of a cursor from a point to the head of its view. It
    /// is made once for all clients that resume there, and again after the view
    /// has changed.
    pub(crate) fn resumed_changes(
        &mut self,
        id: CursorId,
        point: &ResumePoint,
    ) -> Arc<ViewChanges> {
        let head = self.head(id);
        let lock_result = point.changes.lock();
        let mut shared_changes = lock_result.unwrap_or_else(PoisonError::into_inner);
        if let Some(changes) = shared_changes.as_ref().filter(|changes| changes.to == head) {
            return Arc::clone(changes);
        }

        let changes = Arc::new(self.changes_from_point(id, point, head));
        *shared_changes = Some(Arc::clone(&changes));
        changes
    }

    /// Compares the resources of a client at a point with the view at its head:
    /// the names that differed at the point, then those that changed since.
    fn changes_from_point(
        &mut self,
        id: CursorId,
        point: &ResumePoint,
        head: Position,
    ) -> ViewChanges {
        let type_id = self.subscribers.type_id(id.subscriber);
        let mut changes = ViewChanges::new(point.position, head);

        for (name, held_resource) in point.iter() {
            let entry = self.find(type_id, name);
            let listed_resource = entry.and_then(|entry| self.listed_resource(id, entry));
            changes.add_difference(name, held_resource.as_ref(), listed_resource);
        }

        let later_changes = self.view_changes(id, point.position);
        for (name, listed_resource) in &later_changes.items {
            // A name that differed at the point was compared above.
            if point.held_resource(name).is_none() {
                let entry = self.find(type_id, name);
                let held_resource =
                    entry.and_then(|entry| self.resource_at(id, entry, point.position));
                changes.add_difference(name, held_resource.as_ref(), listed_resource.clone());
            }
        }
        changes
    }
}
