//! State of the world: reading requests and writing responses.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use hashbrown::{HashMap, HashSet};

use super::ask::{InitialVersions, fingerprint};
use super::step::Step;
use super::variants::After;
use super::{Conversation, Key, Selected, Told, forms};
use crate::database::{Choice, Database, FollowId, Scope};
use crate::kind::Absent;
use crate::message::{Delivered, SotwResponse};
use crate::name::{Ask, Name};
use crate::params::ParamsId;
use crate::resource::{Nonce, Resource, ResourceError, Version};
use crate::set::Set;

impl Conversation {
    /// Applies the list of all that the peer asks for (S10). `names` is whether
    /// it names anything but `*`, be it refused (S27); `first` is the version
    /// that the first request of a stream names.
    pub(crate) fn handle_sotw(
        &mut self,
        db: &mut Database,
        asks: &[(Ask, ParamsId)],
        names: bool,
        first: Option<&Version>,
    ) {
        let before = self.wildcard;
        let lists_star = asks.iter().any(|(ask, _)| *ask == Ask::Wildcard);
        self.wildcard = before.after_sotw(lists_star, names, self.kind.legacy_wildcard);
        self.drop_unlisted(db, asks);
        let mut scopes = BTreeMap::new();
        if self.wildcard.is_on() && !self.kind.on_demand {
            scopes.insert(Scope::All, ());
        }
        for (ask, params) in asks {
            match ask {
                Ask::Wildcard => {}
                Ask::Glob(glob) => {
                    scopes.insert(Scope::Glob(glob.clone()), ());
                }
                Ask::Name(name) => self.ask_once(db, name, *params),
            }
        }
        for scope in scopes.into_keys() {
            if self.cursor_of(&scope).is_none() {
                self.owes_answer = true;
                self.follow(db, &scope, &InitialVersions::new());
            }
        }
        self.foreign.clear();
        self.forgive_answer();
        if let Some(version) = first {
            self.skip_known_set(db, version);
        }
    }

    /// A client repeats its list with every answer: what was refused and said
    /// once is not said again, or it would answer for ever (S9, S72).
    /// `due` is whether it was not said yet. Returns whether it is another list.
    pub(crate) fn refuses_anew(&mut self, due: bool) -> bool {
        let mut hasher = std::hash::DefaultHasher::new();
        self.refused.hash(&mut hasher);
        let sum = hasher.finish();
        let anew = std::mem::replace(&mut self.refused_sum, sum) != sum;
        if !anew && !due {
            self.refused.clear();
        }
        anew
    }

    /// Ends what the list no longer has.
    fn drop_unlisted(&mut self, db: &mut Database, asks: &[(Ask, ParamsId)]) {
        let listed: HashSet<(&Name, ParamsId)> = asks
            .iter()
            .filter_map(|(ask, params)| match ask {
                Ask::Name(name) => Some((name, *params)),
                _ => None,
            })
            .collect();
        let gone: Vec<_> = self
            .asks
            .keys()
            .map(|key| (db.name(self.type_id, key.entry).clone(), key.params))
            .filter(|(name, params)| !listed.contains(&(name, *params)))
            .collect();
        for (name, params) in gone {
            self.unask(db, &name, params);
        }
        let scopes: Vec<_> = self
            .cursors
            .iter()
            .flatten()
            .map(|c| c.scope.clone())
            .collect();
        for scope in scopes {
            let keep = match &scope {
                Scope::All => self.wildcard.is_on(),
                Scope::Glob(glob) => asks.iter().any(|(a, _)| *a == Ask::Glob(glob.clone())),
            };
            if !keep {
                self.unfollow(db, &scope);
            }
        }
    }

    /// A name on the list; if it is new there, it is sent whatever was sent
    /// before (S30), and the whole with it where the type is whole (S38).
    fn ask_once(&mut self, db: &mut Database, name: &Name, params: ParamsId) {
        if !self.has_ask(db, name, params) {
            self.ask(db, name, params, &InitialVersions::new());
        }
    }

    /// A reconnecting client that names the version of the very set it would
    /// get is not sent it again; only sure if it asks for all and nothing else (S50).
    fn skip_known_set(&mut self, db: &mut Database, version: &Version) {
        let only = self.cursors.iter().flatten().count() == 1 && self.asks.is_empty();
        let Some(index) = self.cursor_of(&Scope::All).filter(|_| only) else {
            return;
        };
        let follow = self.cursors[index].as_ref().map(|c| c.follow);
        if follow.is_some_and(|follow| Version::of_hash(db.sum(follow)) == *version) {
            self.resume_whole(db, index);
            self.owes_answer = false;
        }
    }

