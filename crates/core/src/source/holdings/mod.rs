//! What a peer holds: the only owner of that belief.
//!
//! It is known by name and variant, whatever subscription brought it (S84), and
//! outlives subscriptions. A peer that follows a view costs a position in it;
//! what differs from the view, and what is asked for by name, is recorded one
//! by one.
//!
//! ```text
//!   now    = views at their positions, but for exceptions; records
//!   after  = now, changed by each response that has no answer yet
//!   may    = now, and all that those responses bring
//!
//!   send ─▶ flights ─┬─ ACK ──▶ records, positions
//!                    └─ NACK ─▶ records of what may have been taken all the same
//! ```
//!
//! ACK and NACK are the only ways in which the belief changes, beside what a
//! client says of itself when it comes back, and what it drops with its
//! subscriptions.

mod check;
mod flight;
mod held;
mod records;
mod step;
mod view;

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use hashbrown::{DefaultHashBuilder, HashTable};

pub(crate) use flight::{Answer, Flight, Say, change_by_item, merge, names as error_names};
pub(crate) use held::{Held, State, Variant, same_variant, variant};
pub(crate) use step::{Step, Walk, join};
pub(crate) use view::View;

use crate::database::{CursorId, Database, Position, Scope, TypeId};
use crate::name::Name;
use crate::resource::{Nonce, Resource};

/// Responses without an answer that are kept apart: by then the peer has been
/// silent for more than a minute.
const FLIGHTS: usize = 16;

/// What they may say all together.
const SAYS: usize = 4096;

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Holdings {
    type_id: TypeId,
    /// By name. A variant has at most one record of each state, but a few of what
    /// was rejected, which differ in their versions.
    records: HashTable<Held>,
    hasher: DefaultHashBuilder,
    /// Names that a view covers and of which the records tell the truth.
    exceptions: BTreeSet<Name>,
    views: Vec<View>,
    /// Responses without an answer: one, or more if the peer is silent for long.
    flights: VecDeque<Flight>,
    /// The sum of the fingerprints of what was accepted and is recorded.
    sum: u128,
    /// How many records have no known body.
    unknown: usize,
}

impl Holdings {
    pub(crate) fn new(type_id: TypeId) -> Self {
        Self {
            type_id,
            records: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
            exceptions: BTreeSet::new(),
            views: Vec::new(),
            flights: VecDeque::new(),
            sum: 0,
            unknown: 0,
        }
    }

    // Questions.

    /// What it holds of a name, or may hold, as far as it answered.
    pub(crate) fn now(&self, db: &mut Database, name: &Name) -> Vec<Held> {
        match self.rules(name) {
            Some(view) => {
                let rule = view.rule(db, self.type_id, name);
                rule.iter().map(Held::accepted).collect()
            }
            None => self.recorded(name).cloned().collect(),
        }
    }

    /// What it will hold of a name once it has accepted all that was sent.
    pub(crate) fn after(&self, db: &mut Database, name: &Name) -> Vec<Held> {
        let mut held = self.now(db, name);
        let follow = self.covering(name).map(|view| view.follow);
        for flight in &self.flights {
            flight.change(follow, name, &mut held);
        }
        held
    }

    /// What it will hold of a name once it has accepted a draft, too.
    pub(crate) fn after_draft(
        &self,
        db: &mut Database,
        name: &Name,
        (steps, says): (&[Step], &[Say]),
    ) -> Vec<Held> {
        let mut held = self.after(db, name);
        let follow = self.covering(name).map(|view| view.follow);
        flight::change(steps, says, follow, name, &mut held);
        held
    }

    /// Everything of a name that it may hold and of which the body is known.
    pub(crate) fn may(&self, db: &mut Database, name: &Name) -> Vec<Arc<Resource>> {
        let now = self.now(db, name).into_iter();
        let now = now.filter(|held| !held.is_unknown());
        let mut may: Vec<_> = now.map(|held| held.resource).collect();
        for flight in &self.flights {
            for say in flight.says_of(name) {
                may.extend(say.brought.iter().chain(&say.to).cloned());
            }
            let items = flight.steps.iter().filter_map(|step| step.item(name));
            may.extend(items.flatten().cloned());
        }
        may
    }

