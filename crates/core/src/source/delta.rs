//! Delta: reading requests and writing responses.

use std::ops::Range;
use std::sync::Arc;

use hashbrown::{HashMap, HashSet};

use super::client_cache::{Answer, Update, Variant, variant_of};
use super::request::{RequestChanges, SubscriptionChange};
use super::{AnswerKind, Push, TypeStream, negative};
use crate::database::{Database, Scope, ViewChanges};
use crate::interest::DeltaWildcard;
use crate::kind::NegativeForm;
use crate::message::{DeltaResponse, Form, InitialVersions, WireResource};
use crate::name::{Name, Selector};
use crate::params::{Constraints, ParamsId};
use crate::resource::{Nonce, Resource, ResourceError, Version};
use crate::resource_list::ResourceList;

/// What a request asks for, read and within the limits.
#[derive(Debug, Default)]
pub(crate) struct DeltaSubscriptions {
    pub(crate) subscribe: Vec<(Selector, ParamsId)>,
    pub(crate) unsubscribe: Vec<(Selector, ParamsId)>,
    pub(crate) initial: InitialVersions,
    /// Whether it names anything but `*`, be it refused (S27).
    pub(crate) names: bool,
}

/// A response that is being written.
#[derive(Default)]
struct Draft {
    resources: Vec<WireResource>,
    removed: Vec<Name>,
    removed_variants: Vec<(Name, Option<Constraints>)>,
    errors: Vec<(Name, Arc<ResourceError>)>,
}

/// The part of a step that is all there is to say, if many streams may be told
/// just that.
fn shared_advance(push: &Push) -> Option<(&ViewChanges, Range<usize>)> {
    let [advance] = &push.advances[..] else {
        return None;
    };
    let changes = advance.changes.as_deref()?;
    let plain = advance.excluded.is_empty()
        && changes.replaced_variants.is_empty()
        && push.updates.is_empty()
        && push.answers.is_empty()
        && push.placeholders.is_empty()
        && push.refused.is_empty()
        && push.heartbeats.is_empty();
    plain.then(|| (changes, advance.range.clone()))
}

impl TypeStream {
    /// What a request changes. Nothing of it depends on a nonce (S7, S8).
    pub(crate) fn read_delta(&mut self, mut selectors: DeltaSubscriptions) -> RequestChanges {
        self.ignore_ambiguous_versions(&mut selectors);
        let is_star = |(selector, _): &(Selector, ParamsId)| *selector == Selector::Wildcard;
        let updates = DeltaWildcard {
            subscribes_star: selectors.subscribe.iter().any(is_star),
            subscribes_names: selectors.names,
            unsubscribes_star: selectors.unsubscribe.iter().any(is_star),
        };
        let before = self.wildcard;
        self.wildcard = before.after_delta(updates, self.kind.legacy_wildcard);
        let mut reading = RequestChanges {
            initial: selectors.initial,
            ..RequestChanges::default()
        };
        let acts = &mut reading.changes;
        for (selector, params) in selectors.unsubscribe {
            acts.push_back(match selector {
                Selector::Name(name) => SubscriptionChange::Unsubscribe(name, params),
                Selector::Glob(glob) => SubscriptionChange::UnsubscribeScope(Scope::Glob(glob)),
                Selector::Wildcard => SubscriptionChange::UnsubscribeScope(Scope::All),
            });
        }
        let asked_again = updates.subscribes_star && before.is_on();
        if self.wildcard.is_on() && (!before.is_on() || asked_again) {
            self.owes_response = true;
            if !self.kind.on_demand {
                acts.push_back(SubscriptionChange::SubscribeScope(Scope::All));
            }
        }
        for (selector, params) in selectors.subscribe {
            match selector {
                Selector::Name(name) => acts.push_back(SubscriptionChange::Subscribe(name, params)),
                Selector::Glob(glob) => {
                    self.owes_response = true;
                    acts.push_back(SubscriptionChange::SubscribeScope(Scope::Glob(glob)));
                }
                Selector::Wildcard => {}
            }
        }
        reading
    }

    /// A client names one version for each name that it holds. Where it asks for
    /// several variants of the name that tells nothing: all of them are sent.
    fn ignore_ambiguous_versions(&self, selectors: &mut DeltaSubscriptions) {
        if selectors.initial.is_empty() {
            return;
        }
        let is_name = |selector: &Selector| matches!(selector, Selector::Name(_));
        let whole = selectors
            .subscribe
            .iter()
            .any(|(selector, _)| !is_name(selector));
        let mut first: HashMap<&Name, ParamsId> = HashMap::new();
        let mut ambiguous: HashSet<&Name> = HashSet::new();
        for (selector, params) in &selectors.subscribe {
            let Selector::Name(name) = selector else {
                continue;
            };
            let before = *first.entry(name).or_insert(*params);
            // What asks for all may bring another variant of the name.
            let beside = whole && *params != self.params;
            if (before != *params || beside) && selectors.initial.get(name).is_some() {
                ambiguous.insert(name);
            }
        }
        if !ambiguous.is_empty() {
            let version = |(name, version): &(Name, Version)| match ambiguous.contains(name) {
                true => (name.clone(), Version::new("")),
                false => (name.clone(), version.clone()),
            };
            selectors.initial = selectors.initial.iter().map(version).collect();
        }
    }

