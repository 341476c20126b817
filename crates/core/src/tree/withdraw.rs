//! Resources that a control plane removes while their referrers are about to be
//! replaced.
//!
//! ```text
//!   route 1 (in use) ──▶ cluster a     the control plane removes cluster a: it
//!   route 2 (warming) ─▶ cluster b     knows that route 2 was accepted, and not
//!                                      that it waits for cluster b
//! ```
//!
//! Such a resource stays in use until nothing refers to it (E18). If a newer
//! version of a referrer refers to it again, it is gone.

use super::part::Content;
use super::{NodeId, Tree};
use crate::sink::WatchError;

impl<S: Clone + Ord, V: Clone> Tree<S, V> {
    /// Keeps a removed resource in use, with the error of its removal beside
    /// it, if everything that refers to it is about to stop doing so. Returns
    /// whether it is kept; if not, nothing has changed, and the caller applies
    /// the removal.
    pub(super) fn withdraw(&mut self, id: NodeId, error: &WatchError) -> bool {
        if !self.is_leaving(id) {
            return false;
        }
        let node = self.nodes.get(&id);
        let Some(active) = node.and_then(|node| node.active.as_ref()) else {
            return false;
        };
        let Some(value) = active.content.value().cloned() else {
            return false;
        };

        let keys = self.keys_of(active);
        if let Some(node) = self.nodes.get_mut(&id) {
            node.withdrawn = Some(error.clone());
        }
        self.withdrawn.insert(id);
        self.set_next(id, Content::Stale(value, error.clone()), keys);
        true
    }

    /// Returns whether everything that refers to a node is about to stop doing
    /// so, or is about to be removed with it. References have no cycles.
    fn is_leaving(&self, id: NodeId) -> bool {
        let node = self.nodes.get(&id);
        let is_shown = node.is_none_or(|node| !node.roots.is_empty());
        let mut referrers = self.referrers(id);
        !is_shown
            && referrers
                .all(|(parent, parent_node)| parent_node.gives_up(id) || self.is_leaving(parent))
    }

    /// Takes removed resources out of use if a node refers to them again.
    pub(super) fn fail_withdrawn(&mut self) {
        while let Some(id) = self.withdrawn.iter().find(|id| !self.is_leaving(**id)) {
            let id = *id;
            self.withdrawn.remove(&id);
            let node = self.nodes.get_mut(&id);
            if let Some(error) = node.and_then(|node| node.withdrawn.take()) {
                self.set_next(id, Content::Failed(error), Vec::new());
            }
        }
    }
}
