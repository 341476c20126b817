//! The invariants of a type stream.

use super::TypeStream;
use crate::database::Database;
use crate::name::Name;

impl TypeStream {
    /// Proves the invariants of subscriptions, client cache and NACKs. The
    /// error says which one is broken.
    pub(crate) fn check(&self, db: &mut Database) -> Result<(), String> {
        self.subscriptions.check()?;
        let is_expected = |name: &Name| self.has_interest(db, name) || self.is_in_progress(name);
        self.client_cache.check(is_expected)?;

        for (key, _) in self.subscriptions.iter() {
            let name = db.name(self.type_id, key.entry).clone();
            let is_covered = self.client_cache.covering_cursor(&name).is_some();
            if is_covered && !self.client_cache.exceptions().contains(&name) {
                return Err(format!(
                    "{name} is subscribed to by name, and is no exception of its cursor"
                ));
            }
        }

        for variant in self.suspects.keys() {
            let is_in_trial = self.trials.iter().flatten().any(|other| other == variant);
            if !is_in_trial {
                return Err(format!("{variant:?} is a suspect and in no trial"));
            }
        }
        if self.quarantine.is_empty() && self.suspects.is_empty() && self.last_error.is_some() {
            return Err("there is a last error, and nothing is NACKed".into());
        }
        Ok(())
    }

    /// Returns whether a name will be evaluated, is NACKed, or has a pending
    /// ACK.
    fn is_in_progress(&self, name: &Name) -> bool {
        let mut pending_acks = self.client_cache.pending_acks().iter();
        let mut nacked_variants = self.quarantine.keys().chain(self.suspects.keys());
        nacked_variants.any(|(nacked_name, _)| nacked_name == name)
            || self.dirty.contains(name)
            || self.sorted.contains(name)
            || self.deferred.contains(name)
            || pending_acks.any(|pending_ack| !pending_ack.updates_of(name).is_empty())
    }
}
