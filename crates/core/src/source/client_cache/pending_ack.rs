//! A response that was sent and has no acknowledgement.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::advance::{Advance, merge_advance};
use super::cached::{CachedResource, Variant, variant_of};
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
    /// The resource that such a response had of the variant.
    pub(crate) earlier_resource: Option<Arc<Resource>>,
}

impl Update {
    /// Makes an update that adds a resource, or replaces it.
    pub(crate) fn upsert(resource: &Arc<Resource>, requested_name: Option<Name>) -> Self {
        Self {
            variant: variant_of(resource),
            resource: Some(Arc::clone(resource)),
            requested_name,
            removed_earlier: false,
            earlier_resource: None,
        }
    }

    /// Makes an update that removes a variant.
    pub(crate) fn remove(variant: Variant, requested_name: Option<Name>) -> Self {
        Self {
            variant,
            resource: None,
            requested_name,
            removed_earlier: false,
            earlier_resource: None,
        }
    }

    /// Returns the name of the variant.
    pub(crate) fn name(&self) -> &Name {
        &self.variant.0
    }

    /// Returns the name by whose evaluation the update came into the response.
    pub(crate) fn requested_name(&self) -> &Name {
        self.requested_name.as_ref().unwrap_or(&self.variant.0)
    }

    /// Returns whether the update removes its variant.
    pub(crate) fn is_removal(&self) -> bool {
        self.resource.is_none()
    }

    /// Applies the update to the resources that a client holds of its name. An
    /// upsert replaces resources of unknown body, too.
    pub(crate) fn apply(&self, held_resources: &mut Vec<CachedResource>) {
        let is_replaced = |record: &CachedResource| {
            record.is_variant(&self.variant) || (!self.is_removal() && record.has_unknown_body())
        };
        held_resources.retain(|record| !is_replaced(record));
        held_resources.extend(self.resource.as_ref().map(CachedResource::accepted));
    }
}

/// The answer of a response to one subscription, in addition to its updates.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) subscription: SubscriptionKey,
    /// The requested name.
    pub(crate) name: Name,
    pub(crate) kind: AnswerKind,
    /// The name of the resource, where it differs from the requested one.
    pub(crate) resolved_name: Option<Name>,
    pub(crate) error: Option<Arc<ResourceError>>,
    /// Whether the answer is not written, because an update of the response
    /// implies it, or the lack of one does.
    pub(crate) is_implicit: bool,
}

/// The content of a response that has no acknowledgement.
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
    /// Earlier responses that were merged into it, since the client was silent.
    pub(crate) merged_nonces: Vec<Nonce>,
    /// Whether the client is expected to NACK it: a NACK tells nothing about
    /// its resources (S35, S82).
    pub(crate) expects_nack: bool,
}

impl PendingAck {
    /// Returns the response's updates of one name.
    pub(crate) fn updates_of(&self, name: &Name) -> &[Update] {
        updates_of(&self.updates, name)
    }

    /// Applies the response to the resources that a client holds of a name;
    /// `cursor` is the one that covers the name.
    pub(crate) fn apply(
        &self,
        cursor: Option<CursorId>,
        name: &Name,
        held_resources: &mut Vec<CachedResource>,
    ) {
        apply_updates(&self.advances, &self.updates, cursor, name, held_resources);
    }

    /// Returns whether the response removes a variant of a name, even if it
    /// adds the variant again.
    pub(crate) fn removes(&self, name: &Name) -> bool {
        let mut updates = self.updates_of(name).iter();
        let mut advances = self.advances.iter();
        let advance_removes = |advance: &Advance| {
            let item = advance.item(name);
            item.is_some_and(|item| advance.removed_variant(name, item.as_ref()).is_some())
        };
        updates.any(|update| update.is_removal() || update.removed_earlier)
            || advances.any(advance_removes)
    }

    /// Returns the response's answer to a subscription, if it has one.
    pub(crate) fn answer_to(&self, subscription: SubscriptionKey) -> Option<&Answer> {
        self.answers
            .iter()
            .find(|answer| answer.subscription == subscription)
    }

    /// Returns the resources of the response.
    pub(crate) fn resources(&self) -> impl Iterator<Item = &Arc<Resource>> {
        resources_of(&self.updates, &self.advances)
    }
}

