//! Subscribing and unsubscribing: how a request changes what is to be said.

use std::sync::Arc;

use hashbrown::{HashMap, HashSet};

use super::forms;
use super::{AskKey, Conversation, Key, Slot, Told};
use crate::database::{Batch, Choice, Database, Scope};
use crate::hosts::HostName;
use crate::kind::Absent;
use crate::name::Name;
use crate::params::ParamsId;
use crate::resource::{Resource, Version};

/// What a reconnecting client says it holds (S45, S46).
pub(crate) type InitialVersions = HashMap<Name, Version>;

impl Conversation {
    /// The peer asks for a name. If it did before, it gets it again (S28).
    pub(crate) fn ask(
        &mut self,
        db: &mut Database,
        name: &Name,
        params: ParamsId,
        initial: &InitialVersions,
    ) {
        let entry = db.subscribe(self.subscriber, name, params);
        let key = AskKey { entry, params };
        if let Some(slot) = self.asks.get_mut(&key) {
            slot.forced = true;
            self.pending.insert(Key::Ask(key));
            return;
        }
        let resumes = self.kind.on_demand || initial.contains_key(name);
        let told = match resumes {
            true => self.told_by_client(db, key, name, initial),
            false => self.told_beside(db, key, name),
        };
        // What something else brought before is sent again (S28).
        let forced = !resumes && told.resource().is_some();
        self.told_sum = self.told_sum.wrapping_add(fingerprint(&told));
        let settled = told.same(&self.target(db, &Key::Ask(key)));
        let strange = self.kind.on_demand && !db.expects_host(self.type_id, name);
        self.strangers += usize::from(strange);
        let slot = Slot {
            strange,
            forced,
            ..Slot::of(told)
        };
        self.asks.insert(key, slot);
        self.note_ask(key);
        if !settled || forced {
            self.pending.insert(Key::Ask(key));
        }
    }

    /// A client that holds hosts from before hears which of them it should not:
    /// those that nothing it asks for leads to any more (S45).
    pub(crate) fn drop_other_hosts(&mut self, initial: &InitialVersions) {
        let told = self.asks.values().filter_map(|slot| slot.told.resource());
        let right: HashSet<&Name> = told.map(|r| &r.name).chain(self.held_as.values()).collect();
        let wrong = initial.iter().filter(|(name, version)| {
            let is_held = !name.as_str().is_empty() && !forms::is_negative(version);
            is_held && !right.contains(*name)
        });
        self.foreign.extend(wrong.map(|(name, _)| name.clone()));
    }

    /// Whether the peer asks for this name by itself.
    pub(crate) fn has_ask(&self, db: &Database, name: &Name, params: ParamsId) -> bool {
        let entry = db.find(self.type_id, name);
        entry.is_some_and(|entry| self.asks.contains_key(&AskKey { entry, params }))
    }

    /// Whether the peer asks for this host, and it counts as one of which there
    /// may be any number.
    pub(crate) fn has_stranger(&self, db: &Database, name: &Name, params: ParamsId) -> bool {
        let entry = db.find(self.type_id, name);
        let slot = entry.and_then(|entry| self.asks.get(&AskKey { entry, params }));
        slot.is_some_and(|slot| slot.strange)
    }

    /// What a client that names versions holds: our own, if versions agree
    /// (S46), else something else. A host may be held under another name than
    /// it is asked for by.
    fn told_by_client(
        &mut self,
        db: &mut Database,
        key: AskKey,
        name: &Name,
        initial: &InitialVersions,
    ) -> Told {
        let target = self.target(db, &Key::Ask(key));
        let given = target.resource().map_or(name, |resource| &resource.name);
        // What has this name and is not given here is given elsewhere.
        let is_own = given == name || db.unused_name(self.type_id, name) == *name;
        for held in [Some(given), Some(name).filter(|_| is_own)] {
            let Some((held, version)) = held.and_then(|name| initial.get_key_value(name)) else {
                continue;
            };
            return match &target {
                Choice::Is(current)
                    if current.name == *held
                        && current.version == *version
                        && serves(current, name) =>
                {
                    Told::Is(Arc::clone(current))
                }
                Choice::Absent if self.is_negative(name, version) => Told::Absent,
                _ if self.is_negative(name, version) => Told::Nothing,
                _ => {
                    if self.kind.on_demand {
                        self.held_as.insert(key, held.clone());
                    }
                    Told::Older
                }
            };
        }
        Told::Nothing
    }