    /// Whether a step without an answer takes the place of another variant of a
    /// name than this: the peer still holds that if it rejects the step.
    pub(crate) fn may_keep_other(&self, name: &Name, but: Option<&Arc<Resource>>) -> bool {
        let steps = self.flights.iter().flat_map(|flight| &flight.steps);
        let mut left = steps.filter_map(|step| match step.item(name)? {
            Some(_) => step.left_of(name),
            None => Some(step.left_of(name).unwrap_or(&None)),
        });
        left.any(|old| but.is_none_or(|new| new.constraints != *old))
    }

    /// Whether no step without an answer takes a variant away.
    pub(crate) fn steps_are_plain(&self) -> bool {
        let mut steps = self.flights.iter().flat_map(|flight| &flight.steps);
        steps.all(|step| {
            let batch = step.batch.as_ref();
            let stay = batch.is_none_or(|batch| batch.replaced_variants.is_empty());
            stay && step.items().all(|(_, item)| item.is_some())
        })
    }

    /// Whether it holds something of which nothing is known but its name.
    pub(crate) fn holds_unknown(&self) -> bool {
        self.unknown > 0
    }

    /// The sum of the fingerprints of all records that were accepted.
    pub(crate) fn sum(&self) -> u128 {
        self.sum
    }

    /// All records.
    pub(crate) fn records(&self) -> impl Iterator<Item = &Held> {
        self.records.iter()
    }

    /// The names whose records tell the truth although a view covers them.
    pub(crate) fn exceptions(&self) -> &BTreeSet<Name> {
        &self.exceptions
    }

    pub(crate) fn views(&self) -> &[View] {
        &self.views
    }

    /// How far the views are, all together: it grows with each change.
    pub(crate) fn reach(&self, db: &Database) -> Position {
        self.views.iter().map(|view| db.head(view.follow)).sum()
    }

    pub(crate) fn view(&self, follow: CursorId) -> Option<&View> {
        self.views.iter().find(|view| view.follow == follow)
    }

    pub(crate) fn view_mut(&mut self, follow: CursorId) -> Option<&mut View> {
        self.views.iter_mut().find(|view| view.follow == follow)
    }

    pub(crate) fn view_of(&self, scope: &Scope) -> Option<&View> {
        self.views.iter().find(|view| view.scope == *scope)
    }

    /// The first view that covers a name; others leave it to that one (S26).
    pub(crate) fn covering(&self, name: &Name) -> Option<&View> {
        self.views.iter().find(|view| view.covers(name))
    }

    /// The view that tells what is held of a name, if one does.
    fn rules(&self, name: &Name) -> Option<&View> {
        let view = self.covering(name)?;
        (!self.exceptions.contains(name)).then_some(view)
    }

    pub(crate) fn flights(&self) -> &VecDeque<Flight> {
        &self.flights
    }

    /// Whether a nonce names a response without an answer.
    pub(crate) fn flight(&self, nonce: &Nonce) -> Option<&Flight> {
        self.flights.iter().find(|flight| flight.nonce == *nonce)
    }

    /// Whether a response without an answer, or one that became part of it, has
    /// this nonce.
    pub(crate) fn awaits(&self, nonce: &Nonce) -> bool {
        let mut flights = self.flights.iter();
        flights.any(|flight| flight.nonce == *nonce || flight.absorbed.contains(nonce))
    }

    /// Takes what a response says out of it, if an earlier one with this nonce
    /// became part of it: it is not known what was in which.
    pub(super) fn take_absorbed(&mut self, nonce: &Nonce) -> Option<(Vec<Say>, Vec<Answer>)> {
        let mut flights = self.flights.iter_mut();
        let flight = flights.find(|flight| flight.absorbed.contains(nonce))?;
        flight.absorbed.clear();
        let says = std::mem::take(&mut flight.says);
        Some((says, std::mem::take(&mut flight.answers)))
    }

    // Views.

