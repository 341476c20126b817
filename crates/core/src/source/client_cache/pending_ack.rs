//! A response that has no answer yet.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::advance::{Advance, merge_advance};
use super::cached::{CachedResource, Variant};
use crate::database::{CursorId, Position};
use crate::message::ErrorDetail;
use crate::moment::Moment;
use crate::name::Name;
use crate::resource::{Nonce, Resource, ResourceError, Version};
use crate::source::subscriptions::{AnswerKind, SubscriptionKey};

/// The change of one variant by a response: an upsert, or a removal.
#[derive(Clone, Debug)]
pub(crate) struct Update {
    pub(crate) variant: Variant,
    pub(crate) resource: Option<Arc<Resource>>,
    /// The name that the client requested, where the resource has another.
    pub(crate) requested_name: Option<Name>,
    /// A response that was merged into this one removed the variant.
    pub(crate) removed_earlier: bool,
    /// What such a response brought of it.
    pub(crate) earlier_resource: Option<Arc<Resource>>,
}

impl Update {
    /// A resource comes, or comes anew.
    pub(crate) fn upsert(resource: &Arc<Resource>, requested_name: Option<Name>) -> Self {
        Self {
            variant: super::variant_of(resource),
            resource: Some(Arc::clone(resource)),
            requested_name,
            removed_earlier: false,
            earlier_resource: None,
        }
    }

    /// A variant goes.
    pub(crate) fn remove(variant: Variant, requested_name: Option<Name>) -> Self {
        Self {
            variant,
            resource: None,
            requested_name,
            removed_earlier: false,
            earlier_resource: None,
        }
    }

    pub(crate) fn name(&self) -> &Name {
        &self.variant.0
    }

    /// The name that was looked at when it was said.
    pub(crate) fn requested_name(&self) -> &Name {
        self.requested_name.as_ref().unwrap_or(&self.variant.0)
    }

    /// Makes of what was held before it what is held after it.
    pub(crate) fn apply(&self, held: &mut Vec<CachedResource>) {
        let unknown = |held: &CachedResource| self.resource.is_some() && held.has_unknown_body();
        held.retain(|held| !held.is_variant(&self.variant) && !unknown(held));
        held.extend(self.resource.as_ref().map(CachedResource::accepted));
    }
}

/// The answer of a response to one subscription, beside its updates.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) subscription: SubscriptionKey,
    /// The asked name.
    pub(crate) name: Name,
    pub(crate) kind: AnswerKind,
    /// The resource that the want leads to, where that has another name.
    pub(crate) resolved_name: Option<Name>,
    pub(crate) error: Option<Arc<ResourceError>>,
    /// It is not written: something else in the response says it, or silence.
    pub(crate) is_implicit: bool,
}

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct PendingAck {
    pub(crate) nonce: Nonce,
    /// State of the world only: the version that an ACK repeats.
    pub(crate) version: Option<Version>,
    pub(crate) sent_at: Moment,
    /// Sorted by variant.
    pub(crate) updates: Vec<Update>,
    pub(crate) answers: Vec<Answer>,
    pub(crate) advances: Vec<Advance>,
    /// Earlier responses that became one with it, since the peer was silent.
    pub(crate) merged_nonces: Vec<Nonce>,
    /// Whether a rejection is what it is meant to get, and says nothing of what
    /// is in it (S35, S82).
    pub(crate) expects_nack: bool,
}

impl PendingAck {
    /// What it says of resources of one name.
    pub(crate) fn updates_of(&self, name: &Name) -> &[Update] {
        updates_of(&self.updates, name)
    }

    /// Makes of what was held of a name before it what is held after it.
    pub(crate) fn apply(
        &self,
        cursor: Option<CursorId>,
        name: &Name,
        held: &mut Vec<CachedResource>,
    ) {
        apply_updates(&self.advances, &self.updates, cursor, name, held);
    }

    /// Whether it takes away something of a name, be it that this comes again.
    pub(crate) fn removes(&self, name: &Name) -> bool {
        let mut updated = self.updates_of(name).iter();
        let mut advances = self.advances.iter();
        let goes = |advance: &Advance| match advance.item(name) {
            Some(Some(_)) => advance.replaced_variant_of(name).is_some(),
            Some(None) => true,
            None => false,
        };
        updated.any(|update| update.resource.is_none() || update.removed_earlier)
            || advances.any(goes)
    }

    pub(crate) fn answer_to(&self, subscription: SubscriptionKey) -> Option<&Answer> {
        self.answers
            .iter()
            .find(|answer| answer.subscription == subscription)
    }

    /// All resources that it brings.
    pub(crate) fn resources(&self) -> impl Iterator<Item = &Arc<Resource>> {
        let single = self
            .updates
            .iter()
            .filter_map(|update| update.resource.as_ref());
        let items = self.advances.iter().flat_map(Advance::items);
        single.chain(items.filter_map(|(_, item)| item.as_ref()))
    }
}

