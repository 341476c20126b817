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

/// What a request says beside its names, and what their changes have ended.
#[derive(Debug, Default)]
pub(crate) struct RequestContext {
    pub(crate) initial: InitialVersions,
    /// How many of the initial versions are recorded.
    pub(crate) recorded: usize,
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
    /// name that it unsubscribed from are noted in the request, but for hosts.
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
                let unsubscribed = self.unsubscribe(db, &name, params).into_iter();
                let may_refer = |r: &Resource| r.body.is_none() || !r.facts().references.is_empty();
                let referring = unsubscribed.filter(|resource| may_refer(resource));
                request.unsubscribed.extend(referring);
            }
            SubscriptionChange::SubscribeScope(scope) => {
                self.subscribe_scope(db, &scope, &request.initial);
            }
            SubscriptionChange::UnsubscribeScope(scope) => self.unsubscribe_scope(db, &scope),
        }
    }

    /// Records what a client that reconnected holds, for `left` names at most,
    /// which are counted. Returns whether all is recorded.
    pub(crate) fn record_held(
        &mut self,
        db: &mut Database,
        request: &mut RequestContext,
        left: &mut usize,
    ) -> bool {
        if let Some(version) = request.version.take() {
            request.unknown = self.resume_set(db, &version).into_iter();
        }
        let unknown = request.unknown.by_ref().take(*left);
        *left -= unknown.len();
        self.record_unknown(db, unknown);
        if request.unknown.len() > 0 {
            return false;
        }

        if request.recorded == 0 {
            // The next negative answer has a version that the client does not
            // hold.
            self.negative_counter = match self.kind.on_demand && !request.initial.is_empty() {
                true => 1,
                false => self.negative_counter,
            };
        }
        let rest = &request.initial.as_slice()[request.recorded..];
        if !self.kind.on_demand && !self.may_hold_negatives() {
            self.count_resumed(rest);
            return true;
        }
        let some = &rest[..rest.len().min(*left)];
        self.count_resumed(some);
        if self.kind.on_demand {
            self.record_other_hosts(db, some);
            let numbers = some
                .iter()
                .filter_map(|(_, v)| negative::negative_number(v));
            let next = numbers.max().map_or(1, |highest| highest.wrapping_add(1));
            self.negative_counter = self.negative_counter.max(next);
        }
        *left -= some.len();
        request.recorded += some.len();
        some.len() == rest.len()
    }

    /// Finishes a request whose changes are applied: cancels the response that
    /// is owed if no subscription is left.
    pub(crate) fn finish_request(&mut self) {
        self.cancel_owed_response();
        self.end_first_request();
        self.located_names.clear();
    }
}
