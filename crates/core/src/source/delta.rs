//! Delta: reading requests and writing responses.

use std::ops::Range;
use std::sync::Arc;

use hashbrown::HashSet;

use super::ask::InitialVersions;
use super::variants::After;
use super::{Conversation, Key, Selected, Told, forms};
use crate::database::{Batch, Choice, Database, Scope};
use crate::interest::DeltaStar;
use crate::kind::Absent;
use crate::message::{Delivered, DeltaResponse, Form};
use crate::name::{Ask, Name};
use crate::params::{Constraints, ParamsId};
use crate::resource::{Nonce, Resource, ResourceError};
use crate::set::Set;

/// What a request asks for, read and within the limits.
#[derive(Debug, Default)]
pub(crate) struct DeltaAsks {
    pub(crate) subscribe: Vec<(Ask, ParamsId)>,
    pub(crate) unsubscribe: Vec<(Ask, ParamsId)>,
    pub(crate) initial: InitialVersions,
    /// Whether it names anything but `*`, be it refused (S27).
    pub(crate) names: bool,
}

/// A response that is being written.
#[derive(Default)]
struct Draft {
    resources: Vec<Delivered>,
    removed: Vec<Name>,
    removed_variants: Vec<(Name, Option<Constraints>)>,
    errors: Vec<(Name, Arc<ResourceError>)>,
}

/// The part of a step that is all there is to say, if many streams may be told
/// just that.
fn plain_step(selected: &Selected) -> Option<(&Batch, Range<usize>)> {
    let [step] = &selected.steps[..] else {
        return None;
    };
    let batch = step.batch.as_deref()?;
    let plain = step.except.is_empty()
        && batch.left.is_empty()
        && selected.keys.is_empty()
        && selected.foreign.is_empty()
        && selected.refused.is_empty()
        && selected.heartbeats.is_empty();
    plain.then(|| (batch, step.part.clone()))
}

impl Conversation {
    /// Applies what a request asks for. Nothing of it depends on a nonce (S7, S8).
    pub(crate) fn handle_delta(&mut self, db: &mut Database, mut asks: DeltaAsks) {
        self.doubt_variants(&mut asks);
        let is_star = |(ask, _): &(Ask, ParamsId)| *ask == Ask::Wildcard;
        let says = DeltaStar {
            subscribes_star: asks.subscribe.iter().any(is_star),
            subscribes_names: asks.names,
            unsubscribes_star: asks.unsubscribe.iter().any(is_star),
        };
        let before = self.wildcard;
        self.wildcard = before.after_delta(says, self.kind.legacy_wildcard);
        let mut kept = Vec::new();
        for (ask, params) in &asks.unsubscribe {
            match ask {
                Ask::Name(name) if self.kind.on_demand => {
                    kept.extend(self.unask_host(db, name, *params));
                }
                Ask::Name(name) => self.unask(db, name, *params),
                Ask::Glob(glob) => self.unfollow(db, &Scope::Glob(glob.clone())),
                Ask::Wildcard => self.unfollow(db, &Scope::All),
            }
        }
        self.take_hosts(db, kept);
        let asked_again = says.subscribes_star && before.is_on();
        if self.wildcard.is_on() && (!before.is_on() || asked_again) {
            self.owes_answer = true;
            if !self.kind.on_demand {
                self.follow(db, &Scope::All, &asks.initial);
            }
        }
        for (ask, params) in &asks.subscribe {
            match ask {
                Ask::Name(name) => self.ask(db, name, *params, &asks.initial),
                Ask::Glob(glob) => {
                    self.owes_answer = true;
                    self.follow(db, &Scope::Glob(glob.clone()), &InitialVersions::new());
                }
                Ask::Wildcard => {}
            }
        }
        if self.kind.on_demand && !asks.initial.is_empty() {
            self.drop_other_hosts(&asks.initial);
            let told = asks.initial.values().filter_map(forms::negative_number);
            self.negatives = told.max().unwrap_or(0).wrapping_add(1);
        }
        self.forgive_answer();
    }