    /// Writes a response; `None` if all of it is said by silence.
    pub(crate) fn write_sotw(
        &self,
        db: &mut Database,
        selected: &Selected,
        nonce: Nonce,
        wrap: bool,
    ) -> Option<SotwResponse> {
        let due = self.kind.whole_set && (self.owes_answer || !selected.is_empty());
        if let Some(follow) = self.plain_view(selected).filter(|_| due) {
            return Some(SotwResponse {
                type_url: self.url.clone(),
                version: Version::of_hash(db.sum(follow)),
                nonce,
                resources: Set::Shared(db.whole(follow, wrap)),
                errors: Vec::new(),
            });
        }
        let listed = match self.kind.whole_set {
            true => self.whole_set(db, selected),
            false => self.changed_part(db, selected),
        };
        let errors = self.sotw_errors(db, selected);
        let said = !listed.is_empty() || !errors.is_empty();
        if !said && !due && !self.owes_answer {
            return None;
        }
        let sum = self.sum_after(db, selected, &listed);
        let deliver =
            |resource: Arc<Resource>| Delivered::for_sotw(resource, wrap, self.kind.ttl_in_sotw);
        Some(SotwResponse {
            type_url: self.url.clone(),
            version: Version::of_hash(sum),
            nonce,
            resources: listed.into_values().map(deliver).collect::<Vec<_>>().into(),
            errors,
        })
    }

    /// What is told of names that cannot be had (TP3).
    fn sotw_errors(&self, db: &Database, selected: &Selected) -> Vec<(Name, Arc<ResourceError>)> {
        let of_keys = selected.keys.iter().filter_map(|(key, choice)| {
            let error = match choice {
                Choice::Failed(error, _) if self.speaks_errors => error.clone(),
                Choice::Absent => self.gone_as_error(key)?,
                _ => return None,
            };
            Some((self.key_name(db, key), error))
        });
        let refused = selected.refused.iter();
        let refused = refused.filter_map(|name| Some((name.clone(), self.refusal_as_error()?)));
        of_keys.chain(refused).collect()
    }

    /// The view whose members are all that the peer shall hold, if nothing is
    /// to be said beside them: every such peer gets the same set.
    fn plain_view(&self, selected: &Selected) -> Option<FollowId> {
        let mut cursors = self.cursors.iter().flatten();
        let (cursor, more) = (cursors.next()?, cursors.next());
        let plain = self.kind.whole_set
            && more.is_none()
            && cursor.members.is_empty()
            && self.asks.is_empty()
            && selected.keys.is_empty();
        plain.then_some(cursor.follow)
    }

    /// The whole set as the peer shall hold it: what this response brings, and
    /// in place of what it may not have yet, what it was told before (S12, S38).
    fn whole_set(&self, db: &mut Database, selected: &Selected) -> BTreeMap<Listed, Arc<Resource>> {
        let mut set = BTreeMap::new();
        for (index, cursor) in self.cursors.iter().enumerate() {
            let Some(cursor) = cursor else { continue };
            for resource in db.list(cursor.follow) {
                if self.cursor_over(&resource.name) == Some(index) {
                    set.insert(listed(&resource), resource);
                }
            }
            for name in cursor.members.keys() {
                remove_name(&mut set, name);
                if let Some(held) = self.last_told(db, index, name).resource() {
                    set.insert(listed(held), Arc::clone(held));
                }
            }
        }
        let said: HashMap<&Key, &Choice> = selected.keys.iter().map(|(k, c)| (k, c)).collect();
        for (key, choice) in &selected.keys {
            if let Key::Member(_, name) = key {
                remove_name(&mut set, name);
                set.extend(choice.resource().map(|new| (listed(new), Arc::clone(new))));
            }
        }
        // What is asked for by name stands for what the whole has of it; what is
        // asked for with other parameters stands beside that (TP2).
        let (plain, located): (Vec<_>, Vec<_>) = self
            .asks
            .iter()
            .partition(|(ask, _)| ask.params == self.params);
        for (ask, slot) in plain.into_iter().chain(located) {
            if ask.params == self.params && !self.cursors.is_empty() {
                remove_name(&mut set, db.name(self.type_id, ask.entry));
            }
            let key = Key::Ask(*ask);
            let sent = self.in_flight(&key);
            let held = match said.get(&key) {
                Some(choice) => choice.resource(),
                None => sent.as_ref().unwrap_or(&slot.told).resource(),
            };
            set.extend(held.map(|held| (listed(held), Arc::clone(held))));
        }
        set
    }

