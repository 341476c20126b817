//! Where resources may take certificates from: the providers of the bootstrap,
//! and the files that a policy allows.

use super::bootstrap::{DataSourcePolicy, FileWatcher};
use super::handle::Client;

impl Client {
    /// Returns the certificates of an instance that the bootstrap names (C5).
    pub(crate) fn certificate_provider(&self, instance: &str) -> Option<&FileWatcher> {
        let bootstrap = self.running().settings.bootstrap.as_ref()?;
        bootstrap.certificate_providers.get(instance)
    }

    /// Returns the files and variables that control planes may name.
    pub(crate) fn data_sources(&self) -> &DataSourcePolicy {
        &self.running().settings.data_sources
    }
}
