//! Parts: what a snapshot is made of.

use std::sync::Arc;

use super::children::Children;
use super::key::Key;
use crate::sink::{Cause, WatchError};

/// The most levels that clusters of clusters may have (C54).
pub const MAX_LEVELS: usize = 16;

/// One resource in a snapshot, with everything below it. It never changes, and
/// every snapshot in which nothing at or below it differs has the same one.
#[derive(Debug)]
pub struct Part<S, V> {
    /// Which resource it is.
    pub key: Arc<Key<S>>,
    /// The resource, or why there is none.
    pub content: Content<V>,
    /// The resources that it refers to.
    pub children: Children<S, V>,
    /// The number of levels of its own type, itself included.
    pub(super) levels: usize,
}

/// A resource that is known: there is no other state in a snapshot (C51).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content<V> {
    /// The resource.
    Value(V),
    /// The resource stays in use in spite of an ambient error (C39).
    Stale(V, WatchError),
    /// There is no resource, and why.
    Failed(WatchError),
}

impl<V> Content<V> {
    /// Returns the resource in use, if there is one.
    pub fn value(&self) -> Option<&V> {
        match self {
            Self::Value(value) | Self::Stale(value, _) => Some(value),
            Self::Failed(_) => None,
        }
    }

    /// Returns the error of the resource, if it has one.
    pub fn error(&self) -> Option<&WatchError> {
        match self {
            Self::Stale(_, error) | Self::Failed(error) => Some(error),
            Self::Value(_) => None,
        }
    }
}

/// The contents of a root: its resource with everything below it, complete
/// (C51).
#[derive(Debug)]
pub struct Snapshot<S, V> {
    /// The resource of the root.
    pub root: Arc<Part<S, V>>,
    /// The resources that the root subscribes to by itself.
    pub subscribed: Children<S, V>,
}

impl<S: Ord, V: Clone> Part<S, V> {
    /// Makes a part. One with too many levels of its own type becomes an error
    /// (C54).
    pub(super) fn new(key: Arc<Key<S>>, content: Content<V>, children: Children<S, V>) -> Self {
        let nested_parts = children.of_type(key.type_url.as_str());
        let levels = 1 + nested_parts
            .map(|part| part.levels)
            .max()
            .unwrap_or_default();
        if levels > MAX_LEVELS {
            return Self::too_deep(key);
        }
        Self {
            key,
            content,
            children,
            levels,
        }
    }

    /// Returns whether the part replaces a resource that has too many levels.
    pub(super) fn is_too_deep(&self) -> bool {
        self.levels > MAX_LEVELS
    }

    /// Makes the part of a resource that is not followed, because it refers to
    /// itself or is nested too deep. Its level makes all parts of its type
    /// above it errors, too (C54).
    pub(super) fn too_deep(key: Arc<Key<S>>) -> Self {
        let message = format!(
            "{} refers to itself, or has more than {MAX_LEVELS} levels",
            key.name
        );
        Self {
            content: Content::Failed(WatchError::new(Cause::Rejected, message)),
            children: Children::default(),
            levels: MAX_LEVELS + 1,
            key,
        }
    }
}
