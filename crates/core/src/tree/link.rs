//! References between nodes: made, counted and dropped.
//!
//! The nodes and the references that are followed have no cycles, so counting
//! references finds everything that is not reached. A reference that would
//! close a cycle, or that lies deeper than [`MAX_LEVELS`] of one type, is
//! **cut**: it is not followed until it may be (C54).

use std::collections::BTreeSet;
use std::sync::Arc;

use super::key::Key;
use super::node::Node;
use super::part::MAX_LEVELS;
use super::{Action, NodeId, RootId, Tree};

/// The references of a version: those that are followed, and those that are
/// not.
pub(super) type Links<S> = (BTreeSet<NodeId>, Vec<Arc<Key<S>>>);

impl<S: Clone + Ord, V: Clone> Tree<S, V> {
    /// Returns the node of a key, which is added and subscribed to if need be.
    /// The caller lets something refer to it, or it would stay for ever.
    pub(super) fn intern_node(&mut self, key: Arc<Key<S>>) -> NodeId {
        if let Some(id) = self.ids.get(&key) {
            return *id;
        }
        let id = NodeId(self.take_id());
        self.ids.insert(Arc::clone(&key), id);
        self.nodes.insert(id, Node::new(Arc::clone(&key)));
        self.actions.push_back(Action::Subscribe(id, key));
        id
    }

    /// Adds a reference from a node to each of these keys. Returns the nodes of
    /// the keys that may be followed, and the other keys.
    pub(super) fn link(&mut self, id: NodeId, keys: Vec<Arc<Key<S>>>) -> Links<S> {
        let keys: BTreeSet<_> = keys.into_iter().collect();
        let (mut children, mut cut_keys) = (BTreeSet::new(), Vec::new());
        let mut limits = None;
        for key in keys {
            if !self.may_follow(id, &key, &mut limits) {
                cut_keys.push(key);
                continue;
            }
            let child = self.intern_node(key);
            children.insert(child);
            if let Some(node) = self.nodes.get_mut(&child) {
                *node.parents.entry(id).or_default() += 1;
            }
        }
        (children, cut_keys)
    }

    /// Removes one reference from a node to each of these children, which
    /// [`Tree::link`] has added. Drops the nodes that nothing refers to any
    /// more.
    pub(super) fn unlink(&mut self, id: NodeId, children: &BTreeSet<NodeId>) {
        self.is_relinked = true;
        for child in children {
            if let Some(node) = self.nodes.get_mut(child)
                && let Some(count) = node.parents.get_mut(&id)
            {
                *count -= 1;
                if *count == 0 {
                    node.parents.remove(&id);
                }
            }
            self.drop_loose(*child);
        }
    }

    /// Records that a root does not show a node by itself any more. The node is
    /// dropped if nothing refers to it.
    pub(super) fn remove_from_root(&mut self, root: RootId, id: NodeId) {
        if let Some(node) = self.nodes.get_mut(&id) {
            node.roots.remove(&root);
        }
        self.is_relinked = true;
        self.drop_loose(id);
    }

    /// Drops a node that nothing refers to, and then the nodes that only it
    /// referred to. Does nothing if a reference or a root is left.
    fn drop_loose(&mut self, id: NodeId) {
        if !self.nodes.get(&id).is_some_and(Node::is_loose) {
            return;
        }
        let Some(node) = self.nodes.remove(&id) else {
            return;
        };

        self.ids.remove(&node.key);
        self.dirty.remove(&id);
        self.cut.remove(&id);
        self.withdrawn.remove(&id);
        if let Some(deadline) = node.deadline {
            self.deadlines.remove(&(deadline, id));
        }

        self.actions.push_back(Action::Unsubscribe(id));
        for version in node.versions() {
            self.unlink(id, &version.children);
        }
    }

