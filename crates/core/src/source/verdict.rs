//! What a peer answered: accepted, rejected, or nothing for long.
//!
//! A NACK says nothing about which resource of a response is bad, nor about
//! which took effect. So the resources are sent again in halves until one fails
//! alone, and only that one is parked (S12).

use std::collections::BTreeMap;
use std::sync::Arc;

use super::ask::fingerprint;
use super::step::{Step, join};
use super::{Conversation, Cursor, Dialect, Key, Told};
use crate::database::{Choice, Database, Seq};
use crate::kind::Absent;
use crate::message::ErrorDetail;
use crate::moment::Moment;
use crate::name::Name;
use crate::resource::{Nonce, Resource, Version};

/// A response that has no answer yet.
#[derive(Debug)]
pub(crate) struct Outstanding {
    pub(crate) nonce: Nonce,
    /// State of the world only: the version that an ACK repeats.
    pub(crate) version: Option<Version>,
    pub(crate) sent_at: Moment,
    /// Sorted by key.
    pub(crate) keys: Vec<(Key, Choice)>,
    pub(crate) steps: Vec<Step>,
    /// Names it brought under a wildcard or glob that was dropped since. If
    /// that is asked for again before the answer, the peer may hold them.
    pub(crate) orphans: Vec<Name>,
    /// What it brought for names that were given up since, likewise.
    pub(crate) given_up: Vec<Arc<Resource>>,
    /// Whether it is meant to be rejected.
    pub(crate) apart: bool,
}

impl Outstanding {
    /// Whether it takes something away.
    pub(crate) fn removes(&self, key: &Key) -> bool {
        let stepped = match key {
            Key::Ask(_) => false,
            Key::Member(cursor, name) => self.steps.iter().any(|step| {
                let gone = step.batch.as_ref().map(|batch| &batch.gone);
                step.cursor == *cursor && gone.is_some_and(|gone| gone.binary_search(name).is_ok())
            }),
        };
        stepped || self.sent(key) == Some(&Choice::Absent)
    }

    /// The cursor is dropped: what is under way for it belongs to nobody.
    pub(crate) fn orphan(&mut self, cursor: usize) {
        let is_its = |key: &Key| matches!(key, Key::Member(other, _) if *other == cursor);
        for (key, _) in self.keys.extract_if(.., |(key, _)| is_its(key)) {
            if let Key::Member(_, name) = key {
                self.orphans.push(name);
            }
        }
        for step in self.steps.extract_if(.., |step| step.cursor == cursor) {
            self.orphans
                .extend(step.items().map(|(name, _)| name.clone()));
        }
    }

    /// What it said of a single name.
    pub(crate) fn sent(&self, key: &Key) -> Option<&Choice> {
        let place = self
            .keys
            .binary_search_by(|(other, _)| other.cmp(key))
            .ok()?;
        Some(&self.keys[place].1)
    }
}

/// What the peer held, and what it holds now.
pub(crate) type Replaced = (Arc<Resource>, Choice);

/// One resource that failed alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Parked {
    pub(crate) name: Name,
    pub(crate) version: Version,
}

impl Conversation {
    /// Whether a nonce names a response without an answer.
    pub(crate) fn awaits(&self, nonce: &Nonce) -> bool {
        self.outstanding
            .iter()
            .any(|response| response.nonce == *nonce)
    }

    /// The peer accepted the response, and with it all before it. Returns what
    /// it replaced, for types whose old contents stay in use for a while (S73).
    pub(crate) fn accept(&mut self, db: &mut Database, nonce: &Nonce) -> Vec<Replaced> {
        let mut replaced = Vec::new();
        while let Some(response) = self.outstanding.pop_front() {
            let done = response.nonce == *nonce;
            // gRPC asks for the clusters of a route after it accepted it, and
            // uses the old ones until it has the new (S73).
            if self.kind.drains || self.dialect == Dialect::Standard {
                self.note_replaced(db, &response, &mut replaced);
            }
            for (key, choice) in response.keys {
                self.set_told(&key, |_| choice.into());
            }
            for step in response.steps {
                self.learn_step(&step);
                self.move_cursor(db, &step);
            }
            if done {
                break;
            }
        }
        self.rejected_in_a_row = 0;
        self.trial_turn = !self.trial_turn;
        self.try_rejected_again(db);
        self.tidy_members(db);
        replaced
    }

    fn note_replaced(
        &self,
        db: &mut Database,
        response: &Outstanding,
        replaced: &mut Vec<Replaced>,
    ) {
        for (key, choice) in &response.keys {
            let told = self
                .slot(key)
                .map_or(Told::Nothing, |slot| slot.told.clone());
            replaced.extend(told.resource().map(|old| (Arc::clone(old), choice.clone())));
        }
        for step in &response.steps {
            let cursor = self.cursors.get(step.cursor).and_then(Option::as_ref);
            let plain = |c: &Cursor| c.members.is_empty() && c.position == step.from;
            if cursor.is_some_and(plain) {
                // What the step replaces is what everybody held who made it.
                replaced.extend(step.replaces());
                continue;
            }
            for (name, item) in step.items() {
                if let Some(old) = self.member_told(db, step.cursor, name).resource() {
                    let new = item.clone().map_or(Choice::Absent, Choice::Is);
                    replaced.push((Arc::clone(old), new));
                }
            }
        }
    }

