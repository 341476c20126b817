//! Virtual hosts that have to do with one another: where a domain moves from one
//! to another, or a host from one to another, a peer must be told of both at
//! once, or it would have a domain twice and reject what it is told.

use std::collections::BTreeMap;

use hashbrown::{HashMap, HashSet};

use super::{Conversation, Key, Selected};
use crate::database::Choice;
use crate::hosts::HostName;
use crate::resource::Resource;

/// A domain of a route configuration; or the name of a virtual host, which has
/// a slash where no domain has one.
type Place = (Box<str>, Box<str>);

impl Conversation {
    /// Takes back what has a domain that something else still has in the peer's
    /// hands, which has to wait for another type (S73).
    pub(super) fn wait_together(&mut self, selected: &mut Selected) {
        if !self.kind.on_demand || self.waiting.is_empty() {
            return;
        }
        let waiting = self.waiting.keys();
        let mut blocked: HashSet<Place> = waiting.flat_map(|key| self.held_places(key)).collect();
        loop {
            let takes = |(_, choice): &mut (Key, Choice)| {
                let resource = choice.resource();
                resource.is_some_and(|new| places(new).any(|place| blocked.contains(&place)))
            };
            let back: Vec<_> = selected.keys.extract_if(.., takes).collect();
            if back.is_empty() {
                return;
            }
            for (key, _) in back {
                blocked.extend(self.held_places(&key));
                if let Some(slot) = self.slot_mut(&key) {
                    slot.forced = true;
                }
                self.pending.insert(key);
            }
        }
    }

    fn held_places(&self, key: &Key) -> Vec<Place> {
        let held = self.slot(key).and_then(|slot| slot.told.resource());
        held.into_iter().flat_map(|held| places(held)).collect()
    }

    /// Suspects in units that cannot be tried apart.
    pub(super) fn units(&self, suspects: &BTreeMap<Key, Choice>) -> Vec<Vec<Key>> {
        if !self.kind.on_demand {
            return self.units_of_names(suspects);
        }
        // Each unit by the first place of any of its members, for as long as
        // members join two units.
        let mut units: Vec<Vec<Key>> = Vec::new();
        let mut unit_of: HashMap<Place, usize> = HashMap::new();
        for (key, sent) in suspects {
            let mut its = self.held_places(key);
            its.extend(sent.resource().into_iter().flat_map(|new| places(new)));
            let mut found: Vec<usize> =
                its.iter().filter_map(|p| unit_of.get(p).copied()).collect();
            found.sort_unstable();
            found.dedup();
            let unit = found.first().copied().unwrap_or_else(|| {
                units.push(Vec::new());
                units.len() - 1
            });
            for other in found.into_iter().skip(1) {
                let members = std::mem::take(&mut units[other]);
                units[unit].extend(members);
                unit_of
                    .values_mut()
                    .filter(|u| **u == other)
                    .for_each(|u| *u = unit);
            }
            units[unit].push(key.clone());
            unit_of.extend(its.into_iter().map(|place| (place, unit)));
        }
        units.retain(|unit| !unit.is_empty());
        units
    }
}

fn places(host: &Resource) -> impl Iterator<Item = Place> + '_ {
    let route = HostName::split(host.name.as_str()).map_or("", |name| name.route);
    let domains = host.facts().domains.iter();
    let texts = domains.map(|domain| domain.to_string());
    let texts = texts.chain([host.name.to_string()]);
    texts.map(move |text| (route.into(), text.into()))
}
