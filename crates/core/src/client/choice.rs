//! Chooses among the servers of a source, and applies the effects of another
//! choice (C46-C49).

use super::contents::Key;
use super::fallback::Fallback;
use super::source::Source;
use super::subscriptions::TypedSubscription;
use super::view::SourceView;
use super::{Client, ServerId, SourceId};
use crate::Moment;
use crate::sink::{Cause, Event, SinkError, WatchError};

impl Client {
    /// Makes a server the current one of a source if it precedes the current
    /// one, works, and has a resource for the source (C48). Everything that the
    /// server said while another one was in use counts from now on. Returns
    /// whether the source uses another server now; all its names are evaluated
    /// then.
    pub(super) fn return_to(&mut self, source_id: SourceId, id: ServerId, now: Moment) -> bool {
        let (Some(source), Some(server)) = (self.sources.get(&source_id), self.servers.get(&id))
        else {
            return false;
        };
        let Some(place) = source.place_of(id) else {
            return false;
        };
        if !source.fallback.precedes_current(place) || server.has_failed {
            return false;
        }
        let is_held = |(url, name): &Key| {
            source.subscriptions.covers(url, name) && server.contents.has(url, name)
        };
        server.contents.keys().iter().any(is_held)
            && self.change_server(source_id, |fallback| fallback.return_to(place), now)
    }

    /// Connects a source to its next servers if the current one has failed and
    /// a resource is missing (C46, C47). Does nothing otherwise.
    pub(super) fn fall_back(&mut self, source_id: SourceId, now: Moment) {
        let Some(source) = self.sources.get_mut(&source_id) else {
            return;
        };
        let failure_flags: Vec<bool> = source
            .servers
            .iter()
            .map(|id| self.servers.get(id).is_some_and(|server| server.has_failed))
            .collect();

        let has_failed = |place: usize| failure_flags.get(place) == Some(&true);
        // The search for a missing resource visits all subscriptions, so it is
        // made only after a failure.
        let is_missing = has_failed(source.fallback.current())
            && SourceView::new(source, &mut self.servers).is_missing_any();
        let fall_back = |fallback: &mut Fallback| fallback.fall_back(is_missing, has_failed);
        self.change_server(source_id, fall_back, now);
    }

    /// Applies a change to the choice of a source among its servers. Makes and
    /// ends subscriptions at servers accordingly. If the current server is
    /// another one then, the contents that the source has are kept until the
    /// new server has spoken of them, and all names of the source are
    /// evaluated. Returns whether the source uses another server now.
    pub(super) fn change_server(
        &mut self,
        source_id: SourceId,
        change_fallback: impl FnOnce(&mut Fallback),
        now: Moment,
    ) -> bool {
        let Some(source) = self.sources.get(&source_id) else {
            return false;
        };
        let mut fallback = source.fallback.clone();
        change_fallback(&mut fallback);
        let is_other = fallback.current() != source.fallback.current();
        let old_servers = source.open_servers();
        let next_server = source.servers.get(fallback.current()).copied();
        if is_other {
            self.keep(source_id);
            // This source has not seen what the server said to other sources on
            // earlier streams.
            if let Some(id) = next_server {
                self.start_anew(id, now);
            }
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

    /// Handles the fetch timers of a server that ran out just now; `events` are
    /// their errors. Counts them for the status of the server. If the server
    /// was silent on a name for too long, the sources that use it drop the kept
    /// contents of the name, unless these outlive silence
    /// ([`SourceView::drop_silent`]).
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

        let silent_keys = events.iter().filter_map(|event| match event {
            Event::Failed(url, name, error) if error.cause == Cause::Silent => {
                Some((url.clone(), name.clone()))
            }
            _ => None,
        });
        for key in silent_keys {
            for source in self.sources.values_mut() {
                if source.current_server() == Some(id) {
                    SourceView::new(source, &mut self.servers).drop_silent(&key);
                }
            }
            self.touch(&key);
        }
    }

    /// Evaluates the watches of all names of a source.
    fn touch_all(&mut self, source_id: SourceId) {
        if let Some(source) = self.sources.get_mut(&source_id) {
            let keys = SourceView::new(source, &mut self.servers).keys();
            keys.iter().for_each(|key| self.touch(key));
        }
    }

    /// Keeps the contents that a source has from the server that it uses, which
    /// is about to be replaced or to start anew.
    fn keep(&mut self, source_id: SourceId) {
        if let Some(source) = self.sources.get_mut(&source_id) {
            SourceView::new(source, &mut self.servers).keep();
        }
    }

    /// Drops the kept contents of a source that the server in use has spoken
    /// of, and evaluates the watches of their names.
    pub(super) fn supersede_all(&mut self, source_id: SourceId) {
        if let Some(source) = self.sources.get_mut(&source_id) {
            let kept_keys = SourceView::new(source, &mut self.servers).supersede_all();
            kept_keys.iter().for_each(|key| self.touch(key));
        }
    }

    /// Subscribes at all of these servers, or at none if one of them carries
    /// another type.
    pub(super) fn subscribe_at(
        &mut self,
        ids: &[ServerId],
        key: &TypedSubscription,
        now: Moment,
    ) -> Result<(), SinkError> {
        for (failed_index, id) in ids.iter().enumerate() {
            let Some(server) = self.servers.get_mut(id) else {
                continue;
            };
            if let Err(error) = server.subscribe(key, now) {
                for id in &ids[..failed_index] {
                    if let Some(server) = self.servers.get_mut(id) {
                        server.unsubscribe(key);
                    }
                }
                return Err(error);
            }
        }
        Ok(())
    }

    /// Subscribes at the servers that the choice of a source has opened, and
    /// unsubscribes from those that it has closed; `old_servers` were open
    /// before the change.
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
        // No other source has a part in the effects of these subscriptions, and
        // the caller evaluates all names of this one.
        for id in new_servers.iter().chain(old_servers) {
            if let Some(server) = self.servers.get_mut(id) {
                drop(server.take_effects());
            }
        }
    }

