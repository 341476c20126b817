//! The owner's verdict on one response, and its effects.
//!
//! There is one verdict for each response and it is total: the response is
//! ACKed, or NACKed with every reason in one text (C18). Good resources are
//! used either way (C26).

use std::collections::BTreeSet;
use std::sync::Arc;

use super::cache::Cache;
use super::config::SinkConfig;
use super::effects::EffectCollector;
use super::entry::CacheState;
use super::event::{Cause, WatchError};
use super::response::{PendingVerdict, clip};
use crate::Moment;
use crate::kind;
use crate::message::ErrorDetail;
use crate::name::Name;
use crate::params::Constraints;
use crate::resource::Resource;

/// The owner's judgement of a delivery.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// The bad parts of the delivery; if there are none, it is accepted.
    pub rejected: Vec<Rejection>,
}

/// One bad part of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// The name of the bad resource; `None` if it could not be read (C27).
    pub name: Option<Name>,
    /// For people only (S64).
    pub reason: String,
}

impl Rejection {
    /// Rejects a resource: its watchers get an error.
    #[must_use]
    pub fn of(name: &Name, reason: impl Into<String>) -> Self {
        Self {
            name: Some(name.clone()),
            reason: reason.into(),
        }
    }

    /// Rejects a part of a response that has no name: only the server is told.
    #[must_use]
    pub fn of_response(reason: impl Into<String>) -> Self {
        Self {
            name: None,
            reason: reason.into(),
        }
    }
}

impl Verdict {
    /// Returns a verdict that accepts the whole delivery.
    #[must_use]
    pub fn accept() -> Self {
        Self::default()
    }

    /// Returns a verdict that rejects these parts of a delivery and accepts the
    /// others.
    #[must_use]
    pub fn reject(rejected: Vec<Rejection>) -> Self {
        Self { rejected }
    }
}

/// Makes the error of a NACK: all reasons in one text, cut to the limit of
/// bytes (E8). `None` if nothing is rejected, which makes it an ACK.
pub(super) fn nack_detail(rejections: &[Rejection], config: &SinkConfig) -> Option<ErrorDetail> {
    let max_bytes = config.limits.error_bytes;
    let mut message = String::new();
    for rejection in rejections {
        // The rest would be cut anyway.
        if message.len() > max_bytes {
            break;
        }
        let separator = if message.is_empty() { "" } else { "; " };
        message.push_str(separator);
        if let Some(name) = &rejection.name {
            message.push_str(name.as_str());
            message.push_str(": ");
        }
        message.push_str(&rejection.reason);
    }

    message.truncate(clip(&message, max_bytes).len());
    (!rejections.is_empty()).then(|| ErrorDetail {
        code: config.nack_code.number(),
        message,
    })
}

/// Applies a response, as far as its verdict allows.
pub(super) struct VerdictApplier<'a> {
    pub(super) pending: &'a PendingVerdict,
    pub(super) rejections: &'a [Rejection],
    pub(super) max_error_bytes: usize,
    pub(super) now: Moment,
}

