//! One name in the database: what it holds, who asks for it, who answers to it.

use hashbrown::HashSet;

use super::SubscriberId;
use super::content::Content;
use crate::name::Name;
use crate::params::ParamsId;

/// A name's place in its table. Only valid while something keeps the name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryId(pub(super) u32);

/// One named subscription: who, and with which parameters.
pub(super) type Subscription = (SubscriberId, ParamsId);

/// A name stays in its table while it has contents, a subscriber, or an owner,
/// or while a view still speaks of it.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) name: Name,
    pub(super) content: Content,
    pub(super) subscribers: Subscribers,
}

/// The subscribers of one name. Most names have none or one.
#[derive(Debug, Default)]
pub(super) enum Subscribers {
    #[default]
    None,
    One(Subscription),
    Many(Box<HashSet<Subscription>>),
}

impl Subscribers {
    pub(super) fn insert(&mut self, new: Subscription) {
        match self {
            Self::None => *self = Self::One(new),
            Self::One(first) if *first == new => {}
            Self::One(first) => *self = Self::Many(Box::new(HashSet::from_iter([*first, new]))),
            Self::Many(all) => {
                all.insert(new);
            }
        }
    }

    pub(super) fn remove(&mut self, old: Subscription) {
        match self {
            Self::One(only) if *only == old => *self = Self::None,
            Self::Many(all) => {
                all.remove(&old);
                if all.is_empty() {
                    *self = Self::None;
                }
            }
            Self::None | Self::One(_) => {}
        }
    }

    pub(super) fn contains(&self, asked: Subscription) -> bool {
        match self {
            Self::None => false,
            Self::One(only) => *only == asked,
            Self::Many(all) => all.contains(&asked),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        matches!(self, Self::None)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Subscription> + '_ {
        let (one, many) = match self {
            Self::None => (None, None),
            Self::One(only) => (Some(*only), None),
            Self::Many(all) => (None, Some(all.iter().copied())),
        };
        one.into_iter().chain(many.into_iter().flatten())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subscribers_grow_and_shrink() {
        let sub = |n| (SubscriberId(n), ParamsId::EMPTY);
        let mut all = Subscribers::default();
        for n in 0..3 {
            assert!(!all.contains(sub(n)));
            all.insert(sub(n));
            all.insert(sub(n));
            assert!(all.contains(sub(n)));
            assert_eq!(all.iter().count(), n as usize + 1);
        }
        all.remove(sub(7));
        for n in 0..3 {
            assert!(!all.is_empty());
            all.remove(sub(n));
            assert!(!all.contains(sub(n)));
        }
        assert!(all.is_empty());
    }
}
