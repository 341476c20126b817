//! Works out the states of watches after contents have changed.

use std::collections::BTreeSet;

use super::contents::Key;
use super::view::SourceView;
use super::{Client, Origin, State, WatchId, Watched};
use crate::name::{Name, Selector};
use crate::resource::TypeUrl;
use crate::sink::Subscription;

impl Client {
    /// Takes the names of a watch of many names that may have changed, with
    /// their newest states. The state is that of the first origin with a value,
    /// or else of the first that knows the name. A name that no origin knows
    /// any more has the empty state.
    pub fn take_changes(&mut self, id: WatchId) -> Vec<(Name, State)> {
        let Some(watch) = self.watches.get(id) else {
            return Vec::new();
        };
        let watched = watch.watched.clone();
        let names = self.watches.take_changed(id).into_iter();
        let states = names.map(|name| {
            let states = self.states(&watched, &name);
            let has_value = |(_, state): &&(Origin, State)| state.value.is_some();
            let best_state = states.iter().find(has_value).or(states.first());
            let state = best_state.map(|(_, state)| state.clone());
            (name, state.unwrap_or_default())
        });
        states.collect()
    }

    /// Returns the names of a type that any origin knows, as far as a selector
    /// covers them.
    pub(super) fn known_names(
        &mut self,
        type_url: &TypeUrl,
        selector: &Selector,
    ) -> BTreeSet<Name> {
        let statics = self.statics.get(type_url).into_iter();
        let mut names: BTreeSet<_> = statics.flat_map(|names| names.keys().cloned()).collect();
        for source in self.sources.values_mut() {
            names.extend(SourceView::new(source, &mut self.servers).names(type_url));
        }
        names.retain(|name| selector.covers(name));
        names
    }

    /// Evaluates the watches that a subscription concerns: contents that are
    /// there already may answer it.
    pub(super) fn touch_subscription(&mut self, key: &(TypeUrl, Subscription)) {
        let names: Vec<_> = match &key.1.selector {
            Selector::Name(name) => vec![name.clone()],
            selector => {
                let known_names = self.known_names(&key.0, selector);
                let watched_names = self.watches.names(&key.0).cloned();
                watched_names.chain(known_names).collect()
            }
        };
        for name in names {
            self.touch(&(key.0.clone(), name));
        }
    }

    /// Evaluates all watches that a name concerns.
    pub(super) fn touch(&mut self, key: &Key) {
        for id in self.watches.find_by_name(&key.0, &key.1) {
            self.evaluate(id, key);
        }
    }

    /// Works out the state of a name for one watch, and queues the watch if the
    /// state is news for it.
    pub(super) fn evaluate(&mut self, id: WatchId, key: &Key) {
        let Some(watch) = self.watches.get(id) else {
            return;
        };
        let watched = watch.watched.clone();
        let states = self.states(&watched, &key.1);
        self.watches.update(id, &key.1, &states);
    }

    /// Returns the state of a name in each origin that knows it: the bootstrap
    /// first, then the sources by age.
    pub(super) fn states(&mut self, watched: &Watched, name: &Name) -> Vec<(Origin, State)> {
        let mut states = Vec::new();
        let statics = self.statics.get(&watched.type_url);
        if let Some(resource) = statics.and_then(|names| names.get(name))
            && watched.source.is_none()
        {
            let origin = Origin::Static;
            let state = State {
                value: Some(resource.clone()),
                error: None,
                origin: Some(origin),
            };
            states.push((origin, state));
        }

        for (id, source) in &mut self.sources {
            if watched.source.is_some_and(|source_id| source_id != *id) {
                continue;
            }
            let key = (watched.type_url.clone(), name.clone());
            let mut state = SourceView::new(source, &mut self.servers).state(&key, &watched.params);
            if !state.is_pending() {
                let origin = Origin::Source(*id);
                state.origin = Some(origin);
                states.push((origin, state));
            }
        }
        states
    }
}
