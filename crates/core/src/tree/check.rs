//! Proof of the invariants of a tree.

use std::collections::BTreeMap;
use std::fmt::Debug;

use super::node::Node;
use super::{NodeId, Tree};

impl<S: Clone + Ord + Debug, V: Clone> Tree<S, V> {
    /// Checks the invariants, for tests and simulations.
    ///
    /// # Errors
    /// The first invariant that does not hold.
    pub fn check(&self) -> Result<(), String> {
        if self.ids.len() != self.nodes.len() {
            return Err("keys and nodes do not match".into());
        }
        let counts = self.count_references();
        for (id, node) in &self.nodes {
            self.check_node(*id, node)?;
            let expected_parents = counts.get(id).cloned().unwrap_or_default();
            if node.parents != expected_parents {
                return Err(format!("{:?} counts its parents wrongly", node.key));
            }
            if node.is_loose() {
                return Err(format!("{:?} is kept, and nobody refers to it", node.key));
            }
        }
        self.check_roots()
    }

    /// Returns the nodes that refer to each node, with the number of their
    /// references.
    fn count_references(&self) -> BTreeMap<NodeId, BTreeMap<NodeId, usize>> {
        let present_links = self.nodes.iter().flat_map(|(id, node)| {
            let children = node.versions().flat_map(|version| &version.children);
            children.map(move |child| (*id, *child))
        });
        let retired_children = self.retired_children.iter();
        let retired_links = retired_children
            .flat_map(|(id, children)| children.iter().map(move |child| (*id, *child)));

        let mut counts: BTreeMap<NodeId, BTreeMap<NodeId, usize>> = BTreeMap::new();
        for (parent, child) in present_links.chain(retired_links) {
            *counts.entry(child).or_default().entry(parent).or_default() += 1;
        }
        counts
    }

    /// Checks the invariants of one node.
    fn check_node(&self, id: NodeId, node: &Node<S, V>) -> Result<(), String> {
        let fail = |fault: &str| Err(format!("{:?}: {fault}", node.key));
        let is_ready = |id: &NodeId| self.nodes.get(id).is_some_and(Node::is_ready);
        if let Some(active) = &node.active
            && !active.children.iter().all(is_ready)
        {
            return fail("in use before its children are known (C51)");
        }

        if let Some(next) = &node.next {
            let unready_count = next.children.iter().filter(|id| !is_ready(id)).count();
            if unready_count != next.unready_count || unready_count == 0 {
                return fail("counts wrongly what it waits for");
            }
        }
        let is_built = node.part.is_some() || self.dirty.contains_key(&id);
        if node.is_ready() != is_built {
            return fail("has no part, or one without a version in use");
        }

        if node
            .deadline
            .is_some_and(|deadline| !self.deadlines.contains(&(deadline, id)))
        {
            return fail("waits for a deadline that nobody knows");
        }
        if node.withdrawn.is_some() != self.withdrawn.contains(&id) {
            return fail("withdrawn, and nobody knows it");
        }

        if self.is_below_itself(id) {
            return fail("refers to itself (C54)");
        }
        Ok(())
    }

    /// Returns whether a node refers to itself, through any number of others.
    fn is_below_itself(&self, id: NodeId) -> bool {
        let children = |id: &NodeId| {
            let node = self.nodes.get(id).into_iter();
            node.flat_map(Node::versions)
                .flat_map(|version| version.children.iter().copied())
        };
        let mut reached_nodes: std::collections::BTreeSet<_> = children(&id).collect();
        let mut unvisited: Vec<_> = reached_nodes.iter().copied().collect();
        while let Some(id) = unvisited.pop() {
            unvisited.extend(children(&id).filter(|child| reached_nodes.insert(*child)));
        }
        reached_nodes.contains(&id)
    }

    /// Checks that every node that a root shows has the root in its list.
    fn check_roots(&self) -> Result<(), String> {
        for (id, root) in &self.roots {
            let shows = |node: &NodeId| {
                let node = self.nodes.get(node);
                node.is_some_and(|node| node.roots.contains(id))
            };
            if !shows(&root.node) || !root.subscriptions.keys().all(shows) {
                return Err(format!("{id:?} shows a node that does not know it"));
            }
        }
        Ok(())
    }
}
