//! Variants of one name that cannot both be held (TP2).
//!
//! A variant is refused if no subscription has parameters that match it, or if
//! a client could match it and one that is held: the one that is held stays.
//! The database would refuse both.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::cache::Cache;
use super::entry::{Carried, Held};
use super::interest_state::InterestState;
use super::verdict::Rejection;
use crate::name::Name;
use crate::params::Constraints;
use crate::resource::Resource;

/// Returns whether a client could match both of two variants. A server without
/// `locators` sends one variant of each name. Constraints that are too complex
/// to decide count as ambiguous.
pub(super) fn is_ambiguous(
    first: Option<&Constraints>,
    second: Option<&Constraints>,
    locators: bool,
) -> bool {
    match (first, second) {
        (Some(first), Some(second)) if locators => !matches!(first.overlap(second), Ok(None)),
        _ => true,
    }
}

/// Chooses among the variants of a response.
pub(super) struct VariantFilter<'a> {
    pub(super) interest: &'a InterestState,
    pub(super) cache: &'a Cache,
    /// Variants that the response removes.
    pub(super) removed: BTreeSet<(&'a Name, Option<&'a Constraints>)>,
    /// The response lists all variants of each name (SotW).
    pub(super) lists_all: bool,
}

impl VariantFilter<'_> {
    /// Removes the variants that are refused from a list, and returns the
    /// reasons. A variant of a subscription that has just ended is left out
    /// without one: the server may not know yet.
    pub(super) fn refuse(&self, resources: &mut Vec<Arc<Resource>>) -> Vec<Rejection> {
        let mut rejected = Vec::new();
        if self.interest.has_locators() {
            resources.retain(|resource| self.is_for_subscription(resource, &mut rejected));
        }

        // Only one of several resources of a name can be without constraints.
        let mut by_name: BTreeMap<Name, usize> = BTreeMap::new();
        if resources.iter().any(|r| r.constraints.is_some()) {
            for resource in resources.iter() {
                *by_name.entry(resource.name.clone()).or_default() += 1;
            }
        }
        let in_doubt = |resource: &Resource| {
            let is_several = by_name.get(&resource.name).is_some_and(|count| *count > 1);
            is_several || self.others_held(resource).next().is_some()
        };
        if !resources.iter().any(|resource| in_doubt(resource)) {
            return rejected;
        }

        let mut taken: BTreeMap<Name, Vec<Option<Constraints>>> = BTreeMap::new();
        // Those that are held go first, so that they stay.
        for is_first in [true, false] {
            for resource in resources.iter().filter(|r| self.is_held(r) == is_first) {
                if in_doubt(resource) && self.find_rival(resource, &taken).is_none() {
                    let taken = taken.entry(resource.name.clone()).or_default();
                    taken.push(resource.constraints.clone());
                }
            }
        }
        resources.retain(|resource| {
            let own = resource.constraints.as_ref();
            let others = taken.get(&resource.name);
            let is_taken = others.is_some_and(|taken| taken.iter().any(|c| c.as_ref() == own));
            if is_taken || !in_doubt(resource) {
                return true;
            }
            let rival = self.find_rival(resource, &taken);
            rejected.push(ambiguous(resource, rival.flatten().as_ref()));
            false
        });
        rejected
    }

    /// Returns whether a variant is for a subscription. One that is for none is
    /// rejected.
    fn is_for_subscription(&self, resource: &Resource, rejected: &mut Vec<Rejection>) -> bool {
        let (name, aliases) = (&resource.name, &resource.aliases);
        let constraints = resource.constraints.as_ref();
        if self
            .interest
            .is_variant_requested(name, aliases, constraints)
        {
            return true;
        }
        if !self.interest.is_variant_ended(resource) {
            let clients = resource.clients();
            let reason = format!("no subscription has parameters that match [{clients}]");
            rejected.push(Rejection::of(name, reason));
        }
        false
    }

    /// Returns whether this very variant is held.
    fn is_held(&self, resource: &Resource) -> bool {
        let entry = self.cache.entries.get(&resource.name);
        let constraints = resource.constraints.as_ref();
        entry.is_some_and(|entry| entry.contents.variant(constraints).is_some())
    }

    /// Returns the other variants of a name that stay in use beside it.
    fn others_held<'b>(&'b self, resource: &'b Resource) -> impl Iterator<Item = &'b Held> {
        let name = &resource.name;
        let entry = self.cache.entries.get(name);
        let entry = entry.filter(|entry| entry.carried == Carried::No && !self.lists_all);
        let held = entry.into_iter().flat_map(|entry| entry.contents.held());
        held.filter(move |held| {
            let constraints = held.constraints.as_ref();
            constraints != resource.constraints.as_ref()
                && !self.removed.contains(&(name, constraints))
                && held.is_requested(name, self.interest)
        })
    }

    /// Finds a variant that excludes another: one that is held, or taken from
    /// the same response.
    fn find_rival(
        &self,
        resource: &Resource,
        taken: &BTreeMap<Name, Vec<Option<Constraints>>>,
    ) -> Option<Option<Constraints>> {
        let own = resource.constraints.as_ref();
        let locators = self.interest.has_locators();
        let held = self.others_held(resource);
        let held = held.map(|held| held.constraints.as_ref());
        let taken = taken.get(&resource.name).into_iter().flatten();
        let taken = taken.map(Option::as_ref).filter(|taken| *taken != own);
        let mut others = held.chain(taken);
        let rival = others.find(|other| is_ambiguous(*other, own, locators))?;
        Some(rival.cloned())
    }
}

/// The reason for which a variant is refused beside another.
fn ambiguous(resource: &Resource, rival: Option<&Constraints>) -> Rejection {
    let clients = resource.clients();
    let rival = rival.cloned().unwrap_or_else(Constraints::always);
    let reason = format!("a client could match both [{clients}] and [{rival}], which is held");
    Rejection::of(&resource.name, reason)
}
