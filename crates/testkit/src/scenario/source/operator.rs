//! The operator: contents, transactions, a restart.

use trunkline_core::change::Change;
use trunkline_core::database::{ApplyError, Database, DemandChange};
use trunkline_core::params::Params;
use trunkline_core::resource::Resource;

use super::super::contents::{Op, short};
use super::super::script::{Begins, Fate, Knowledge};
use super::super::show;
use super::Stage;

impl Stage {
    /// Makes changes, or adds them to the transaction that was begun.
    pub(super) fn change(&mut self, ops: &[Op], fate: &Fate) -> Result<(), String> {
        let changes: Vec<_> = ops.iter().map(Op::change).collect();
        match &mut self.draft {
            Some(draft) => {
                draft.extend(changes);
                Ok(())
            }
            None => self.apply(changes, fate),
        }
    }

    /// One transaction, which the database must refuse or not.
    pub(super) fn apply(&mut self, changes: Vec<Change>, fate: &Fate) -> Result<(), String> {
        for change in &changes {
            self.remember(change);
        }
        match (self.db.apply(changes.clone()), fate) {
            (Ok(()), Fate::Taken) => self.transactions.push(changes),
            (Ok(()), Fate::Refused(_)) => return Err("the database took it".to_owned()),
            (Err(error), Fate::Taken) => return Err(format!("the database refuses it: {error}")),
            (Err(error), Fate::Refused(both)) => because(&error, both.as_ref())?,
        }
        self.wake();
        Ok(())
    }

    /// Changes what the database knows of names that it does not hold.
    pub(super) fn know(&mut self, knowledge: &Knowledge) -> Result<(), String> {
        match knowledge {
            Knowledge::Cache if self.streams.is_empty() => self.db = Database::cache(),
            Knowledge::Cache => return Err("a stream is open".to_owned()),
            Knowledge::Loaded => self.db.set_authoritative(),
            Knowledge::Scope(url, scope, known) => {
                let type_id = self.db.type_id(url);
                match known {
                    true => self.db.set_complete(type_id, scope),
                    false => self.db.set_incomplete(type_id, scope),
                }
            }
            Knowledge::Forget(url, name) => {
                let type_id = self.db.type_id(url);
                self.db.forget(type_id, name);
            }
        }
        self.wake();
        Ok(())
    }

    /// Wakes the streams that the database has something for.
    fn wake(&mut self) {
        let woken = self.db.take_woken_streams();
        for stream in self.streams.values_mut() {
            let is_woken =
                |session: &trunkline_core::session::Session| woken.contains(&session.stream());
            stream.woken |= stream.session().is_some_and(is_woken);
        }
    }

    fn remember(&mut self, change: &Change) {
        let mut note = |resource: &Resource| {
            let version = resource.version.clone();
            self.bodies.insert(version, show::text(resource));
        };
        match change {
            Change::Upsert(_, resource) => note(resource),
            Change::ReplaceAll(_, resources) => resources.iter().for_each(|r| note(r)),
            _ => {}
        }
    }

    /// Another process, with the same contents or none; its streams are lost.
    pub(super) fn restart(&mut self, begins: Begins) -> Result<(), String> {
        let transactions = match begins {
            Begins::Same => vec![self.contents()],
            Begins::Empty => Vec::new(),
            Begins::Kept => std::mem::take(&mut self.transactions),
        };
        for stream in self.streams.values_mut() {
            stream.lose();
        }
        self.db = Database::new();
        self.db.watch_demand();
        self.transactions.clear();
        let mut transactions = transactions.into_iter();
        transactions.try_for_each(|changes| self.apply(changes, &Fate::Taken))
    }

    /// All contents, as one transaction.
    fn contents(&self) -> Vec<Change> {
        let mut contents = Vec::new();
        for (type_id, url) in self.db.types() {
            for resource in self.db.resources(type_id) {
                contents.push(Change::Upsert(url.clone(), resource.clone()));
            }
        }
        contents
    }

    /// Records for which names demand started or ended.
    pub(super) fn take_edges(&mut self) {
        for (type_id, ask, edge) in self.db.take_demand_changes() {
            let word = match edge {
                DemandChange::Started => "first",
                DemandChange::Ended => "last",
            };
            let url = short(self.db.type_url(type_id));
            self.edges.push(format!("{word} {url} {ask}"));
        }
    }
}

/// The client that a refusal names as one that would match two resources must
/// be this.
fn because(error: &ApplyError, both: Option<&Params>) -> Result<(), String> {
    let named = match error {
        ApplyError::Overlap { witness, .. } | ApplyError::Domain { witness, .. } => Some(witness),
        _ => None,
    };
    match both {
        Some(both) if named != Some(both) => Err(format!(
            "expected  refused because of {both:?}\ngot       {error}"
        )),
        _ => Ok(()),
    }
}