    /// Whether a version is that of how the peer was told that a name does not
    /// exist, on an earlier stream.
    fn is_negative(&self, name: &Name, version: &Version) -> bool {
        match forms::absent(&self.kind, self.dialect, self.mode, false) {
            Absent::EmptyBody => forms::empty_body(name).version == *version,
            Absent::Bodyless => forms::is_negative(version),
            Absent::Removed | Absent::Unreadable | Absent::Silence => false,
        }
    }

    /// The peer asks for a name no longer. Unknown names are ignored (S32).
    pub(crate) fn unask(&mut self, db: &mut Database, name: &Name, params: ParamsId) {
        let Some(entry) = db.find(self.type_id, name) else {
            return;
        };
        let key = AskKey { entry, params };
        let Some(slot) = self.asks.remove(&key) else {
            return;
        };
        self.told_sum = self.told_sum.wrapping_sub(fingerprint(&slot.told));
        self.strangers -= usize::from(slot.strange);
        self.held_as.remove(&key);
        self.note_unask(key);
        let told = self.in_flight(&Key::Ask(key)).unwrap_or(slot.told);
        self.note_given_up(key);
        self.forget(&Key::Ask(key));
        if let Some(cursor) = self.cursor_over(name)
            && !self.is_apart(db, cursor, name, params, &told)
        {
            self.return_to_cursor(db, cursor, name, told);
        }
        db.unsubscribe(self.subscriber, entry, params);
    }

    /// Whether what was asked for with other parameters has nothing to do with
    /// what the whole brings under the name: it is another variant (TP2).
    fn is_apart(
        &self,
        db: &mut Database,
        cursor: usize,
        name: &Name,
        params: ParamsId,
        told: &Told,
    ) -> bool {
        let brought = self.target(db, &Key::Member(cursor, name.clone()));
        let other = |new: &Arc<Resource>| told.resource().is_none_or(|t| !same_variant(t, new));
        params != self.params && brought.resource().is_some_and(other)
    }

    /// A name that was asked for is now only a part of the whole: the peer
    /// must hear which of the two it is from now on (S23).
    fn return_to_cursor(&mut self, db: &mut Database, cursor: usize, name: &Name, told: Told) {
        let key = Key::Member(cursor, name.clone());
        let holds = self.mode == super::Mode::Delta && told.resource().is_some();
        if self.target(db, &key) == Choice::Absent && !holds {
            self.foreign.insert(name.clone());
        } else if self.mode == super::Mode::Delta {
            if let Some(Some(cursor)) = self.cursors.get_mut(cursor) {
                let slot = Slot {
                    forced: true,
                    ..Slot::of(told)
                };
                cursor.members.insert(name.clone(), slot);
            }
            self.pending.insert(key);
        }
    }

    /// The peer asks for all that a scope shows. If it did before, it gets all
    /// of it again (S28).
    pub(crate) fn follow(&mut self, db: &mut Database, scope: &Scope, initial: &InitialVersions) {
        if let Scope::Glob(glob) = scope {
            // Members of a glob are not among the initial versions (S75).
            self.foreign.extend(db.tombstones(self.type_id, glob));
        }
        if let Some(index) = self.cursor_of(scope) {
            self.say_all_again(db, index, true);
            return;
        }
        let index = self.add_cursor(db, scope.clone());
        let under_way = self
            .outstanding
            .iter()
            .flat_map(|response| &response.orphans);
        let mine = under_way.filter(|name| self.cursor_over(name) == Some(index));
        self.foreign.extend(mine.cloned().collect::<Vec<_>>());
        if !initial.is_empty() {
            self.resume(db, index, initial);
        }
        self.say_all_again(db, index, false);
    }

