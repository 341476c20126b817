//! What the next response says: worked out from state, when it can be sent.

use std::sync::Arc;
use std::time::Duration;

use super::step::{Step, Walk};
use super::{AskKey, Conversation, Cursor, Key, Slot, Told};
use crate::database::{Choice, Database};
use crate::limits::Limits;
use crate::moment::Moment;
use crate::name::Name;
use crate::order::Order;
use crate::resource::Resource;

/// What one response says.
#[derive(Debug, Default)]
pub(crate) struct Selected {
    /// Single names and what is said of them.
    pub(crate) keys: Vec<(Key, Choice)>,
    /// Steps along views.
    pub(crate) steps: Vec<Step>,
    /// Names only the peer knows of, which are gone.
    pub(crate) foreign: Vec<Name>,
    /// Names that are refused.
    pub(crate) refused: Vec<Name>,
    /// What is still good and must be said to be (S59).
    pub(crate) heartbeats: Vec<Arc<Resource>>,
    /// Whether this is what the peer is meant to reject, and nothing else.
    pub(crate) apart: bool,
}

/// What to do with one name.
enum Decision {
    /// Nothing to say.
    Settled,
    /// Say this.
    Say(Choice),
    /// Another type comes first: an addition not for ever, a removal for as
    /// long as it takes.
    Wait { addition: bool },
}

/// What a selection is made with.
pub(crate) struct Context<'a> {
    pub(crate) order: &'a Order<'a>,
    pub(crate) limits: &'a Limits,
    pub(crate) hold: Duration,
    pub(crate) now: Moment,
}

impl Selected {
    pub(crate) fn is_empty(&self) -> bool {
        self.keys.is_empty()
            && self.foreign.is_empty()
            && self.refused.is_empty()
            && self.heartbeats.is_empty()
            && self.steps.iter().all(Step::is_silent)
    }

    /// Whether there is more behind a part of a step.
    pub(crate) fn goes_on(&self) -> bool {
        let more = |step: &Step| !step.last && !step.part.is_empty();
        self.steps.iter().any(more)
    }
}

/// Responses in a row that a peer may reject before it is tried slowly: more
/// than it takes to find one bad resource among all that there can be.
const HOPELESS: u32 = 256;

/// How long lies between two trials then.
const TRIAL_PAUSE: Duration = Duration::from_millis(50);

impl Conversation {
    /// Works out what to say now; empty if there is nothing.
    pub(crate) fn select(&mut self, db: &mut Database, context: &Context<'_>) -> Selected {
        for (entry, params) in db.take_dirty(self.subscriber) {
            self.pending.insert(Key::Ask(AskKey { entry, params }));
        }
        let mut selected = Selected {
            heartbeats: self.due_heartbeats(db, context.now),
            ..Selected::default()
        };
        if self.is_whole() {
            self.select_trial(db, context.now, &mut selected);
            self.select_news(db, context, &mut selected);
            return selected;
        }
        if self.trial_turn {
            self.select_trial(db, context.now, &mut selected);
            self.select_apart(db, context, &mut selected);
        }
        if selected.keys.is_empty() && !selected.apart {
            self.select_news(db, context, &mut selected);
        }
        if selected.is_empty() {
            self.select_trial(db, context.now, &mut selected);
        }
        self.select_apart(db, context, &mut selected);
        selected
    }

    /// The next group of suspects, as far as they are still what was rejected.
    fn select_trial(&mut self, db: &mut Database, now: Moment, selected: &mut Selected) {
        if self.next_trial().is_some_and(|moment| now < moment) {
            return;
        }
        while let Some(group) = self.trials.pop_front() {
            for key in group {
                let Some(sent) = self.suspects.remove(&key) else {
                    continue;
                };
                self.pending.remove(&key);
                let target = self.target(db, &key);
                if Told::from(sent).same(&target) && !self.is_closed(db, &key) {
                    selected.keys.push((key, target));
                } else {
                    self.pending.insert(key);
                }
            }
            if !selected.keys.is_empty() {
                self.tried_at = now;
                return;
            }
        }
    }

    /// When the next group may be tried, if that has to wait: a peer that
    /// rejects all it is sent is not worth much of our time (S69).
    fn next_trial(&self) -> Option<Moment> {
        let hopeless = self.rejected_in_a_row > HOPELESS && !self.trials.is_empty();
        hopeless.then(|| self.tried_at + TRIAL_PAUSE)
    }

    fn select_news(&mut self, db: &mut Database, context: &Context<'_>, selected: &mut Selected) {
        let mut budget = match self.is_whole() {
            true => usize::MAX,
            false => context.limits.response_bytes,
        };
        selected
            .foreign
            .extend(std::mem::take(&mut self.placeholders));
        self.select_foreign(db, context, &mut budget, selected);
        while budget > 0
            && !self.speaks_apart()
            && let Some(name) = self.refused.pop_first()
        {
            budget = budget.saturating_sub(2 * name.as_str().len() + 16);
            selected.refused.push(name);
        }
        self.look_at_exceptions(db);
        for key in std::mem::take(&mut self.pending) {
            self.select_key(db, context, key, &mut budget, selected);
        }
        self.wait_together(selected);
        self.wait_with_variants(selected);
        for index in 0..self.cursors.len() {
            if budget > 0 {
                self.select_step(db, context, index, &mut budget, selected);
            }
        }
    }

