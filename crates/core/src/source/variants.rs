//! Several variants of one name on one stream (TP2), as a caching proxy asks for
//! them: by locators, beside each other, plain names and wildcards.
//!
//! What one subscription gives up another may hold. So a name is only said to
//! be gone when nothing of it is left, and a variant when no subscription has it
//! any more; and what replaces one variant by several goes together.

use std::collections::BTreeMap;
use std::sync::Arc;

use hashbrown::HashMap;

use super::{AskKey, Conversation, DeltaAsks, Key, Selected, Slot, Told};
use crate::database::{Choice, Database, EntryId, left_by};
use crate::name::{Ask, Name};
use crate::params::{Constraints, ParamsId};
use crate::resource::{Resource, Version};

/// The names that a stream asks for with other parameters than its own. Most
/// streams have none.
pub(crate) type Located = BTreeMap<EntryId, Vec<ParamsId>>;

impl Conversation {
    /// A subscription begins.
    pub(super) fn note_ask(&mut self, key: AskKey) {
        if key.params != self.params {
            self.located.entry(key.entry).or_default().push(key.params);
        }
    }

    /// A subscription ends.
    pub(super) fn note_unask(&mut self, key: AskKey) {
        if let Some(all) = self.located.get_mut(&key.entry) {
            all.retain(|params| *params != key.params);
            if all.is_empty() {
                self.located.remove(&key.entry);
            }
        }
    }

    /// A client names one version for each name that it holds. Where it asks for
    /// several variants of the name that tells nothing: all of them are sent.
    pub(super) fn doubt_variants(&self, asks: &mut DeltaAsks) {
        if asks.initial.is_empty() {
            return;
        }
        let is_name = |ask: &Ask| matches!(ask, Ask::Name(_));
        let whole = asks.subscribe.iter().any(|(ask, _)| !is_name(ask));
        let mut first: HashMap<&Name, ParamsId> = HashMap::new();
        for (ask, params) in &asks.subscribe {
            let Ask::Name(name) = ask else { continue };
            let before = *first.entry(name).or_insert(*params);
            // What asks for all may bring another variant of the name.
            let beside = whole && *params != self.params;
            if (before != *params || beside)
                && let Some(version) = asks.initial.get_mut(name)
            {
                *version = Version::new("");
            }
        }
    }

    /// Whether a key is one of a name that is asked for by locators.
    pub(super) fn is_located(&self, key: &Key) -> bool {
        matches!(key, Key::Ask(ask) if self.located.contains_key(&ask.entry))
    }

    /// Whether a name is asked for in several ways. Who does that is a cache: it
    /// keeps order for its own clients, and a variant that stayed for the sake of
    /// order would stand in the way of those that replace it.
    pub(super) fn has_several(&self, db: &Database, key: &Key) -> bool {
        let entry = match key {
            Key::Ask(ask) => Some(ask.entry),
            Key::Member(_, name) => db.find(self.type_id, name),
        };
        let Some(entry) = entry.filter(|entry| self.located.contains_key(entry)) else {
            return false;
        };
        let whole = self.cursor_over(db.name(self.type_id, entry)).is_some();
        whole || self.asks_of(entry).nth(1).is_some()
    }

    /// Whether the key before this one in a response is of the same name, so
    /// that what replaces one variant by several is not torn apart.
    pub(super) fn goes_on(&self, key: &Key, selected: &Selected) -> bool {
        match (key, selected.keys.last()) {
            (Key::Ask(ask), Some((Key::Ask(last), _))) => ask.entry == last.entry,
            _ => false,
        }
    }

