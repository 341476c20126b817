//! What must hold of the belief at any time.

use super::ClientCache;
use crate::name::Name;

impl ClientCache {
    /// Proves the invariants that stand beside the fields.
    pub(crate) fn check(&self, wanted: impl Fn(&Name) -> bool) -> Result<(), String> {
        let (mut sum, mut unknown) = (0_u128, 0);
        for held in &self.records {
            let name = &held.resource.name;
            if held.is_accepted() {
                sum = sum.wrapping_add(held.resource.fingerprint());
            }
            unknown += usize::from(held.has_unknown_body());
            let mut same = self.records_of(name);
            let twice = |other: &&super::CachedResource| {
                let rejected = held.certainty == super::Certainty::MaybeTaken;
                let other_version = other.resource.version != held.resource.version;
                other.is_same_record(held) && !(rejected && other_version)
            };
            if same.by_ref().filter(twice).count() != 1 {
                return Err(format!("{:?} is recorded twice", held.resource));
            }
            if self.deciding_cursor(name).is_some() {
                return Err(format!("{name} is recorded, and a view speaks for it"));
            }
            if self.covering_cursor(name).is_none() && !wanted(name) {
                return Err(format!("{name} is recorded, and nothing asks for it"));
            }
        }
        if (sum, unknown) != (self.fingerprint_sum, self.unknown_bodies) {
            return Err("the records do not add up".into());
        }
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
}
