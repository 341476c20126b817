//! Types come with contents or with subscribers. A type that only subscribers
//! brought goes with the last of them: a client can invent any number.

use super::table::Table;
use super::{Database, TypeId};
use crate::resource::TypeUrl;

impl Database {
    /// Returns the index of a type, which is added if need be and stays.
    pub fn type_id(&mut self, url: &TypeUrl) -> TypeId {
        let id = self.subscribed_type_id(url);
        let table = self.table_mut(id);
        if !std::mem::replace(&mut table.is_claimed, true) {
            self.unclaimed_types -= 1;
        }
        id
    }

    /// Returns the index of a type for a subscriber, who is to be added before
    /// anything else happens. A type that is new goes with its last subscriber.
    pub(crate) fn subscribed_type_id(&mut self, url: &TypeUrl) -> TypeId {
        if let Some(id) = self.type_ids.get(url) {
            return *id;
        }
        self.drop_idle_types();
        let new_table = Table::new(url.clone(), self.is_cache);
        let id = match self.free_types.pop_first() {
            Some(id) => {
                *self.table_mut(id) = new_table;
                id
            }
            None => {
                self.tables.push(new_table);
                TypeId(self.tables.len() as u32 - 1)
            }
        };

        self.type_ids.insert(url.clone(), id);
        self.unclaimed_types += 1;
        id
    }

    /// Returns the number of types that only subscribers brought.
    #[must_use]
    pub(crate) fn unclaimed_types(&self) -> usize {
        self.unclaimed_types
    }

    /// Notes that a type may have lost its last use.
    pub(super) fn note_idle_type(&mut self, id: TypeId) {
        let table = self.table(id);
        if !table.is_claimed && table.subscriber_count == 0 {
            self.idle_types.insert(id);
        }
    }

    /// Drops types that only subscribers brought and that have none any more,
    /// except those whose changes of demand are not taken yet. The caller does
    /// this after it has taken changes of demand.
    pub fn drop_idle_types(&mut self) {
        for id in std::mem::take(&mut self.idle_types) {
            if !self.table(id).is_unused() {
                continue;
            }
            if self.has_demand_changes(id) {
                self.idle_types.insert(id);
            } else {
                self.drop_type(id);
            }
        }
    }

    /// Drops a type that the caller has found without a use. Its id is free, to
    /// be given to another type.
    fn drop_type(&mut self, id: TypeId) {
        let empty_table = Table::new(TypeUrl::new(""), false);
        let dropped_table = std::mem::replace(self.table_mut(id), empty_table);
        self.type_ids.remove(&dropped_table.url);
        self.client_sets.forget_type(id);
        self.unclaimed_types -= 1;
        self.free_types.insert(id);

        while let Some(last) = self.free_types.last().copied()
            && last.0 as usize + 1 == self.tables.len()
        {
            self.free_types.pop_last();
            self.tables.pop();
        }
        // Types that a client invented do not occupy memory when it is gone.
        if self.tables.len() < self.tables.capacity() / 4 {
            self.tables.shrink_to_fit();
            self.type_ids.shrink_to_fit();
        }
    }
}

impl Table {
    /// Returns whether nothing uses the type: neither subscribers nor contents.
    /// A table that is becoming complete is visited by its index.
    fn is_unused(&self) -> bool {
        let is_empty = self.len == 0 && self.entries.len() == 0 && self.views().next().is_none();
        let is_settled = !self.is_cache && !self.is_completing;
        is_empty && is_settled && !self.is_claimed && self.subscriber_count == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::ParamsId;

    #[test]
    fn a_type_that_only_subscribers_brought_goes_with_the_last() {
        let mut db = Database::new();
        let kept = db.type_id(&"kept".into());
        let stream = db.open_stream();
        let invented: Vec<TypeId> = (0..1000)
            .map(|nth| {
                let id = db.subscribed_type_id(&format!("invented {nth}").as_str().into());
                let subscriber = db.add_subscriber(stream, id, ParamsId::EMPTY);
                let entry = db.subscribe(subscriber, &"a".into(), ParamsId::EMPTY);
                if nth != 500 {
                    db.unsubscribe(subscriber, entry, ParamsId::EMPTY);
                    db.remove_subscriber(subscriber);
                }
                id
            })
            .collect();
        db.drop_idle_types();
        let urls: Vec<_> = db.types().map(|(_, url)| url.as_str()).collect();
        assert_eq!(urls, ["kept", "invented 500"]);
        assert_eq!(db.type_url(kept).as_str(), "kept");
        assert_eq!(db.type_url(invented[500]).as_str(), "invented 500");
        assert_eq!(db.unclaimed_types(), 1);
        assert!(db.tables.len() < 10, "{}", db.tables.len());
        db.check().unwrap();
    }

    #[test]
    fn a_type_stays_until_its_changes_of_demand_are_taken() {
        let mut db = Database::new();
        db.watch_demand();
        let stream = db.open_stream();
        let id = db.subscribed_type_id(&"t".into());
        let subscriber = db.add_subscriber(stream, id, ParamsId::EMPTY);
        let entry = db.subscribe(subscriber, &"a".into(), ParamsId::EMPTY);
        assert_eq!(db.take_demand_changes().count(), 1);
        db.unsubscribe(subscriber, entry, ParamsId::EMPTY);
        db.remove_subscriber(subscriber);
        db.drop_idle_types();
        assert_eq!(db.find_type(&"t".into()), Some(id));
        assert_eq!(db.take_demand_changes().count(), 1);
        db.drop_idle_types();
        assert_eq!(db.find_type(&"t".into()), None);
    }

    #[test]
    fn a_type_that_became_idle_twice_goes_once() {
        let mut db = Database::new();
        let stream = db.open_stream();
        for url in ["a", "b", "a", "b"] {
            let id = db.subscribed_type_id(&url.into());
            let subscriber = db.add_subscriber(stream, id, ParamsId::EMPTY);
            let again = db.add_subscriber(stream, id, ParamsId::EMPTY);
            db.remove_subscriber(subscriber);
            db.remove_subscriber(again);
            let last = db.add_subscriber(stream, id, ParamsId::EMPTY);
            db.remove_subscriber(last);
        }
        db.drop_idle_types();
        assert_eq!((db.types().count(), db.unclaimed_types()), (0, 0));
        assert_eq!(db.tables.len(), 0);
        db.check().unwrap();
    }

    #[test]
    fn a_type_that_contents_claim_stays() {
        let mut db = Database::new();
        let stream = db.open_stream();
        let id = db.subscribed_type_id(&"t".into());
        let subscriber = db.add_subscriber(stream, id, ParamsId::EMPTY);
        assert_eq!(db.type_id(&"t".into()), id);
        db.remove_subscriber(subscriber);
        db.drop_idle_types();
        assert_eq!(db.find_type(&"t".into()), Some(id));
        assert_eq!(db.unclaimed_types(), 0);
    }
}