    /// Writes a response; `None` if all of it is said by silence.
    pub(crate) fn write_delta(
        &self,
        db: &mut Database,
        selected: &Selected,
        nonce: Nonce,
    ) -> Option<DeltaResponse> {
        let mut response = Draft {
            removed: selected.foreign.clone(),
            ..Draft::default()
        };
        let after = After::new(self, selected);
        if let (Some((batch, part)), None) = (plain_step(selected), &after) {
            let items = batch.items[part.clone()].iter();
            let gone = items.filter(|(_, item)| item.is_none());
            response.removed = gone.map(|(name, _)| name.clone()).collect();
            response.removed.sort();
            let resources = Set::Shared(batch.brings(&part));
            return self.finish(nonce, resources, response);
        }
        let mut given = None;
        for (key, choice) in &selected.keys {
            let told = self
                .slot(key)
                .map_or(Told::Nothing, |slot| slot.told.clone());
            let name = self.key_name(db, key);
            if choice.resource().is_none() && holds(&after, db, &name) {
                // Another variant is left: the name itself is not gone (S41).
                let held = self.may_hold(key, &told).into_iter();
                let left = held.map(|old| (old.name.clone(), old.constraints.clone()));
                response.removed_variants.extend(left);
                continue;
            }
            let replaced = self.variants_left(key, &told, choice);
            response.removed_variants.extend(replaced);
            let told = self.in_flight(key).unwrap_or(told);
            let left = self.left_behind(db, key, &told, choice, &mut given);
            response.removed.extend(left);
            let own = self.negative_name(db, key, &name, choice);
            self.write_one(&mut response, (&name, own), &told, choice);
        }
        for name in &selected.refused {
            if let Some(error) = self.refusal_as_error() {
                response.errors.push((name.clone(), error));
                continue;
            }
            let own = db.unused_name(self.type_id, name);
            self.write_one(&mut response, (name, own), &Told::Nothing, &Choice::Absent);
        }
        for step in &selected.steps {
            response.removed_variants.extend(step.left());
            for (name, item) in step.items() {
                match item {
                    Some(resource) => response.resources.push(Delivered::full(resource.clone())),
                    None if holds(&after, db, name) => {
                        let told = self.last_told(db, step.cursor, name);
                        let left = told.resource().map(|old| old.constraints.clone());
                        let left = left.map(|old| (name.clone(), old));
                        response.removed_variants.extend(left);
                    }
                    None => response.removed.push(name.clone()),
                }
            }
        }
        let heartbeat = |resource: &Arc<Resource>| Delivered {
            resource: Arc::clone(resource),
            form: Form::Heartbeat,
        };
        response
            .resources
            .extend(selected.heartbeats.iter().map(heartbeat));
        if let Some(after) = &after {
            keep_what_is_held(&mut response, db, after);
        }
        unique(&mut response);
        let resources = std::mem::take(&mut response.resources).into();
        self.finish(nonce, resources, response)
    }

    fn finish(&self, nonce: Nonce, resources: Set, rest: Draft) -> Option<DeltaResponse> {
        let empty = resources.is_empty()
            && rest.removed.is_empty()
            && rest.removed_variants.is_empty()
            && rest.errors.is_empty();
        (!empty || self.owes_answer).then(|| DeltaResponse {
            type_url: self.url.clone(),
            nonce,
            resources,
            removed: rest.removed,
            removed_variants: rest.removed_variants,
            errors: rest.errors,
        })
    }

    /// What the answer that a host does not exist is called: like the host,
    /// unless the peer may hold something that is called so.
    fn negative_name(&self, db: &mut Database, key: &Key, name: &Name, choice: &Choice) -> Name {
        if !self.kind.on_demand || choice.resource().is_some() {
            return name.clone();
        }
        match self.target(db, key).resource() {
            Some(rejected) if rejected.name == *name => name.clone(),
            _ => db.unused_name(self.type_id, name),
        }
    }