    /// Takes back what replaces a variant of which another subscription of the
    /// same name is not rid yet, since what comes in its place has to wait (S73).
    pub(super) fn wait_with_variants(&mut self, selected: &mut Selected) {
        if self.located.is_empty() || self.waiting.is_empty() {
            return;
        }
        let entry = |key: &Key| match key {
            Key::Ask(ask) => Some(ask.entry),
            Key::Member(..) => None,
        };
        let waiting: Vec<EntryId> = self.waiting.keys().filter_map(entry).collect();
        let replaces = |(key, choice): &mut (Key, Choice)| {
            let waits = entry(key).is_some_and(|entry| waiting.contains(&entry));
            let told = self.slot(key).and_then(|slot| slot.told.resource());
            let same = |old: &Arc<Resource>| {
                choice.resource().map(|new| &new.constraints) == Some(&old.constraints)
            };
            waits && told.is_some_and(|old| !same(old))
        };
        let back: Vec<_> = selected.keys.extract_if(.., replaces).collect();
        self.pending.extend(back.into_iter().map(|(key, _)| key));
    }

    /// Suspects, those of one name that is asked for by locators together: one
    /// may have taken the place of another.
    pub(super) fn units_of_names(&self, suspects: &BTreeMap<Key, Choice>) -> Vec<Vec<Key>> {
        let mut units: Vec<Vec<Key>> = Vec::new();
        for key in suspects.keys() {
            let entry = |key: &Key| match key {
                Key::Ask(ask) => Some(ask.entry),
                Key::Member(..) => None,
            };
            match units.last_mut() {
                Some(unit) if self.is_located(key) && entry(&unit[0]) == entry(key) => {
                    unit.push(key.clone());
                }
                _ => units.push(vec![key.clone()]),
            }
        }
        units
    }

    /// What the peer was last told under a name that a cursor brings, be it
    /// without an answer yet.
    pub(super) fn last_told(&self, db: &mut Database, index: usize, name: &Name) -> Told {
        let key = Key::Member(index, name.clone());
        for response in self.outstanding.iter().rev() {
            if let Some(choice) = response.sent(&key) {
                return choice.clone().into();
            }
            let mut steps = response.steps.iter();
            if let Some(item) = steps.find_map(|step| step.brings(index, name)) {
                return item.clone().map_or(Told::Absent, Told::Is);
            }
        }
        self.member_told(db, index, name)
    }

    /// What the peer holds of a name that it begins to ask for, because another
    /// subscription brought it: the wildcard, or a locator that the same variant
    /// is for.
    pub(super) fn told_beside(&self, db: &mut Database, key: AskKey, name: &Name) -> Told {
        let whole = match self.cursor_over(name) {
            Some(cursor) => self.last_told(db, cursor, name),
            None => Told::Nothing,
        };
        if key.params == self.params && whole != Told::Nothing {
            return whole;
        }
        let asks = self.asks_of(key.entry).map(|(ask, slot)| {
            let sent = self.in_flight(&Key::Ask(ask));
            sent.unwrap_or_else(|| slot.told.clone())
        });
        let params = db.params(key.params);
        let is_for = |told: &Told| {
            let held = told.resource();
            held.is_some_and(|held| held.constraints.as_ref().is_none_or(|c| c.matches(params)))
        };
        if let Some(told) = asks.chain([whole]).find(is_for) {
            return told;
        }
        // It may have been given up and be under way: it is held all the same.
        let under_way = self.outstanding.iter().rev();
        let given_up = under_way.flat_map(|response| &response.given_up);
        let own = given_up.filter(|resource| resource.name == *name);
        let mut own = own.map(|resource| Told::Is(Arc::clone(resource)));
        own.find(is_for).unwrap_or_default()
    }

    /// A name is given up: what is under way for it may be held all the same, if
    /// it is asked for again before the answer.
    pub(super) fn note_given_up(&mut self, key: AskKey) {
        let key = Key::Ask(key);
        for response in &mut self.outstanding {
            let sent = response.sent(&key).and_then(Choice::resource).cloned();
            response.given_up.extend(sent);
        }
    }

