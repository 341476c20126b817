//! The versions that a client has rejected, and when: what CSDS tells beside
//! the reason (C65).

use std::time::SystemTime;

use hashbrown::{HashMap, HashSet};
use trunkline_core::name::Name;
use trunkline_core::resource::{TypeUrl, Version};
use trunkline_core::sink::{Delivery, Verdict};

/// How many names are remembered. Beyond it the older half is forgotten: their
/// reasons stay, without version and time.
const MAX_NAMES: usize = 4096;

/// The last rejection of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RejectedUpdate {
    /// The version that was rejected.
    pub version: Version,
    /// When that was.
    pub at: SystemTime,
}

/// The last rejection of each name.
#[derive(Debug, Default)]
pub(super) struct Rejections(HashMap<(TypeUrl, Name), RejectedUpdate>);

impl Rejections {
    /// Records the rejected resources of a delivery, by name; a rejection without
    /// a name is left out. `set_version` is the version of the response in state
    /// of the world, where resources have none of their own.
    pub(super) fn record(
        &mut self,
        delivery: &Delivery,
        verdict: &Verdict,
        set_version: Option<&Version>,
    ) {
        if verdict.rejected.is_empty() {
            return;
        }

        let rejections = verdict.rejected.iter();
        let rejected_names = rejections.filter_map(|rejection| rejection.name.as_ref());
        let rejected_names: HashSet<&Name> = rejected_names.collect();
        let rejected_at = SystemTime::now();

        let resources = delivery.resources.iter();
        for resource in resources.filter(|resource| rejected_names.contains(&resource.name)) {
            self.make_room();
            let version = set_version.unwrap_or(&resource.version).clone();
            let key = (delivery.type_url.clone(), resource.name.clone());
            let update = RejectedUpdate {
                version,
                at: rejected_at,
            };
            self.0.insert(key, update);
        }
    }

    /// Returns the last rejection of a name.
    pub(super) fn get(&self, type_url: &TypeUrl, name: &Name) -> Option<&RejectedUpdate> {
        self.0.get(&(type_url.clone(), name.clone()))
    }

    /// Drops the older half of the rejections when their number is at its
    /// limit.
    fn make_room(&mut self) {
        if self.0.len() < MAX_NAMES {
            return;
        }
        let mut times: Vec<_> = self.0.values().map(|update| update.at).collect();
        times.sort_unstable();
        let median = times[times.len() / 2];
        self.0.retain(|_, update| update.at > median);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use trunkline_core::resource::Resource;
    use trunkline_core::sink::Rejection;

    #[test]
    fn rejections_are_bounded_and_the_newest_stay() {
        let mut rejections = Rejections::default();
        let name_of = |number: usize| Name::new(&format!("name-{number}"));
        for number in 0..3 * MAX_NAMES {
            let resource = Resource::new(name_of(number), "bad".into());
            let delivery = Delivery {
                type_url: "type".into(),
                nonce: "1".into(),
                resources: vec![Arc::new(resource)],
                heartbeats: Vec::new(),
                removed: Vec::new(),
                removed_variants: Vec::new(),
                errors: Vec::new(),
            };
            let verdict = Verdict::reject(vec![Rejection::of(&name_of(number), "bad")]);
            rejections.record(&delivery, &verdict, None);
        }
        assert!(rejections.0.len() <= MAX_NAMES);
        let newest = name_of(3 * MAX_NAMES - 1);
        assert!(rejections.get(&"type".into(), &newest).is_some());
    }
}