/// Returns the resources of updates and advances.
pub(crate) fn resources_of<'r>(
    updates: &'r [Update],
    advances: &'r [Advance],
) -> impl Iterator<Item = &'r Arc<Resource>> {
    let upserts = updates.iter().filter_map(|update| update.resource.as_ref());
    let items = advances.iter().flat_map(Advance::items);
    upserts.chain(items.filter_map(|(_, item)| item.as_ref()))
}

/// Returns the updates of one name among updates that are sorted by variant,
/// and so by name.
pub(crate) fn updates_of<'s>(updates: &'s [Update], name: &Name) -> &'s [Update] {
    let start = updates.partition_point(|update| update.name() < name);
    let length = updates[start..].partition_point(|update| update.name() == name);
    &updates[start..start + length]
}

/// Applies advances and sorted updates to the resources that a client holds of
/// a name. Only advances of the cursor that covers the name count, and those of
/// cursors that were closed since.
pub(crate) fn apply_updates(
    advances: &[Advance],
    updates: &[Update],
    cursor: Option<CursorId>,
    name: &Name,
    held_resources: &mut Vec<CachedResource>,
) {
    for advance in advances {
        if advance.cursor.is_some() && advance.cursor != cursor {
            continue;
        }
        if let Some(item) = advance.item(name) {
            apply_item(advance, name, item.as_ref(), held_resources);
        }
    }

    for update in updates_of(updates, name) {
        update.apply(held_resources);
    }
}

/// Applies an item of an advance to the resources that a client holds of its
/// name. An upsert replaces the variant that it takes from the client, and
/// resources of unknown body, too.
pub(crate) fn apply_item(
    advance: &Advance,
    name: &Name,
    item: Option<&Arc<Resource>>,
    held_resources: &mut Vec<CachedResource>,
) {
    let removed_variant = advance.removed_variant(name, item);
    let is_removed = |record: &CachedResource| {
        removed_variant
            .as_ref()
            .is_some_and(|variant| record.is_variant(variant))
    };

    let is_replaced = |record: &CachedResource| {
        item.is_some_and(|resource| {
            record.is_variant(&variant_of(resource)) || record.has_unknown_body()
        })
    };

    held_resources.retain(|record| !is_removed(record) && !is_replaced(record));
    held_resources.extend(item.map(CachedResource::accepted));
}

/// The number of merged responses that are remembered.
const MAX_MERGED_NONCES: usize = 64;

/// Merges an earlier pending ACK into a later one. Where both change a variant,
/// the later change counts. Advances become updates. The nonce of the earlier
/// one is remembered, up to a limit. Returns the positions that no cursor
/// returns to any more.
pub(crate) fn merge_pending(
    later: &mut PendingAck,
    earlier: PendingAck,
) -> Vec<(CursorId, Position)> {
    let later_advances = std::mem::take(&mut later.advances);
    let later_updates = std::mem::take(&mut later.updates);
    let responses = [
        (earlier.advances, earlier.updates),
        (later_advances, later_updates),
    ];

    let mut updates: BTreeMap<Variant, Update> = BTreeMap::new();
    let mut advances: Vec<Advance> = Vec::new();
    let mut unused_positions = Vec::new();
    for (response_advances, response_updates) in responses {
        for mut advance in response_advances {
            merge_items(&mut updates, &advance);
            advance.changes = None;
            let cursor = advance.cursor;
            let position = merge_advance(&mut advances, advance);
            unused_positions.extend(cursor.zip(position));
        }
        for update in response_updates {
            merge_update(&mut updates, update);
        }
    }

    later.updates = updates.into_values().collect();
    later.advances = advances;
    merge_answers(&mut later.answers, earlier.answers);
    later.expects_nack |= earlier.expects_nack;

    let mut nonces = earlier.merged_nonces;
    nonces.push(earlier.nonce);
    nonces.append(&mut later.merged_nonces);
    nonces.drain(..nonces.len().saturating_sub(MAX_MERGED_NONCES));
    later.merged_nonces = nonces;
    unused_positions
}