impl VerdictApplier<'_> {
    /// Applies all parts of the response. Removed listeners go before others
    /// are added, since a new one may need the address of an old one (E8); for
    /// other types, removals are last.
    pub(super) fn apply(&self, cache: &mut Cache, collector: &mut EffectCollector<'_>) {
        let removals_first = collector.type_url.as_str() == kind::LDS;
        if removals_first {
            self.apply_removals(cache, collector);
        }
        self.apply_resources(cache, collector);
        self.replace_variants(cache, collector);
        self.apply_rejections(cache, collector);
        self.apply_errors(cache, collector);
        if !removals_first {
            self.apply_removals(cache, collector);
        }
    }

    /// Stores the accepted resources that are still requested, and renews TTLs.
    /// An accepted resource without a body is a negative answer (S35).
    fn apply_resources(&self, cache: &mut Cache, collector: &mut EffectCollector<'_>) {
        for resource in self.accepted_resources() {
            // An unsubscription may have been sent meanwhile.
            let (name, constraints) = (&resource.name, resource.constraints.as_ref());
            let interest = collector.interest;
            if !interest.is_variant_requested(name, &resource.aliases, constraints) {
                continue;
            }
            if resource.body.is_none() {
                cache.delete(&resource.name, collector);
                continue;
            }

            cache.store(resource, collector);
            cache.refresh_ttl(collector.type_url, resource, self.now);
        }

        for heartbeat in &self.pending.delivery.heartbeats {
            cache.apply_heartbeat(collector.type_url, heartbeat, self.now);
        }
    }

    /// Returns the resources that no rejection names.
    fn accepted_resources(&self) -> impl Iterator<Item = &Arc<Resource>> {
        let rejected_names = self.rejected_names();
        let resources = self.pending.delivery.resources.iter();
        resources.filter(move |resource| !rejected_names.contains(&resource.name))
    }

    /// Returns the names that rejections have. Rejections of the whole response
    /// have none.
    fn rejected_names(&self) -> BTreeSet<&Name> {
        let names = self.rejections.iter().map(|rejection| &rejection.name);
        names.flatten().collect()
    }

    /// Records the rejections that have a name as errors of their names. For a
    /// rejected resource the policy for data errors decides what becomes of the
    /// value; beside a refused variant the other variants stay in use.
    fn apply_rejections(&self, cache: &mut Cache, collector: &mut EffectCollector<'_>) {
        for rejection in self.rejections {
            // C27: without a name only the server is told.
            if let Some(name) = &rejection.name {
                let reason = clip(&rejection.reason, self.max_error_bytes);
                let error = WatchError::new(Cause::Rejected, reason);
                cache.fail(name, CacheState::Nacked, error, collector);
            }
        }
        for Rejection { name, reason } in &self.pending.variant_rejections {
            let error = WatchError::new(Cause::Rejected, clip(reason, self.max_error_bytes));
            if let Some(name) = name {
                cache.refuse_variant(name, error, collector);
            }
        }
    }

    /// Records the server's errors, each of which stays until the resource or
    /// another error replaces it (C43).
    fn apply_errors(&self, cache: &mut Cache, collector: &mut EffectCollector<'_>) {
        for (name, error) in &self.pending.delivery.errors {
            // A collection is not a name: it has no value and no watchers.
            if !collector.interest.desired().names_collection(name) {
                let watch_error = WatchError::new(Cause::Source(error.code), error.message.clone());
                cache.fail(name, CacheState::ReceivedError, watch_error, collector);
            }
            collector.fail(name, error);
        }
    }

    /// Removes the variants whose successors are in the response, after these
    /// are stored: the name is never without a variant in between (TP2). A
    /// variant whose successor is rejected stays.
    fn replace_variants(&self, cache: &mut Cache, collector: &mut EffectCollector<'_>) {
        let rejected_names = self.rejected_names();
        let present_names = self.present_names();
        for (name, constraints) in &self.pending.delivery.removed_variants {
            if present_names.contains(name) && !rejected_names.contains(name) {
                cache.delete_variant(name, constraints.as_ref(), collector);
            }
        }
        let is_sotw = self.pending.version.is_some();
        if is_sotw {
            self.drop_unlisted_variants(cache, collector);
        }
    }

    /// Removes names and variants: those that the response lists as removed,
    /// and in SotW the names that it leaves out.
    fn apply_removals(&self, cache: &mut Cache, collector: &mut EffectCollector<'_>) {
        for name in &self.pending.delivery.removed {
            cache.delete(name, collector);
        }
        let present_names = self.present_names();
        for (name, constraints) in &self.pending.delivery.removed_variants {
            if !present_names.contains(name) {
                cache.delete_variant(name, constraints.as_ref(), collector);
            }
        }

        // C31: a resource without a readable name may be any of the missing
        // ones.
        let are_names_readable = self
            .rejections
            .iter()
            .all(|rejection| rejection.name.is_some());
        if self.pending.is_whole_set && are_names_readable {
            cache.delete_absent(&self.present_names(), collector);
        }
    }

    /// Deletes variants that a SotW response leaves out: it has all variants of
    /// each name that it lists. Names with one variant, and names that the
    /// response does not list, keep theirs.
    fn drop_unlisted_variants(&self, cache: &mut Cache, collector: &mut EffectCollector<'_>) {
        type Variant<'a> = (&'a Name, Option<&'a Constraints>);
        let listed_variants: BTreeSet<Variant<'_>> = self
            .accepted_resources()
            .map(|resource| (&resource.name, resource.constraints.as_ref()))
            .collect();

        for (name, _) in &listed_variants {
            let entry = cache.entries.get(*name);
            let variants = entry.map_or(&[][..], |entry| entry.contents.variants());
            if variants.len() < 2 {
                continue;
            }
            let constraints = variants.iter().map(|variant| variant.constraints.clone());
            let unlisted_constraints =
                constraints.filter(|own| !listed_variants.contains(&(*name, own.as_ref())));
            for constraints in unlisted_constraints.collect::<Vec<_>>() {
                cache.delete_variant(name, constraints.as_ref(), collector);
            }
        }
    }

    /// Returns the names that the response mentions without removing them. None
    /// of them is absent, not even a name whose resource is invalid (C31) or
    /// that has an error (C43).
    fn present_names(&self) -> BTreeSet<&Name> {
        let refusals = self.pending.variant_rejections.iter();
        let mut names: BTreeSet<&Name> = refusals
            .filter_map(|rejection| rejection.name.as_ref())
            .collect();
        names.extend(self.rejected_names());
        names.extend(
            self.pending
                .delivery
                .resources
                .iter()
                .map(|resource| &resource.name),
        );
        names.extend(self.pending.delivery.errors.iter().map(|(name, _)| name));
        names
    }
}