    /// Names that only the peer knows of. They get at most half of the room, so
    /// that many of them do not keep news away: additions do not wait for
    /// removals.
    fn select_foreign(
        &mut self,
        db: &mut Database,
        context: &Context<'_>,
        budget: &mut usize,
        selected: &mut Selected,
    ) {
        let mut room = *budget / 2;
        for name in std::mem::take(&mut self.foreign) {
            match self.brought(db, &name) {
                // It exists again: then it is news, to a peer that holds
                // something of that name from before.
                Choice::Is(_) | Choice::Failed(..) => self.hold_older(&name),
                Choice::Absent if self.closed.has(&name) => {
                    self.foreign.insert(name);
                }
                // What replaces it may have its domains: they go together.
                Choice::Absent if self.kind.on_demand => selected.foreign.push(name),
                Choice::Absent
                    if room > 0 && !context.order.removal_waits(db, &self.url, &name) =>
                {
                    let size = name.as_str().len() + 8;
                    room = room.saturating_sub(size);
                    *budget = budget.saturating_sub(size);
                    selected.foreign.push(name);
                }
                Choice::Absent | Choice::Unknown => {
                    self.foreign.insert(name);
                }
            }
        }
    }

    /// Where a view has news, exceptions to it may have some of their own: what
    /// a peer was told on its own may be ahead of its position.
    fn look_at_exceptions(&mut self, db: &Database) {
        for (index, cursor) in self.cursors.iter().enumerate() {
            let Some(cursor) = cursor.as_ref().filter(|c| !c.members.is_empty()) else {
                continue;
            };
            let exceptions: Vec<Name> = match db.forgot_since(cursor.follow, cursor.reached) {
                true => cursor.members.keys().cloned().collect(),
                false => {
                    let news = db.news(cursor.follow, cursor.reached).into_iter();
                    let excepted = news.filter(|name| cursor.members.contains_key(name));
                    excepted.collect()
                }
            };
            let keys = exceptions.into_iter();
            let keys = keys.map(|name| Key::Member(index, name));
            self.pending.extend(keys);
        }
    }

    /// A name that wildcard or globs bring is held in a version that is not known.
    fn hold_older(&mut self, name: &Name) {
        let Some(index) = self.cursor_over(name) else {
            return;
        };
        if let Some(cursor) = &mut self.cursors[index] {
            let slot = cursor.members.entry(name.clone()).or_default();
            if slot.told == Told::Nothing {
                slot.told = Told::Older;
            }
            self.pending.insert(Key::Member(index, name.clone()));
        }
    }

    /// What wildcard or globs bring under a name.
    fn brought(&self, db: &mut Database, name: &Name) -> Choice {
        match self.cursor_over(name) {
            Some(cursor) => self.target(db, &Key::Member(cursor, name.clone())),
            None => Choice::Absent,
        }
    }

    /// One name: said now if there is room, else kept for later.
    pub(super) fn select_key(
        &mut self,
        db: &mut Database,
        context: &Context<'_>,
        key: Key,
        budget: &mut usize,
        selected: &mut Selected,
    ) {
        // Hosts that a peer holds change together, whatever that takes: one may
        // have got a domain that was another's, and twice it would be rejected.
        let holds = |slot: &Slot| slot.told.may_hold();
        let hosts = self.kind.on_demand && self.slot(&key).is_some_and(holds);
        let together = hosts || (self.is_located(&key) && self.goes_on(&key, selected));
        if (*budget == 0 && !together) || self.is_closed(db, &key) {
            self.pending.insert(key);
            return;
        }
        match self.decide(db, context, &key) {
            Decision::Settled => self.settle(&key),
            Decision::Wait { addition } => {
                if addition {
                    let until = context.now + context.hold;
                    self.waiting.entry(key.clone()).or_insert(until);
                }
                self.pending.insert(key);
            }
            Decision::Say(choice) if self.goes_apart(&key, &choice) != selected.apart => {
                self.pending.insert(key);
            }
            Decision::Say(choice) => {
                let size = choice.resource().map_or(0, |r| r.wire_size());
                if size > *budget && !selected.keys.is_empty() && !together {
                    *budget = 0;
                    self.pending.insert(key);
                    return;
                }
                *budget = budget.saturating_sub(size);
                match choice == Choice::Absent && self.is_due_more(&key) {
                    true => _ = self.pending.insert(key.clone()),
                    false => self.settle(&key),
                }
                selected.keys.push((key, choice));
            }
        }
    }