/// Adds those of the earlier answers whose subscriptions have no later answer.
fn merge_answers(later: &mut Vec<Answer>, earlier: Vec<Answer>) {
    let answered_subscriptions: Vec<SubscriptionKey> =
        later.iter().map(|answer| answer.subscription).collect();
    let is_unanswered = |answer: &Answer| !answered_subscriptions.contains(&answer.subscription);
    later.extend(earlier.into_iter().filter(is_unanswered));
}

/// Adds the items of an advance to earlier updates: for each a removal of the
/// variant that it takes from the client, then the upsert.
fn merge_items(updates: &mut BTreeMap<Variant, Update>, advance: &Advance) {
    for (name, item) in advance.items() {
        let removed_variant = advance.removed_variant(name, item.as_ref());
        let removal = removed_variant.map(|variant| Update::remove(variant, None));
        let upsert = item.as_ref().map(|resource| Update::upsert(resource, None));
        for update in removal.into_iter().chain(upsert) {
            merge_update(updates, update);
        }
    }
}

/// Adds an update to earlier ones. It replaces the update of the same variant,
/// and remembers whether that one removed the variant and which resource it
/// had.
fn merge_update(updates: &mut BTreeMap<Variant, Update>, mut update: Update) {
    if let Some(previous) = updates.remove(&update.variant) {
        let was_removed = previous.is_removal() || previous.removed_earlier;
        update.removed_earlier |= was_removed && !update.is_removal();
        let earlier_resource = previous.resource.or(previous.earlier_resource);
        update.earlier_resource = earlier_resource.or(update.earlier_resource);
    }
    updates.insert(update.variant.clone(), update);
}

