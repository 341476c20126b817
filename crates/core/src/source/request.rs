//! What one request changes, name by name: in slices if it names many (S85).

use std::collections::VecDeque;

use super::subscribe::UnsubscribedResources;
use super::{TypeStream, negative};
use crate::database::{Database, Scope};
use crate::message::InitialVersions;
use crate::name::Name;
use crate::params::ParamsId;
use crate::resource::Version;

/// One step of reading a request.
#[derive(Debug)]
pub(super) enum SubscriptionChange {
    Subscribe(Name, ParamsId),
    Unsubscribe(Name, ParamsId),
    SubscribeScope(Scope),
    UnsubscribeScope(Scope),
}

/// A request that is being read.
#[derive(Debug, Default)]
pub(crate) struct RequestChanges {
    pub(super) changes: VecDeque<SubscriptionChange>,
    pub(super) initial: InitialVersions,
    /// State of the world: the version that the first request names.
    pub(super) version: Option<Version>,
    /// What the peer held by names that it gives up.
    pub(crate) unsubscribed: UnsubscribedResources,
}

impl TypeStream {
    /// Makes so many changes; whether all are made.
    pub(crate) fn apply_changes(
        &mut self,
        db: &mut Database,
        reading: &mut RequestChanges,
        most: usize,
    ) -> bool {
        for _ in 0..most {
            let Some(act) = reading.changes.pop_front() else {
                break;
            };
            match act {
                SubscriptionChange::Subscribe(name, params) => {
                    self.subscribe(db, &name, params, &reading.initial)
                }
                SubscriptionChange::Unsubscribe(name, params) if self.kind.on_demand => {
                    self.unsubscribe_host(db, &name, params);
                }
                SubscriptionChange::Unsubscribe(name, params) => {
                    reading
                        .unsubscribed
                        .extend(self.unsubscribe(db, &name, params));
                }
                SubscriptionChange::SubscribeScope(scope) => {
                    self.subscribe_scope(db, &scope, &reading.initial)
                }
                SubscriptionChange::UnsubscribeScope(scope) => self.unsubscribe_scope(db, &scope),
            }
        }
        if !reading.changes.is_empty() {
            return false;
        }
        if self.kind.on_demand && !reading.initial.is_empty() {
            self.record_other_hosts(db, &reading.initial);
            let told = reading
                .initial
                .iter()
                .filter_map(|(_, version)| negative::negative_number(version));
            self.negative_counter = told.max().unwrap_or(0).wrapping_add(1);
        }
        self.cancel_owed_response();
        if let Some(version) = &reading.version {
            self.resume_set(db, version);
        }
        self.end_first_request();
        self.located_names.clear();
        true
    }
}