    /// Writes what is said of a name; if it has to be under another, under `own`.
    fn write_one(
        &self,
        response: &mut Draft,
        (name, own): (&Name, Name),
        told: &Told,
        choice: &Choice,
    ) {
        match choice {
            Choice::Is(resource) => {
                response.resources.push(Delivered::full(resource.clone()));
            }
            Choice::Failed(error, kept) if self.speaks_errors => {
                response.errors.push((name.clone(), error.clone()));
                let held = told.resource();
                let missing = kept.iter().filter(|kept| held != Some(*kept));
                response
                    .resources
                    .extend(missing.cloned().map(Delivered::full));
            }
            // A failure that is not about the data leaves what is held alone (S61).
            Choice::Failed(error, _) if !error.code.is_data_error() => {}
            Choice::Unknown => {}
            Choice::Absent if self.absence_as_error(told).is_some() => {
                let error = self.absence_as_error(told);
                response.errors.extend(error.map(|e| (name.clone(), e)));
            }
            Choice::Failed(..) | Choice::Absent => {
                let name = told.resource().map_or(name, |held| &held.name);
                match self.absent_form(told) {
                    Absent::Removed => response.removed.push(name.clone()),
                    Absent::EmptyBody => {
                        let empty = forms::empty_body(name);
                        response.resources.push(Delivered::full(empty));
                    }
                    Absent::Bodyless => {
                        let negative = forms::bodyless(own, name, self.negatives);
                        response.resources.push(Delivered::full(negative));
                    }
                    Absent::Unreadable => {
                        let negative = forms::unreadable(name);
                        response.resources.push(Delivered::full(negative));
                    }
                    Absent::Silence => {}
                }
            }
        }
    }
}

/// Whether something is left of a name that is asked for by locators.
fn holds(after: &Option<After<'_>>, db: &mut Database, name: &Name) -> bool {
    let held = after.as_ref().map(|after| after.holds(db, name));
    held.is_some_and(|held| !held.is_empty())
}

/// Leaves out removals of what another subscription of the peer's holds: a
/// caching proxy would drop every variant of a name that is gone.
fn keep_what_is_held(response: &mut Draft, db: &mut Database, after: &After<'_>) {
    response
        .removed
        .retain(|name| after.holds(db, name).is_empty());
    response.removed_variants.retain(|(name, old)| {
        let held = after.holds(db, name);
        !held.iter().any(|r| r.constraints == *old)
    });
}

/// That a host does not exist is said by its alias; what was called like it
/// goes all the same.
fn rename_negatives(response: &mut Draft) {
    let is_negative = |d: &Delivered| d.resource.body.is_none();
    if !response.resources.iter().any(is_negative) {
        return;
    }
    let bodies = response.resources.iter().map(|d| &d.resource);
    let bodies = bodies.filter(|resource| resource.body.is_some());
    let names = bodies.map(|resource| &resource.name);
    let taken: HashSet<Name> = response.removed.iter().chain(names).cloned().collect();
    for delivered in &mut response.resources {
        let resource = &delivered.resource;
        if resource.body.is_none() && taken.contains(&resource.name) {
            let mut name = resource.name.clone();
            while taken.contains(&name) {
                name = Name::new(&format!("{name}*"));
            }
            let resource = Resource::clone(resource);
            delivered.resource = Arc::new(Resource { name, ..resource });
        }
    }
}

/// A resource that several names brought answers to all of them: who waits for
/// one of them waits until it is named (S36).
fn answer_together(first: &mut Delivered, again: &Delivered) {
    let (into, from) = (&first.resource, &again.resource);
    if into.aliases == from.aliases || into.version != from.version {
        return;
    }
    let more = from.aliases.iter().filter(|a| !into.aliases.contains(a));
    let aliases = into.aliases.iter().chain(more).cloned().collect();
    first.resource = Arc::new(Resource {
        aliases,
        ..Resource::clone(into)
    });
}

/// No variant twice, and no name both there and gone (S41): Envoy rejects that.
fn unique(response: &mut Draft) {
    rename_negatives(response);
    let key = |d: &Delivered| (d.resource.name.clone(), d.resource.constraints.clone());
    response.resources.sort_by_cached_key(key);
    response.resources.dedup_by(|again, first| {
        let same = key(again) == key(first);
        if same {
            answer_together(first, again);
        }
        same
    });
    let present: HashSet<_> = response
        .resources
        .iter()
        .map(|d| &d.resource.name)
        .collect();
    response.removed.retain(|name| !present.contains(name));
    response.removed.sort();
    response.removed.dedup();
    response.removed_variants.sort();
    response.removed_variants.dedup();
}
