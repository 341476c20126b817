//! The changes of subscriptions by one request, applied one by one: a session
//! reads a long request in slices (S85).

use std::vec::IntoIter;

use super::subscribe::UnsubscribedResources;
use super::{SubscriptionKey, TypeStream, negative};
use crate::database::{Database, Scope};
use crate::message::InitialVersions;
use crate::name::Name;
use crate::params::ParamsId;
use crate::resource::{Resource, Version};

/// One change of the subscriptions.
#[derive(Debug)]
pub(crate) enum SubscriptionChange {
    Subscribe(Name, ParamsId),
    Unsubscribe(Name, ParamsId),
    SubscribeScope(Scope),
    UnsubscribeScope(Scope),
}

/// The parts of a request other than its names, and the progress and effects of
/// its changes.
#[derive(Debug, Default)]
pub(crate) struct RequestContext {
    pub(crate) initial: InitialVersions,
    /// The number of initial versions that are recorded already.
    pub(crate) recorded_count: usize,
    /// SotW: the version that the first request names.
    pub(crate) version: Option<Version>,
    /// SotW: subscriptions of which the client may hold anything, until that is
    /// recorded.
    pub(crate) unknown: IntoIter<SubscriptionKey>,
    /// The resources that the client held by names that it unsubscribed from,
    /// and that may refer to others.
    pub(crate) unsubscribed: UnsubscribedResources,
}

impl TypeStream {
    /// Applies one change of a request. The resources that the client held by a
    /// name that it unsubscribed from are added to the request, except those of
    /// hosts.
    pub(crate) fn apply_change(
        &mut self,
        db: &mut Database,
        request: &mut RequestContext,
        change: SubscriptionChange,
    ) {
        match change {
            SubscriptionChange::Subscribe(name, params) => {
                self.subscribe(db, &name, params, &request.initial);
            }
            SubscriptionChange::Unsubscribe(name, params) if self.kind.on_demand => {
                self.unsubscribe_host(db, &name, params);
            }
            SubscriptionChange::Unsubscribe(name, params) => {
                let resources = self.unsubscribe(db, &name, params).into_iter();
                let may_refer = |resource: &Resource| {
                    resource.body.is_none() || !resource.facts().references.is_empty()
                };
                let referrers = resources.filter(|resource| may_refer(resource));
                request.unsubscribed.extend(referrers);
            }
            SubscriptionChange::SubscribeScope(scope) => {
                self.subscribe_scope(db, &scope, &request.initial);
            }
            SubscriptionChange::UnsubscribeScope(scope) => self.unsubscribe_scope(db, &scope),
        }
    }

    /// Records the resources that a reconnected client holds, as its first
    /// request says. Visits at most `budget` names, and subtracts them from the
    /// budget. Returns whether all are recorded; if not, the caller calls it
    /// again.
    pub(crate) fn record_resumed_resources(
        &mut self,
        db: &mut Database,
        request: &mut RequestContext,
        budget: &mut usize,
    ) -> bool {
        if let Some(version) = request.version.take() {
            request.unknown = self.resume_set(db, &version).into_iter();
        }
        let unknown_keys = request.unknown.by_ref().take(*budget);
        *budget -= unknown_keys.len();
        self.record_unknown(db, unknown_keys);
        request.unknown.len() == 0 && self.record_initial_versions(db, request, budget)
    }

    /// Records the initial versions of a request, which
    /// [`Self::record_resumed_resources`] has begun, within the same budget.
    /// Returns whether all are recorded.
    fn record_initial_versions(
        &mut self,
        db: &mut Database,
        request: &mut RequestContext,
        budget: &mut usize,
    ) -> bool {
        if request.recorded_count == 0 {
            // The next negative answer has a version that the client does not
            // hold.
            self.negative_counter = match self.kind.on_demand && !request.initial.is_empty() {
                true => 1,
                false => self.negative_counter,
            };
        }
        let remaining = &request.initial.as_slice()[request.recorded_count..];
        if !self.kind.on_demand && !self.may_hold_negatives() {
            self.count_resumed_resources(remaining);
            return true;
        }

        let batch = &remaining[..remaining.len().min(*budget)];
        self.count_resumed_resources(batch);
        if self.kind.on_demand {
            self.record_other_hosts(db, batch);
            let numbers = batch
                .iter()
                .filter_map(|(_, version)| negative::negative_number(version));
            let next_number = numbers.max().map_or(1, |highest| highest.wrapping_add(1));
            self.negative_counter = self.negative_counter.max(next_number);
        }

        *budget -= batch.len();
        request.recorded_count += batch.len();
        batch.len() == remaining.len()
    }

    /// Finishes a request whose changes are all applied: cancels the owed
    /// response if no subscription is left, and ends the first request of a
    /// resumed client.
    pub(crate) fn finish_request(&mut self) {
        self.cancel_owed_response();
        self.end_first_request();
        self.located_names.clear();
    }
}
