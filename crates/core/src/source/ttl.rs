//! Resources with a ttl are spoken of again before it runs out (S58-S60).
//!
//! On delta by name, version and ttl alone. On a state-of-the-world stream
//! Envoy takes that for the whole state and deletes everything, so there the
//! resource itself goes out again.

use std::sync::Arc;

use super::{Conversation, Key, Selected, Told};
use crate::database::{Choice, Database};
use crate::message::Mode;
use crate::moment::Moment;
use crate::resource::Resource;

impl Conversation {
    /// Starts the clocks of what a response brings. What was just sent needs
    /// no word for a while (S59), what has no ttl any more needs none (S60).
    /// `wraps` is whether a state-of-the-world peer is told of a ttl at all (S58).
    pub(crate) fn note_ttls(&mut self, selected: &Selected, wraps: bool, now: Moment) {
        let news = selected.resources().any(|r| r.ttl.is_some());
        if !news && self.refresh.next().is_none() {
            return;
        }
        let single = selected
            .keys
            .iter()
            .map(|(key, choice)| (key.clone(), choice.resource()));
        let stepped = selected.steps.iter().flat_map(|step| {
            step.items()
                .map(|(name, item)| (Key::Member(step.cursor, name.clone()), item.as_ref()))
        });
        for (key, resource) in single.chain(stepped) {
            match resource
                .and_then(|r| r.ttl)
                .filter(|_| self.sends_ttl(wraps))
            {
                Some(ttl) => self.refresh.set(key, now + ttl / 2),
                None => {
                    self.refresh.cancel(&key);
                }
            }
        }
    }

    fn sends_ttl(&self, wraps: bool) -> bool {
        let in_sotw = wraps && self.kind.ttl_in_sotw;
        !self.kind.on_demand && (self.mode == Mode::Delta || in_sotw)
    }

    /// What has to be spoken of again now. Returns the heartbeats; on a
    /// state-of-the-world stream the resources are marked instead.
    pub(crate) fn due_heartbeats(&mut self, db: &mut Database, now: Moment) -> Vec<Arc<Resource>> {
        let mut heartbeats = Vec::new();
        for key in self.refresh.expire(now) {
            let Some(resource) = self.still_good(db, &key) else {
                continue;
            };
            match self.mode {
                Mode::Delta => {
                    if let Some(ttl) = resource.ttl {
                        self.refresh.set(key, now + ttl / 2);
                    }
                    heartbeats.push(resource);
                }
                Mode::Sotw => self.say_key_again(db, key),
            }
        }
        heartbeats
    }

    /// What the peer holds under a key, if that is what it is meant to hold.
    fn still_good(&self, db: &mut Database, key: &Key) -> Option<Arc<Resource>> {
        let told = match key {
            Key::Ask(ask) => self.asks.get(ask)?.told.clone(),
            Key::Member(cursor, name) => self.member_told(db, *cursor, name),
        };
        let target = self.target(db, key);
        match (&told, target) {
            (Told::Is(_), Choice::Is(resource)) if told.same(&Choice::Is(resource.clone())) => {
                Some(resource)
            }
            _ => None,
        }
    }

    fn say_key_again(&mut self, db: &mut Database, key: Key) {
        if let Key::Member(cursor, name) = &key {
            self.member_slot(db, *cursor, name);
        }
        if let Some(slot) = self.slot_mut(&key) {
            slot.forced = true;
            self.pending.insert(key);
        }
    }
}
