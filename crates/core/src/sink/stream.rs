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
use super::conversation::{Conversation, teller};
use super::event::{Cause, Effects, Event, WatchError};

impl Sink {
    /// A stream began. Its source knows nothing: neither nonces nor what was
    /// asked on another stream (C19). Responses not yet judged are dropped.
    pub fn handle_connected(&mut self) {
        self.connected = true;
        self.heard = false;
        self.restart();
    }

    /// A stream ended, or could not be made. Only if no response came on it is
    /// that an error, and then everyone hears of it (C36).
    pub fn handle_disconnected(&mut self, reason: impl Into<Arc<str>>) -> Vec<Event> {
        let heard = self.connected && self.heard;
        self.connected = false;
        self.heard = heard;
        self.restart();
        if heard {
            return Vec::new();
        }
        let error = WatchError::new(Cause::Unreachable, reason);
        if self.unreachable.as_ref() == Some(&error) {
            return Vec::new(); // C28
        }
        let mut effects = Effects::default();
        for conversation in &self.types {
            let Conversation {
                type_url, asking, ..
            } = conversation;
            let mut teller = teller(type_url, asking, &self.config, &mut effects);
            conversation.cache.tell_unreachable(&error, &mut teller);
        }
        self.unreachable = Some(error);
        effects.events
    }

    fn restart(&mut self) {
        self.node_due = true;
        self.answers.clear();
        for conversation in &mut self.types {
            conversation.restart();
            if self.config.fetch_start == FetchStart::Sent {
                conversation.cache.stop_waiting();
            }
        }
    }

    /// The next stream leads to another server: versions of this one mean
    /// nothing there (E9). What is held stays in use.
    pub fn forget_versions(&mut self) {
        self.types
            .iter_mut()
            .for_each(Conversation::forget_versions);
    }

    /// Whether a response came on the present stream, or on the last one.
    #[must_use]
    pub fn heard(&self) -> bool {
        self.heard
    }

    /// The source answered, so it can be reached (C39).
    pub(super) fn recover(&mut self) -> Effects {
        let mut effects = Effects::default();
        if self.unreachable.take().is_some() {
            for conversation in &self.types {
                let Conversation {
                    type_url, asking, ..
                } = conversation;
                let mut teller = teller(type_url, asking, &self.config, &mut effects);
                conversation.cache.tell_reachable(&mut teller);
            }
        }
        effects
    }
}
