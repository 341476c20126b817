//! The invariants of a client cache.

use super::{CachedResource, Certainty, ClientCache};
use crate::name::Name;

impl ClientCache {
    /// Proves the invariants that stand beside the fields; the error says which
    /// one is broken. `is_expected` is whether a name that no cursor covers may
    /// have records.
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

    /// Proves that no variant is recorded twice with one certainty, unless both
    /// are maybe taken and of other versions; and that no name is recorded that
    /// a cursor decides, or that nobody expects.
    fn check_records(&self, is_expected: impl Fn(&Name) -> bool) -> Result<(), String> {
        for held in &self.records {
            let name = &held.resource.name;
            let is_twice = |other: &&CachedResource| {
                let is_other_version = other.resource.version != held.resource.version;
                let may_be_beside = held.certainty == Certainty::MaybeTaken && is_other_version;
                other.is_same_record(held) && !may_be_beside
            };
            // The record itself is found once.
            if self.records_of(name).filter(is_twice).count() != 1 {
                return Err(format!("{:?} is recorded twice", held.resource));
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
        let accepted = self.records.iter().filter(|held| held.is_accepted());
        let fingerprints = accepted.map(|held| held.resource.fingerprint());
        let sum = fingerprints.fold(0, u128::wrapping_add);
        let unknown = self.records.iter().filter(|held| held.has_unknown_body());
        match sum == self.fingerprint_sum && unknown.count() == self.unknown_bodies {
            true => Ok(()),
            false => Err("the records do not add up".into()),
        }
    }
}
