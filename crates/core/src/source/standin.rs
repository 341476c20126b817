//! What stands in for a version that the peer rejected on an earlier stream.
//!
//! A set that lacks a name deletes it, so a peer that comes back in state of the
//! world is given what it held in the place of what it rejected (S12, S38). Once
//! it has accepted that, the rejected version is tried once more: the peer may
//! have been replaced by one that takes it.

use std::sync::Arc;

use super::{Conversation, Key};
use crate::database::{Choice, Database, Rejected};
use crate::message::Mode;
use crate::name::Name;
use crate::resource::Resource;

impl Conversation {
    fn needs_stand_ins(&self) -> bool {
        self.mode == Mode::Sotw && self.kind.whole_set
    }

    /// The peer has been here before.
    pub(crate) fn recall(&mut self, db: &mut Database, node: &str) {
        if !self.needs_stand_ins() {
            return;
        }
        for rejected in db.recall_rejections(node, self.type_id) {
            let now = db.choose_name(self.type_id, &rejected.name, self.params);
            if now
                .resource()
                .is_some_and(|r| r.version == rejected.version)
            {
                let Rejected {
                    name,
                    version,
                    holds,
                } = rejected;
                self.parked.insert(name.clone(), version);
                self.stand_ins.insert(name, holds);
            }
        }
    }

    /// The peer leaves.
    pub(crate) fn remember(&self, db: &mut Database, node: &str) {
        if !self.needs_stand_ins() || self.parked.is_empty() {
            return;
        }
        let mut rejected = Vec::new();
        for (name, version) in &self.parked {
            let held = self.held_of(db, name);
            let holds = held.or_else(|| self.stand_ins.get(name).cloned());
            rejected.extend(holds.map(|holds| Rejected {
                name: name.clone(),
                version: version.clone(),
                holds,
            }));
        }
        db.remember_rejections(node, self.type_id, rejected.into_iter());
    }

    fn held_of(&self, db: &mut Database, name: &Name) -> Option<Arc<Resource>> {
        let entry = db.find(self.type_id, name);
        let mut asks = entry.into_iter().flat_map(|entry| self.asks_of(entry));
        let asked = asks.find_map(|(_, slot)| slot.told.resource().cloned());
        asked.or_else(|| {
            let index = self.cursor_over(name)?;
            self.member_told(db, index, name).resource().cloned()
        })
    }

    pub(super) fn is_stand_in(&self, resource: &Resource) -> bool {
        let stand_in = self.stand_ins.get(&resource.name);
        stand_in.is_some_and(|other| other.version == resource.version)
    }

    /// What is given in the place of what the database has.
    pub(super) fn stood_in(&self, choice: Choice) -> Choice {
        match &choice {
            Choice::Is(resource) if !self.stand_ins.is_empty() && self.is_parked(resource) => {
                let stand_in = self.stand_ins.get(&resource.name);
                stand_in.cloned().map_or(choice, Choice::Is)
            }
            _ => choice,
        }
    }

    /// The peer has accepted something: what was rejected on an earlier stream
    /// gets its second chance.
    pub(super) fn try_rejected_again(&mut self, db: &mut Database) {
        if self.stand_ins.is_empty() || !self.outstanding.is_empty() {
            return;
        }
        for (name, _) in std::mem::take(&mut self.stand_ins) {
            self.parked.remove(&name);
            let entry = db.find(self.type_id, &name).into_iter();
            let asks = entry.flat_map(|entry| self.asks_of(entry));
            let asks: Vec<_> = asks.map(|(key, _)| Key::Ask(key)).collect();
            self.pending.extend(asks);
            if let Some(index) = self.cursor_over(&name) {
                self.pending.insert(Key::Member(index, name));
            }
        }
    }
}
