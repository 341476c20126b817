//! From nodes to snapshots: what has changed is made anew, from the change up
//! to the roots, and nothing else.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::children::Children;
use super::part::{Part, Snapshot};
use super::{Action, Change, NodeId, RootId, Tree};

/// The nodes whose parts are to be made, each with the children whose parts are.
type Affected = BTreeMap<NodeId, BTreeSet<NodeId>>;

impl<S: Clone + Ord, V: Clone> Tree<S, V> {
    /// Takes the next thing to do. Snapshots are made when everything else is
    /// done, so what is known by then is shown at once.
    pub fn poll_action(&mut self) -> Option<Action<S, V>> {
        if self.actions.is_empty() {
            self.settle();
        }
        self.actions.pop_front()
    }

    /// Publishes what has changed, then drops what is not part of it (E18).
    fn settle(&mut self) {
        self.fail_withdrawn();
        self.follow_cut();
        if !self.actions.is_empty() {
            return;
        }
        let affected = self.affected();
        let roots = self.rebuild(&affected);
        for root in roots {
            self.publish(root, &affected);
        }
        for (id, children) in std::mem::take(&mut self.retired) {
            self.unlink(id, &children);
        }
        for (root, node) in std::mem::take(&mut self.retired_subscriptions) {
            let of = self.roots.get(&root);
            if of.is_none_or(|of| !of.refers_to(node)) {
                self.drop_root(root, node);
            }
        }
    }

    /// The nodes that have changed, and all that use them.
    fn affected(&self) -> Affected {
        let mut affected: Affected = self.dirty.keys().map(|id| (*id, BTreeSet::new())).collect();
        let mut open: Vec<_> = affected.keys().copied().collect();
        while let Some(id) = open.pop() {
            for parent in self.users(id) {
                let known = affected.entry(parent).or_insert_with(|| {
                    open.push(parent);
                    BTreeSet::new()
                });
                known.insert(id);
            }
        }
        affected
    }

    /// The nodes whose version in use refers to a node.
    fn users(&self, id: NodeId) -> impl Iterator<Item = NodeId> {
        let parents = self
            .nodes
            .get(&id)
            .into_iter()
            .flat_map(|of| of.parents.keys());
        let uses = move |parent: &&NodeId| self.nodes.get(*parent).is_some_and(|of| of.uses(id));
        parents.filter(uses).copied()
    }

    /// Makes the parts of nodes, children first. Returns the roots that are to
    /// be shown again.
    fn rebuild(&mut self, affected: &Affected) -> BTreeSet<RootId> {
        let mut roots = std::mem::take(&mut self.dirty_roots);
        let mut missing: BTreeMap<_, _> = affected.iter().map(|(id, of)| (*id, of.len())).collect();
        let mut open: Vec<_> = missing.iter().filter(|(_, count)| **count == 0).collect();
        let mut open: Vec<_> = open.drain(..).map(|(id, _)| *id).collect();
        while let Some(id) = open.pop() {
            self.make_part(id, &affected[&id]);
            let node = self.nodes.get(&id);
            roots.extend(node.into_iter().flat_map(|node| &node.roots));
            let users: Vec<_> = self.users(id).collect();
            for user in users {
                if let Some(count) = missing.get_mut(&user) {
                    *count -= 1;
                    if *count == 0 {
                        open.push(user);
                    }
                }
            }
        }
        self.dirty.clear();
        roots
    }

    /// Makes the part of a node from its version in use; only these children
    /// have other parts than before.
    fn make_part(&mut self, id: NodeId, changed: &BTreeSet<NodeId>) {
        let Some(node) = self.nodes.get(&id) else {
            return;
        };
        let Some(active) = &node.active else {
            return;
        };
        let is_relisted = self.dirty.get(&id) == Some(&Change::Children);
        // A part that has too many levels does not list its children.
        let is_listed = |part: &&Arc<Part<S, V>>| !is_relisted && !part.is_too_deep();
        let old = node.part.as_ref().filter(is_listed);
        let (children, copied) = match old {
            Some(old) => self.replaced(&old.children, changed),
            None => {
                let parts = active.children.iter().filter_map(|id| self.part(*id));
                let cut = active.cut.iter();
                let cut = cut.map(|key| Arc::new(Part::too_deep(Arc::clone(key))));
                let parts: Vec<_> = parts.chain(cut).collect();
                let count = parts.len();
                (Children::new(parts), count)
            }
        };
        let part = Part::new(Arc::clone(&node.key), active.content.clone(), children);
        self.work.parts += 1;
        self.work.entries += copied;
        if let Some(node) = self.nodes.get_mut(&id) {
            node.part = Some(Arc::new(part));
        }
    }

    fn part(&self, id: NodeId) -> Option<Arc<Part<S, V>>> {
        self.nodes.get(&id).and_then(|node| node.part.clone())
    }

    /// A list of children with the parts that some nodes have now, and how many
    /// entries were copied.
    fn replaced(
        &self,
        children: &Children<S, V>,
        changed: &BTreeSet<NodeId>,
    ) -> (Children<S, V>, usize) {
        let parts = changed.iter().filter_map(|id| self.part(*id));
        parts.fold((children.clone(), 0), |(children, copied), part| {
            let (children, more) = children.replace(part);
            (children, copied + more)
        })
    }

    /// Shows a root, if it is known and differs from what was shown before.
    fn publish(&mut self, id: RootId, affected: &Affected) {
        let subscribed = self.subscribed(id, affected);
        let Some(root) = self.roots.get(&id) else {
            return;
        };
        let Some(part) = self.part(root.node) else {
            return;
        };
        if let Some(shown) = &root.published
            && Arc::ptr_eq(&shown.root, &part)
            && subscribed.is_none()
        {
            return;
        }
        let old = root
            .published
            .as_ref()
            .map(|shown| shown.subscribed.clone());
        let snapshot = Arc::new(Snapshot {
            root: part,
            subscribed: subscribed.or(old).unwrap_or_default(),
        });
        self.work.snapshots += 1;
        if let Some(root) = self.roots.get_mut(&id) {
            root.published = Some(Arc::clone(&snapshot));
        }
        self.actions.push_back(Action::Publish(id, snapshot));
    }

    /// The resources that a root subscribes to by itself, if they differ from those shown.
    fn subscribed(&mut self, id: RootId, affected: &Affected) -> Option<Children<S, V>> {
        let root = self.roots.get(&id)?;
        let shown = root.published.as_ref().map(|shown| &shown.subscribed);
        let is_known = |id: &&NodeId| self.nodes.get(*id).is_some_and(|of| of.part.is_some());
        let known = root.subscribed.keys().filter(is_known);
        let changed = known.clone().filter(|id| affected.contains_key(id));
        let changed: BTreeSet<_> = changed.copied().collect();
        let is_same_set = shown.map_or(0, Children::len) == known.clone().count()
            && known.clone().all(|id| self.is_listed(*id, shown));
        if is_same_set && changed.is_empty() {
            return None;
        }
        let (list, copied) = match shown {
            Some(shown) if is_same_set => self.replaced(shown, &changed),
            _ => {
                let parts: Vec<_> = known.filter_map(|id| self.part(*id)).collect();
                let count = parts.len();
                (Children::new(parts), count)
            }
        };
        self.work.entries += copied;
        Some(list)
    }

    fn is_listed(&self, id: NodeId, shown: Option<&Children<S, V>>) -> bool {
        let key = self.nodes.get(&id).map(|node| &node.key);
        key.zip(shown)
            .is_some_and(|(key, shown)| shown.contains(key))
    }
}
