//! The decoded messages of the resources that a client holds.
//!
//! A body is decoded once, when it is judged; whoever watches it later gets the
//! same message. An entry lives as long as the resource: a dead one is swept
//! when the table has doubled.

use std::sync::{Arc, Weak};
use std::time::SystemTime;

use hashbrown::HashMap;
use trunkline_core::resource::Resource;

use super::state::ErasedValue;

/// How many entries there are before the first sweep.
const SWEEP_FROM: usize = 1024;

/// Decoded messages, by the resource that they were decoded from.
#[derive(Default)]
pub(super) struct Values {
    /// By the address of the resource, which the weak reference keeps from
    /// being used again.
    entries: HashMap<usize, Entry>,
    /// The number of entries at which dead ones are swept.
    sweep_at: usize,
}

/// A decoded message.
struct Entry {
    of: Weak<Resource>,
    value: ErasedValue,
    accepted: SystemTime,
}

impl Values {
    /// Keeps the message of a resource.
    pub(super) fn insert(&mut self, resource: &Arc<Resource>, value: ErasedValue) {
        if self.entries.len() >= self.sweep_at.max(SWEEP_FROM) {
            self.entries.retain(|_, entry| entry.of.strong_count() > 0);
            self.sweep_at = self.entries.len() * 2;
        }
        let entry = Entry {
            of: Arc::downgrade(resource),
            value,
            accepted: SystemTime::now(),
        };
        self.entries.insert(address(resource), entry);
    }

    /// The message of a resource, if it was kept.
    pub(super) fn get(&self, resource: &Arc<Resource>) -> Option<ErasedValue> {
        let entry = self.entries.get(&address(resource))?;
        Some(Arc::clone(&entry.value))
    }

    /// When a resource was accepted.
    pub(super) fn accepted(&self, resource: &Arc<Resource>) -> Option<SystemTime> {
        let entry = self.entries.get(&address(resource))?;
        Some(entry.accepted)
    }
}

fn address(resource: &Arc<Resource>) -> usize {
    Arc::as_ptr(resource) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource(name: &str) -> Arc<Resource> {
        Arc::new(Resource::new(name.into(), "body".into()))
    }

    #[test]
    fn a_value_is_found_by_its_resource_alone() {
        let mut values = Values::default();
        let (one, other) = (resource("one"), resource("one"));
        values.insert(&one, Arc::new(1_u32));
        let found = values.get(&one).unwrap().downcast::<u32>().unwrap();
        assert_eq!(*found, 1);
        assert!(values.get(&other).is_none());
    }

    #[test]
    fn values_of_resources_that_are_gone_are_swept() {
        let mut values = Values::default();
        let kept = resource("kept");
        values.insert(&kept, Arc::new(0_u32));
        for round in 0..10 * SWEEP_FROM as u32 {
            values.insert(&resource("short-lived"), Arc::new(round));
        }
        assert!(values.entries.len() <= SWEEP_FROM + 1);
        assert!(values.get(&kept).is_some());
    }
}
