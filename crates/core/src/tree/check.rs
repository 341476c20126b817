//! Proof of the invariants of a tree.

use std::collections::BTreeMap;
use std::fmt::Debug;

use super::node::Node;
use super::{NodeId, Tree};

impl<S: Clone + Ord + Debug, V: Clone> Tree<S, V> {
    /// Proves the invariants, for tests and simulations.
    ///
    /// # Errors
    /// The one that does not hold.
    pub fn check(&self) -> Result<(), String> {
        if self.ids.len() != self.nodes.len() {
            return Err("keys and nodes do not match".into());
        }
        let counts = self.references();
        for (id, node) in &self.nodes {
            self.check_node(*id, node)?;
            let expected = counts.get(id).cloned().unwrap_or_default();
            if node.parents != expected {
                return Err(format!("{:?} counts its parents wrongly", node.key));
            }
            if node.is_loose() {
                return Err(format!("{:?} is kept, and nobody refers to it", node.key));
            }
        }
        self.check_roots()
    }

    /// Who refers to whom, and how often.
    fn references(&self) -> BTreeMap<NodeId, BTreeMap<NodeId, usize>> {
        let versions = self.nodes.iter().flat_map(|(id, node)| {
            let versions = node.versions();
            versions.flat_map(move |of| of.children.iter().map(move |child| (*id, *child)))
        });
        let retired = self.retired.iter();
        let retired = retired.flat_map(|(id, of)| of.iter().map(move |child| (*id, *child)));
        let mut counts: BTreeMap<NodeId, BTreeMap<NodeId, usize>> = BTreeMap::new();
        for (parent, child) in versions.chain(retired) {
            *counts.entry(child).or_default().entry(parent).or_default() += 1;
        }
        counts
    }

    fn check_node(&self, id: NodeId, node: &Node<S, V>) -> Result<(), String> {
        let wrong = |what: &str| Err(format!("{:?}: {what}", node.key));
        let is_ready = |id: &NodeId| self.nodes.get(id).is_some_and(Node::is_ready);
        if let Some(active) = &node.active
            && !active.children.iter().all(is_ready)
        {
            return wrong("in use before its children are known (C51)");
        }
        if let Some(next) = &node.next {
            let waiting = next.children.iter().filter(|id| !is_ready(id)).count();
            if waiting != next.waiting || waiting == 0 {
                return wrong("counts wrongly what it waits for");
            }
        }
        let is_built = node.part.is_some() || self.dirty.contains_key(&id);
        if node.is_ready() != is_built {
            return wrong("has no part, or one without a version in use");
        }
        if node
            .deadline
            .is_some_and(|at| !self.deadlines.contains(&(at, id)))
        {
            return wrong("waits for a deadline that nobody knows");
        }
        if node.withdrawn.is_some() != self.withdrawn.contains(&id) {
            return wrong("withdrawn, and nobody knows it");
        }
        if self.is_below_itself(id) {
            return wrong("refers to itself (C54)");
        }
        Ok(())
    }

    fn is_below_itself(&self, id: NodeId) -> bool {
        let below = |id: &NodeId| {
            let node = self.nodes.get(id).into_iter();
            node.flat_map(Node::versions)
                .flat_map(|of| of.children.iter().copied())
        };
        let mut seen: std::collections::BTreeSet<_> = below(&id).collect();
        let mut open: Vec<_> = seen.iter().copied().collect();
        while let Some(of) = open.pop() {
            open.extend(below(&of).filter(|child| seen.insert(*child)));
        }
        seen.contains(&id)
    }

    fn check_roots(&self) -> Result<(), String> {
        for (id, root) in &self.roots {
            let shows =
                |node: &NodeId| self.nodes.get(node).is_some_and(|of| of.roots.contains(id));
            if !shows(&root.node) || !root.subscribed.keys().all(shows) {
                return Err(format!("{id:?} shows a node that does not know it"));
            }
        }
        Ok(())
    }
}
