//! One name in the database: its contents and its subscribers.

use std::collections::BTreeSet;
use std::ops::Bound;

use super::SubscriberId;
use super::content::Content;
use crate::name::Name;
use crate::params::ParamsId;

/// The slot of a name in its table, valid only while the name is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryId(pub(super) u32);

/// One subscription to a name: the subscriber, and its parameters.
pub(super) type NamedSubscriber = (SubscriberId, ParamsId);

/// One name. It stays in its table while it has contents, a subscriber, or an
/// owner, or while a view lists it.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) name: Name,
    pub(super) content: Content,
    pub(super) subscribers: NameSubscribers,
}

/// The subscribers of one name. Most names have none or one, so this type is
/// small and larger lists are boxed. A set becomes a list again well below the
/// size at which a list becomes a set, so that one subscriber who comes and
/// goes does not convert it each time.
#[derive(Debug, Default)]
pub(super) enum NameSubscribers {
    #[default]
    None,
    One(NamedSubscriber),
    /// Up to [`MAX_LIST_LEN`], without room to spare.
    #[expect(clippy::box_collection, reason = "a word here instead of three")]
    Few(Box<Vec<NamedSubscriber>>),
    /// Sorted by parameters, so that subscribers with the same choice are
    /// together.
    #[expect(clippy::box_collection, reason = "a word here instead of three")]
    Many(Box<BTreeSet<(ParamsId, SubscriberId)>>),
}

/// The most subscribers in a list: up to this size it is smaller than a set,
/// and as fast.
const MAX_LIST_LEN: usize = 16;

impl NameSubscribers {
    /// Adds a subscriber, unless it is there. A list that has no room for it
    /// becomes a set. Returns whether it is new.
    pub(super) fn insert(&mut self, subscriber: NamedSubscriber) -> bool {
        match self {
            Self::None => *self = Self::One(subscriber),
            Self::One(first) if *first == subscriber => return false,
            Self::One(first) => *self = Self::Few(Box::new(vec![*first, subscriber])),
            Self::Few(list) if list.contains(&subscriber) => return false,
            Self::Few(list) if list.len() < MAX_LIST_LEN => {
                list.reserve_exact(1);
                list.push(subscriber);
            }
            Self::Few(list) => {
                let set = list.drain(..).chain([subscriber]).map(set_key);
                *self = Self::Many(Box::new(set.collect()));
            }
            Self::Many(set) => return set.insert(set_key(subscriber)),
        }
        true
    }

    /// Removes a subscriber, if it is there. A set that is half the size of a
    /// full list becomes a list. Returns whether it was there.
    pub(super) fn remove(&mut self, subscriber: NamedSubscriber) -> bool {
        let count = self.len();
        match self {
            Self::One(only_one) if *only_one == subscriber => *self = Self::None,
            Self::Few(list) => {
                list.retain(|entry| *entry != subscriber);
                list.shrink_to_fit();
                if let [only_one] = list[..] {
                    *self = Self::One(only_one);
                }
            }
            Self::Many(set) => {
                set.remove(&set_key(subscriber));
                if set.len() <= MAX_LIST_LEN / 2 {
                    let list = set.iter().map(|&(params, subscriber)| (subscriber, params));
                    *self = Self::Few(Box::new(list.collect()));
                }
            }
            Self::None | Self::One(_) => {}
        }
        self.len() < count
    }

    /// Returns whether there are no subscribers.
    pub(super) fn is_empty(&self) -> bool {
        matches!(self, Self::None)
    }