    /// Returns whether a node may refer to a key. A reference that closes a
    /// cycle or nests too many nodes of one type may not be followed (C54).
    /// `limits` caches what is computed about the node.
    fn may_follow(&self, id: NodeId, key: &Key<S>, limits: &mut Option<Limits>) -> bool {
        let Some(node) = self.nodes.get(&id) else {
            return false;
        };
        let child_id = self.ids.get(key);
        // A node without children is above nothing.
        let is_parent =
            |child: &Node<S, V>| child.versions().any(|version| !version.children.is_empty());
        let may_be_ancestor = child_id
            .and_then(|child_id| self.nodes.get(child_id))
            .is_some_and(is_parent);
        let is_nested = key.type_url == node.key.type_url;
        // Most references need no limits.
        if !may_be_ancestor && !is_nested {
            return true;
        }

        let limits = limits.get_or_insert_with(|| Limits {
            ancestors: self.ancestors(id),
            level: self.level(id),
        });
        let closes_cycle = child_id.is_some_and(|child_id| limits.ancestors.contains(child_id));
        let is_too_deep = is_nested && limits.level >= MAX_LEVELS;
        !(closes_cycle || is_too_deep)
    }

    /// Returns a node and all nodes that refer to it, directly or through
    /// others.
    fn ancestors(&self, id: NodeId) -> BTreeSet<NodeId> {
        let mut ancestors = BTreeSet::from([id]);
        let mut unvisited = vec![id];
        while let Some(id) = unvisited.pop() {
            let parents = self.referrers(id).map(|(parent, _)| parent);
            unvisited.extend(parents.filter(|parent| ancestors.insert(*parent)));
        }
        ancestors
    }

    /// Returns the number of nodes of its own type on the shortest way from a
    /// root to the node, itself included; at most [`MAX_LEVELS`].
    fn level(&self, id: NodeId) -> usize {
        let mut level_nodes = BTreeSet::from([id]);
        for level in 1..MAX_LEVELS {
            let mut parents = BTreeSet::new();
            for id in &level_nodes {
                let Some(node) = self.nodes.get(id) else {
                    continue;
                };
                if !node.roots.is_empty() {
                    return level;
                }
                for (parent, parent_node) in self.referrers(*id) {
                    if parent_node.key.type_url != node.key.type_url {
                        return level;
                    }
                    parents.insert(parent);
                }
            }
            level_nodes = parents;
        }
        MAX_LEVELS
    }

    /// Returns the nodes that refer to a node by one of their present versions.
    pub(super) fn referrers(&self, id: NodeId) -> impl Iterator<Item = (NodeId, &Node<S, V>)> {
        let parent_ids = self
            .nodes
            .get(&id)
            .into_iter()
            .flat_map(|node| node.parents.keys());
        let parents = parent_ids.filter_map(|parent| Some((*parent, self.nodes.get(parent)?)));
        parents.filter(move |(_, node)| node.refers_to(id))
    }

    /// Follows references that were cut, where the limits now allow it.
    pub(super) fn follow_cut(&mut self) {
        while std::mem::take(&mut self.is_relinked) {
            let cut_nodes: Vec<_> = self.cut.iter().copied().collect();
            for id in cut_nodes {
                self.follow_cut_of(id);
            }
        }
    }

    /// Sets the newest version of a node again if one of its cut references may
    /// be followed now.
    fn follow_cut_of(&mut self, id: NodeId) {
        let Some(node) = self.nodes.get(&id) else {
            return;
        };
        let Some(newest_version) = node.next.as_ref().or(node.active.as_ref()) else {
            return;
        };

        let mut limits = None;
        let mut cut_keys = newest_version.cut.iter();
        if !cut_keys.any(|key| self.may_follow(id, key, &mut limits)) {
            return;
        }

        let keys = self.keys_of(newest_version);
        let content = newest_version.content.clone();
        self.set_next(id, content, keys);
    }
}

/// The bounds on the references of a node.
struct Limits {
    /// The node and those that lead to it, none of which it may refer to.
    ancestors: BTreeSet<NodeId>,
    level: usize,
}