/// Returns whether the text of a NACK contains a name: a hint to what it is
/// about, never a proof (S64).
pub(crate) fn error_mentions(error: &ErrorDetail, name: &Name) -> bool {
    error.message.contains(name.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::Change;
    use crate::database::{Database, Scope};
    use crate::params::Params;
    use crate::resource::TypeUrl;

    /// The advance by which one variant of a name replaces another, and the
    /// two.
    fn swap() -> (Advance, [Arc<Resource>; 2]) {
        let mut db = Database::new();
        let url = TypeUrl::from("t");
        let second = Arc::new(Resource::new("a".into(), "2".into()));
        let first = variant("a", "1");
        let params = db.intern_params(Params::new([("env", "a")]).unwrap());
        let (stream, type_id) = (db.open_stream(), db.type_id(&url));
        let subscriber = db.add_subscriber(stream, type_id, params);
        db.apply(vec![Change::Upsert(url.clone(), Arc::clone(&first))])
            .unwrap();
        let cursor = db.open_cursor(subscriber, &Scope::All);
        let from = db.head(cursor);
        db.pin(cursor, from);
        let changes = [
            Change::Remove(url.clone(), "a".into()),
            Change::Upsert(url, Arc::clone(&second)),
        ];
        db.apply(changes.into()).unwrap();
        let changes = db.view_changes(cursor, from);
        let advance = Advance {
            cursor: Some(cursor),
            from,
            to: changes.to,
            range: 0..changes.items.len(),
            changes: Some(changes),
            excluded: Vec::new(),
            is_last: true,
        };
        (advance, [first, second])
    }

    /// A variant of the name `a`.
    fn variant(env: &str, body: &'static str) -> Arc<Resource> {
        Arc::new(Resource {
            constraints: Some(format!("env={env}").parse().unwrap()),
            ..Resource::new("a".into(), body.into())
        })
    }

    fn pending(nonce: u64) -> PendingAck {
        PendingAck {
            nonce: Nonce::of_number(nonce),
            version: None,
            sent_at: Moment::START,
            updates: Vec::new(),
            answers: Vec::new(),
            advances: Vec::new(),
            merged_nonces: Vec::new(),
            expects_nack: false,
        }
    }

    #[test]
    fn s81_a_variant_that_came_and_went_in_merged_responses_may_be_held() {
        let (advance, [first, second]) = swap();
        let mut updates = BTreeMap::new();
        merge_update(&mut updates, Update::upsert(&first, None));
        merge_items(&mut updates, &advance);

        let updates: Vec<Update> = updates.into_values().collect();
        let [come, gone] = &updates[..] else {
            panic!("{updates:?}");
        };
        assert_eq!(come.resource, Some(second));
        assert!(gone.is_removal());
        assert_eq!(gone.earlier_resource, Some(first));
    }

    #[test]
    fn s84_an_item_takes_the_variant_that_it_replaces_and_no_other() {
        let (advance, [first, second]) = swap();
        let other = variant("b", "1");
        let unknown = CachedResource::unknown_body("a".into(), Version::unknown());
        let known = [&first, &other].map(CachedResource::accepted);
        let mut held: Vec<CachedResource> = known.into_iter().chain([unknown]).collect();
        apply_item(&advance, &"a".into(), Some(&second), &mut held);
        let left: Vec<_> = held.into_iter().map(|held| held.resource).collect();
        assert_eq!(left, [other, second]);
    }

    #[test]
    fn s17_a_merged_update_tells_whether_its_variant_was_removed_before() {
        let resource = variant("a", "1");
        let upsert = || Update::upsert(&resource, None);
        let remove = || Update::remove(variant_of(&resource), None);
        let cases: [(&[Update], bool); 6] = [
            (&[upsert()], false),
            (&[upsert(), upsert()], false),
            (&[remove(), upsert()], true),
            (&[remove(), upsert(), upsert()], true),
            (&[upsert(), remove(), upsert()], true),
            (&[remove(), upsert(), remove()], false),
        ];
        for (changes, was_removed) in cases {
            let mut updates = BTreeMap::new();
            for update in changes {
                merge_update(&mut updates, update.clone());
            }
            let (_, merged) = updates.pop_first().unwrap();
            assert_eq!(merged.removed_earlier, was_removed, "{changes:?}");
        }
        // One that tells so already goes on to.
        let later = Update {
            removed_earlier: true,
            ..upsert()
        };
        let mut updates = BTreeMap::from([(variant_of(&resource), upsert())]);
        merge_update(&mut updates, later);
        assert!(updates.into_values().all(|merged| merged.removed_earlier));
    }

    #[test]
    fn a_merged_response_expects_a_nack_if_one_of_its_parts_does() {
        for (earlier, later) in [(false, false), (false, true), (true, false), (true, true)] {
            let of = |nonce, expects_nack| PendingAck {
                expects_nack,
                ..pending(nonce)
            };
            let mut merged = of(2, later);
            merge_pending(&mut merged, of(1, earlier));
            assert_eq!(merged.expects_nack, earlier || later);
            assert_eq!(merged.merged_nonces, [Nonce::of_number(1)]);
        }
    }

    #[test]
    fn only_so_many_merged_responses_are_remembered() {
        let mut merged = pending(0);
        for nonce in 1..=2 * MAX_MERGED_NONCES as u64 {
            let mut later = pending(nonce);
            merge_pending(&mut later, merged);
            merged = later;
        }
        let nonces = &merged.merged_nonces;
        assert_eq!(nonces.len(), MAX_MERGED_NONCES);
        let newest = Nonce::of_number(2 * MAX_MERGED_NONCES as u64 - 1);
        assert_eq!(nonces.last(), Some(&newest));
    }

    #[test]
    fn the_later_of_two_merged_answers_to_a_subscription_counts() {
        let mut db = Database::new();
        let params = db.intern_params(Params::default());
        let (stream, type_id) = (db.open_stream(), db.type_id(&"t".into()));
        let subscriber = db.add_subscriber(stream, type_id, params);
        let mut answer = |name: &str, kind| Answer {
            subscription: SubscriptionKey {
                entry: db.subscribe(subscriber, &name.into(), params),
                params,
            },
            name: name.into(),
            kind,
            resolved_name: None,
            error: None,
            is_implicit: false,
        };
        let (mut earlier, mut later) = (pending(1), pending(2));
        earlier.answers = vec![
            answer("a", AnswerKind::Absent),
            answer("b", AnswerKind::Absent),
        ];
        later.answers = vec![answer("b", AnswerKind::Resource)];
        merge_pending(&mut later, earlier);
        let mut kinds: Vec<_> = later.answers.iter().map(|a| (&a.name, a.kind)).collect();
        kinds.sort_by_key(|(name, _)| *name);
        let (a, b) = (Name::new("a"), Name::new("b"));
        assert_eq!(
            kinds,
            [(&a, AnswerKind::Absent), (&b, AnswerKind::Resource)]
        );
    }
}
