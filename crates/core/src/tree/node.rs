//! A node: one resource of a tree while it is followed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::key::Key;
use super::part::{Content, Part};
use super::{NodeId, RootId};
use crate::Moment;
use crate::sink::WatchError;

/// One resource of a tree.
///
/// ```text
///            update                 all children have a version in use
///   next ◀────────── owner    next ────────────────────────────────────▶ active
/// ```
///
/// Once a node has an active version it always has one, and every child of its
/// active version has one, too: so a part that is built from active versions is
/// complete.
#[derive(Debug)]
pub(super) struct Node<S, V> {
    pub(super) key: Arc<Key<S>>,
    /// The version in use.
    pub(super) active: Option<Version<S, V>>,
    /// A newer version, whose children are not all known: it is warming (E3).
    pub(super) next: Option<Version<S, V>>,
    /// The active version and everything below it, as a snapshot shows them.
    pub(super) part: Option<Arc<Part<S, V>>>,
    /// The nodes that refer to this one, and by how many of their versions.
    pub(super) parents: BTreeMap<NodeId, usize>,
    /// The roots that show this node, or subscribe to it by themselves.
    pub(super) roots: BTreeSet<RootId>,
    /// The end of the wait for the first answer (E2).
    pub(super) deadline: Option<Moment>,
    /// The reason why there may be no answer yet.
    pub(super) obstacle: Option<WatchError>,
    /// The reason why there is no such resource any more, although the active
    /// version stays in use: everything that refers to it is about to stop
    /// doing so.
    pub(super) withdrawn: Option<WatchError>,
}

/// One version of a node.
#[derive(Debug)]
pub(super) struct Version<S, V> {
    pub(super) content: Content<V>,
    /// The nodes that it refers to.
    pub(super) children: BTreeSet<NodeId>,
    /// References that are not followed: they would close a cycle, or lie too
    /// deep (C54).
    pub(super) cut: Vec<Arc<Key<S>>>,
    /// The number of children that have no version in use.
    pub(super) unready_count: usize,
}

impl<S, V> Node<S, V> {
    /// Makes a node without versions.
    pub(super) fn new(key: Arc<Key<S>>) -> Self {
        Self {
            key,
            active: None,
            next: None,
            part: None,
            parents: BTreeMap::new(),
            roots: BTreeSet::new(),
            deadline: None,
            obstacle: None,
            withdrawn: None,
        }
    }

    /// Returns whether the node can be part of a snapshot.
    pub(super) fn is_ready(&self) -> bool {
        self.active.is_some()
    }

    /// Returns whether nothing refers to the node.
    pub(super) fn is_loose(&self) -> bool {
        self.parents.is_empty() && self.roots.is_empty()
    }

    /// Returns the active and the next version of the node, as far as it has
    /// them.
    pub(super) fn versions(&self) -> impl Iterator<Item = &Version<S, V>> {
        self.active.iter().chain(&self.next)
    }

    /// Returns whether the node uses a child that its next version does not
    /// refer to.
    pub(super) fn gives_up(&self, child: NodeId) -> bool {
        let next = self.next.as_ref();
        self.uses(child) && next.is_some_and(|version| !version.children.contains(&child))
    }

    /// Returns whether a version of the node refers to a child.
    pub(super) fn refers_to(&self, child: NodeId) -> bool {
        self.versions()
            .any(|version| version.children.contains(&child))
    }

    /// Returns whether the version in use refers to a node.
    pub(super) fn uses(&self, child: NodeId) -> bool {
        let active = self.active.as_ref();
        active.is_some_and(|version| version.children.contains(&child))
    }
}
