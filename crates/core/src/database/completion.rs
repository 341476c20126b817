//! Makes a cache complete: a name that it does not have does not exist (S51).
//!
//! Every name is visited, in slices if others wait (S85). Names that arrive or
//! are subscribed to meanwhile are treated as in a complete database, and a
//! name that was not visited yet is answered once it is.

use super::commit::Progress;
use super::content::Content;
use super::entry::EntryId;
use super::{Database, TypeId};

/// The position in the visit of all names.
#[derive(Clone, Copy, Debug, Default)]
pub struct Completion {
    table: usize,
    slot: usize,
}

impl Database {
    /// Makes the database authoritative: a name that it does not have does not
    /// exist (S51).
    pub fn set_authoritative(&mut self) {
        let mut completion = Completion::default();
        while self.complete_slice(&mut completion, usize::MAX) == Progress::More {}
    }

    /// Makes the database authoritative in slices: visits at most `budget`
    /// slots from `position` on, and moves it. Returns whether there are more.
    pub fn complete_slice(&mut self, position: &mut Completion, budget: usize) -> Progress {
        self.is_cache = false;
        for _ in 0..budget {
            if position.table == self.tables.len() {
                return Progress::Done;
            }
            self.complete_slot(position);
        }
        if position.table < self.tables.len() {
            Progress::More
        } else {
            Progress::Done
        }
    }

    /// Visits one slot of a table, or its end, and moves the position on. With
    /// its first slot, a table stops being a cache.
    fn complete_slot(&mut self, position: &mut Completion) {
        if position.slot == 0 {
            self.begin_completing(position.table);
        }
        let table = &mut self.tables[position.table];
        if position.slot < table.entries.slots() {
            self.complete_name(TypeId(position.table as u32), EntryId(position.slot as u32));
            position.slot += 1;
        } else {
            table.is_completing = false;
            position.slot = 0;
            position.table += 1;
        }
    }

    /// Makes a table authoritative, and wakes the subscribers of its views:
    /// each scope is complete now. Its unknown names are visited afterwards.
    fn begin_completing(&mut self, index: usize) {
        let table = &mut self.tables[index];
        table.is_cache = false;
        table.is_completing = true;
        for (_, view) in table.views() {
            for subscriber in &view.subscribers {
                self.subscribers.wake(*subscriber);
            }
        }
    }

    /// Makes a name absent if it was unknown, and marks it dirty for its
    /// subscribers if its answer may have changed.
    fn complete_name(&mut self, type_id: TypeId, id: EntryId) {
        self.work.entries += 1;
        let table = &mut self.tables[type_id.0 as usize];
        let Some(entry) = table.entries.get_mut(id.0) else {
            return;
        };

        let was_unknown = matches!(entry.content, Content::Unknown);
        if was_unknown {
            entry.content = Content::Absent;
        }
        // The virtual host of a host is known only now.
        if was_unknown || table.hosts.is_some() {
            for (subscriber, params) in entry.subscribers.iter() {
                self.subscribers.mark_dirty(subscriber, id, params);
            }
        }

        // A name that does not exist needs no entry from now on.
        table.remove_unused(id);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Choice, Scope};
    use super::*;
    use crate::change::Change;
    use crate::name::Name;
    use crate::params::ParamsId;
    use crate::resource::TypeUrl;

    #[test]
    fn a_cache_that_becomes_complete_keeps_no_absent_names() {
        let mut db = Database::cache();
        let url = TypeUrl::new("t");
        db.apply(vec![Change::Remove(url.clone(), Name::new("a"))])
            .unwrap();
        let type_id = db.type_id(&url);
        assert_eq!(db.memory_counts(type_id).names, 1);
        db.set_authoritative();
        assert_eq!(db.memory_counts(type_id).names, 0);
        assert_eq!(db.check(), Ok(()));
    }

    #[test]
    fn s85_names_that_are_asked_for_meanwhile_are_answered() {
        let mut db = Database::cache();
        let (first, second) = (db.type_id(&"t".into()), db.type_id(&"u".into()));
        let stream = db.open_stream();
        let asking = [first, second].map(|id| db.add_subscriber(stream, id, ParamsId::EMPTY));
        for nth in 0..10 {
            let name = Name::new(&nth.to_string());
            db.subscribe(asking[0], &name, ParamsId::EMPTY);
            db.subscribe(asking[1], &name, ParamsId::EMPTY);
        }
        db.open_cursor(asking[0], &Scope::All);
        let (mut completion, mut slices) = (Completion::default(), 0);
        let mut looked_at = db.work().entries;
        while db.complete_slice(&mut completion, 3) == Progress::More {
            assert!(db.work().entries - looked_at <= 3);
            slices += 1;
            let name = Name::new(&format!("later {slices}"));
            let entries = asking.map(|id| db.subscribe(id, &name, ParamsId::EMPTY));
            if slices == 2 {
                db.unsubscribe(asking[0], entries[0], ParamsId::EMPTY);
            }
            assert_eq!(db.check(), Ok(()));
            looked_at = db.work().entries;
        }
        assert!(slices >= 6);
        for type_id in [first, second] {
            let names: Vec<_> = db.table(type_id).entries().map(|(id, _)| id).collect();
            for id in names {
                let choice = db.choose(type_id, id, ParamsId::EMPTY);
                assert_eq!(choice, Choice::Absent);
            }
        }
        assert!(db.take_dirty(asking[0], usize::MAX).len() >= 10);
        assert_eq!(db.check(), Ok(()));
    }

    #[test]
    fn s85_a_completion_is_done_with_its_last_step() {
        let mut db = Database::cache();
        let mut completion = Completion::default();
        assert_eq!(db.complete_slice(&mut completion, 1), Progress::Done);
        let mut db = Database::cache();
        db.type_id(&"t".into());
        let type_id = db.type_id(&"u".into());
        let stream = db.open_stream();
        let subscriber = db.add_subscriber(stream, type_id, ParamsId::EMPTY);
        db.subscribe(subscriber, &"a".into(), ParamsId::EMPTY);
        // One name, and the end of each type.
        let mut completion = Completion::default();
        let before = db.work().entries;
        for progress in [Progress::More, Progress::More, Progress::Done] {
            assert_eq!(db.complete_slice(&mut completion, 1), progress);
        }
        assert_eq!(db.work().entries - before, 1);
        assert_eq!(db.take_dirty(subscriber, usize::MAX).len(), 1);
    }
}
