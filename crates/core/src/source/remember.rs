//! A client that leaves: what it held is remembered by version, for when it
//! comes back to state of the world (S82).

use std::collections::BTreeMap;
use std::sync::Arc;

use super::TypeStream;
use super::client_cache::{Certainty, Cursor};
use crate::database::{ClientSet, Database};
use crate::name::Name;
use crate::resource::Version;

impl TypeStream {
    /// The peer leaves: what it holds is remembered for when it comes back to
    /// state of the world (S82), by the version of every set that it may name.
    pub(crate) fn remember_set(&mut self, db: &mut Database) {
        if !self.sends_whole_sets() {
            return;
        }
        let mut versions: Vec<(usize, Version)> = Vec::new();
        let resumed = self.resumption.as_mut().and_then(|r| r.version.take());
        let accepted = self.acked_version.take();
        let stood_at = accepted.clone().or(resumed);
        versions.extend(accepted.map(|version| (0, version)));
        let rejected = std::mem::take(&mut self.nacked_versions).into_iter();
        versions.extend(rejected.map(|version| (0, version)));
        let pending_acks = self.client_cache.pending_acks().iter().enumerate();
        let pending_acks = pending_acks.filter_map(|(nth, f)| Some((nth + 1, f.version.clone()?)));
        versions.extend(pending_acks);
        // What is held by names alone is less than was sent, once some are given up:
        // another client that names the version may hold more of it.
        let by_names = self.client_cache.cursors().is_empty();
        versions.retain(|(_, version)| by_names || !db.remembers_set(self.type_id, version));
        for (pending_acks, version) in versions {
            let set = Arc::new(self.client_set(db, pending_acks));
            db.remember_set(self.type_id, version, &set);
        }
        if let Some(version) = stood_at.filter(|_| self.sends_invalid_clusters()) {
            let tried = self.unacked_resources();
            db.remember_unacked(self.type_id, &version, tried.into_iter());
        }
    }

    /// Resources of sets that the client has not ACKed, but for sets whose NACK
    /// was expected.
    fn unacked_resources(&self) -> BTreeMap<Name, Version> {
        let pending_acks = self
            .client_cache
            .pending_acks()
            .iter()
            .filter(|f| !f.expects_nack);
        let brought = pending_acks.flat_map(|pending_ack| pending_ack.resources());
        let records = self.client_cache.records();
        let rejected = records.filter(|held| held.certainty == Certainty::MaybeTaken);
        let rejected = rejected.map(|held| &held.resource);
        let tried = rejected.chain(brought);
        tried.map(|r| (r.name.clone(), r.version.clone())).collect()
    }

    /// What the peer holds once it has accepted so many of the responses without
    /// an answer.
    fn client_set(&self, db: &mut Database, pending_acks: usize) -> ClientSet {
        let accepted = || self.client_cache.pending_acks().iter().take(pending_acks);
        let members = |db: &mut Database, view: &Cursor| {
            let advances = accepted().flat_map(|pending_ack| &pending_ack.advances);
            let own = advances.filter(|advance| advance.cursor == Some(view.id) && advance.is_last);
            let at = own.map(|advance| advance.to).max().unwrap_or(view.position);
            db.resources_at(view.id, at)
        };
        let quarantined = self.quarantine.iter();
        let rejected = quarantined.map(|((name, constraints), (version, _))| {
            (name.clone(), constraints.clone(), version.clone())
        });
        ClientSet {
            quarantined: rejected.collect(),
            unacked: BTreeMap::new(),
            resources: self
                .set_after(db, pending_acks, members)
                .into_values()
                .collect(),
        }
    }
}
