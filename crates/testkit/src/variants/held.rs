//! The resources that a client of variants holds.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use trunkline_core::change::Change;
use trunkline_core::params::Constraints;
use trunkline_core::resource::Resource;

use super::contents::Place;

/// One variant of a name.
pub(super) type Key = (Place, Option<Constraints>);

/// Resources by name and variant.
#[derive(Clone, Debug, Default)]
pub(super) struct Held(BTreeMap<Key, Arc<Resource>>);

impl Held {
    /// Every variant of a name.
    pub(super) fn at(&self, place: &Place) -> Vec<Arc<Resource>> {
        let own = self.0.iter().filter(|((at, _), _)| at == place);
        own.map(|(_, resource)| Arc::clone(resource)).collect()
    }

    /// The names of which it has something.
    pub(super) fn places(&self) -> BTreeSet<Place> {
        self.0.keys().map(|(place, _)| place.clone()).collect()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&Key, &Arc<Resource>)> {
        self.0.iter()
    }

    pub(super) fn as_map(&self) -> &BTreeMap<Key, Arc<Resource>> {
        &self.0
    }

    pub(super) fn retain(&mut self, keeps: impl Fn(&Place, &Resource) -> bool) {
        self.0.retain(|(place, _), resource| keeps(place, resource));
    }

    /// Puts a resource in the place of the same variant. A body that only says
    /// that there is nothing is a removal.
    pub(super) fn put(&mut self, place: Place, resource: &Arc<Resource>) {
        let body = resource.body.as_ref();
        if body.is_none_or(|body| body.first() == Some(&0x0a)) {
            return self.remove(&place);
        }
        let key = (place, resource.constraints.clone());
        self.0.insert(key, Arc::clone(resource));
    }

    /// Removes all variants of a name.
    pub(super) fn remove(&mut self, place: &Place) {
        self.0.retain(|(at, _), _| at != place);
    }

    /// Removes one variant of a name.
    pub(super) fn remove_variant(&mut self, place: Place, only: Option<Constraints>) {
        self.0.remove(&(place, only));
    }

    /// Applies a change to contents.
    pub(super) fn apply(&mut self, change: Change) {
        match change {
            Change::Upsert(url, resource) => {
                self.put((url, resource.name.clone()), &resource);
            }
            Change::Remove(url, name) => self.remove(&(url, name)),
            Change::RemoveVariant(url, name, only) => self.remove_variant((url, name), only),
            Change::ReplaceAll(url, resources) => {
                self.0.retain(|((of, _), _), _| *of != url);
                for resource in resources {
                    self.put((url.clone(), resource.name.clone()), &resource);
                }
            }
            // An error of the server; what is held stays or goes by other changes.
            Change::Fail(..) => {}
        }
    }
}
