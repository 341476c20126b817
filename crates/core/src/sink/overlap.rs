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
        let mut counts: BTreeMap<Name, usize> = BTreeMap::new();
        if resources
            .iter()
            .any(|resource| resource.constraints.is_some())
        {
            for resource in resources.iter() {
                *counts.entry(resource.name.clone()).or_default() += 1;
            }
        }
        let is_contested = |resource: &Resource| {
            let is_several = counts.get(&resource.name).is_some_and(|count| *count > 1);
            is_several || self.others_held(resource).next().is_some()
        };
        if !resources.iter().any(|resource| is_contested(resource)) {
            return rejected;
        }

        let mut accepted: BTreeMap<Name, Vec<Option<Constraints>>> = BTreeMap::new();
        // Those that are held go first, so that they stay.
        for is_first in [true, false] {
            for resource in resources
                .iter()
                .filter(|resource| self.is_held(resource) == is_first)
            {
                if is_contested(resource) && self.find_rival(resource, &accepted).is_none() {
                    let accepted = accepted.entry(resource.name.clone()).or_default();
                    accepted.push(resource.constraints.clone());
                }
            }
        }
        resources.retain(|resource| {
            let constraints = resource.constraints.as_ref();
            let rivals = accepted.get(&resource.name);
            let is_taken = rivals
                .is_some_and(|accepted| accepted.iter().any(|other| other.as_ref() == constraints));
            if is_taken || !is_contested(resource) {
                return true;
            }
            let rival = self.find_rival(resource, &accepted);
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

    /// Returns the other variants of a name that the client holds and that stay
    /// in use beside the given one.
    fn others_held<'b>(&'b self, resource: &'b Resource) -> impl Iterator<Item = &'b Held> {
        let name = &resource.name;
        let entry = self.cache.entries.get(name);
        let entry = entry.filter(|entry| entry.carried == Carried::No && !self.lists_all);
        let variants = entry
            .into_iter()
            .flat_map(|entry| entry.contents.variants());
        variants.filter(move |variant| {
            let constraints = variant.constraints.as_ref();
            constraints != resource.constraints.as_ref()
                && !self.removed.contains(&(name, constraints))
                && variant.is_requested(name, self.interest)
        })
    }

    /// Returns the constraints of a variant that excludes another: a held one,
    /// or one of `accepted` from the same response. `None` if there is none.
    fn find_rival(
        &self,
        resource: &Resource,
        accepted: &BTreeMap<Name, Vec<Option<Constraints>>>,
    ) -> Option<Option<Constraints>> {
        let constraints = resource.constraints.as_ref();
        let locators = self.interest.has_locators();
        let held_constraints = self.others_held(resource);
        let held_constraints = held_constraints.map(|variant| variant.constraints.as_ref());
        let accepted = accepted.get(&resource.name).into_iter().flatten();
        let accepted = accepted
            .map(Option::as_ref)
            .filter(|accepted| *accepted != constraints);
        let mut candidates = held_constraints.chain(accepted);
        let rival = candidates.find(|other| is_ambiguous(*other, constraints, locators))?;
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