    /// Returns the number of subscribers.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::None => 0,
            Self::One(_) => 1,
            Self::Few(list) => list.len(),
            Self::Many(set) => set.len(),
        }
    }

    /// Returns all subscribers; a set is sorted by parameters, a list is not.
    pub(super) fn iter(&self) -> impl Iterator<Item = NamedSubscriber> + '_ {
        let list: &[NamedSubscriber] = match self {
            Self::None | Self::Many(_) => &[],
            Self::One(subscriber) => std::slice::from_ref(subscriber),
            Self::Few(list) => list,
        };
        let set = match self {
            Self::Many(set) => Some(set.iter()),
            Self::None | Self::One(_) | Self::Few(_) => None,
        };

        // One of the two is empty.
        let set_entries = set.into_iter().flatten();
        let set_subscribers = set_entries.map(|&(params, subscriber)| (subscriber, params));
        list.iter().copied().chain(set_subscribers)
    }

    /// Returns the parameters of the subscribers, sorted, without repetition. A
    /// set is not visited as a whole: one lookup finds the next parameters.
    pub(super) fn distinct_params(&self) -> Vec<ParamsId> {
        let Self::Many(set) = self else {
            let mut sorted_params: Vec<_> = self.iter().map(|(_, params)| params).collect();
            sorted_params.sort_unstable();
            sorted_params.dedup();
            return sorted_params;
        };

        let mut params_list = Vec::new();
        let mut next = set.first();
        while let Some(&(params, _)) = next {
            params_list.push(params);
            let last = Bound::Excluded((params, SubscriberId::LAST));
            next = set.range((last, Bound::Unbounded)).next();
        }
        params_list
    }

    /// Returns the subscribers with these parameters.
    pub(super) fn with_params(&self, params: ParamsId) -> Vec<SubscriberId> {
        match self {
            Self::Many(set) => {
                let range = (params, SubscriberId::FIRST)..=(params, SubscriberId::LAST);
                let entries = set.range(range);
                entries.map(|&(_, subscriber)| subscriber).collect()
            }
            Self::None | Self::One(_) | Self::Few(_) => {
                let entries = self
                    .iter()
                    .filter(|(_, entry_params)| *entry_params == params);
                entries.map(|(subscriber, _)| subscriber).collect()
            }
        }
    }
}

/// Returns the key of a subscriber in a set.
fn set_key((subscriber, params): NamedSubscriber) -> (ParamsId, SubscriberId) {
    (params, subscriber)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sub(n: usize) -> NamedSubscriber {
        (SubscriberId(n as u32), ParamsId::EMPTY)
    }

    fn sorted(all: &NameSubscribers) -> Vec<NamedSubscriber> {
        let mut found: Vec<_> = all.iter().collect();
        found.sort_unstable();
        found
    }

    #[test]
    fn subscribers_grow_and_shrink() {
        const COUNT: usize = 2 * MAX_LIST_LEN;
        let mut all = NameSubscribers::default();
        for n in 0..COUNT {
            all.insert(sub(n));
            all.insert(sub(n));
            assert_eq!(sorted(&all), (0..=n).map(sub).collect::<Vec<_>>());
        }
        for n in 0..COUNT {
            all.remove(sub(COUNT));
            assert!(!all.is_empty());
            all.remove(sub(n));
            assert_eq!(sorted(&all), (n + 1..COUNT).map(sub).collect::<Vec<_>>());
        }
        assert!(all.is_empty());
    }

    #[test]
    fn who_asks_with_the_same_parameters_is_found_together() {
        let mut table = crate::params::ParamsTable::new();
        let params = ["a", "b"].map(|env| {
            let set = crate::params::Params::new([("env", env)]);
            table.intern(set.unwrap())
        });
        for count in [3, 5 * MAX_LIST_LEN] {
            let mut all = NameSubscribers::default();
            let of = |n: usize| params[usize::from(n.is_multiple_of(3))];
            (0..count).for_each(|n| _ = all.insert((SubscriberId(n as u32), of(n))));
            assert_eq!(all.distinct_params(), params);
            let mut found = all.with_params(params[1]);
            found.sort_unstable();
            let thirds = (0..count as u32).step_by(3).map(SubscriberId);
            assert_eq!(found, thirds.collect::<Vec<_>>());
            assert_eq!(all.with_params(ParamsId::EMPTY), []);
        }
    }

    #[test]
    fn a_subscriber_that_comes_and_goes_changes_no_form() {
        let mut all = NameSubscribers::default();
        (0..=MAX_LIST_LEN).for_each(|n| _ = all.insert(sub(n)));
        all.remove(sub(0));
        assert!(matches!(all, NameSubscribers::Many(_)));
        (1..=MAX_LIST_LEN / 2).for_each(|n| _ = all.remove(sub(n)));
        assert!(matches!(all, NameSubscribers::Few(_)));
        all.insert(sub(0));
        assert!(matches!(all, NameSubscribers::Few(_)));
    }
}
