//! Makes snapshots of nodes. Parts that have changed are made anew, from the
//! change up to the roots, and no others.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::children::Children;
use super::part::{Part, Snapshot};
use super::{Action, Change, NodeId, RootId, Tree};

/// The nodes whose parts are to be made, each with its children whose parts are
/// to be made, too.
type AffectedNodes = BTreeMap<NodeId, BTreeSet<NodeId>>;

impl<S: Clone + Ord, V: Clone> Tree<S, V> {
    /// Takes the next task of the owner; `None` if there is none. Snapshots are
    /// made when everything else is done, so that they show everything that is
    /// known by then.
    pub fn poll_action(&mut self) -> Option<Action<S, V>> {
        if self.actions.is_empty() {
            self.settle();
        }
        self.actions.pop_front()
    }

    /// Publishes the changes, and then drops the nodes that are no longer part
    /// of a snapshot (E18). Does nothing while subscriptions are to be made: an
    /// answer to one of them may change what is shown.
    fn settle(&mut self) {
        self.fail_withdrawn();
        self.follow_cut();
        if !self.actions.is_empty() {
            return;
        }

        let affected_nodes = self.find_affected();
        let roots = self.rebuild(&affected_nodes);
        for root in roots {
            self.publish(root, &affected_nodes);
        }
        for (id, children) in std::mem::take(&mut self.retired_children) {
            self.unlink(id, &children);
        }

        for (root, node) in std::mem::take(&mut self.retired_subscriptions) {
            let root_state = self.roots.get(&root);
            if root_state.is_none_or(|root_state| !root_state.refers_to(node)) {
                self.remove_from_root(root, node);
            }
        }
    }

    /// Returns the nodes that have changed and all that use them, each with its
    /// changed children.
    fn find_affected(&self) -> AffectedNodes {
        let mut affected_nodes: AffectedNodes =
            self.dirty.keys().map(|id| (*id, BTreeSet::new())).collect();
        let mut unvisited: Vec<_> = affected_nodes.keys().copied().collect();
        while let Some(id) = unvisited.pop() {
            for parent in self.users(id) {
                let children = affected_nodes.entry(parent).or_insert_with(|| {
                    unvisited.push(parent);
                    BTreeSet::new()
                });
                children.insert(id);
            }
        }
        affected_nodes
    }

    /// Returns the nodes whose version in use refers to a node.
    fn users(&self, id: NodeId) -> impl Iterator<Item = NodeId> {
        let parents = self
            .nodes
            .get(&id)
            .into_iter()
            .flat_map(|node| node.parents.keys());
        let uses =
            move |parent: &&NodeId| self.nodes.get(*parent).is_some_and(|node| node.uses(id));
        parents.filter(uses).copied()
    }

    /// Rebuilds the parts of nodes, children first. Returns the roots to
    /// publish again.
    fn rebuild(&mut self, affected_nodes: &AffectedNodes) -> BTreeSet<RootId> {
        let mut roots = std::mem::take(&mut self.dirty_roots);
        let mut unmade_children: BTreeMap<_, _> = affected_nodes
            .iter()
            .map(|(id, children)| (*id, children.len()))
            .collect();
        let leaves = unmade_children.iter().filter(|(_, count)| **count == 0);
        let mut ready_nodes: Vec<_> = leaves.map(|(id, _)| *id).collect();

        while let Some(id) = ready_nodes.pop() {
            self.make_part(id, &affected_nodes[&id]);
            let node = self.nodes.get(&id);
            roots.extend(node.into_iter().flat_map(|node| &node.roots));
            let users: Vec<_> = self.users(id).collect();
            for user in users {
                if let Some(count) = unmade_children.get_mut(&user) {
                    *count -= 1;
                    if *count == 0 {
                        ready_nodes.push(user);
                    }
                }
            }
        }

        self.dirty.clear();
        roots
    }