    /// Whether a peer that hears that what it held is gone has to hear more: for
    /// who waits for a host that is no answer.
    fn is_due_more(&self, key: &Key) -> bool {
        let waits = |slot: &Slot| slot.forced && slot.told.resource().is_some();
        self.kind.on_demand && self.slot(key).is_some_and(waits)
    }

    /// Nothing more is to be done about a key for now.
    fn settle(&mut self, key: &Key) {
        self.waiting.remove(key);
        if let Some(slot) = self.slot_mut(key) {
            slot.forced = false;
        }
    }

    fn decide(&mut self, db: &mut Database, context: &Context<'_>, key: &Key) -> Decision {
        let Some(slot) = self.slot(key).cloned() else {
            return Decision::Settled;
        };
        let target = self.target(db, key);
        if target == Choice::Unknown {
            return Decision::Settled;
        }
        if let Some(sent) = self.suspects.get(key) {
            if Told::from(sent.clone()).same(&target) {
                return Decision::Settled;
            }
            self.suspects.remove(key);
        }
        // What is under way counts: the peer will hold that, and not what it held.
        let told = self.in_flight(key).unwrap_or_else(|| slot.told.clone());
        if !slot.forced && told.same(&target) {
            return Decision::Settled;
        }
        if let Some(resource) = target.resource() {
            if self.is_parked(resource) {
                return instead_of_parked(key, &slot);
            }
            self.parked.remove(&resource.name);
        }
        let unknown_member = matches!(key, Key::Member(..)) && !told.may_hold();
        if target == Choice::Absent && unknown_member {
            return Decision::Settled;
        }
        match self.must_wait(db, context, key, &told, &target) {
            true => Decision::Wait {
                addition: target != Choice::Absent,
            },
            false => Decision::Say(target),
        }
    }

    /// Whether another type comes first (S73).
    fn must_wait(
        &self,
        db: &mut Database,
        context: &Context<'_>,
        key: &Key,
        told: &Told,
        target: &Choice,
    ) -> bool {
        match target {
            Choice::Is(resource) => {
                let overdue = self
                    .waiting
                    .get(key)
                    .is_some_and(|until| *until <= context.now);
                !overdue && context.order.addition_waits(db, &self.kind, resource)
            }
            // Nothing names a host: when it goes nothing is left to dangle.
            Choice::Absent
                if told.may_hold() && !self.kind.on_demand && !self.has_several(db, key) =>
            {
                let name = told
                    .resource()
                    .map_or_else(|| self.key_name(db, key), |r| r.name.clone());
                context.order.removal_waits(db, &self.url, &name)
            }
            Choice::Absent | Choice::Unknown | Choice::Failed(..) => false,
        }
    }

    /// What of a key is under way without an answer.
    pub(crate) fn in_flight(&self, key: &Key) -> Option<Told> {
        let sent = self
            .outstanding
            .iter()
            .rev()
            .find_map(|response| response.sent(key));
        sent.cloned().map(Told::from)
    }

    /// Whether the peer may be spoken to: one response at a time (S6, S77),
    /// unless it is silent for long.
    pub(crate) fn may_speak(&self, now: Moment, patience: Duration) -> bool {
        self.outstanding
            .back()
            .is_none_or(|last| last.sent_at + patience <= now)
    }

    /// Whether there is nothing to say until something happens or a deadline
    /// passes: the peer was told everything.
    pub(crate) fn is_quiet(&self, db: &Database) -> bool {
        let told = |cursor: &Cursor| {
            db.head(cursor.follow) == cursor.reached && cursor.walks.iter().all(Walk::is_sent)
        };
        !self.owes_answer
            && self.pending.is_empty()
            && self.trials.is_empty()
            && self.foreign.is_empty()
            && self.placeholders.is_empty()
            && self.refused.is_empty()
            && self.cursors.iter().flatten().all(told)
            && db.dirty(self.subscriber).next().is_none()
    }

    /// The moments at which something may have to be said although nothing happens.
    pub(crate) fn deadlines(&self, patience: Duration) -> impl Iterator<Item = Moment> + '_ {
        let waiting = self.waiting.values().copied();
        let silent = self.outstanding.back().map(|last| last.sent_at + patience);
        let trial = self.next_trial();
        waiting
            .chain(silent)
            .chain(self.refresh.next())
            .chain(trial)
    }
}

/// A rejected body is not sent again: a peer that asks gets what it accepted
/// before, or hears that there is nothing (S12).
fn instead_of_parked(key: &Key, slot: &Slot) -> Decision {
    let asks = slot.forced || (slot.told == Told::Nothing && matches!(key, Key::Ask(_)));
    match slot.told.resource() {
        Some(accepted) if asks => Decision::Say(Choice::Is(Arc::clone(accepted))),
        None if asks => Decision::Say(Choice::Absent),
        _ => Decision::Settled,
    }
}