/// The part of sorted says that is about one name.
pub(crate) fn updates_of<'s>(updates: &'s [Update], name: &Name) -> &'s [Update] {
    let start = updates.partition_point(|update| update.name() < name);
    let length = updates[start..].partition_point(|update| update.name() == name);
    &updates[start..start + length]
}

/// What steps and sorted says make of what was held of a name. Only steps along
/// the view that brings the name speak of it, and those along views that are
/// followed no longer.
pub(crate) fn apply_updates(
    advances: &[Advance],
    updates: &[Update],
    cursor: Option<CursorId>,
    name: &Name,
    held: &mut Vec<CachedResource>,
) {
    for advance in advances {
        if advance.cursor.is_some() && advance.cursor != cursor {
            continue;
        }
        if let Some(item) = advance.item(name) {
            apply_item(advance, name, item.as_ref(), held);
        }
    }
    for update in updates_of(updates, name) {
        update.apply(held);
    }
}

/// What an item of a step makes of what was held of its name.
pub(crate) fn apply_item(
    advance: &Advance,
    name: &Name,
    item: Option<&Arc<Resource>>,
    held: &mut Vec<CachedResource>,
) {
    let gone = advance.replaced_variant_of(name).cloned();
    let variant = (name.clone(), gone.unwrap_or_default());
    let replaced = |old: &CachedResource| match item {
        Some(new) => old.is_variant(&super::variant_of(new)) || old.has_unknown_body(),
        None => false,
    };
    let left = advance.replaced_variant_of(name).is_some() || item.is_none();
    let goes = |old: &CachedResource| (left && old.is_variant(&variant)) || replaced(old);
    held.retain(|old| !goes(old));
    held.extend(item.map(CachedResource::accepted));
}

/// Responses that are remembered of those that became one.
const MAX_MERGED_NONCES: usize = 64;

/// Puts an earlier response before a later one that its peer has not answered
/// either. What both say of a variant, the later says. Returns the positions
/// of views to which nobody will come back.
pub(crate) fn merge_pending(
    later: &mut PendingAck,
    earlier: PendingAck,
) -> Vec<(CursorId, Position)> {
    let mut updates: BTreeMap<Variant, Update> = BTreeMap::new();
    let mut between = Vec::new();
    let mut advances: Vec<Advance> = Vec::new();
    let mut take = |own: Vec<Advance>, single: Vec<Update>| {
        for mut advance in own {
            for (name, item) in advance.items() {
                if let Some(old) = advance.replaced_variant_of(name).filter(|_| item.is_some()) {
                    let variant = (name.clone(), old.clone());
                    updates.insert(variant.clone(), Update::remove(variant, None));
                }
                let constraints = match item {
                    Some(new) => new.constraints.clone(),
                    None => advance
                        .replaced_variant_of(name)
                        .cloned()
                        .unwrap_or_default(),
                };
                let update = match item {
                    Some(new) => Update::upsert(new, None),
                    None => Update::remove((name.clone(), constraints), None),
                };
                merge_update(&mut updates, update);
            }
            advance.changes = None;
            let cursor = advance.cursor;
            let joined = merge_advance(&mut advances, advance);
            between.extend(cursor.zip(joined));
        }
        single
            .into_iter()
            .for_each(|update| merge_update(&mut updates, update));
    };
    take(earlier.advances, earlier.updates);
    take(
        std::mem::take(&mut later.advances),
        std::mem::take(&mut later.updates),
    );
    let newer: Vec<SubscriptionKey> = later
        .answers
        .iter()
        .map(|answer| answer.subscription)
        .collect();
    let older = earlier.answers.into_iter();
    later
        .answers
        .extend(older.filter(|answer| !newer.contains(&answer.subscription)));
    later.updates = updates.into_values().collect();
    later.advances = advances;
    later.expects_nack |= earlier.expects_nack;
    let mut absorbed = earlier.merged_nonces;
    absorbed.push(earlier.nonce);
    absorbed.append(&mut later.merged_nonces);
    absorbed.drain(..absorbed.len().saturating_sub(MAX_MERGED_NONCES));
    later.merged_nonces = absorbed;
    between
}

/// Adds what is said later.
fn merge_update(updates: &mut BTreeMap<Variant, Update>, mut update: Update) {
    let before = updates.get(&update.variant);
    let gone = before.is_some_and(|before| before.resource.is_none() || before.removed_earlier);
    update.removed_earlier |= gone && update.resource.is_some();
    let brought = before.and_then(|before| {
        before
            .resource
            .as_ref()
            .or(before.earlier_resource.as_ref())
    });
    update.earlier_resource = brought.cloned().or(update.earlier_resource);
    updates.insert(update.variant.clone(), update);
}

/// Whether a peer's text names something.
pub(crate) fn error_mentions(error: &ErrorDetail, name: &Name) -> bool {
    error.message.contains(name.as_str())
}
