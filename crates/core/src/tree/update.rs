//! Applies updates of resources, and decides which version of each is in use.

use std::sync::Arc;

use super::key::Key;
use super::node::Version;
use super::part::Content;
use super::{Change, NodeId, Tree};
use crate::Moment;
use crate::sink::{Cause, WatchError};

/// The newest knowledge of a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Update<S, V> {
    /// There is a resource.
    Value {
        /// The resource.
        value: V,
        /// An ambient error, in spite of which it stays in use (C39).
        error: Option<WatchError>,
        /// The resources that it refers to. One that is named twice is one.
        children: Vec<Key<S>>,
    },
    /// There is none, and why.
    Failed(WatchError),
}

impl<S: Clone + Ord, V: Clone> Tree<S, V> {
    /// Applies an update of a resource. An update of a node that does not exist
    /// any more is ignored.
    pub fn handle_update(&mut self, id: NodeId, update: Update<S, V>) {
        match update {
            Update::Value {
                value,
                error,
                children,
            } => {
                let content = match error {
                    None => Content::Value(value),
                    Some(error) => Content::Stale(value, error),
                };
                let keys = children.into_iter().map(Arc::new).collect();
                self.apply_answer(id, content, keys);
            }
            // An error about the resource itself is an answer (C51).
            Update::Failed(error) if error.cause.is_data_error() => {
                if !self.withdraw(id, &error) {
                    self.apply_answer(id, Content::Failed(error), Vec::new());
                }
            }
            Update::Failed(error) => self.record_obstacle(id, error),
        }
    }

    /// Sets the fetch timeout of a subscription: the deadline of its first
    /// answer. Without a deadline the wait does not end (E2).
    pub fn handle_subscribed(&mut self, id: NodeId, deadline: Option<Moment>) {
        let Some(node) = self.nodes.get_mut(&id) else {
            return;
        };
        if node.is_ready() || node.next.is_some() {
            return;
        }
        node.deadline = deadline;
        self.deadlines
            .extend(deadline.map(|deadline| (deadline, id)));
    }

