//! Watches: the newest state of a name, as a client knows it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use super::{SourceId, WatchId};
use crate::name::{Name, Selector};
use crate::params::Params;
use crate::resource::{Resource, TypeUrl};
use crate::sink::WatchError;

/// The origin of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// The bootstrap: it stays as long as the client.
    Static,
    /// Control planes, or a file.
    Source(SourceId),
}

/// The state of a name (C39-C42).
///
/// | value | error | |
/// |---|---|---|
/// | none | none | nothing is known yet |
/// | some | none | the resource |
/// | none | some | there is none, and why |
/// | some | some | the resource stays in use in spite of the error: an ambient one |
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// The resource in use.
    pub value: Option<Arc<Resource>>,
    /// Why there is no resource, or only an old one.
    pub error: Option<WatchError>,
    /// Where the value, or else the error, is from.
    pub origin: Option<Origin>,
}

impl State {
    /// Returns whether nothing is known yet.
    #[must_use]
    pub fn is_pending(&self) -> bool {
        self.value.is_none() && self.error.is_none()
    }

    /// Returns whether two states are the same to a watcher, so that it need
    /// not be told of the second (C24, C28).
    fn is_same(&self, other: &Self) -> bool {
        let same_value = match (&self.value, &other.value) {
            (Some(own_value), Some(other_value)) => {
                crate::database::same_resource(own_value, other_value)
                    && own_value.body == other_value.body
            }
            (own_value, other_value) => own_value.is_none() && other_value.is_none(),
        };
        same_value && self.error == other.error && self.origin == other.origin
    }
}

/// The subject of a watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watched {
    /// The type.
    pub type_url: TypeUrl,
    /// A name, or all names that a glob or the wildcard covers.
    pub selector: Selector,
    /// The dynamic parameters that choose among variants (TP2).
    pub params: Params,
    /// The only source whose resources count; any if it is `None`.
    pub source: Option<SourceId>,
}

/// One watch.
#[derive(Debug)]
pub(super) struct Watch {
    pub(super) watched: Watched,
    /// Of a watch of one name: the state that its watcher was shown.
    shown_state: State,
    /// Of a watch of one name: the origins that have a value for it, the one
    /// that has had it for longest first.
    holders: Vec<Origin>,
    /// Of a watch of many names: those whose state may have changed.
    changed_names: BTreeSet<Name>,
    is_queued: bool,
}

/// All watches of a client.
#[derive(Debug, Default)]
pub(super) struct Watches {
    list: BTreeMap<WatchId, Watch>,
    ids_by_name: BTreeMap<TypeUrl, BTreeMap<Name, BTreeSet<WatchId>>>,
    /// Watches of many names.
    ids_by_type: BTreeMap<TypeUrl, BTreeSet<WatchId>>,
    /// Watches with news, in the order in which they got them.
    queue: VecDeque<WatchId>,
    next_id: u64,
}

impl Watches {
    /// Adds a watch without a state, which the caller evaluates.
    pub(super) fn add(&mut self, watched: Watched) -> WatchId {
        let id = WatchId(self.next_id);
        self.next_id += 1;
        let url = watched.type_url.clone();
        match &watched.selector {
            Selector::Name(name) => {
                let names = self.ids_by_name.entry(url).or_default();
                names.entry(name.clone()).or_default().insert(id);
            }
            _ => {
                self.ids_by_type.entry(url).or_default().insert(id);
            }
        }

        let watch = Watch {
            watched,
            shown_state: State::default(),
            holders: Vec::new(),
            changed_names: BTreeSet::new(),
            is_queued: false,
        };

        self.list.insert(id, watch);
        id
    }

    /// Removes a watch, and its news. A watch that has ended before is ignored.
    pub(super) fn remove(&mut self, id: WatchId) {
        let Some(watch) = self.list.remove(&id) else {
            return;
        };

        let url = &watch.watched.type_url;
        match &watch.watched.selector {
            Selector::Name(name) => {
                if let Some(names) = self.ids_by_name.get_mut(url)
                    && let Some(ids) = names.get_mut(name)
                {
                    ids.remove(&id);
                    if ids.is_empty() {
                        names.remove(name);
                    }
                }
            }
            _ => {
                if let Some(ids) = self.ids_by_type.get_mut(url) {
                    ids.remove(&id);
                }
            }
        }
    }

