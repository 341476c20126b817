//! Remembers the whole set of a client that disconnects, by version, for when
//! it resumes (S82): then `resume` asks for it. The table of these sets is
//! `database::client_sets`.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::TypeStream;
use super::client_cache::{Certainty, Cursor};
use crate::database::{ClientSet, Database};
use crate::name::Name;
use crate::resource::Version;

impl TypeStream {
    /// Remembers the resources that the client holds, by the version of every
    /// set that it may name when it reconnects (S82): the last that it ACKed,
    /// those that it NACKed, and those whose ACK is pending. Only for whole
    /// sets.
    pub(crate) fn remember_set(&mut self, db: &mut Database) {
        if !self.sends_whole_sets() {
            return;
        }

        // The number of pending ACKs that the set of a version includes, and
        // the version.
        let mut versions: Vec<(usize, Version)> = Vec::new();
        let resumed_version = self
            .resumption
            .as_mut()
            .and_then(|resumption| resumption.version.take());
        let acked_version = self.acked_version.take();
        let last_version = acked_version.clone().or(resumed_version);
        versions.extend(acked_version.map(|version| (0, version)));
        let nacked_versions = std::mem::take(&mut self.nacked_versions).into_iter();
        versions.extend(nacked_versions.map(|version| (0, version)));
        let pending_acks = self.client_cache.pending_acks().iter().enumerate();
        let pending_versions = pending_acks
            .filter_map(|(nth, pending_ack)| Some((nth + 1, pending_ack.version.clone()?)));
        versions.extend(pending_versions);

        // A client that is subscribed to names alone, and unsubscribed from
        // some, holds less than it was sent: another client with this version
        // may hold more of the set.
        let has_only_names = self.client_cache.cursors().is_empty();
        versions.retain(|(_, version)| has_only_names || !db.remembers_set(self.type_id, version));
        for (pending_acks, version) in versions {
            let set = Arc::new(self.client_set(db, pending_acks));
            db.remember_set(self.type_id, version, &set);
        }

        if let Some(version) = last_version.filter(|_| self.sends_invalid_clusters()) {
            let unacked_resources = self.unacked_resources();
            db.remember_unacked(self.type_id, &version, unacked_resources.into_iter());
        }
    }

    /// Returns the resources of sets that the client has NACKed or not
    /// acknowledged, without sets whose NACK is expected. Of several versions
    /// of a name one is listed, preferably one whose ACK is pending.
    fn unacked_resources(&self) -> BTreeMap<Name, Version> {
        let pending_acks = self.client_cache.pending_acks().iter();
        let judged_responses = pending_acks.filter(|pending_ack| !pending_ack.expects_nack);
        let pending_resources = judged_responses.flat_map(|pending_ack| pending_ack.resources());

        let records = self.client_cache.records();
        let nacked_records = records.filter(|record| record.certainty == Certainty::MaybeTaken);
        let nacked_resources = nacked_records.map(|record| &record.resource);
        let resources = nacked_resources.chain(pending_resources);
        resources
            .map(|resource| (resource.name.clone(), resource.version.clone()))
            .collect()
    }

    /// Returns what the client will hold once it has ACKed the first
    /// `pending_acks` of the pending responses, and its quarantine now.
    /// Resources of unknown body are left out.
    fn client_set(&self, db: &mut Database, pending_acks: usize) -> ClientSet {
        let acked_responses = || self.client_cache.pending_acks().iter().take(pending_acks);
        let members = |db: &mut Database, cursor: &Cursor| {
            let advances = acked_responses().flat_map(|pending_ack| &pending_ack.advances);
            // A whole set has all of an advance.
            let own_advances = advances.filter(|advance| advance.cursor == Some(cursor.id));
            let sent_position = own_advances.map(|advance| advance.to).max();
            db.resources_at(cursor.id, sent_position.unwrap_or(cursor.position))
        };

        let entries = self.quarantine.iter();
        let quarantined = entries.map(|((name, constraints), (version, _))| {
            (name.clone(), constraints.clone(), version.clone())
        });
        ClientSet {
            quarantined: quarantined.collect(),
            unacked_versions: BTreeMap::new(),
            resources: self
                .set_after_acks(db, pending_acks, members)
                .into_values()
                .collect(),
        }
    }
}