    /// What the peer may hold under a key: what it accepted, or what is under way.
    pub(super) fn may_hold(&self, key: &Key, told: &Told) -> Vec<Arc<Resource>> {
        let mut held: Vec<_> = told.resource().into_iter().cloned().collect();
        for response in &self.outstanding {
            let sent = response.sent(key).and_then(Choice::resource);
            held.extend(sent.cloned());
            if let Key::Member(index, name) = key {
                let steps = response.steps.iter();
                let items = steps.filter_map(|step| step.brings(*index, name));
                held.extend(items.flatten().cloned());
            }
        }
        held
    }

    /// The variants that give way to what is said of a key.
    pub(super) fn variants_left(
        &self,
        key: &Key,
        told: &Told,
        choice: &Choice,
    ) -> Vec<(Name, Option<Constraints>)> {
        let new = match choice {
            Choice::Is(new) => Some(new),
            Choice::Failed(error, _) if self.speaks_errors || !error.code.is_data_error() => {
                return Vec::new();
            }
            Choice::Unknown => return Vec::new(),
            Choice::Absent | Choice::Failed(..) => None,
        };
        let held = self.may_hold(key, told).into_iter();
        let left = held.filter_map(|old| {
            let constraints = left_by(&old, new.map(AsRef::as_ref))?;
            Some((old.name.clone(), constraints))
        });
        left.collect()
    }

    /// All subscriptions to a name by itself.
    pub(super) fn asks_of(&self, entry: EntryId) -> impl Iterator<Item = (AskKey, &Slot)> {
        let own = self.params;
        let located = self.located.get(&entry).into_iter().flatten().copied();
        let all = [own].into_iter().chain(located.filter(move |p| *p != own));
        let keys = all.map(move |params| AskKey { entry, params });
        keys.filter_map(|key| Some((key, self.asks.get(&key)?)))
    }
}

/// What the peer holds once it has accepted a response.
pub(super) struct After<'a> {
    conversation: &'a Conversation,
    selected: &'a Selected,
    said: BTreeMap<&'a Key, &'a Choice>,
}

impl<'a> After<'a> {
    /// `None` where there is nothing to it: no name is asked for by locators.
    pub(super) fn new(conversation: &'a Conversation, selected: &'a Selected) -> Option<Self> {
        let said = || selected.keys.iter().map(|(key, choice)| (key, choice));
        (!conversation.located.is_empty()).then(|| Self {
            conversation,
            selected,
            said: said().collect(),
        })
    }

    /// The variants of a name that is asked for by locators; of others nothing.
    pub(super) fn holds(&self, db: &mut Database, name: &Name) -> Vec<Arc<Resource>> {
        let own = self.conversation;
        let entry = db.find(own.type_id, name);
        let Some(entry) = entry.filter(|entry| own.located.contains_key(entry)) else {
            return Vec::new();
        };
        let asks = own.asks_of(entry);
        let mut held: Vec<_> = asks
            .filter_map(|(ask, slot)| self.of_ask(ask, slot))
            .collect();
        if !own.has_ask(db, name, own.params) {
            held.extend(self.of_cursor(db, name));
        }
        held
    }

    fn of_ask(&self, ask: AskKey, slot: &Slot) -> Option<Arc<Resource>> {
        let key = Key::Ask(ask);
        if let Some(choice) = self.said.get(&key) {
            return choice.resource().cloned();
        }
        let told = self.conversation.in_flight(&key);
        told.as_ref().unwrap_or(&slot.told).resource().cloned()
    }

    /// What a wildcard or glob brings of it.
    fn of_cursor(&self, db: &mut Database, name: &Name) -> Option<Arc<Resource>> {
        let own = self.conversation;
        let index = own.cursor_over(name)?;
        let key = Key::Member(index, name.clone());
        if let Some(choice) = self.said.get(&key) {
            return choice.resource().cloned();
        }
        let mut steps = self.selected.steps.iter();
        if let Some(item) = steps.find_map(|step| step.brings(index, name)) {
            return item.clone();
        }
        own.last_told(db, index, name).resource().cloned()
    }
}
