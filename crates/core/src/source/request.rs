//! The changes of subscriptions by one request, applied in slices if there are
//! many (S85).

use std::collections::VecDeque;

use super::subscribe::UnsubscribedResources;
use super::{TypeStream, negative};
use crate::database::{Database, Scope};
use crate::message::InitialVersions;
use crate::name::Name;
use crate::params::ParamsId;
use crate::resource::Version;

/// One change of the subscriptions.
#[derive(Debug)]
pub(super) enum SubscriptionChange {
    Subscribe(Name, ParamsId),
    Unsubscribe(Name, ParamsId),
    SubscribeScope(Scope),
    UnsubscribeScope(Scope),
}

/// The changes by a request that are not applied yet.
#[derive(Debug, Default)]
pub(crate) struct RequestChanges {
    pub(super) changes: VecDeque<SubscriptionChange>,
    pub(super) initial: InitialVersions,
    /// SotW: the version that the first request names.
    pub(super) version: Option<Version>,
    /// The resources that the client held by names that it unsubscribed from.
    pub(crate) unsubscribed: UnsubscribedResources,
}

impl TypeStream {
    /// Applies at most `most` changes of a request. With the last one the
    /// request is finished, and the result is true.
    pub(crate) fn apply_changes(
        &mut self,
        db: &mut Database,
        request: &mut RequestChanges,
        most: usize,
    ) -> bool {
        for _ in 0..most {
            let Some(change) = request.changes.pop_front() else {
                break;
            };
            self.apply_change(db, request, change);
        }
        if !request.changes.is_empty() {
            return false;
        }
        self.finish_request(db, request);
        true
    }

    /// Applies one change of a request. The resources that the client held by a
    /// name that it unsubscribed from are noted in the request, but for hosts.
    fn apply_change(
        &mut self,
        db: &mut Database,
        request: &mut RequestChanges,
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
                let unsubscribed = self.unsubscribe(db, &name, params);
                request.unsubscribed.extend(unsubscribed);
            }
            SubscriptionChange::SubscribeScope(scope) => {
                self.subscribe_scope(db, &scope, &request.initial);
            }
            SubscriptionChange::UnsubscribeScope(scope) => self.unsubscribe_scope(db, &scope),
        }
    }

    /// Finishes a request whose changes are applied: records what a
    /// reconnecting client holds beside its subscriptions, and cancels the
    /// response that is owed if no subscription is left.
    fn finish_request(&mut self, db: &mut Database, request: &RequestChanges) {
        if self.kind.on_demand && !request.initial.is_empty() {
            self.record_other_hosts(db, &request.initial);
            // The next negative answer has a version that the client does not
            // hold.
            let versions = request.initial.iter().map(|(_, version)| version);
            let numbers = versions.filter_map(negative::negative_number);
            self.negative_counter = numbers.max().unwrap_or(0).wrapping_add(1);
        }

        self.cancel_owed_response();
        if let Some(version) = &request.version {
            self.resume_set(db, version);
        }
        self.end_first_request();
        self.located_names.clear();
    }
}
