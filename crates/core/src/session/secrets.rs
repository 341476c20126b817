//! The resources with secrets that a client was sent: a server takes these
//! secrets out of the errors that the client reports.

use std::sync::Arc;

use super::Session;
use crate::database::{Database, SLICE};
use crate::resource::{Resource, TypeUrl};

impl Session {
    /// Returns the resources of a type whose secrets the client may quote in a
    /// NACK, each once, by name and version: those of responses without an
    /// acknowledgement, and those that it holds.
    ///
    /// If the names that the client is subscribed to, and those that its
    /// wildcards and globs list, are more than [`SLICE`] together, the resources
    /// that it holds are left out. A NACK that quotes one of these shows its
    /// secrets.
    pub fn sent_secrets(&self, db: &mut Database, type_url: &TypeUrl) -> Vec<Arc<Resource>> {
        let Some(type_stream) = self.type_stream(type_url.as_str()) else {
            return Vec::new();
        };
        let pending_acks = type_stream.client_cache.pending_acks().iter();
        let pending_resources = pending_acks.flat_map(|pending_ack| pending_ack.resources());
        let is_secret = |resource: &&Arc<Resource>| resource.facts().holds_secrets();
        let mut secrets: Vec<Arc<Resource>> =
            pending_resources.filter(is_secret).cloned().collect();

        // No request visits more names than these (S85).
        let name_count = type_stream.subscriptions.len() + type_stream.listed_count(db);
        if name_count <= SLICE {
            let held_resources = self.held_resources(db, type_url).into_values();
            secrets.extend(held_resources.filter(|resource| is_secret(&resource)));
        }
        secrets.sort_unstable_by(|left, right| {
            (&left.name, &left.version).cmp(&(&right.name, &right.version))
        });
        secrets.dedup();
        secrets
    }
}