    /// Returns a watch; `None` if it has ended.
    pub(super) fn get(&self, id: WatchId) -> Option<&Watch> {
        self.list.get(&id)
    }

    /// Returns the watches that a name of a type concerns: those of the name,
    /// and those of globs or the wildcard that cover it.
    pub(super) fn find_by_name(&self, type_url: &TypeUrl, name: &Name) -> Vec<WatchId> {
        let name_watches = self
            .ids_by_name
            .get(type_url)
            .and_then(|names| names.get(name));
        let type_watches = self.ids_by_type.get(type_url).into_iter().flatten();
        let scope_watches = type_watches.filter(|id| self.covers(**id, name));
        name_watches
            .into_iter()
            .flatten()
            .chain(scope_watches)
            .copied()
            .collect()
    }

    /// Returns the names of a type that are watched by themselves.
    pub(super) fn names(&self, type_url: &TypeUrl) -> impl Iterator<Item = &Name> {
        self.ids_by_name
            .get(type_url)
            .into_iter()
            .flat_map(BTreeMap::keys)
    }

    /// Returns whether a watch is about a name, by its selector.
    fn covers(&self, id: WatchId, name: &Name) -> bool {
        let watch = self.list.get(&id);
        watch.is_some_and(|watch| watch.watched.selector.covers(name))
    }

    /// Records that a name may have another state in some origin. `states` are
    /// those of all origins that know the name. A watch of one name is queued
    /// if its watcher would be shown another state; a watch of many names if it
    /// was not queued for this name.
    pub(super) fn update(&mut self, id: WatchId, name: &Name, states: &[(Origin, State)]) {
        let Some(watch) = self.list.get_mut(&id) else {
            return;
        };
        let has_news = match watch.watched.selector {
            Selector::Name(_) => watch.show_state(states),
            _ => watch.changed_names.insert(name.clone()),
        };
        if has_news && !std::mem::replace(&mut watch.is_queued, true) {
            self.queue.push_back(id);
        }
    }

    /// Takes the next watch with news from the queue. Watches that have ended
    /// since are skipped.
    pub(super) fn poll(&mut self) -> Option<WatchId> {
        loop {
            let id = self.queue.pop_front()?;
            if let Some(watch) = self.list.get_mut(&id) {
                watch.is_queued = false;
                return Some(id);
            }
        }
    }

    /// Returns the state that the watcher of one name is shown; `None` if the
    /// watch has ended.
    pub(super) fn state(&self, id: WatchId) -> Option<&State> {
        self.list.get(&id).map(|watch| &watch.shown_state)
    }

    /// Takes the names of a watch of many names that may have changed; none if
    /// the watch has ended.
    pub(super) fn take_changed(&mut self, id: WatchId) -> BTreeSet<Name> {
        let watch = self.list.get_mut(&id);
        watch
            .map(|watch| std::mem::take(&mut watch.changed_names))
            .unwrap_or_default()
    }
}

impl Watch {
    /// Shows the watcher one of the states that the origins have. Of the
    /// origins with a value, the one that has had it for longest counts, so
    /// that a second control plane with the same name changes nothing. If none
    /// has a value, the first error counts. Returns whether that is news to the
    /// watcher.
    fn show_state(&mut self, states: &[(Origin, State)]) -> bool {
        let has_value = |origin: &Origin| {
            let mut states = states.iter();
            states.any(|(holder, state)| holder == origin && state.value.is_some())
        };
        self.holders.retain(has_value);
        for (origin, state) in states {
            if state.value.is_some() && !self.holders.contains(origin) {
                self.holders.push(*origin);
            }
        }

        let first_holder = self.holders.first();
        let held_state = states
            .iter()
            .find(|(origin, _)| Some(origin) == first_holder);
        let failed_state = || states.iter().find(|(_, state)| state.error.is_some());
        let state = held_state
            .or_else(failed_state)
            .map(|(_, state)| state.clone())
            .unwrap_or_default();
        let has_news = !state.is_same(&self.shown_state);
        self.shown_state = state;
        has_news
    }
}
