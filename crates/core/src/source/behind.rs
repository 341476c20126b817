//! What a peer holds under another name than the one under which it is given
//! something now: a resource that answered to an alias, or to a host (S36); and
//! what it holds though it asks for it no longer.

use hashbrown::HashSet;

use super::{AskKey, Conversation, Dialect, Key, Told};
use crate::database::{Choice, Database};
use crate::name::Name;
use crate::params::ParamsId;

/// The names of all that a peer is given, found when one response first needs it.
pub(super) type Given = Option<HashSet<Name>>;

impl Conversation {
    /// What goes now that a name brings something else; not what another name
    /// brings still.
    pub(super) fn left_behind(
        &self,
        db: &mut Database,
        key: &Key,
        told: &Told,
        choice: &Choice,
        given: &mut Given,
    ) -> Option<Name> {
        if *told == Told::Older {
            let held = self.held_elsewhere(key, choice)?;
            let given = given.get_or_insert_with(|| self.all_given(db));
            return (!given.contains(&held)).then_some(held);
        }
        let old = told.resource()?;
        choice.resource().filter(|new| new.name != old.name)?;
        let kept = match old.facts().domains.have_wildcards() || !old.aliases.is_empty() {
            // Hosts that it does not name may lead to it.
            true => {
                let given = given.get_or_insert_with(|| self.all_given(db));
                given.contains(&old.name)
            }
            false => {
                let mut names = old.other_names().chain([old.name.clone()]);
                names.any(|name| self.is_given(db, key, &name, &old.name))
            }
        };
        (!kept).then(|| old.name.clone())
    }

    /// Whether another name that the peer asks by brings a resource.
    fn is_given(&self, db: &mut Database, but: &Key, asked: &Name, resource: &Name) -> bool {
        let Some(entry) = db.find(self.type_id, asked) else {
            return false;
        };
        let params = self.params;
        let other = Key::Ask(AskKey { entry, params });
        if other == *but || self.slot(&other).is_none() {
            return false;
        }
        let target = self.target(db, &other);
        target.resource().is_some_and(|r| r.name == *resource)
    }

    /// The peer asks for a host no longer. Returns what it may go on holding.
    pub(super) fn unask_host(
        &mut self,
        db: &mut Database,
        name: &Name,
        params: ParamsId,
    ) -> Vec<Name> {
        let entry = db.find(self.type_id, name);
        let key = entry.map(|entry| Key::Ask(AskKey { entry, params }));
        let slot = key.as_ref().and_then(|key| Some((key, self.slot(key)?)));
        let Some((key, slot)) = slot else {
            return Vec::new();
        };
        // Envoy ends what it asked for when it finds its hosts another way, and
        // a request that waits goes on waiting (S76).
        let waits = slot.forced || matches!(slot.told, Told::Nothing | Told::Doubt);
        if waits && self.dialect == Dialect::Envoy {
            return Vec::new();
        }
        let mut kept: Vec<Name> = self.held_by(key).into_iter().collect();
        if !self.wildcard.is_on() {
            kept.clear();
        }
        self.unask(db, name, params);
        kept
    }

    /// The names of what a peer may hold by one that it asks by.
    fn held_by(&self, key: &Key) -> HashSet<Name> {
        let told = self.slot(key).and_then(|slot| slot.told.resource());
        let sent = self.outstanding.iter().filter_map(|r| r.sent(key));
        let sent = sent.filter_map(Choice::resource);
        let held = told.into_iter().chain(sent).map(|r| r.name.clone());
        let older = match key {
            Key::Ask(ask) => self.held_as.get(ask).cloned(),
            Key::Member(..) => None,
        };
        held.chain(older).collect()
    }

    /// Who asks for the whole goes on holding what it no longer asks for by
    /// name. The whole has no hosts, so it hears that they are gone (S23),
    /// unless another name brings them.
    pub(super) fn take_hosts(&mut self, db: &mut Database, kept: Vec<Name>) {
        if !kept.is_empty() {
            let given = self.all_given(db);
            let gone = kept.into_iter().filter(|name| !given.contains(name));
            self.foreign.extend(gone);
        }
    }

    fn all_given(&self, db: &mut Database) -> HashSet<Name> {
        let targets = self.asks.keys().map(|ask| self.target(db, &Key::Ask(*ask)));
        let given = targets.filter_map(|target| Some(target.resource()?.name.clone()));
        given.collect()
    }

    /// The name under which the peer holds something older that is not the one
    /// under which it is given something now.
    fn held_elsewhere(&self, key: &Key, choice: &Choice) -> Option<Name> {
        let Key::Ask(ask) = key else { return None };
        let held = self.held_as.get(ask)?;
        let given = choice.resource().map(|resource| &resource.name);
        (given != Some(held)).then(|| held.clone())
    }
}