    /// What changed, for types where absence means nothing (S39).
    fn changed_part(
        &self,
        db: &mut Database,
        selected: &Selected,
    ) -> BTreeMap<Listed, Arc<Resource>> {
        let mut part = BTreeMap::new();
        let after = After::new(self, selected);
        let mut add = |resource: Arc<Resource>| part.insert(listed(&resource), resource);
        for (key, choice) in &selected.keys {
            if let Some(after) = after.as_ref().filter(|_| self.is_located(key)) {
                // A name has the variants that are listed, all of them (TP2).
                let held = after.holds(db, &self.key_name(db, key));
                if !held.is_empty() {
                    held.into_iter().for_each(|held| _ = add(held));
                    continue;
                }
            }
            let told = self
                .slot(key)
                .map_or(Told::Nothing, |slot| slot.told.clone());
            match choice {
                Choice::Is(resource) => {
                    add(Arc::clone(resource));
                }
                Choice::Unknown => {}
                Choice::Failed(_, Some(kept)) if told.resource() != Some(kept) => {
                    add(Arc::clone(kept));
                }
                // The error says it, or a failure leaves what is held alone (S61).
                Choice::Failed(error, _) if self.speaks_errors || !error.code.is_data_error() => {}
                Choice::Absent if self.gone_as_error(key).is_some() => {}
                Choice::Failed(..) | Choice::Absent => {
                    self.negative(&told, &self.key_name(db, key)).map(&mut add);
                }
            }
        }
        let refused = selected.refused.iter();
        for name in refused.filter(|_| self.refusal_as_error().is_none()) {
            self.negative(&Told::Nothing, name).map(&mut add);
        }
        let stepped = selected.steps.iter().flat_map(Step::items);
        for resource in stepped.filter_map(|(_, item)| item.as_ref()) {
            add(Arc::clone(resource));
        }
        part
    }

    /// How a name that does not exist is spoken of, if it is.
    fn negative(&self, told: &Told, name: &Name) -> Option<Arc<Resource>> {
        match self.absent_form(told) {
            Absent::EmptyBody => Some(forms::empty_body(name)),
            Absent::Unreadable => Some(forms::unreadable(name)),
            // What is not among the resources, this protocol cannot say.
            Absent::Removed | Absent::Bodyless | Absent::Silence => None,
        }
    }

    /// The sum of what the peer holds once it has accepted the response. For a
    /// whole set that is the set itself; else what was held, with the changes.
    fn sum_after(
        &self,
        db: &Database,
        selected: &Selected,
        listed: &BTreeMap<Listed, Arc<Resource>>,
    ) -> u128 {
        if self.kind.whole_set {
            return listed
                .values()
                .fold(0, |sum, r| sum.wrapping_add(r.fingerprint()));
        }
        let views = self.cursors.iter().flatten().map(|c| db.sum(c.follow));
        let start = views.fold(self.told_sum, u128::wrapping_add);
        selected.keys.iter().fold(start, |sum, (key, choice)| {
            let before = self.slot(key).map_or(0, |slot| fingerprint(&slot.told));
            let after = choice.resource().map_or(0, |r| r.fingerprint());
            match key {
                Key::Ask(_) => sum.wrapping_sub(before).wrapping_add(after),
                Key::Member(..) => sum,
            }
        })
    }
}

/// A view lists at most one variant of a name.
fn remove_name(set: &mut BTreeMap<Listed, Arc<Resource>>, name: &Name) {
    let first = set.range((name.clone(), None)..).next();
    if let Some((key, _)) = first
        && key.0 == *name
    {
        let key = key.clone();
        set.remove(&key);
    }
}

/// A variant's place in a response (S41).
type Listed = (Name, Option<crate::params::Constraints>);

fn listed(resource: &Resource) -> Listed {
    (resource.name.clone(), resource.constraints.clone())
}
