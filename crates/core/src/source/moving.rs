//! A client that says something else of itself from now on: what it sees is
//! chosen anew, and it is told what differs from what it holds, in one response
//! of each type (TP2).

use std::collections::BTreeMap;

use super::{AskKey, Conversation, Cursor, Key, Slot, Told};
use crate::database::{Choice, Database};
use crate::name::Name;
use crate::params::ParamsId;

impl Conversation {
    /// Whether other parameters can be taken up: an answer that is awaited was
    /// sent under the old ones.
    pub(crate) fn may_move(&self) -> bool {
        self.outstanding.is_empty()
    }

    /// The parameters to take up, if the stream has these.
    pub(crate) fn params_to_be(&self, stream: ParamsId) -> ParamsId {
        self.own_params.unwrap_or(stream)
    }

    /// Takes up other parameters. What was asked for with parameters of its own
    /// stays as it is.
    pub(crate) fn move_to(&mut self, db: &mut Database, params: ParamsId) {
        let old = std::mem::replace(&mut self.params, params);
        let own: Vec<AskKey> = self.asks.keys().copied().collect();
        for key in own.into_iter().filter(|key| key.params == old) {
            self.move_ask(db, key);
        }
        let held: Vec<_> = (0..self.cursors.len())
            .map(|index| self.held_under(db, index))
            .collect();
        db.set_params(self.subscriber, params);
        for (index, held) in held.into_iter().enumerate() {
            self.move_cursor_to(db, index, held);
        }
    }

    fn move_ask(&mut self, db: &mut Database, key: AskKey) {
        let Some(slot) = self.asks.remove(&key) else {
            return;
        };
        self.forget(&Key::Ask(key));
        let name = db.name(self.type_id, key.entry).clone();
        let params = self.params;
        let entry = db.subscribe(self.subscriber, &name, params);
        db.unsubscribe(self.subscriber, key.entry, key.params);
        let new = AskKey { entry, params };
        if let Some(held) = self.held_as.remove(&key) {
            self.held_as.insert(new, held);
        }
        self.note_unask(key);
        self.asks.insert(new, slot);
        self.pending.insert(Key::Ask(new));
    }

    /// All that the peer holds of what a cursor brings.
    fn held_under(&self, db: &mut Database, index: usize) -> BTreeMap<Name, Told> {
        let Some(cursor) = &self.cursors[index] else {
            return BTreeMap::new();
        };
        let mut names: Vec<Name> = db.news(cursor.follow, 0);
        names.extend(cursor.members.keys().cloned());
        let told = names.into_iter().map(|name| {
            let told = self.member_told(db, index, &name);
            (name, told)
        });
        told.filter(|(_, told)| *told != Told::Nothing).collect()
    }

    /// Follows what the new parameters show; what the peer holds otherwise is
    /// an exception, to be told of.
    fn move_cursor_to(&mut self, db: &mut Database, index: usize, held: BTreeMap<Name, Told>) {
        let Some(cursor) = &self.cursors[index] else {
            return;
        };
        let scope = cursor.scope.clone();
        self.drop_cursor(db, index);
        let follow = db.follow(self.subscriber, &scope);
        let head = db.head(follow);
        db.hold(follow, head);
        db.release(follow, 0);
        let mut members: BTreeMap<Name, Slot> = BTreeMap::new();
        let listed = db.list(follow);
        for resource in &listed {
            let told = held.get(&resource.name).cloned().unwrap_or_default();
            if !told.same(&Choice::Is(resource.clone())) {
                members.insert(resource.name.clone(), Slot::of(told));
            }
        }
        let current: hashbrown::HashSet<&Name> = listed.iter().map(|r| &r.name).collect();
        let gone = held.into_iter().filter(|(name, _)| !current.contains(name));
        members.extend(gone.map(|(name, told)| (name, Slot::of(told))));
        let keys = members.keys().cloned();
        self.pending
            .extend(keys.map(|name| Key::Member(index, name)));
        self.cursors[index] = Some(Cursor {
            position: head,
            reached: head,
            members,
            ..Cursor::new(scope, follow)
        });
    }
}
