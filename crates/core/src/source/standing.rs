//! What other types need to know of a conversation: what its peer holds.

use std::sync::Arc;

use super::{AskKey, Conversation, Key, Told};
use crate::database::{Choice, Database};
use crate::name::Name;
use crate::resource::Resource;

/// How a name stands with the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// The peer does not ask for it.
    Unwanted,
    /// There is nothing to send: it does not exist, or was rejected.
    Nothing,
    /// The peer accepted it, in this or an earlier version.
    Held,
    /// It will be sent, or its answer is awaited.
    Coming,
}

impl Conversation {
    /// How a name stands with the peer.
    pub(crate) fn standing(&self, db: &mut Database, name: &Name) -> Standing {
        let params = self.params;
        let ask = db
            .find(self.type_id, name)
            .map(|entry| AskKey { entry, params });
        let asked = ask.and_then(|ask| Some((Key::Ask(ask), self.asks.get(&ask)?)));
        let (key, told) = if let Some((key, slot)) = asked {
            (key, slot.told.clone())
        } else if let Some(cursor) = self.cursor_over(name) {
            let told = self.member_told(db, cursor, name);
            (Key::Member(cursor, name.clone()), told)
        } else {
            return Standing::Unwanted;
        };
        let going = self
            .outstanding
            .iter()
            .any(|response| response.removes(&key));
        match (told, self.target(db, &key)) {
            (told, _) if told.resource().is_some() && !going => Standing::Held,
            (_, Choice::Unknown) => Standing::Coming,
            (_, Choice::Is(r)) if !self.is_parked(&r) => Standing::Coming,
            _ => Standing::Nothing,
        }
    }

    /// Whether this very version was rejected on its own (S12).
    pub(crate) fn is_parked(&self, resource: &Resource) -> bool {
        self.parked.get(&resource.name) == Some(&resource.version)
    }

    /// Whether the peer holds something of which nothing is known but that it
    /// is not what it should be: what that refers to is not known either.
    pub(crate) fn holds_unknown(&self) -> bool {
        let is_older = |key: &Key| self.slot(key).is_some_and(|slot| slot.told == Told::Older);
        let outstanding = self.outstanding.iter().flat_map(|response| &response.keys);
        self.pending.iter().any(is_older)
            || self.suspects.keys().any(is_older)
            || outstanding.into_iter().any(|(key, _)| is_older(key))
            || (!self.parked.is_empty() && self.holds_parked_unknown())
    }

    fn holds_parked_unknown(&self) -> bool {
        let members = self
            .cursors
            .iter()
            .flatten()
            .flat_map(|cursor| cursor.members.values());
        self.asks
            .values()
            .chain(members)
            .any(|slot| slot.told == Told::Older)
    }

    /// What the peer holds where that is not what it is meant to hold, beside
    /// the latter. Costs what is under way, not what is held.
    pub(crate) fn unsettled(&self, db: &mut Database) -> Vec<(Arc<Resource>, Choice)> {
        let mut keys: Vec<Key> = self.pending.iter().cloned().collect();
        keys.extend(self.suspects.keys().cloned());
        for response in &self.outstanding {
            keys.extend(response.keys.iter().map(|(key, _)| key.clone()));
        }
        let dirty: Vec<_> = db.dirty(self.subscriber).collect();
        keys.extend(
            dirty
                .into_iter()
                .map(|(entry, params)| Key::Ask(AskKey { entry, params })),
        );
        for name in self.parked.keys() {
            if let Some(entry) = db.find(self.type_id, name) {
                keys.push(Key::Ask(AskKey {
                    entry,
                    params: self.params,
                }));
            }
        }
        for (index, cursor) in self.cursors.iter().enumerate() {
            let Some(cursor) = cursor else { continue };
            let news = db.news(cursor.follow, cursor.position);
            let exceptions = cursor.members.keys().cloned();
            keys.extend(
                news.into_iter()
                    .chain(exceptions)
                    .map(|name| Key::Member(index, name)),
            );
        }
        keys.sort();
        keys.dedup();
        let held = keys
            .iter()
            .filter_map(|key| self.held_beside_target(db, key));
        let mut unsettled: Vec<_> = held.collect();
        unsettled.extend(self.sent_beside_target(db));
        unsettled
    }

    /// What was sent and has no answer yet: the peer may use it already.
    fn sent_beside_target(&self, db: &mut Database) -> Vec<(Arc<Resource>, Choice)> {
        let mut sent: Vec<(Key, Arc<Resource>)> = Vec::new();
        for response in &self.outstanding {
            for (key, choice) in &response.keys {
                sent.extend(choice.resource().map(|r| (key.clone(), Arc::clone(r))));
            }
            for step in &response.steps {
                for (name, item) in step.items() {
                    let key = Key::Member(step.cursor, name.clone());
                    sent.extend(item.iter().map(|r| (key.clone(), Arc::clone(r))));
                }
            }
        }
        let beside = |(key, resource)| (resource, self.target(db, &key));
        sent.into_iter().map(beside).collect()
    }

    fn held_beside_target(&self, db: &mut Database, key: &Key) -> Option<(Arc<Resource>, Choice)> {
        let told = match key {
            Key::Ask(ask) => self.asks.get(ask)?.told.clone(),
            Key::Member(cursor, name) => self.member_told(db, *cursor, name),
        };
        let held = Arc::clone(told.resource()?);
        Some((held, self.target(db, key)))
    }
}
