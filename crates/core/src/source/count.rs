//! Counts of a type stream, with which limits are compared.

use super::TypeStream;
use crate::database::Scope;

impl TypeStream {
    /// Returns the number of subscriptions and cursors.
    pub(crate) fn subscription_count(&self) -> usize {
        self.subscriptions.len() + self.client_cache.cursors().len()
    }

    /// Returns the weight of all names that the client is subscribed to.
    pub(crate) fn subscription_weight(&self) -> usize {
        self.subscriptions.weight()
    }

    /// Returns the number of names that are kept for the client: subscriptions,
    /// records of the client cache, and names that wait to be sent.
    pub(crate) fn name_count(&self) -> usize {
        let unsent_names =
            self.dirty.len() + self.sorted.len() + self.deferred.len() + self.refused.len();
        self.subscriptions.len() + self.client_cache.record_count() + unsent_names
    }

    /// Returns the number of globs that the client is subscribed to.
    pub(crate) fn glob_count(&self) -> usize {
        let cursors = self.client_cache.cursors().iter();
        cursors.filter(|cursor| cursor.scope != Scope::All).count()
    }
}