    /// Takes up where a reconnecting client says it stands: only what differs
    /// from that is news (S45, S46).
    fn resume(&mut self, db: &mut Database, index: usize, initial: &InitialVersions) {
        let Some(follow) = self.cursors[index].as_ref().map(|c| c.follow) else {
            return;
        };
        // What all who come back at once share.
        let listed = db.batch(follow, 0);
        let mut differing = Vec::new();
        let mut still_listed = 0;
        for (name, resource) in &listed.items {
            let Some(resource) = resource else { continue };
            let held = initial.get(name);
            still_listed += usize::from(held.is_some());
            match held {
                Some(version) if *version == resource.version => {}
                Some(_) => differing.push((name.clone(), Told::Older)),
                None => differing.push((name.clone(), Told::Nothing)),
            }
        }
        if still_listed < initial.len() {
            self.drop_strays(db, index, initial, &listed);
        }
        let head = db.head(follow);
        db.hold(follow, head);
        db.release(follow, 0);
        if let Some(cursor) = &mut self.cursors[index] {
            (cursor.position, cursor.reached) = (head, head);
            for (name, told) in differing {
                self.pending.insert(Key::Member(index, name.clone()));
                cursor.members.insert(name, Slot::of(told));
            }
        }
    }

    /// What the client holds and the scope does not show is to be removed.
    fn drop_strays(
        &mut self,
        db: &Database,
        index: usize,
        initial: &InitialVersions,
        listed: &Batch,
    ) {
        for name in initial.keys().filter(|name| listed.find(name).is_none()) {
            let asked = self.has_ask(db, name, self.params);
            if !asked && !name.as_str().is_empty() && self.cursor_over(name) == Some(index) {
                self.foreign.insert(name.clone());
            }
        }
    }

    /// Takes the whole set as held: the client names its version (S50).
    pub(crate) fn resume_whole(&mut self, db: &mut Database, index: usize) {
        if let Some(cursor) = &mut self.cursors[index] {
            let head = db.head(cursor.follow);
            db.hold(cursor.follow, head);
            db.release(cursor.follow, cursor.position);
            (cursor.position, cursor.reached) = (head, head);
        }
    }

    /// The peer asks for a scope no longer. What another scope still brings is
    /// said again.
    pub(crate) fn unfollow(&mut self, db: &mut Database, scope: &Scope) {
        let Some(index) = self.cursor_of(scope) else {
            return;
        };
        self.drop_cursor(db, index);
        let others: Vec<_> = self
            .cursors
            .iter()
            .flatten()
            .map(|c| c.scope.clone())
            .collect();
        for other in others {
            self.follow(db, &other, &InitialVersions::new());
        }
    }

    /// Says all that a scope shows again, its own and what other cursors bring
    /// (S30). What the peer holds beyond that is not forgotten: it is still to
    /// be removed.
    fn say_all_again(&mut self, db: &mut Database, index: usize, own: bool) {
        let Some(follow) = self.cursors[index].as_ref().map(|c| c.follow) else {
            return;
        };
        let alone = self.cursors.iter().flatten().count() == 1;
        if alone && !own {
            return;
        }
        for resource in db.list(follow) {
            let name = &resource.name;
            if self.has_ask(db, name, self.params) {
                self.say_again(db, name);
            } else if let Some(owner) = self.cursor_over(name)
                && (own || owner != index)
                && let Some(slot) = self.member_slot(db, owner, name)
            {
                slot.forced = true;
                self.pending.insert(Key::Member(owner, name.clone()));
            }
        }
    }

    /// Says a name again even if nothing changed, if the peer asks for it (S53).
    pub(crate) fn say_again(&mut self, db: &Database, name: &Name) {
        let Some(entry) = db.find(self.type_id, name) else {
            return;
        };
        let key = AskKey {
            entry,
            params: self.params,
        };
        if let Some(slot) = self.asks.get_mut(&key) {
            slot.forced = true;
            self.pending.insert(Key::Ask(key));
        }
    }
}

/// Whether who holds a virtual host has no more to ask about a host. One that
/// is only called like the host leaves a request for it waiting.
fn serves(held: &Resource, asked: &Name) -> bool {
    let domains = &held.facts().domains;
    let host = HostName::split(asked.as_str()).map_or("", |name| name.host);
    let serves = |host| domains.iter().any(|domain| domain.matches(host));
    domains.is_empty() || serves(host) || (held.other_names().any(|name| name == *asked))
}

/// Whether one takes the place of the other.
fn same_variant(a: &Resource, b: &Resource) -> bool {
    a.name == b.name && a.constraints == b.constraints
}

/// What a name adds to the sum of what is held.
pub(crate) fn fingerprint(told: &Told) -> u128 {
    told.resource().map_or(0, |r| r.fingerprint())
}
