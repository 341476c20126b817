//! The invariants of a client cache.

use super::{CachedResource, Certainty, ClientCache};
use crate::name::Name;

impl ClientCache {
    /// Proves the invariants that stand beside the fields; the error says which
    /// one is broken. `is_expected` tells whether a name that no cursor covers
    /// may have records.
    pub(crate) fn check(&self, is_expected: impl Fn(&Name) -> bool) -> Result<(), String> {
        self.check_records(is_expected)?;
        self.check_totals()?;

        for name in &self.exceptions {
            if self.covering_cursor(name).is_none() {
                return Err(format!("{name} is an exception to no view"));
            }
        }

        for pending_ack in &self.pending_acks {
            let mut updates = pending_ack.updates.windows(2);
            if let Some(pair) = updates.find(|pair| pair[0].variant >= pair[1].variant) {
                return Err(format!("{:?} and {:?} are out of order", pair[0], pair[1]));
            }
        }
        Ok(())
    }

    /// Proves that no variant is recorded twice with one certainty, except as
    /// maybe taken in different versions; and that no name is recorded that a
    /// cursor decides, or that nobody expects.
    fn check_records(&self, is_expected: impl Fn(&Name) -> bool) -> Result<(), String> {
        for record in &self.records {
            let name = &record.resource.name;
            let is_twice = |other: &&CachedResource| {
                let is_other_version = other.resource.version != record.resource.version;
                let may_coexist = record.certainty == Certainty::MaybeTaken && is_other_version;
                other.is_same_record(record) && !may_coexist
            };
            // The record itself is found once.
            if self.records_of(name).filter(is_twice).count() != 1 {
                return Err(format!("{:?} is recorded twice", record.resource));
            }
            if self.deciding_cursor(name).is_some() {
                return Err(format!("{name} is recorded, and a view speaks for it"));
            }
            if self.covering_cursor(name).is_none() && !is_expected(name) {
                return Err(format!("{name} is recorded, and nothing asks for it"));
            }
        }
        Ok(())
    }

    /// Proves that the sum of fingerprints and the count of unknown bodies are
    /// those of the records.
    fn check_totals(&self) -> Result<(), String> {
        let accepted = self.records.iter().filter(|record| record.is_accepted());
        let fingerprints = accepted.map(|record| record.resource.fingerprint());
        let sum = fingerprints.fold(0, u128::wrapping_add);
        let unknown_bodies = self
            .records
            .iter()
            .filter(|record| record.has_unknown_body());
        match sum == self.fingerprint_sum && unknown_bodies.count() == self.unknown_bodies {
            true => Ok(()),
            false => Err("the records do not add up".into()),
        }
    }
}