    pub(super) fn add_view(&mut self, view: View) {
        self.views.push(view);
    }

    /// Ends following a view. What was sent along it and has no answer is the
    /// peer's all the same if it asks for it again before it answers. Returns
    /// the exceptions that no view covers now.
    pub(super) fn drop_view(&mut self, db: &mut Database, follow: CursorId) -> BTreeSet<Name> {
        db.close_cursor(follow);
        self.views.retain(|view| view.follow != follow);
        for flight in &mut self.flights {
            let own = flight.steps.iter_mut();
            own.filter(|step| step.follow == Some(follow))
                .for_each(|step| step.follow = None);
        }
        let exceptions = std::mem::take(&mut self.exceptions);
        let (covered, bare) = exceptions
            .into_iter()
            .partition(|name| self.covering(name).is_some());
        self.exceptions = covered;
        bare
    }

    /// The peer answered a step, or never has to.
    pub(super) fn move_view(&mut self, db: &mut Database, step: &Step) {
        let Some(view) = step.follow.and_then(|follow| self.view_mut(follow)) else {
            return;
        };
        if step.last {
            view.position = step.to;
            view.walks.retain(|walk| walk.batch.to > step.to);
            db.unpin(view.follow, step.from);
        } else if let Some(walk) = view.walks.front_mut() {
            walk.answered = step.part.end;
        }
    }

    // Responses without an answer.

    /// A response goes out. Each is remembered by itself, for an answer tells of
    /// those before it what it does not tell of those after it. Where a peer is
    /// silent for very long, the oldest ones become one.
    pub(super) fn send(&mut self, db: &mut Database, flight: Flight) {
        self.flights.push_back(flight);
        while self.flights.len() > 2 && self.remembers_much() {
            self.merge_oldest(db);
        }
    }

    /// Whether responses without an answer are more than are kept apart.
    fn remembers_much(&self) -> bool {
        let says: usize = self.flights.iter().map(|flight| flight.says.len()).sum();
        self.flights.len() > FLIGHTS || says > SAYS
    }

    fn merge_oldest(&mut self, db: &mut Database) {
        let (Some(first), Some(second)) = (self.flights.pop_front(), self.flights.front_mut())
        else {
            return;
        };
        for (follow, between) in merge(second, first) {
            db.unpin(follow, between);
        }
        let merged: Vec<Name> = self.flights[0]
            .says
            .iter()
            .map(|say| say.name().clone())
            .collect();
        for name in merged {
            self.except(db, &name);
        }
    }

    /// State of the world: what a rejected response brought is in those after it,
    /// until one says otherwise. A `whole` set lists every name, others all of the
    /// names that they speak of.
    pub(super) fn say_in_later_flights(&mut self, says: &[Say], whole: bool) {
        for say in says {
            for flight in &mut self.flights {
                if !whole && flight.says_of(say.name()).is_empty() {
                    continue;
                }
                let mut steps = flight.steps.iter();
                let place = flight
                    .says
                    .binary_search_by(|s| s.variant.cmp(&say.variant));
                match place {
                    Err(place) if !steps.any(|step| step.item(say.name()).is_some()) => {
                        flight.says.insert(place, say.clone());
                    }
                    _ => break,
                }
            }
        }
    }

    pub(super) fn take_flight(&mut self) -> Option<Flight> {
        self.flights.pop_front()
    }

    /// Makes steps that bring nothing to say.
    pub(crate) fn step_silently(&mut self, db: &mut Database, steps: Vec<Step>) {
        for step in steps {
            let Some(last) = self.flights.back_mut() else {
                self.move_view(db, &step);
                continue;
            };
            let follow = step.follow;
            let between = join(&mut last.steps, step);
            if let (Some(follow), Some(between)) = (follow, between) {
                db.unpin(follow, between);
            }
        }
    }

    /// A want ended: an answer to it is nobody's.
    pub(super) fn forget_answers(&mut self, want: super::AskKey) {
        for flight in &mut self.flights {
            flight.answers.retain(|answer| answer.want != want);
        }
    }
}
