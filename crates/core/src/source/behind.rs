//! What a peer holds under another name than the one under which it is given
//! something now: a resource that answered to an alias, or to a host (S36).

use hashbrown::HashSet;

use super::{AskKey, Conversation, Key, Told};
use crate::database::{Choice, Database};
use crate::name::Name;

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
