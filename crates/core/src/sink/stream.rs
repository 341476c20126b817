//! Streams begin and end; the cache stays.
//!
//! ```text
//!              handle_connected             a response
//!   down ──────────────────────▶ up, silent ──────────▶ up, heard
//!    ▲  ▲                           │                       │
//!    │  └── reported to watchers ───┘                       │
//!    └──────────────── no error (C36) ──────────────────────┘
//! ```
//!
//! When to reconnect is not decided here: see [`super::Backoff`].

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Sink;
use super::cache::Cache;
use super::config::FetchStart;
use super::effects::EffectCollector;
use super::event::{Cause, Event, WatchError};
use super::type_state::TypeState;
use crate::name::Name;
use crate::resource::TypeUrl;

impl Sink {
    /// Starts a stream. Its server knows neither the nonces nor the
    /// subscriptions of another stream (C19). Responses without a verdict are
    /// dropped.
    pub fn handle_connected(&mut self) {
        self.is_connected = true;
        self.got_response = false;
        self.reset_stream_state();
    }

    /// Ends a stream, or an attempt to open one. If no response came on it,
    /// that is an error, which is reported to every watcher (C36), but not
    /// twice in a row (C28).
    pub fn handle_disconnected(&mut self, reason: impl Into<Arc<str>>) {
        let got_response = self.is_connected && self.got_response;
        self.is_connected = false;
        self.got_response = got_response;
        self.reset_stream_state();
        if got_response {
            return;
        }

        let error = WatchError::new(Cause::Unreachable, reason);
        if self.unreachable_error.as_ref() == Some(&error) {
            return; // C28
        }

        let report = |cache: &Cache, collector: &mut EffectCollector<'_>| {
            cache.report_unreachable(&error, collector);
        };
        self.report_to_watchers(report);
        self.unreachable_error = Some(error);
    }

    /// Resets the state that belongs to one stream: nonces, sent requests, and
    /// the fetch timers that started with them (C33).
    fn reset_stream_state(&mut self) {
        self.is_node_due = true;
        self.due_acks.clear();
        for type_state in &mut self.types {
            type_state.restart(&self.config, &mut self.effects);
            if self.config.fetch_start == FetchStart::Sent {
                type_state.cache.cancel_fetch_timers();
            }
        }
    }

    /// Forgets versions, because the next stream leads to another server, where
    /// they mean nothing (E9). Cached resources stay in use.
    pub fn forget_versions(&mut self) {
        self.types.iter_mut().for_each(TypeState::forget_versions);
    }

    /// Returns whether a response came on the present stream, or on the last
    /// one.
    #[must_use]
    pub fn got_response(&self) -> bool {
        self.got_response
    }

    /// Reports that the server can be reached, since it responded (C39): every
    /// name gets back the error that it had before, but for those that have an
    /// event from `first_event` on, which tells of a newer state. Nothing is
    /// reported if the server was not unreachable.
    pub(super) fn recover(&mut self, first_event: usize) {
        if self.unreachable_error.take().is_none() {
            return;
        }

        let newer_subjects: BTreeSet<(TypeUrl, Name)> = self.effects.events[first_event..]
            .iter()
            .map(Event::subject)
            .collect();
        self.report_to_watchers(|cache, collector| {
            let type_url = collector.type_url;
            let is_newer = |name: &Name| newer_subjects.contains(&(type_url.clone(), name.clone()));
            cache.report_reachable(is_newer, collector);
        });
    }

    /// Calls `report` with the cache of each type, and with a collector for the
    /// events that it reports to watchers.
    fn report_to_watchers(&mut self, report: impl Fn(&Cache, &mut EffectCollector<'_>)) {
        let (config, effects) = (&self.config, &mut self.effects);
        for state in &self.types {
            let mut collector =
                EffectCollector::new(&state.type_url, &state.interest, config, effects);
            report(&state.cache, &mut collector);
        }
    }
}
