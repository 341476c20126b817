//! Following a view: a position, and the exceptions to it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::step::Walk;
use super::{Conversation, Key, Slot, Told};
use crate::database::{Choice, Database, FollowId, Scope, Seq, TypeId};
use crate::name::Name;
use crate::resource::Resource;

/// One wildcard or glob of a conversation.
#[derive(Debug)]
pub(crate) struct Cursor {
    pub(crate) scope: Scope,
    pub(crate) follow: FollowId,
    /// The peer holds the view as it was here, but for `members`.
    pub(crate) position: Seq,
    /// What was sent leads up to here.
    pub(crate) reached: Seq,
    /// Steps that are too large for one response: the first is being answered,
    /// the last is being sent. More than one only if the peer is silent for long.
    pub(crate) walks: VecDeque<Walk>,
    /// The exceptions: rejected, waiting, or sent on their own.
    pub(crate) members: BTreeMap<Name, Slot>,
}

impl Cursor {
    /// From nothing.
    pub(crate) fn new(scope: Scope, follow: FollowId) -> Self {
        Self {
            scope,
            follow,
            position: 0,
            reached: 0,
            walks: VecDeque::new(),
            members: BTreeMap::new(),
        }
    }

    /// What the peer holds under a name that is no exception.
    pub(crate) fn rule(
        &self,
        db: &mut Database,
        type_id: TypeId,
        name: &Name,
    ) -> Option<Arc<Resource>> {
        if let Some(walk) = self.walks.front()
            && let Some(place) = walk.batch.find(name).filter(|place| *place < walk.answered)
        {
            return walk.batch.items[place].1.clone();
        }
        let entry = db.find(type_id, name)?;
        db.held_at(self.follow, entry, self.position)
    }

    pub(crate) fn covers(&self, name: &Name) -> bool {
        match &self.scope {
            Scope::All => true,
            Scope::Glob(glob) => glob.matches(name),
        }
    }
}

impl Conversation {
    /// Begins to follow a scope from nothing.
    pub(crate) fn add_cursor(&mut self, db: &mut Database, scope: Scope) -> usize {
        let index = self
            .cursors
            .iter()
            .position(Option::is_none)
            .unwrap_or_else(|| {
                self.cursors.push(None);
                self.cursors.len() - 1
            });
        let follow = db.follow(self.subscriber, &scope);
        self.cursors[index] = Some(Cursor::new(scope, follow));
        index
    }

    /// Ends following. What failed alone stays parked (S12).
    pub(crate) fn drop_cursor(&mut self, db: &mut Database, index: usize) {
        let Some(cursor) = self.cursors[index].take() else {
            return;
        };
        db.unfollow(cursor.follow);
        let foreign = |key: &Key| !matches!(key, Key::Member(cursor, _) if *cursor == index);
        self.pending.retain(foreign);
        self.waiting.retain(|key, _| foreign(key));
        self.suspects.retain(|key, _| foreign(key));
        for trial in &mut self.trials {
            trial.retain(foreign);
        }
        for response in &mut self.outstanding {
            response.orphan(index);
        }
    }

    pub(crate) fn cursor_of(&self, scope: &Scope) -> Option<usize> {
        let same = |cursor: &Option<Cursor>| cursor.as_ref().is_some_and(|c| c.scope == *scope);
        self.cursors.iter().position(same)
    }

    /// The first cursor that brings a name; others leave it to that one (S26).
    pub(crate) fn cursor_over(&self, name: &Name) -> Option<usize> {
        let covers = |cursor: &Option<Cursor>| cursor.as_ref().is_some_and(|c| c.covers(name));
        self.cursors.iter().position(covers)
    }

    /// Whether everything that is asked for is known as far as a response shows
    /// it: an answer from a part of a set could be taken for a removal (S51).
    pub(crate) fn knows_all(&self, db: &mut Database) -> bool {
        let mut cursors = self.cursors.iter().flatten();
        let follows = cursors.all(|cursor| db.knows_all(cursor.follow));
        let listed = self.is_whole() && db.is_cache();
        let mut asks = self.asks.keys().filter(|_| listed);
        follows && asks.all(|ask| self.target(db, &Key::Ask(*ask)) != Choice::Unknown)
    }

    /// What the peer holds under a name that a cursor brings.
    pub(crate) fn member_told(&self, db: &mut Database, index: usize, name: &Name) -> Told {
        let Some(cursor) = self.cursors.get(index).and_then(Option::as_ref) else {
            return Told::Nothing;
        };
        if let Some(slot) = cursor.members.get(name) {
            return slot.told.clone();
        }
        cursor.rule(db, self.type_id, name).into()
    }

    /// Makes a name an exception to its cursor.
    pub(crate) fn member_slot(
        &mut self,
        db: &mut Database,
        index: usize,
        name: &Name,
    ) -> Option<&mut Slot> {
        let told = self.member_told(db, index, name);
        let cursor = self.cursors.get_mut(index)?.as_mut()?;
        let slot = cursor.members.entry(name.clone());
        Some(slot.or_insert(Slot::of(told)))
    }

    /// Drops exceptions that have become the rule again. Only right while
    /// nothing is outstanding: then position and truth are the same thing.
    pub(crate) fn tidy_members(&mut self, db: &mut Database) {
        if !self.outstanding.is_empty() {
            return;
        }
        let type_id = self.type_id;
        for (index, cursor) in self.cursors.iter_mut().enumerate() {
            let Some(cursor) = cursor else { continue };
            let (pending, parked, suspects) = (&self.pending, &self.parked, &self.suspects);
            // Where nearly all have a reason, looking at each costs more than
            // the few that have none: a peer that rejects thousands answers
            // thousands of times.
            let reasons = pending.len() + parked.len() + suspects.len();
            if cursor.members.len() <= reasons + reasons / 8 {
                continue;
            }
            let mut members = std::mem::take(&mut cursor.members);
            members.retain(|name, slot| {
                let key = Key::Member(index, name.clone());
                if pending.contains(&key)
                    || parked.contains_key(name)
                    || suspects.contains_key(&key)
                {
                    return true;
                }
                let held = cursor.rule(db, type_id, name);
                let rule = held.map_or(Choice::Absent, Choice::Is);
                let gone = rule == Choice::Absent && slot.told == Told::Nothing;
                !(gone || slot.told.same(&rule))
            });
            cursor.members = members;
        }
    }
}