    /// Takes what is said by silence as said.
    pub(crate) fn say_silently(&mut self, db: &mut Database, keys: Vec<(Key, Choice)>) {
        for (key, choice) in keys {
            self.set_told(&key, |_| choice.into());
        }
        self.tidy_members(db);
    }

    /// The peer rejected the response. Returns what failed alone.
    pub(crate) fn reject(
        &mut self,
        db: &mut Database,
        nonce: &Nonce,
        error: &ErrorDetail,
    ) -> Vec<Parked> {
        let Some(place) = self.outstanding.iter().position(|r| r.nonce == *nonce) else {
            return Vec::new();
        };
        // What was sent before and is not answered is as good as accepted: the
        // peer works in order, and would have said otherwise.
        if let Some(before) = place.checked_sub(1) {
            let nonce = self.outstanding[before].nonce.clone();
            self.accept(db, &nonce);
        }
        let Some(response) = self.outstanding.pop_front() else {
            return Vec::new();
        };
        let suspects = self.suspects_of(db, response);
        self.rejected_in_a_row = self.rejected_in_a_row.saturating_add(1);
        self.trial_turn = !self.trial_turn;
        let parked = self.try_again(db, suspects, error);
        self.tidy_members(db);
        parked
    }

    /// Everything that a rejected response said, with what the peer holds in
    /// its place noted.
    fn suspects_of(&mut self, db: &mut Database, response: Outstanding) -> BTreeMap<Key, Choice> {
        let mut suspects = BTreeMap::new();
        for (key, _) in &response.keys {
            if let Key::Member(cursor, name) = key {
                self.member_slot(db, *cursor, name);
            }
        }
        for step in response.steps {
            for (name, item) in step.items() {
                let key = Key::Member(step.cursor, name.clone());
                self.member_slot(db, step.cursor, name);
                suspects.insert(key, item.clone().map_or(Choice::Absent, Choice::Is));
            }
            self.move_cursor(db, &step);
        }
        suspects.extend(response.keys);
        self.spare_absent(&mut suspects);
        for (key, sent) in &suspects {
            match sent {
                Choice::Absent => self.set_told(key, |_| Told::Doubt),
                _ => self.set_told(key, Told::after_rejection),
            }
        }
        suspects
    }

    /// Sends suspects again in groups; one that failed alone is parked.
    fn try_again(
        &mut self,
        db: &mut Database,
        mut suspects: BTreeMap<Key, Choice>,
        error: &ErrorDetail,
    ) -> Vec<Parked> {
        let alone = suspects.len() == 1;
        // What has changed since is news, not a suspect.
        suspects.retain(|key, sent| {
            let current = Told::from(sent.clone()).same(&self.target(db, key));
            if !current {
                self.pending.insert(key.clone());
                self.repeat_negative(key, sent);
            }
            current
        });
        if alone {
            return suspects
                .into_iter()
                .filter_map(|(key, sent)| self.park(key, sent))
                .collect();
        }
        let groups = self.groups(db, &suspects, error);
        for group in groups.into_iter().rev() {
            self.trials.push_front(group);
        }
        self.suspects.extend(suspects);
        Vec::new()
    }

    /// Halves; or, if the peer's text names some but not all, those and the
    /// rest. The text decides in which order things are tried, never what is
    /// blamed (S64).
    fn groups(
        &self,
        db: &Database,
        suspects: &BTreeMap<Key, Choice>,
        error: &ErrorDetail,
    ) -> Vec<Vec<Key>> {
        let mut units = self.units(suspects);
        if units.len() == 1 {
            units = suspects.keys().map(|key| vec![key.clone()]).collect();
        }
        let is_named = |key: &Key| error.message.contains(self.key_name(db, key).as_str());
        let (named, rest): (Vec<_>, Vec<_>) = units
            .iter()
            .cloned()
            .partition(|unit| unit.iter().any(is_named));
        if !named.is_empty() && !rest.is_empty() {
            return vec![rest.concat(), named.concat()];
        }
        let right = units.split_off(units.len() / 2);
        [units.concat(), right.concat()]
            .into_iter()
            .filter(|half| !half.is_empty())
            .collect()
    }

    /// A resource failed alone: it is not sent again unchanged. A virtual host
    /// that a request waits for is answered in the negative.
    fn park(&mut self, key: Key, sent: Choice) -> Option<Parked> {
        let Choice::Is(resource) = sent else {
            // A removal or an empty answer that is rejected has nothing to park.
            self.set_told(&key, |_| Told::Absent);
            return None;
        };
        if self.is_stand_in(&resource) {
            // It rejects this as well: there is nothing to give.
            self.stand_ins.remove(&resource.name);
            return None;
        }
        self.parked
            .insert(resource.name.clone(), resource.version.clone());
        if self.is_waited_for(&key) {
            self.force(&key);
            self.pending.insert(key);
        }
        Some(Parked {
            name: resource.name.clone(),
            version: resource.version.clone(),
        })
    }

