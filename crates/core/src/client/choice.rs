//! Which servers the sources of a client use, and what follows when that
//! changes (C46-C49).

use super::contents::Key;
use super::fallback::Fallback;
use super::source::Source;
use super::view::View;
use super::{Client, ServerId, SourceId};
use crate::Moment;
use crate::sink::{Cause, Event, WatchError};

impl Client {
    /// Returns a source to a better server that works and has a resource for it
    /// (C48). Everything that the server said while another one was in use
    /// counts from now on. Returns whether the choice has changed.
    pub(super) fn return_to(&mut self, source_id: SourceId, id: ServerId, now: Moment) -> bool {
        let (Some(source), Some(server)) = (self.sources.get(&source_id), self.servers.get(&id))
        else {
            return false;
        };
        let Some(place) = source.place_of(id) else {
            return false;
        };
        if place >= source.fallback.current() || server.has_failed {
            return false;
        }
        let is_held = |(url, name): &Key| {
            source.subscriptions.covers(url, name) && server.contents.has(url, name)
        };
        server.contents.keys().iter().any(is_held)
            && self.choose(source_id, |fallback| _ = fallback.return_to(place), now)
    }

    /// Connects a source to its next servers, if the present one has failed and
    /// a resource is missing (C46, C47).
    pub(super) fn fall_back(&mut self, source_id: SourceId, now: Moment) {
        let Some(source) = self.sources.get_mut(&source_id) else {
            return;
        };
        let failed: Vec<bool> = source
            .servers
            .iter()
            .map(|id| self.servers.get(id).is_some_and(|server| server.has_failed))
            .collect();
        let has_failed = |place: usize| failed.get(place) == Some(&true);
        // Whether anything is missing takes a look at all subscriptions.
        let is_missing = has_failed(source.fallback.current())
            && View::new(source, &mut self.servers).is_missing_any();
        let choose = |fallback: &mut Fallback| _ = fallback.fall_back(is_missing, has_failed);
        self.choose(source_id, choose, now);
    }

    /// Changes the choice of a source. The contents that the source has stay in
    /// use until the server that it uses from now on has spoken of them.
    /// Returns whether that is another server.
    pub(super) fn choose(
        &mut self,
        source_id: SourceId,
        change: impl FnOnce(&mut Fallback),
        now: Moment,
    ) -> bool {
        let Some(source) = self.sources.get(&source_id) else {
            return false;
        };
        let mut fallback = source.fallback.clone();
        change(&mut fallback);
        let is_other = fallback.current() != source.fallback.current();
        let old_servers = source.open_servers();
        let next = source.servers.get(fallback.current()).copied();
        if is_other {
            self.keep(source_id);
            // Its old word, to other sources, is none on what this one has.
            next.into_iter().for_each(|id| self.start_anew(id, now));
        }

        if let Some(source) = self.sources.get_mut(&source_id) {
            source.fallback = fallback;
        }
        self.reopen(source_id, &old_servers, now);

        if is_other {
            for id in old_servers {
                if self.is_replaced(source_id, id) {
                    self.start_anew(id, now);
                }
            }
            self.supersede_all(source_id);
            self.touch_all(source_id);
        }
        is_other
    }

    /// Counts the fetch timers of a server that ran out just now, and drops the
    /// kept contents of names on which it was silent for too long from its
    /// sources; `events` are the errors of those timers.
    pub(super) fn handle_silence(&mut self, id: ServerId, events: &[Event]) {
        let is_timeout = |event: &&Event| match event {
            Event::Failed(_, _, error) => {
                matches!(error.cause, Cause::Silent | Cause::TimedOut)
            }
            Event::Ambient(..) => false,
        };
        if let Some(server) = self.servers.get_mut(&id) {
            server.fetch_timeouts += events.iter().filter(is_timeout).count() as u64;
        }

        let silent = events.iter().filter_map(|event| match event {
            Event::Failed(url, name, error) if error.cause == Cause::Silent => {
                Some((url.clone(), name.clone()))
            }
            _ => None,
        });
        for key in silent {
            for source in self.sources.values_mut() {
                if source.in_use() == Some(id) {
                    View::new(source, &mut self.servers).drop_silent(&key);
                }
            }
            self.touch(&key);
        }
    }