    /// Writes a response; `None` if all of it is said by silence.
    pub(crate) fn write_delta(
        &self,
        db: &mut Database,
        push: &Push,
        nonce: Nonce,
    ) -> Option<DeltaResponse> {
        let mut response = Draft {
            removed: push.placeholders.clone(),
            ..Draft::default()
        };
        if let Some((changes, part)) = shared_advance(push) {
            let items = changes.items[part.clone()].iter();
            let gone = items.filter(|(_, item)| item.is_none());
            response.removed = gone.map(|(name, _)| name.clone()).collect();
            response.removed.sort();
            let resources = ResourceList::Shared(changes.resources_of(&part));
            return self.finish(nonce, resources, response);
        }
        for update in &push.updates {
            match &update.resource {
                Some(resource) => response
                    .resources
                    .push(WireResource::full(resource.clone())),
                None => self.write_removal(db, push, update, &mut response),
            }
        }
        for answer in push.answers.iter().filter(|answer| !answer.is_implicit) {
            self.write_answer(db, answer, &mut response);
        }
        for name in &push.refused {
            match self.refusal_as_error() {
                Some(error) => response.errors.push((name.clone(), error)),
                None => {
                    let own = db.unused_name(self.type_id, name);
                    self.write_negative(name, own, &mut response);
                }
            }
        }
        for advance in &push.advances {
            response
                .removed_variants
                .extend(advance.replaced_variants());
            for (name, item) in advance.items() {
                match item {
                    Some(resource) => response
                        .resources
                        .push(WireResource::full(resource.clone())),
                    None => response.removed.push(name.clone()),
                }
            }
        }
        let heartbeat = |resource: &Arc<Resource>| WireResource {
            resource: Arc::clone(resource),
            form: Form::Heartbeat,
        };
        response
            .resources
            .extend(push.heartbeats.iter().map(heartbeat));
        deduplicate(&mut response);
        let resources = std::mem::take(&mut response.resources).into();
        self.finish(nonce, resources, response)
    }

    fn finish(&self, nonce: Nonce, resources: ResourceList, rest: Draft) -> Option<DeltaResponse> {
        let empty = resources.is_empty()
            && rest.removed.is_empty()
            && rest.removed_variants.is_empty()
            && rest.errors.is_empty();
        (!empty || self.owes_response).then(|| DeltaResponse {
            type_url: self.type_url.clone(),
            nonce,
            resources,
            removed: rest.removed,
            removed_variants: rest.removed_variants,
            errors: rest.errors,
        })
    }

    /// A variant goes; and with the last of them, its name (S41, S74).
    fn write_removal(&self, db: &mut Database, push: &Push, update: &Update, response: &mut Draft) {
        let name = update.name();
        let left = self.client_cache.held_after_push(db, name, push.changes());
        let constrained = update.variant.1.is_some();
        if constrained || !left.is_empty() {
            response.removed_variants.push(update.variant.clone());
        }
        let mut answers = push.answers.iter();
        let failed = answers.any(|answer| answer.error.is_some() && answer.name == *name);
        if !left.is_empty() || failed {
            return;
        }
        let form = match self.subscriptions_of(db, name).is_empty() {
            true => NegativeForm::Removed,
            false => self.negative_form(true),
        };
        match form {
            NegativeForm::EmptyBody => {
                let empty = negative::empty_body(name);
                response.resources.push(WireResource::full(empty));
            }
            NegativeForm::Silence => {}
            NegativeForm::Removed | NegativeForm::Bodyless | NegativeForm::Unreadable => {
                response.removed.push(name.clone());
            }
        }
    }

    fn write_answer(&self, db: &mut Database, answer: &Answer, response: &mut Draft) {
        let name = &answer.name;
        if let Some(error) = &answer.error {
            response.errors.push((name.clone(), Arc::clone(error)));
        } else if answer.kind == AnswerKind::Absent {
            match self.absence_as_error(false) {
                Some(error) => response.errors.push((name.clone(), error)),
                None => {
                    let own = self.negative_name(db, answer);
                    self.write_negative(name, own, response);
                }
            }
        }
    }

    /// What the answer that a host does not exist is called: like the host,
    /// unless the peer may hold something that is called so.
    fn negative_name(&self, db: &mut Database, answer: &Answer) -> Name {
        let name = &answer.name;
        if !self.kind.on_demand {
            return name.clone();
        }
        match self.resolve(db, answer.subscription).resource() {
            Some(rejected) if rejected.name == *name => name.clone(),
            _ => db.unused_name(self.type_id, name),
        }
    }

    /// Says that a name does not exist which the peer does not hold; if that has
    /// to be under another, under `own` (S35).
    fn write_negative(&self, name: &Name, own: Name, response: &mut Draft) {
        match self.negative_form(false) {
            NegativeForm::Removed => response.removed.push(name.clone()),
            NegativeForm::EmptyBody => {
                let empty = negative::empty_body(name);
                response.resources.push(WireResource::full(empty));
            }
            NegativeForm::Bodyless => {
                let negative = negative::bodyless(own, name, self.negative_counter);
                response.resources.push(WireResource::full(negative));
            }
            NegativeForm::Unreadable => {
                let negative = negative::unreadable(name);
                response.resources.push(WireResource::full(negative));
            }
            NegativeForm::Silence => {}
        }
    }
}

/// That a host does not exist is said by its alias; what was called like it
/// goes all the same.
fn rename_negatives(response: &mut Draft) {
    let is_negative = |d: &WireResource| d.resource.body.is_none();
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

/// The variants of what is delivered, for a list without repetition (S41).
fn delivered_variant(delivered: &WireResource) -> Variant {
    variant_of(&delivered.resource)
}

/// No variant twice, and no name both there and gone (S41): Envoy rejects that.
fn deduplicate(response: &mut Draft) {
    rename_negatives(response);
    response.resources.sort_by_cached_key(delivered_variant);
    let same =
        |a: &mut WireResource, b: &mut WireResource| delivered_variant(a) == delivered_variant(b);
    response.resources.dedup_by(same);
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