    /// Builds the part of a node from its active version. `changed_children`
    /// are the children whose parts have changed. A node without an active
    /// version gets none.
    fn make_part(&mut self, id: NodeId, changed_children: &BTreeSet<NodeId>) {
        let Some(node) = self.nodes.get(&id) else {
            return;
        };
        let Some(active) = &node.active else {
            return;
        };

        let is_relisted = self.dirty.get(&id) == Some(&Change::Children);
        // A part that has too many levels does not list its children.
        let is_listed = |part: &&Arc<Part<S, V>>| !is_relisted && !part.is_too_deep();
        let old_part = node.part.as_ref().filter(is_listed);
        let (children, copied_count) = match old_part {
            Some(old_part) => self.replace_parts(&old_part.children, changed_children),
            None => {
                let parts = active.children.iter().filter_map(|id| self.part(*id));
                let cut_keys = active.cut.iter();
                let cut_parts = cut_keys.map(|key| Arc::new(Part::too_deep(Arc::clone(key))));
                let parts: Vec<_> = parts.chain(cut_parts).collect();
                let count = parts.len();
                (Children::new(parts), count)
            }
        };

        let part = Part::new(Arc::clone(&node.key), active.content.clone(), children);
        self.work.parts += 1;
        self.work.entries += copied_count;
        if let Some(node) = self.nodes.get_mut(&id) {
            node.part = Some(Arc::new(part));
        }
    }

    /// Returns the part of a node; `None` if it has no active version yet.
    fn part(&self, id: NodeId) -> Option<Arc<Part<S, V>>> {
        self.nodes.get(&id).and_then(|node| node.part.clone())
    }

    /// Returns a list of children with the present parts of these nodes in
    /// place of their old ones, and the number of entries that were copied. A
    /// node without a part changes nothing.
    fn replace_parts(
        &self,
        children: &Children<S, V>,
        changed_nodes: &BTreeSet<NodeId>,
    ) -> (Children<S, V>, usize) {
        let parts = changed_nodes.iter().filter_map(|id| self.part(*id));
        parts.fold((children.clone(), 0), |(children, copied_count), part| {
            let (children, more_count) = children.replace(part);
            (children, copied_count + more_count)
        })
    }

    /// Publishes a root whose resource is known, if it differs from its last
    /// snapshot.
    fn publish(&mut self, id: RootId, affected_nodes: &AffectedNodes) {
        let changed_list = self.update_subscribed(id, affected_nodes);
        let Some(root) = self.roots.get(&id) else {
            return;
        };
        let Some(part) = self.part(root.node) else {
            return;
        };

        if let Some(snapshot) = &root.last_snapshot
            && Arc::ptr_eq(&snapshot.root, &part)
            && changed_list.is_none()
        {
            return;
        }

        let old_list = root
            .last_snapshot
            .as_ref()
            .map(|snapshot| snapshot.subscribed.clone());
        let snapshot = Arc::new(Snapshot {
            root: part,
            subscribed: changed_list.or(old_list).unwrap_or_default(),
        });
        self.work.snapshots += 1;
        if let Some(root) = self.roots.get_mut(&id) {
            root.last_snapshot = Some(Arc::clone(&snapshot));
        }
        self.actions.push_back(Action::Publish(id, snapshot));
    }

    /// Returns the resources that a root subscribes to by itself; `None` if
    /// they are those of its last snapshot.
    fn update_subscribed(
        &mut self,
        id: RootId,
        affected_nodes: &AffectedNodes,
    ) -> Option<Children<S, V>> {
        let root = self.roots.get(&id)?;
        let published_list = root
            .last_snapshot
            .as_ref()
            .map(|snapshot| &snapshot.subscribed);
        let has_part = |id: &&NodeId| self.nodes.get(*id).is_some_and(|node| node.part.is_some());
        let known_nodes = root.subscriptions.keys().filter(has_part);
        let changed_nodes: BTreeSet<_> = known_nodes
            .clone()
            .filter(|id| affected_nodes.contains_key(id))
            .copied()
            .collect();

        let is_same_set = published_list.map_or(0, Children::len) == known_nodes.clone().count()
            && known_nodes
                .clone()
                .all(|id| self.is_listed(*id, published_list));
        if is_same_set && changed_nodes.is_empty() {
            return None;
        }

        let (children, copied_count) = match published_list {
            Some(published_list) if is_same_set => {
                self.replace_parts(published_list, &changed_nodes)
            }
            _ => {
                let parts: Vec<_> = known_nodes.filter_map(|id| self.part(*id)).collect();
                let count = parts.len();
                (Children::new(parts), count)
            }
        };

        self.work.entries += copied_count;
        Some(children)
    }

    /// Returns whether a list of children has the resource of a node.
    fn is_listed(&self, id: NodeId, list: Option<&Children<S, V>>) -> bool {
        let key = self.nodes.get(&id).map(|node| &node.key);
        key.zip(list).is_some_and(|(key, list)| list.contains(key))
    }
}