    /// Whether a request may wait for what the peer does not hold.
    fn is_waited_for(&self, key: &Key) -> bool {
        let held = self
            .slot(key)
            .is_none_or(|slot| slot.told.resource().is_some());
        self.kind.envoy_absent == Absent::Bodyless && !held
    }

    fn force(&mut self, key: &Key) {
        if let Some(slot) = self.slot_mut(key) {
            slot.forced = true;
        }
    }

    /// That there is nothing, in the place of what was rejected, went unheard
    /// with all that was beside it.
    fn repeat_negative(&mut self, key: &Key, sent: &Choice) {
        if *sent == Choice::Absent && self.is_waited_for(key) {
            self.force(key);
        }
    }

    /// Exceptions that were made while a step was under way learn what it brought.
    fn learn_step(&mut self, step: &Step) {
        let Some(Some(cursor)) = self.cursors.get_mut(step.cursor) else {
            return;
        };
        if cursor.members.is_empty() {
            return;
        }
        for (name, item) in step.items() {
            if let Some(slot) = cursor.members.get_mut(name) {
                slot.told = item.clone().map_or(Told::Absent, Told::Is);
            }
        }
    }

    fn move_cursor(&mut self, db: &mut Database, step: &Step) {
        let Some(Some(cursor)) = self.cursors.get_mut(step.cursor) else {
            return;
        };
        if step.last {
            cursor.position = step.to;
            cursor.walks.retain(|walk| walk.batch.to > step.to);
            db.release(cursor.follow, step.from);
        } else if let Some(walk) = cursor.walks.front_mut() {
            walk.answered = step.part.end;
        }
    }

    pub(super) fn set_told(&mut self, key: &Key, change: impl FnOnce(Told) -> Told) {
        let Some(slot) = self.slot_mut(key) else {
            return;
        };
        let before = fingerprint(&slot.told);
        slot.told = change(std::mem::take(&mut slot.told));
        let after = fingerprint(&slot.told);
        let is_older = slot.told == Told::Older;
        if let Key::Ask(ask) = key {
            if !is_older {
                self.held_as.remove(ask);
            }
            self.told_sum = self.told_sum.wrapping_sub(before).wrapping_add(after);
        }
    }

    /// Takes note of a response that goes out. At most two are remembered: if
    /// the peer is silent for longer, the older ones become one.
    pub(crate) fn sent(&mut self, db: &mut Database, mut response: Outstanding) {
        response.keys.sort_by(|a, b| a.0.cmp(&b.0));
        for (key, _) in &response.keys {
            if let Key::Member(index, name) = key {
                self.member_slot(db, *index, name);
            }
        }
        self.last_nonce = Some(response.nonce.clone());
        self.negatives = self.negatives.wrapping_add(1);
        self.outstanding.push_back(response);
        if self.outstanding.len() > 2
            && let Some(first) = self.outstanding.pop_front()
            && let Some(second) = self.outstanding.front_mut()
        {
            for (cursor, between) in merge(second, first) {
                if let Some(Some(cursor)) = self.cursors.get(cursor) {
                    db.release(cursor.follow, between);
                }
            }
        }
    }

    /// Makes steps that bring nothing to say.
    pub(crate) fn step_silently(&mut self, db: &mut Database, steps: Vec<Step>) {
        for step in steps {
            let Some(last) = self.outstanding.back_mut() else {
                self.move_cursor(db, &step);
                continue;
            };
            let cursor = step.cursor;
            if let Some(between) = join(&mut last.steps, step)
                && let Some(Some(cursor)) = self.cursors.get(cursor)
            {
                db.release(cursor.follow, between);
            }
        }
    }

    /// Says a name again: the peer may have lost it, or not (S76).
    pub(crate) fn say_anew(&mut self, key: &Key) {
        if let Some(slot) = self.slot_mut(key) {
            slot.forced = true;
            self.pending.insert(key.clone());
        }
    }
}

/// Puts an earlier response before a later one that its peer has not answered
/// either. What both say of a name, the later says. Returns the positions to
/// which nobody will come back.
fn merge(later: &mut Outstanding, earlier: Outstanding) -> Vec<(usize, Seq)> {
    let mut keys: BTreeMap<Key, Choice> = earlier.keys.into_iter().collect();
    let mut between = Vec::new();
    let mut steps: Vec<Step> = Vec::new();
    let all = earlier
        .steps
        .into_iter()
        .chain(std::mem::take(&mut later.steps));
    for mut step in all {
        for (name, item) in step.items() {
            let key = Key::Member(step.cursor, name.clone());
            keys.insert(key, item.clone().map_or(Choice::Absent, Choice::Is));
        }
        step.batch = None;
        let cursor = step.cursor;
        between.extend(join(&mut steps, step).map(|position| (cursor, position)));
    }
    later.orphans.extend(earlier.orphans);
    later.given_up.extend(earlier.given_up);
    keys.extend(std::mem::take(&mut later.keys));
    later.keys = keys.into_iter().collect();
    later.steps = steps;
    between
}
