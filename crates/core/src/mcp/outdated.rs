//! Memory that a source no longer needs, handed to its owner: to free a million
//! names takes as long as to read them, and nobody should wait for that (S85).

use super::comparison::Comparison;
use super::held::HeldState;
use crate::message::InitialVersions;

/// Versions that a sink said it holds, and comparisons of them. The owner drops
/// both where nobody waits.
#[derive(Debug, Default)]
pub struct Outdated {
    versions: Vec<InitialVersions>,
    comparisons: Vec<Comparison>,
}

impl Outdated {
    /// Returns the number of names to drop, about.
    #[must_use]
    pub fn len(&self) -> usize {
        let versions = self.versions.iter().map(InitialVersions::len);
        let comparisons = self.comparisons.iter().map(Comparison::len);
        versions.chain(comparisons).sum()
    }

    /// Returns whether there is nothing to drop.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds the versions of a state that a sink held. A state without versions
    /// is small, and dropped at once.
    pub(super) fn add_held(&mut self, held: HeldState) {
        if let HeldState::Claimed(versions) = held
            && !versions.is_empty()
        {
            self.versions.push(versions);
        }
    }

    /// Adds a comparison that has ended or is not needed any more.
    pub(super) fn add_comparison(&mut self, comparison: Comparison) {
        self.comparisons.push(comparison);
    }
}
