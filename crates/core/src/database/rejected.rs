//! What clients rejected, kept for when they come back.
//!
//! In state of the world a client does not say what it holds, and takes what a
//! set lacks as deleted. A client that comes back would lose the last good
//! version of what it rejects: nobody knew it any more. So it is remembered by
//! the client's node, for as long as the rejected version is the newest.

use std::collections::VecDeque;
use std::sync::Arc;

use hashbrown::HashMap;

use super::{Database, TypeId};
use crate::name::Name;
use crate::resource::{Resource, Version};

/// Something that a client rejects, and what it holds in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rejected {
    pub(crate) name: Name,
    pub(crate) version: Version,
    pub(crate) holds: Arc<Resource>,
}

/// Clients that are remembered; the oldest is forgotten for a new one.
const CLIENTS: usize = 4096;

/// What is remembered of each.
const EACH: usize = 64;

#[derive(Debug, Default)]
pub(super) struct Rejections {
    by_node: HashMap<(Box<str>, TypeId), Vec<Rejected>>,
    // The same keys, oldest first; some may be gone.
    order: VecDeque<(Box<str>, TypeId)>,
}

impl Database {
    /// A client leaves that rejects this.
    pub(crate) fn remember_rejections(
        &mut self,
        node: &str,
        type_id: TypeId,
        rejected: impl Iterator<Item = Rejected>,
    ) {
        let rejected: Vec<_> = rejected.take(EACH).collect();
        if node.is_empty() || rejected.is_empty() {
            return;
        }
        let key = (Box::from(node), type_id);
        let Rejections { by_node, order } = &mut self.rejections;
        if by_node.insert(key.clone(), rejected).is_none() {
            order.push_back(key);
        }
        while by_node.len() > CLIENTS || order.len() > 2 * CLIENTS {
            let Some(oldest) = order.pop_front() else {
                break;
            };
            by_node.remove(&oldest);
        }
    }

    /// What a client rejected before, when it comes back.
    pub(crate) fn recall_rejections(&mut self, node: &str, type_id: TypeId) -> Vec<Rejected> {
        if self.rejections.by_node.is_empty() {
            return Vec::new();
        }
        let key = (Box::from(node), type_id);
        self.rejections.by_node.remove(&key).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(name: &str) -> Rejected {
        Rejected {
            name: name.into(),
            version: "v2".into(),
            holds: Arc::new(Resource::new(name.into(), "body".into())),
        }
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut db = Database::new();
        let id = db.type_id(&"t".into());
        for round in 0..3 {
            for nth in 0..CLIENTS + 10 {
                let all = (0..EACH + 5).map(|n| one(&n.to_string()));
                db.remember_rejections(&nth.to_string(), id, all.take(1 + EACH * round));
                let Rejections { by_node, order } = &db.rejections;
                assert!(by_node.len() <= CLIENTS && order.len() <= 2 * CLIENTS);
                if nth % 2 == 0 {
                    assert!(!db.recall_rejections(&nth.to_string(), id).is_empty());
                }
            }
        }
        db.remember_rejections("n", id, (0..EACH + 5).map(|n| one(&n.to_string())));
        assert_eq!(db.recall_rejections("n", id).len(), EACH);
        assert_eq!(db.recall_rejections("n", id), []);
        db.remember_rejections("", id, [one("a")].into_iter());
        assert_eq!(db.recall_rejections("", id), []);
    }
}
