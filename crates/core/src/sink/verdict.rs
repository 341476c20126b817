//! The owner's verdict on one response, and what follows from it.
//!
//! There is one verdict for each response and it is total: the response is
//! acknowledged, or rejected with every reason in one text (C18). What is good
//! in it is used either way (C26).

use std::collections::BTreeSet;
use std::sync::Arc;

use super::cache::{Cache, CacheState};
use super::config::SinkConfig;
use super::effects::EffectCollector;
use super::event::{Cause, Effects, WatchError};
use super::response::{PendingVerdict, clip};
use crate::Moment;
use crate::kind;
use crate::message::ErrorDetail;
use crate::name::Name;
use crate::params::Constraints;
use crate::resource::Resource;

/// What the owner thinks of a delivery.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// What is bad in it; nothing: it is accepted.
    pub rejected: Vec<Rejection>,
}

/// One thing that is bad in a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// Whose fault it is; `None` if the name could not be read (C27).
    pub name: Option<Name>,
    /// For people only (S64).
    pub reason: String,
}

impl Rejection {
    /// A resource is bad: those who watch it will hear of it.
    #[must_use]
    pub fn of(name: &Name, reason: impl Into<String>) -> Self {
        Self {
            name: Some(name.clone()),
            reason: reason.into(),
        }
    }

    /// Something is bad that has no name: only the source will hear of it.
    #[must_use]
    pub fn of_response(reason: impl Into<String>) -> Self {
        Self {
            name: None,
            reason: reason.into(),
        }
    }
}

impl Verdict {
    /// All of it is good.
    #[must_use]
    pub fn accept() -> Self {
        Self::default()
    }

    /// These are bad, the rest is good.
    #[must_use]
    pub fn reject(rejected: Vec<Rejection>) -> Self {
        Self { rejected }
    }
}

/// What follows from a verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Whether the response is acknowledged.
    pub acked: bool,
    /// What it brings about.
    pub effects: Effects,
}

/// The text of a rejection: every reason, shortened as a whole (E8).
pub(super) fn detail(rejected: &[Rejection], config: &SinkConfig) -> Option<ErrorDetail> {
    let longest = config.limits.error_bytes;
    let mut message = String::new();
    for rejection in rejected {
        if message.len() > longest {
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
    message.truncate(clip(&message, longest).len());
    (!rejected.is_empty()).then(|| ErrorDetail {
        code: config.nack_code.number(),
        message,
    })
}

/// Applies what a verdict leaves of a response.
pub(super) struct VerdictApplier<'a> {
    pub(super) pending: &'a PendingVerdict,
    pub(super) rejected: &'a [Rejection],
    pub(super) longest_error: usize,
    pub(super) now: Moment,
}

impl VerdictApplier<'_> {
    /// Applies all of it. Listeners go before others come, since a new one may
    /// need the address of an old one (E8); elsewhere removals are last.
    pub(super) fn apply(&self, cache: &mut Cache, collector: &mut EffectCollector<'_>) {
        let removals_first = collector.type_url.as_str() == kind::LDS;
        if removals_first {
            self.apply_removals(cache, collector);
        }
        self.apply_resources(cache, collector);
        self.apply_rejections(cache, collector);
        self.apply_errors(cache, collector);
        if !removals_first {
            self.apply_removals(cache, collector);
        }
    }

    fn apply_resources(&self, cache: &mut Cache, collector: &mut EffectCollector<'_>) {
        for resource in self.accepted() {
            // The source may have been told meanwhile that nobody wants it.
            if !collector.interest.is_resource_requested(resource) {
                continue;
            }
            if resource.body.is_none() {
                cache.delete(&resource.name, collector);
                continue;
            }
            cache.receive(resource, collector);
            cache.refresh(resource, self.now, collector);
        }
        for beat in &self.pending.delivery.heartbeats {
            cache.heartbeat(beat, self.now, collector);
        }
    }

    /// The resources that no rejection names.
    fn accepted(&self) -> impl Iterator<Item = &Arc<Resource>> {
        let bad = self.rejected_names();
        let resources = self.pending.delivery.resources.iter();
        resources.filter(move |resource| !bad.contains(&resource.name))
    }

    fn rejected_names(&self) -> BTreeSet<&Name> {
        let names = self.rejected.iter().map(|rejection| &rejection.name);
        names.flatten().collect()
    }

    fn apply_rejections(&self, cache: &mut Cache, collector: &mut EffectCollector<'_>) {
        for rejection in self.rejected {
            // C27: without a name there is nobody to tell but the source.
            if let Some(name) = &rejection.name {
                let reason = clip(&rejection.reason, self.longest_error);
                let error = WatchError::new(Cause::Rejected, reason);
                cache.fail(name, CacheState::Nacked, error, collector);
            }
        }
    }

    /// C43: remembered until the resource or another error takes its place.
    fn apply_errors(&self, cache: &mut Cache, collector: &mut EffectCollector<'_>) {
        for (name, said) in &self.pending.delivery.errors {
            // A collection is not a name: it has no value and nobody watches it.
            if !collector.interest.wanted().names_collection(name) {
                let error = WatchError::new(Cause::Source(said.code), said.message.clone());
                cache.fail(name, CacheState::ReceivedError, error, collector);
            }
            collector.fail(name, said);
        }
    }

    fn apply_removals(&self, cache: &mut Cache, collector: &mut EffectCollector<'_>) {
        for name in &self.pending.delivery.removed {
            cache.delete(name, collector);
        }
        for (name, constraints) in &self.pending.delivery.removed_variants {
            cache.delete_variant(name, constraints.as_ref(), collector);
        }
        if self.pending.version.is_some() {
            self.drop_other_variants(cache, collector);
        }
        // C31: something without a name was present; it may be any of them.
        if self.pending.is_whole_set && self.rejected.iter().all(|r| r.name.is_some()) {
            cache.delete_absent(&self.present(), collector);
        }
    }

    /// In the state of the world, a name has the variants that are listed.
    fn drop_other_variants(&self, cache: &mut Cache, collector: &mut EffectCollector<'_>) {
        type Variant<'a> = (&'a Name, Option<&'a Constraints>);
        let listed: BTreeSet<Variant<'_>> = self
            .accepted()
            .map(|r| (&r.name, r.constraints.as_ref()))
            .collect();
        for (name, _) in &listed {
            let Some(entry) = cache.entries.get(*name).filter(|e| e.held.len() > 1) else {
                continue;
            };
            let held = entry.held.iter().map(|held| held.constraints.clone());
            let other: Vec<_> = held
                .filter(|constraints| !listed.contains(&(*name, constraints.as_ref())))
                .collect();
            for constraints in other {
                cache.delete_variant(name, constraints.as_ref(), collector);
            }
        }
    }

    /// What the response mentions: an invalid resource is not absent (C31),
    /// nor is one that has an error (C43).
    fn present(&self) -> BTreeSet<&Name> {
        let mut present = self.rejected_names();
        present.extend(self.pending.delivery.resources.iter().map(|r| &r.name));
        present.extend(self.pending.delivery.errors.iter().map(|(name, _)| name));
        present
    }
}
