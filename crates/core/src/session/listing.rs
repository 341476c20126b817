//! The statuses of all names of a type, worked out in slices: a client may have
//! a million, and others need not wait while somebody looks at it (S16, S85).
//!
//! The session may go on between two slices. A name that comes or goes
//! meanwhile is listed or not.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::vec::IntoIter;

use super::Session;
use super::status::{NameState, NameStatus, certain_resource, sent_names};
use crate::database::{Database, SLICE};
use crate::name::Name;
use crate::resource::{Resource, TypeUrl};
use crate::source::{AnswerKind, SubscriptionKey};

/// A list of names that is being made.
#[derive(Debug)]
pub struct NameListing {
    type_url: TypeUrl,
    /// Subscriptions that were not visited yet.
    subscriptions: IntoIter<SubscriptionKey>,
    /// Names under which the client may hold a resource, and that were not
    /// visited yet; `None` until all subscriptions were visited.
    held_names: Option<IntoIter<Name>>,
    /// The statuses so far; a later one of a name replaces an earlier one.
    statuses: BTreeMap<Name, (NameState, Option<Arc<Resource>>)>,
}

impl Session {
    /// Starts a list of the names of a type: those that the client is
    /// subscribed to, holds, was sent or NACKed.
    #[must_use]
    pub fn list_names(&self, type_url: &TypeUrl) -> NameListing {
        let type_stream = self.type_stream(type_url.as_str());
        let keys = type_stream.map(|type_stream| type_stream.subscriptions.keys().collect());
        let keys: Vec<SubscriptionKey> = keys.unwrap_or_default();
        NameListing {
            type_url: type_url.clone(),
            subscriptions: keys.into_iter(),
            held_names: None,
            statuses: BTreeMap::new(),
        }
    }

    /// Visits a slice of the names, first those of subscriptions, then those
    /// that the client may hold. Returns whether there are more.
    pub fn list_slice(&self, db: &mut Database, listing: &mut NameListing) -> bool {
        let Some(type_stream) = self.type_stream(listing.type_url.as_str()) else {
            return false;
        };

        if listing.subscriptions.len() > 0 {
            for key in listing.subscriptions.by_ref().take(SLICE) {
                let subscription = type_stream.subscriptions.get(key);
                // A held resource is listed under its own name: a host may be
                // requested by another.
                let state = match subscription.map(|subscription| subscription.acked_answer) {
                    Some(AnswerKind::Absent) => NameState::Absent,
                    Some(AnswerKind::Unanswered | AnswerKind::Error) => NameState::Requested,
                    Some(AnswerKind::Resource) | None => continue,
                };
                let name = db.name(type_stream.type_id, key.entry).clone();
                listing.statuses.insert(name, (state, None));
            }
            return true;
        }

        let Some(held_names) = &mut listing.held_names else {
            let names = self.held_names(db, &listing.type_url);
            listing.held_names = Some(names.into_iter().collect::<Vec<_>>().into_iter());
            return true;
        };

        for name in held_names.by_ref().take(SLICE) {
            if let Some(resource) = certain_resource(db, type_stream, &name) {
                let status = (NameState::Accepted, Some(resource));
                listing.statuses.insert(name, status);
            }
        }
        held_names.len() > 0
    }

    /// Returns the statuses in the order of names. Called after all names were
    /// visited: responses without an acknowledgement and NACKs are added now.
    #[must_use]
    pub fn finish_listing(&self, listing: NameListing) -> Vec<NameStatus> {
        let mut statuses = listing.statuses;
        if let Some(type_stream) = self.type_stream(listing.type_url.as_str()) {
            let pending_acks = type_stream.client_cache.pending_acks().iter();
            for (name, resource) in pending_acks.flat_map(sent_names) {
                statuses.insert(name, (NameState::Sent, resource));
            }
            for ((name, _), (version, _)) in &type_stream.quarantine {
                let held_resource = statuses.remove(name).and_then(|(_, resource)| resource);
                statuses.insert(
                    name.clone(),
                    (NameState::Rejected(version.clone()), held_resource),
                );
            }
        }

        let status = |(name, (state, resource))| NameStatus {
            name,
            state,
            resource,
        };
        statuses.into_iter().map(status).collect()
    }

    /// Returns the names under which the client may hold a resource of a type.
    /// All of them are visited at once.
    pub(super) fn held_names(&self, db: &mut Database, type_url: &TypeUrl) -> BTreeSet<Name> {
        let Some(type_stream) = self.type_stream(type_url.as_str()) else {
            return BTreeSet::new();
        };
        let client_cache = &type_stream.client_cache;
        let mut names = BTreeSet::new();
        for cursor in client_cache.cursors() {
            let held_resources = cursor.held_resources(db).into_iter();
            names.extend(held_resources.map(|resource| resource.name.clone()));
        }
        let records = client_cache.records();
        names.extend(records.map(|record| record.resource.name.clone()));
        names
    }
}