    /// Returns whether a source uses another server in place of this one, which
    /// precedes it in its list.
    pub(super) fn is_replaced(&self, source_id: SourceId, id: ServerId) -> bool {
        let source = self.sources.get(&source_id);
        let place = source.and_then(|source| Some((source, source.place_of(id)?)));
        place.is_some_and(|(source, place)| source.fallback.precedes_current(place))
    }

    /// Forgets everything that a server has said, so that the server sends
    /// everything when it is back. Does nothing unless the server has failed,
    /// or its contents are from an earlier stream and no response came since.
    /// The caller has replaced the server in a source, or begins to use it
    /// there. Other sources that use it keep their contents. A stream without a
    /// response is opened anew, because it began with the versions of the
    /// forgotten contents.
    pub(super) fn start_anew(&mut self, id: ServerId, now: Moment) {
        let server = self.servers.get(&id);
        if !server.is_some_and(|server| server.has_failed || server.is_outdated) {
            return;
        }

        for source_id in self.sources_of(id) {
            let source = self.sources.get(&source_id);
            if source.and_then(Source::current_server) == Some(id) {
                self.keep(source_id);
            }
        }
        if let Some(server) = self.servers.get_mut(&id) {
            server.start_anew(now);
        }
    }

    /// Returns whether no server of a source can be reached (C49): all that it
    /// has tried have failed. Servers after the current one were not tried.
    pub(super) fn all_failed(&self, source_id: SourceId) -> bool {
        let Some(source) = self.sources.get(&source_id) else {
            return false;
        };
        let has_failed = |id: &ServerId| {
            let server = self.servers.get(id);
            server.is_none_or(|server| server.has_failed)
        };
        let places = 0..=source.fallback.current();
        let mut tried_servers = places.filter_map(|place| source.servers.get(place));
        tried_servers.all(has_failed)
    }

    /// Sets or clears the error that every server of a source is unreachable,
    /// which is the error of all its names then (C49).
    pub(super) fn set_unreachable(&mut self, source_id: SourceId, error: Option<WatchError>) {
        let Some(source) = self.sources.get_mut(&source_id) else {
            return;
        };
        if source.unreachable_error == error {
            return;
        }
        source.unreachable_error = error;
        self.touch_all(source_id);
    }
}