    /// Returns the moment at which [`Tree::handle_timeout`] is to be called;
    /// `None` if no node waits.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Moment> {
        self.deadlines.first().map(|(deadline, _)| *deadline)
    }

    /// Ends the waits whose deadline has passed. A resource without an answer
    /// is an error until there is one (E2).
    pub fn handle_timeout(&mut self, now: Moment) {
        while let Some((deadline, id)) = self.deadlines.first().copied()
            && deadline <= now
        {
            self.deadlines.pop_first();
            let Some(node) = self.nodes.get_mut(&id) else {
                continue;
            };

            node.deadline = None;
            let timeout_error =
                || WatchError::new(Cause::TimedOut, "no answer within the fetch timeout");
            let error = node.obstacle.clone().unwrap_or_else(timeout_error);
            self.set_next(id, Content::Failed(error), Vec::new());
        }
    }

    /// Applies an answer about the resource of a node: it ends the wait for the
    /// first one, an error that is not about the resource, and an earlier
    /// removal. The content is the next version of the node.
    fn apply_answer(&mut self, id: NodeId, content: Content<V>, keys: Vec<Arc<Key<S>>>) {
        let Some(node) = self.nodes.get_mut(&id) else {
            return;
        };
        node.obstacle = None;
        if node.withdrawn.take().is_some() {
            self.withdrawn.remove(&id);
            // The resource exists again, so the error of its removal ends.
            if let Some(active) = &mut node.active
                && let Some(value) = active.content.value().cloned()
            {
                active.content = Content::Value(value);
                self.dirty.entry(id).or_insert(Change::Content);
            }
        }

        if let Some(deadline) = node.deadline.take() {
            self.deadlines.remove(&(deadline, id));
        }
        self.set_next(id, content, keys);
    }

    /// Records an error that is not about the resource itself. The error is no
    /// answer, but becomes the ambient error of a resource in use (C40).
    fn record_obstacle(&mut self, id: NodeId, error: WatchError) {
        let Some(node) = self.nodes.get(&id) else {
            return;
        };
        let Some(newest_version) = node.next.as_ref().or(node.active.as_ref()) else {
            if let Some(node) = self.nodes.get_mut(&id) {
                node.obstacle = Some(error);
            }
            return;
        };
        let content = match newest_version.content.value().cloned() {
            Some(value) => Content::Stale(value, error),
            None => Content::Failed(error),
        };
        let keys = self.keys_of(newest_version);
        self.set_next(id, content, keys);
    }

    /// Returns the references of a version, those that are not followed
    /// included.
    pub(super) fn keys_of(&self, version: &Version<S, V>) -> Vec<Arc<Key<S>>> {
        let children = version.children.iter().filter_map(|id| self.nodes.get(id));
        let child_keys = children.map(|child| Arc::clone(&child.key));
        child_keys.chain(version.cut.iter().cloned()).collect()
    }

    /// Sets the next version of a node, which becomes active when all its
    /// children are known.
    pub(super) fn set_next(&mut self, id: NodeId, content: Content<V>, keys: Vec<Arc<Key<S>>>) {
        // The new children are linked before the old ones are unlinked, so that
        // those in both are not dropped.
        let (children, cut) = self.link(id, keys);
        let is_waiting = |id: &&NodeId| self.nodes.get(*id).is_some_and(|node| !node.is_ready());
        let version = Version {
            content,
            unready_count: children.iter().filter(is_waiting).count(),
            children,
            cut,
        };

        let is_warm = version.unready_count == 0;
        let Some(node) = self.nodes.get_mut(&id) else {
            return;
        };
        if let Some(superseded_version) = node.next.replace(version) {
            self.unlink(id, &superseded_version.children);
        }

        self.note_cut(id);
        if is_warm {
            self.activate(id);
        }
    }

    /// Makes the next version of a node active, and then those of the nodes
    /// that waited for it.
    fn activate(&mut self, id: NodeId) {
        let mut warm_nodes = vec![id];
        while let Some(id) = warm_nodes.pop() {
            let Some(node) = self.nodes.get_mut(&id) else {
                continue;
            };
            let Some(next) = node.next.take() else {
                continue;
            };

            let mut change = Change::Children;
            match node.active.take() {
                Some(old_version) => {
                    if old_version.children == next.children && old_version.cut == next.cut {
                        change = Change::Content;
                    }
                    node.active = Some(next);
                    self.retired_children.push((id, old_version.children));
                }
                None => {
                    node.active = Some(next);
                    self.dirty_roots.extend(&node.roots);
                    let parents: Vec<_> = node.parents.keys().copied().collect();
                    warm_nodes.extend(
                        parents
                            .into_iter()
                            .filter(|parent| self.note_known_child(*parent, id)),
                    );
                }
            }

            // A change of the children needs more work than one of the content,
            // and is not replaced by that.
            let recorded_change = self.dirty.entry(id).or_insert(change);
            if change == Change::Children {
                *recorded_change = change;
            }
            self.is_relinked = true;
            self.note_cut(id);
        }
    }

    /// Records that a child of a node is known. Returns whether the next
    /// version of the node was waiting for it, and waits for no further child.
    fn note_known_child(&mut self, id: NodeId, child: NodeId) -> bool {
        let next = self.nodes.get_mut(&id).and_then(|node| node.next.as_mut());
        next.is_some_and(|next| {
            let was_awaited = next.children.contains(&child);
            next.unready_count -= usize::from(was_awaited);
            was_awaited && next.unready_count == 0
        })
    }

    /// Records whether a node has references that are not followed.
    fn note_cut(&mut self, id: NodeId) {
        let node = self.nodes.get(&id);
        if node.is_some_and(|node| node.versions().any(|version| !version.cut.is_empty())) {
            self.cut.insert(id)
        } else {
            self.cut.remove(&id)
        };
    }
}
