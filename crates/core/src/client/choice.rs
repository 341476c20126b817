//! Which servers the sources of a client use, and what follows when that
//! changes (C46-C49).

use super::contents::Key;
use super::fallback::Fallback;
use super::server::Link;
use super::source::Source;
use super::view::View;
use super::{Client, ServerId, SourceId};
use crate::Moment;
use crate::sink::{Cause, Event, WatchError};

impl Client {
    /// Goes back to a better server that works, and has a resource for the
    /// source (C48). What it has said while another one was used counts from
    /// now on. Returns whether the choice has changed.
    pub(super) fn return_to(&mut self, source: SourceId, id: ServerId, now: Moment) -> bool {
        let (Some(of), Some(server)) = (self.sources.get(&source), self.servers.get(&id)) else {
            return false;
        };
        let Some(place) = of.place_of(id) else {
            return false;
        };
        if place >= of.fallback.current() || server.has_failed {
            return false;
        }
        let is_held = |(url, name): &Key| {
            of.subscriptions.covers(url, name) && server.contents.has(url, name)
        };
        server.contents.keys().iter().any(is_held)
            && self.choose(source, |fallback| _ = fallback.return_to(place), now)
    }

    /// Connects a source to its next servers, if the present one has failed and
    /// something is missing (C46, C47).
    pub(super) fn fall_back(&mut self, source: SourceId, now: Moment) {
        let Some(of) = self.sources.get_mut(&source) else {
            return;
        };
        let failed: Vec<bool> = of
            .servers
            .iter()
            .map(|id| self.servers.get(id).is_some_and(|server| server.has_failed))
            .collect();
        let has_failed = |place: usize| failed.get(place) == Some(&true);
        // Whether anything is missing takes a look at all subscriptions.
        let is_missing =
            has_failed(of.fallback.current()) && View::new(of, &mut self.servers).is_missing_any();
        let choose = |fallback: &mut Fallback| _ = fallback.fall_back(is_missing, has_failed);
        self.choose(source, choose, now);
    }

    /// Changes the choice of a source. Whatever it has stays in use until the
    /// server that it uses from now on has spoken of it. Returns whether that
    /// is another one.
    pub(super) fn choose(
        &mut self,
        source: SourceId,
        change: impl FnOnce(&mut Fallback),
        now: Moment,
    ) -> bool {
        let Some(of) = self.sources.get(&source) else {
            return false;
        };
        let mut fallback = of.fallback.clone();
        change(&mut fallback);
        let is_other = fallback.current() != of.fallback.current();
        let before = of.open_servers();
        let next = of.servers.get(fallback.current()).copied();
        if is_other {
            self.keep(source);
            // What it said to other sources before it failed is no word on what
            // this one has.
            next.into_iter().for_each(|id| self.start_anew(id, now));
        }
        if let Some(of) = self.sources.get_mut(&source) {
            of.fallback = fallback;
        }
        self.reopen(source, &before, now);
        for id in before {
            if self.is_replaced(source, id) {
                self.start_anew(id, now);
            }
        }
        if is_other {
            self.supersede_all(source);
            self.touch_all(source);
        }
        is_other
    }

    /// Drops what the sources of a server keep of names on which it was silent
    /// for too long, by the errors of fetch timers that ran out just now.
    pub(super) fn drop_silent(&mut self, id: ServerId, events: &[Event]) {
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
    fn touch_all(&mut self, source: SourceId) {
        if let Some(of) = self.sources.get_mut(&source) {
            let keys = View::new(of, &mut self.servers).keys();
            keys.iter().for_each(|key| self.touch(key));
        }
    }

    /// Keeps what a source has from the server that it uses.
    fn keep(&mut self, source: SourceId) {
        if let Some(of) = self.sources.get_mut(&source) {
            View::new(of, &mut self.servers).keep();
        }
    }

    /// Drops what a source keeps and the server in use has spoken of.
    pub(super) fn supersede_all(&mut self, source: SourceId) {
        if let Some(of) = self.sources.get_mut(&source) {
            let kept = View::new(of, &mut self.servers).supersede_all();
            kept.iter().for_each(|key| self.touch(key));
        }
    }

    /// Subscribes at the servers that were opened for a source, and ends its
    /// subscriptions at those that were closed.
    fn reopen(&mut self, source: SourceId, before: &[ServerId], now: Moment) {
        let Some(of) = self.sources.get(&source) else {
            return;
        };
        let after = of.open_servers();
        if after == before {
            return;
        }
        let subscriptions: Vec<_> = of.subscriptions.iter().cloned().collect();
        for id in after.iter().filter(|id| !before.contains(id)) {
            let Some(server) = self.servers.get_mut(id) else {
                continue;
            };
            for key in &subscriptions {
                let added = server.subscribe(key, now);
                debug_assert!(
                    added.is_ok(),
                    "the servers of a source carry the same types"
                );
            }
        }
        for id in before.iter().filter(|id| !after.contains(id)) {
            if let Some(server) = self.servers.get_mut(id) {
                subscriptions.iter().for_each(|key| server.unsubscribe(key));
            }
        }
        // No other source has a part in these.
        for id in after.iter().chain(before) {
            if let Some(server) = self.servers.get_mut(id) {
                drop(server.take_effects());
            }
        }
    }

    /// Returns whether a source uses a server further down its list.
    pub(super) fn is_replaced(&self, source: SourceId, id: ServerId) -> bool {
        let of = self.sources.get(&source);
        let place = of.and_then(|of| Some((of, of.place_of(id)?)));
        place.is_some_and(|(of, place)| place < of.fallback.current())
    }

    /// Forgets what a server has said that has failed, and that a source has
    /// replaced or begins to use: it is to send everything when it is back.
    /// Other sources, which use it, keep what they have.
    pub(super) fn start_anew(&mut self, id: ServerId, now: Moment) {
        let server = self.servers.get(&id);
        if !server.is_some_and(|server| server.has_failed && server.link != Link::Up) {
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
    pub(super) fn all_failed(&self, source: SourceId) -> bool {
        let Some(of) = self.sources.get(&source) else {
            return false;
        };
        let failed = |id: &ServerId| {
            let server = self.servers.get(id);
            server.is_none_or(|server| server.has_failed)
        };
        // A server that was not needed was not tried.
        let places = 0..=of.fallback.current();
        let mut tried = places.filter_map(|place| of.servers.get(place));
        tried.all(failed)
    }

    /// Sets or clears the error that every server of a source is unreachable.
    pub(super) fn set_unreachable(&mut self, source: SourceId, error: Option<WatchError>) {
        let Some(of) = self.sources.get_mut(&source) else {
            return;
        };
        if of.unreachable == error {
            return;
        }
        of.unreachable = error;
        self.touch_all(source);
    }
}
