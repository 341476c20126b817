//! Streams come and go; what is held stays.
//!
//! ```text
//!              handle_connected             a response
//!   down ──────────────────────▶ up, silent ──────────▶ up, heard
//!    ▲  ▲                           │                       │
//!    │  └── everyone hears of it ───┘                       │
//!    └──────────────── no error (C36) ──────────────────────┘
//! ```
//!
//! Not the place that decides when to dial again: see [`super::Backoff`].

use std::sync::Arc;

use super::Sink;
use super::config::FetchStart;
use super::event::{Cause, Effects, Event, WatchError};
use super::type_state::{TypeState, effect_collector};

impl Sink {
    /// A stream began. Its source knows nothing: neither nonces nor what was
    /// asked on another stream (C19). Responses not yet judged are dropped.
    pub fn handle_connected(&mut self) {
        self.connected = true;
        self.got_response = false;
        self.restart();
    }

    /// A stream ended, or could not be made. Only if no response came on it is
    /// that an error, and then everyone hears of it (C36).
    pub fn handle_disconnected(&mut self, reason: impl Into<Arc<str>>) -> Vec<Event> {
        let heard = self.connected && self.got_response;
        self.connected = false;
        self.got_response = heard;
        self.restart();
        if heard {
            return Vec::new();
        }
        let error = WatchError::new(Cause::Unreachable, reason);
        if self.unreachable.as_ref() == Some(&error) {
            return Vec::new(); // C28
        }
        let mut effects = Effects::default();
        for type_state in &self.types {
            let TypeState {
                type_url, interest, ..
            } = type_state;
            let mut collector = effect_collector(type_url, interest, &self.config, &mut effects);
            type_state.cache.report_unreachable(&error, &mut collector);
        }
        self.unreachable = Some(error);
        effects.events
    }

    fn restart(&mut self) {
        self.node_due = true;
        self.due_acks.clear();
        for type_state in &mut self.types {
            type_state.restart();
            if self.config.fetch_start == FetchStart::Sent {
                type_state.cache.cancel_fetch_timers();
            }
        }
    }

    /// The next stream leads to another server: versions of this one mean
    /// nothing there (E9). What is held stays in use.
    pub fn forget_versions(&mut self) {
        self.types.iter_mut().for_each(TypeState::forget_versions);
    }

    /// Whether a response came on the present stream, or on the last one.
    #[must_use]
    pub fn got_response(&self) -> bool {
        self.got_response
    }

    /// The source answered, so it can be reached (C39).
    pub(super) fn recover(&mut self) -> Effects {
        let mut effects = Effects::default();
        if self.unreachable.take().is_some() {
            for type_state in &self.types {
                let TypeState {
                    type_url, interest, ..
                } = type_state;
                let mut collector =
                    effect_collector(type_url, interest, &self.config, &mut effects);
                type_state.cache.report_reachable(&mut collector);
            }
        }
        effects
    }
}