    /// Evaluates all names of a source.
    fn touch_all(&mut self, source_id: SourceId) {
        if let Some(source) = self.sources.get_mut(&source_id) {
            let keys = View::new(source, &mut self.servers).keys();
            keys.iter().for_each(|key| self.touch(key));
        }
    }

    /// Keeps the contents that a source has from the server that it uses.
    fn keep(&mut self, source_id: SourceId) {
        if let Some(source) = self.sources.get_mut(&source_id) {
            View::new(source, &mut self.servers).keep();
        }
    }

    /// Drops the kept contents of a source that the server in use has spoken
    /// of.
    pub(super) fn supersede_all(&mut self, source_id: SourceId) {
        if let Some(source) = self.sources.get_mut(&source_id) {
            let kept_keys = View::new(source, &mut self.servers).supersede_all();
            kept_keys.iter().for_each(|key| self.touch(key));
        }
    }

    /// Subscribes at the servers that were opened for a source, and ends its
    /// subscriptions at those that were closed.
    fn reopen(&mut self, source_id: SourceId, old_servers: &[ServerId], now: Moment) {
        let Some(source) = self.sources.get(&source_id) else {
            return;
        };
        let new_servers = source.open_servers();
        if new_servers == old_servers {
            return;
        }

        let subscriptions: Vec<_> = source.subscriptions.iter().cloned().collect();
        for id in new_servers.iter().filter(|id| !old_servers.contains(id)) {
            let Some(server) = self.servers.get_mut(id) else {
                continue;
            };
            for key in &subscriptions {
                let result = server.subscribe(key, now);
                debug_assert!(
                    result.is_ok(),
                    "the servers of a source carry the same types"
                );
            }
        }

        for id in old_servers.iter().filter(|id| !new_servers.contains(id)) {
            if let Some(server) = self.servers.get_mut(id) {
                subscriptions.iter().for_each(|key| server.unsubscribe(key));
            }
        }
        // No other source has a part in these.
        for id in new_servers.iter().chain(old_servers) {
            if let Some(server) = self.servers.get_mut(id) {
                drop(server.take_effects());
            }
        }
    }

    /// Returns whether a source uses a server further down its list.
    pub(super) fn is_replaced(&self, source_id: SourceId, id: ServerId) -> bool {
        let source = self.sources.get(&source_id);
        let place = source.and_then(|source| Some((source, source.place_of(id)?)));
        place.is_some_and(|(source, place)| place < source.fallback.current())
    }

    /// Forgets everything that a server has said, if a source has replaced it
    /// or begins to use it, and if it has failed or that is its old word: the
    /// server is to send everything when it is back. Other sources that use it
    /// keep their contents. A stream that has no response yet is opened anew: it
    /// was told of what is forgotten.
    pub(super) fn start_anew(&mut self, id: ServerId, now: Moment) {
        let server = self.servers.get(&id);
        if !server.is_some_and(|server| server.has_failed || server.is_outdated) {
            return;
        }
        for source in self.sources_of(id) {
            if self.sources.get(&source).and_then(Source::in_use) == Some(id) {
                self.keep(source);
            }
        }
        if let Some(server) = self.servers.get_mut(&id) {
            server.start_anew(now);
        }
    }

    /// Whether no server of a source can be reached (C49).
    pub(super) fn all_failed(&self, source_id: SourceId) -> bool {
        let Some(source) = self.sources.get(&source_id) else {
            return false;
        };
        let has_failed = |id: &ServerId| {
            let server = self.servers.get(id);
            server.is_none_or(|server| server.has_failed)
        };
        // A server that was not needed was not tried.
        let places = 0..=source.fallback.current();
        let mut tried_servers = places.filter_map(|place| source.servers.get(place));
        tried_servers.all(has_failed)
    }

    /// Sets or clears the error that every server of a source is unreachable.
    pub(super) fn set_unreachable(&mut self, source_id: SourceId, error: Option<WatchError>) {
        let Some(source) = self.sources.get_mut(&source_id) else {
            return;
        };
        if source.unreachable == error {
            return;
        }
        source.unreachable = error;
        self.touch_all(source_id);
    }
}
