//! A client that leaves: what it held is remembered by version, for when it
//! comes back to state of the world (S82).

use std::sync::Arc;

use super::Conversation;
use super::holdings::View;
use crate::database::{Database, DepartedSet};
use crate::resource::Version;

impl Conversation {
    /// The peer leaves: what it holds is remembered for when it comes back to
    /// state of the world (S82), by the version of every set that it may name.
    pub(crate) fn remember_set(&mut self, db: &mut Database) {
        if !self.is_whole() {
            return;
        }
        let mut versions: Vec<(usize, Version)> = Vec::new();
        versions.extend(self.acked_version.take().map(|version| (0, version)));
        let rejected = std::mem::take(&mut self.rejected_versions).into_iter();
        versions.extend(rejected.map(|version| (0, version)));
        let flights = self.holdings.flights().iter().enumerate();
        let flights = flights.filter_map(|(nth, f)| Some((nth + 1, f.version.clone()?)));
        versions.extend(flights);
        versions.retain(|(_, version)| !db.remembers_set(self.type_id, version));
        for (flights, version) in versions {
            let set = Arc::new(self.departed_set(db, flights));
            db.remember_set(self.type_id, version, &set);
        }
    }

    /// What the peer holds once it has accepted so many of the responses without
    /// an answer.
    fn departed_set(&self, db: &mut Database, flights: usize) -> DepartedSet {
        let accepted = || self.holdings.flights().iter().take(flights);
        let members = |db: &mut Database, view: &View| {
            let steps = accepted().flat_map(|flight| &flight.steps);
            let own = steps.filter(|step| step.follow == Some(view.follow) && step.last);
            let at = own.map(|step| step.to).max().unwrap_or(view.position);
            db.held(view.follow, at)
        };
        let parked = self.parked.iter();
        let rejected = parked.map(|((name, constraints), (version, _))| {
            (name.clone(), constraints.clone(), version.clone())
        });
        DepartedSet {
            rejected: rejected.collect(),
            resources: self.set_after(db, flights, members).into_values().collect(),
        }
    }
}
