//! A tree of resources: a listener or a cluster with everything below it,
//! shown as snapshots.
//!
//! ```text
//!   add_root ─▶ ┌ Node ┐ refers to ┌ Node ┐ ...      ─▶ poll_action:
//!               │ next │──────────▶│ next │             Subscribe, Unsubscribe
//!   handle_   ─▶│active│──────────▶│active│             Publish(snapshot)
//!   update      └──────┘           └──────┘
//! ```
//!
//! The machine does not decode: its owner gives each accepted resource with the
//! keys of the resources that it refers to, and the machine says what to
//! subscribe to and what to show. A resource that several others refer to is
//! one node.
//!
//! A **snapshot** never changes and is complete: each part has a resource or an
//! error (C51). One missing cluster is an error in its own place and holds
//! nothing back (C53). A version whose children are not all known is **warming**:
//! the version before stays in use, with its children, until then (E3), and
//! changes elsewhere are shown meanwhile. What nobody refers to any more is
//! unsubscribed from after the snapshot without it was published (make before
//! break, E18). A control plane may remove it earlier, when it knows that the
//! version without it was accepted: it stays in use all the same.
//!
//! A change makes one snapshot, which shares with the one before every part
//! that has nothing different at or below it. The work, counted in [`Work`], is
//! that of the parts between the change and the roots.

mod check;
mod children;
mod key;
mod link;
mod node;
mod part;
mod publish;
mod update;
mod withdraw;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use self::node::Node;
use crate::Moment;

pub use children::Children;
pub use key::Key;
pub use part::{Content, MAX_LEVELS, Part, Snapshot};
pub use update::Update;

/// A node of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(u64);

/// A root of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RootId(u64);

/// A task for the owner of a tree.
#[derive(Clone, Debug)]
pub enum Action<S, V> {
    /// Subscribe to the resource, tell by [`Tree::handle_subscribed`] how long
    /// to wait for it, and hand each update of it to [`Tree::handle_update`].
    Subscribe(NodeId, Arc<Key<S>>),
    /// Show the snapshot to the watchers of the root.
    Publish(RootId, Arc<Snapshot<S, V>>),
    /// End the subscription.
    Unsubscribe(NodeId),
}

/// A resource that is not in use yet, or not in its newest version (E3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warming<S> {
    /// The resource.
    pub key: Arc<Key<S>>,
    /// The resources that it waits for: those that it refers to, or itself if
    /// nothing is known of it.
    pub waits_for: Vec<Arc<Key<S>>>,
}

/// Counters of the work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Parts that were made.
    pub parts: usize,
    /// Entries of lists of children that were copied.
    pub entries: usize,
    /// Snapshots that were published.
    pub snapshots: usize,
}

/// Resources and the resources that they refer to; see the module's
/// documentation.
#[derive(Debug)]
pub struct Tree<S, V> {
    nodes: BTreeMap<NodeId, Node<S, V>>,
    ids: BTreeMap<Arc<Key<S>>, NodeId>,
    roots: BTreeMap<RootId, Root<S, V>>,
    next_id: u64,
    /// Nodes whose active version is not the one that their part was made from.
    dirty: BTreeMap<NodeId, Change>,
    /// Roots that have to be published again, whatever became of their nodes.
    dirty_roots: BTreeSet<RootId>,
    /// Nodes with references that are not followed.
    cut: BTreeSet<NodeId>,
    /// Nodes that were withdrawn, and stay in use until nothing refers to them
    /// any more.
    withdrawn: BTreeSet<NodeId>,
    /// Whether references have changed since the references that are not
    /// followed were last checked.
    is_relinked: bool,
    /// Children of versions that were replaced, which stay until a snapshot
    /// without them is published.
    retired_children: Vec<(NodeId, BTreeSet<NodeId>)>,
    /// Subscriptions of roots that have ended, in the same way.
    retired_subscriptions: Vec<(RootId, NodeId)>,
    /// Nodes that wait for their first answer, by the end of the wait.
    deadlines: BTreeSet<(Moment, NodeId)>,
    actions: VecDeque<Action<S, V>>,
    work: Work,
}

/// The difference between the active version of a node and its part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    /// It refers to the same nodes.
    Content,
    /// It refers to others.
    Children,
}

/// A root: a resource that is shown with everything below it.
#[derive(Debug)]
struct Root<S, V> {
    node: NodeId,
    /// The nodes that the root subscribes to by itself, and how often.
    subscriptions: BTreeMap<NodeId, usize>,
    last_snapshot: Option<Arc<Snapshot<S, V>>>,
}

