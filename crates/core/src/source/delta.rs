//! Delta: writes responses.

use std::ops::Range;
use std::sync::Arc;

use hashbrown::HashSet;

use super::client_cache::{Advance, Answer, Update, Variant, same_variant, variant_of};
use super::{AnswerKind, Push, TypeStream, negative};
use crate::database::{Database, ViewChanges};
use crate::interest::DeltaWildcard;
use crate::kind::NegativeForm;
use crate::message::{DeltaResponse, Form, WireResource};
use crate::name::Name;
use crate::resource::{Nonce, Resource, ResourceError};
use crate::resource_list::ResourceList;

/// A response that is being written.
#[derive(Default)]
struct Draft {
    resources: Vec<WireResource>,
    removed: Vec<Name>,
    removed_variants: Vec<Variant>,
    errors: Vec<(Name, Arc<ResourceError>)>,
}

/// Returns the changes and the range of items of a push that consists of one
/// advance and nothing else, and which many streams may send alike; `None` for
/// other pushes.
fn shared_advance(push: &Push) -> Option<(&ViewChanges, Range<usize>)> {
    let [advance] = &push.advances[..] else {
        return None;
    };
    let changes = advance.changes.as_deref()?;
    let is_shared = advance.excluded.is_empty()
        && changes.replaced_variants.is_empty()
        && push.has_only_advances();
    is_shared.then(|| (changes, advance.range.clone()))
}

impl TypeStream {
    /// Updates the wildcard by a request. Returns whether the request
    /// subscribes to the wildcard, for the first time or again.
    pub(crate) fn update_wildcard(&mut self, change: DeltaWildcard) -> bool {
        let previous = self.wildcard;
        self.wildcard = previous.after_delta(change, self.kind.legacy_wildcard);
        self.wildcard.is_on() && (!previous.is_on() || change.subscribes_star)
    }

    /// Writes a response from a push; returns `None` if it would be empty and
    /// the client does not wait for one. A push that many streams send is
    /// written from their shared list.
    pub(crate) fn write_delta(
        &self,
        db: &mut Database,
        push: &Push,
        nonce: Nonce,
    ) -> Option<DeltaResponse> {
        if let Some((changes, range)) = shared_advance(push) {
            return self.write_shared(changes, range, nonce);
        }
        let mut response = self.draft_delta(db, push);
        sort_and_deduplicate(&mut response);
        let resources = std::mem::take(&mut response.resources).into();
        self.finish_delta(nonce, resources, response)
    }

    /// Writes all parts of a push into a draft, unsorted.
    fn draft_delta(&self, db: &mut Database, push: &Push) -> Draft {
        let mut response = Draft {
            removed: push.placeholders.clone(),
            ..Draft::default()
        };

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
            self.write_refusal(db, name, &mut response);
        }

        for advance in &push.advances {
            write_advance(advance, &mut response);
        }

        let heartbeat = |resource: &Arc<Resource>| WireResource {
            resource: Arc::clone(resource),
            form: Form::Heartbeat,
        };