impl<S, V> Root<S, V> {
    /// Returns whether the root shows a node by itself: the node is the root's
    /// resource, or the root subscribes to it.
    fn refers_to(&self, node: NodeId) -> bool {
        self.node == node || self.subscriptions.contains_key(&node)
    }
}

impl<S, V> Default for Tree<S, V> {
    /// Makes a tree without roots. A derived implementation would ask `S` and
    /// `V` for defaults.
    fn default() -> Self {
        Self {
            nodes: BTreeMap::new(),
            ids: BTreeMap::new(),
            roots: BTreeMap::new(),
            next_id: 0,
            dirty: BTreeMap::new(),
            dirty_roots: BTreeSet::new(),
            cut: BTreeSet::new(),
            withdrawn: BTreeSet::new(),
            is_relinked: false,
            retired_children: Vec::new(),
            retired_subscriptions: Vec::new(),
            deadlines: BTreeSet::new(),
            actions: VecDeque::new(),
            work: Work::default(),
        }
    }
}

impl<S: Clone + Ord, V: Clone> Tree<S, V> {
    /// Makes a tree without roots.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a root: a resource whose snapshots, with everything below it, are
    /// published.
    pub fn add_root(&mut self, key: Key<S>) -> RootId {
        let id = RootId(self.take_id());
        let node = self.intern_node(Arc::new(key));
        let root = Root {
            node,
            subscriptions: BTreeMap::new(),
            last_snapshot: None,
        };
        self.roots.insert(id, root);
        self.add_to_root(id, node);
        id
    }

    /// Removes a root. Resources that no other root reaches are unsubscribed
    /// from.
    pub fn remove_root(&mut self, id: RootId) {
        let Some(root) = self.roots.remove(&id) else {
            return;
        };
        self.dirty_roots.remove(&id);
        for node in root.subscriptions.into_keys().chain([root.node]) {
            self.remove_from_root(id, node);
        }
    }

    /// Subscribes to a resource in addition to those that a root refers to: a
    /// cluster that a request names, or one that a call still uses although no
    /// route does (C54). Snapshots show the resource when it is known, and do
    /// not wait for it.
    pub fn subscribe(&mut self, id: RootId, key: Key<S>) {
        if !self.roots.contains_key(&id) {
            return;
        }
        let node = self.intern_node(Arc::new(key));
        self.add_to_root(id, node);
        if let Some(root) = self.roots.get_mut(&id) {
            *root.subscriptions.entry(node).or_default() += 1;
        }
    }

    /// Ends one subscription that [`Self::subscribe`] began. After the last one
    /// ends, the resource is still shown until a snapshot without it is published.
    pub fn unsubscribe(&mut self, id: RootId, key: &Key<S>) {
        let (Some(root), Some(node)) = (self.roots.get_mut(&id), self.ids.get(key)) else {
            return;
        };
        let Some(count) = root.subscriptions.get_mut(node) else {
            return;
        };
        *count -= 1;
        if *count == 0 {
            root.subscriptions.remove(node);
            self.dirty_roots.insert(id);
            self.retired_subscriptions.push((id, *node));
        }
    }

    /// Returns the resources that are warming, and what each waits for.
    #[must_use]
    pub fn warming(&self) -> Vec<Warming<S>> {
        let is_warming = |node: &&Node<S, V>| !node.is_ready() || node.next.is_some();
        let warming_nodes = self.nodes.values().filter(is_warming);
        warming_nodes
            .map(|node| self.describe_warming(node))
            .collect()
    }

    /// Returns what a warming node waits for: children of its next version, or
    /// itself if it has no next version.
    fn describe_warming(&self, node: &Node<S, V>) -> Warming<S> {
        let child_ids = node.next.iter().flat_map(|next| &next.children);
        let children = child_ids.filter_map(|id| self.nodes.get(id));
        let unready_children = children.filter(|child| !child.is_ready());
        let unknown_node = node.next.is_none().then_some(node);
        let awaited_nodes = unready_children.chain(unknown_node);
        Warming {
            key: Arc::clone(&node.key),
            waits_for: awaited_nodes
                .map(|awaited| Arc::clone(&awaited.key))
                .collect(),
        }
    }

    /// Returns the work since the last call, and resets the counters.
    pub fn take_work(&mut self) -> Work {
        std::mem::take(&mut self.work)
    }

    /// Returns an id that no node or root has.
    fn take_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    /// Records that a root shows a node by itself. The root is published again.
    fn add_to_root(&mut self, root: RootId, node_id: NodeId) {
        if let Some(node) = self.nodes.get_mut(&node_id) {
            node.roots.insert(root);
        }
        self.dirty_roots.insert(root);
        self.is_relinked = true;
    }
}