        let heartbeats = push.heartbeats.iter().map(heartbeat);
        response.resources.extend(heartbeats);
        response
    }

    /// Writes a response whose resources many streams share; its removals are
    /// written for each stream. Returns `None` as [`Self::finish_delta`] does.
    fn write_shared(
        &self,
        changes: &ViewChanges,
        range: Range<usize>,
        nonce: Nonce,
    ) -> Option<DeltaResponse> {
        let items = changes.items[range.clone()].iter();
        let removals = items.filter(|(_, item)| item.is_none());
        let mut response = Draft {
            removed: removals.map(|(name, _)| name.clone()).collect(),
            ..Draft::default()
        };
        response.removed.sort();
        let resources = ResourceList::Shared(changes.resources_of(&range));
        self.finish_delta(nonce, resources, response)
    }

    /// Makes a response of these resources and the other parts of a draft,
    /// whose own resources are ignored. Returns `None` if it is empty and the
    /// client does not wait for one.
    fn finish_delta(
        &self,
        nonce: Nonce,
        resources: ResourceList,
        draft: Draft,
    ) -> Option<DeltaResponse> {
        let is_empty = resources.is_empty()
            && draft.removed.is_empty()
            && draft.removed_variants.is_empty()
            && draft.errors.is_empty();
        (!is_empty || self.owes_response).then(|| DeltaResponse {
            type_url: self.type_url.clone(),
            nonce,
            resources,
            removed: draft.removed,
            removed_variants: draft.removed_variants,
            errors: draft.errors,
        })
    }

    /// Writes the removal of a variant. If it is the last variant of its name,
    /// the removal of the name is written too, in the form that the client
    /// believes (S41, S74). A name with an error is not removed: the error says
    /// more.
    fn write_removal(&self, db: &mut Database, push: &Push, update: &Update, response: &mut Draft) {
        let name = update.name();
        let remaining_records = self.client_cache.held_after_push(db, name, push.changes());
        let is_constrained = update.variant.1.is_some();
        if is_constrained || !remaining_records.is_empty() {
            response.removed_variants.push(update.variant.clone());
        }

        let mut answers = push.answers.iter();
        let has_error = answers.any(|answer| answer.error.is_some() && answer.name == *name);
        if !remaining_records.is_empty() || has_error {
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

    /// Writes an error, or that a name does not exist. The resource of an
    /// answer is not written here: it is among the updates.
    fn write_answer(&self, db: &mut Database, answer: &Answer, response: &mut Draft) {
        let name = &answer.name;
        if let Some(error) = &answer.error {
            response.errors.push((name.clone(), Arc::clone(error)));
        } else if answer.kind == AnswerKind::Absent {
            match self.absence_as_error(false) {
                Some(error) => response.errors.push((name.clone(), error)),
                None => {
                    let own_name = self.negative_name(db, answer);
                    self.write_negative(name, own_name, response);
                }
            }
        }
    }

    /// Writes that a name is refused: as an error, or as absent for a client
    /// that cannot read errors (S72).
    fn write_refusal(&self, db: &mut Database, name: &Name, response: &mut Draft) {
        match self.refusal_as_error() {
            Some(error) => response.errors.push((name.clone(), error)),
            None => {
                let own_name = db.unused_name(self.type_id, name);
                self.write_negative(name, own_name, response);
            }
        }
    }

    /// Returns the name of the resource which says that a host does not exist:
    /// the host's, unless the client may hold a virtual host of that name.
    fn negative_name(&self, db: &mut Database, answer: &Answer) -> Name {
        let name = &answer.name;
        if !self.kind.on_demand {
            return name.clone();
        }
        match self.resolve(db, answer.subscription).resource() {
            Some(quarantined) if quarantined.name == *name => name.clone(),
            _ => db.unused_name(self.type_id, name),
        }
    }

    /// Writes that a name which the client does not hold does not exist. A
    /// resource that says so by an alias is called `own_name` (S35).
    fn write_negative(&self, name: &Name, own_name: Name, response: &mut Draft) {
        let resource = match self.negative_form(false) {
            NegativeForm::Removed => return response.removed.push(name.clone()),
            NegativeForm::EmptyBody => negative::empty_body(name),
            NegativeForm::Bodyless => negative::bodyless(own_name, name, self.negative_counter),
            NegativeForm::Unreadable => negative::unreadable(name),
            NegativeForm::Silence => return,
        };
        response.resources.push(WireResource::full(resource));
    }
}

/// Adds the items of an advance to a draft, and the removals of the variants
/// that they replace.
fn write_advance(advance: &Advance, response: &mut Draft) {
    let replaced_variants = advance.replaced_variants();
    response.removed_variants.extend(replaced_variants);
    for (name, item) in advance.items() {
        match item {
            Some(resource) => response
                .resources
                .push(WireResource::full(resource.clone())),
            None => response.removed.push(name.clone()),
        }
    }
}

/// Renames resources without a body whose name is that of another resource or
/// removal of the response: their alias says what does not exist, and the other
/// one must not be lost.
fn rename_negatives(response: &mut Draft) {
    let is_negative = |wire: &WireResource| wire.resource.body.is_none();
    if !response.resources.iter().any(is_negative) {
        return;
    }

    let positives = response.resources.iter().filter(|wire| !is_negative(wire));
    let other_names = positives.map(|wire| &wire.resource.name);
    let used_names: HashSet<Name> = response
        .removed
        .iter()
        .chain(other_names)
        .cloned()
        .collect();
    let resources = response.resources.iter_mut();
    for wire in resources.filter(|wire| is_negative(wire)) {
        let mut name = wire.resource.name.clone();
        if !used_names.contains(&name) {
            continue;
        }
        while used_names.contains(&name) {
            name = Name::new(&format!("{name}*"));
        }
        let resource = Resource::clone(&wire.resource);
        wire.resource = Arc::new(Resource { name, ..resource });
    }
}

/// Sorts a response, and leaves out repeated variants and removals of names
/// that have a resource: Envoy NACKs these (S41).
fn sort_and_deduplicate(response: &mut Draft) {
    rename_negatives(response);

    let variant = |wire: &WireResource| variant_of(&wire.resource);
    response.resources.sort_by_cached_key(variant);
    response
        .resources
        .dedup_by(|left, right| same_variant(&left.resource, &right.resource));

    let names = response.resources.iter().map(|wire| &wire.resource.name);
    let present_names: HashSet<&Name> = names.collect();
    response
        .removed
        .retain(|name| !present_names.contains(name));
    response.removed.sort();
    response.removed.dedup();
    response.removed_variants.sort();
    response.removed_variants.dedup();
}
