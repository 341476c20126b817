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

/// The constraints of the accepted variants, by name.
type AcceptedVariants = BTreeMap<Name, Vec<Option<Constraints>>>;

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
    /// Removes the variants that are refused from a list of resources, and
    /// returns the reasons. A variant of a subscription that has just ended is
    /// removed without a reason: the server may not know yet.
    pub(super) fn refuse(&self, resources: &mut Vec<Arc<Resource>>) -> Vec<Rejection> {
        let mut rejections = Vec::new();
        if self.interest.has_locators() {
            resources.retain(|resource| self.is_for_subscription(resource, &mut rejections));
        }

        let counts = count_variants(resources);
        let is_contested = |resource: &Arc<Resource>| {
            let is_several = counts.get(&resource.name).is_some_and(|count| *count > 1);
            is_several || self.other_held_variants(resource).next().is_some()
        };
        if !resources.iter().any(is_contested) {
            return rejections;
        }

        let accepted_variants = self.accept_contested(resources, is_contested);
        resources.retain(|resource| {
            let accepted_constraints = accepted_variants.get(&resource.name);
            let is_accepted =
                accepted_constraints.is_some_and(|list| list.contains(&resource.constraints));
            if is_accepted || !is_contested(resource) {
                return true;
            }
            let rival = self.find_rival(resource, &accepted_variants);
            rejections.push(reject_ambiguous(resource, rival.flatten().as_ref()));
            false
        });
        rejections
    }

    /// Returns the constraints of the contested variants that are accepted: no
    /// client that matches such a variant can also match a held variant, or
    /// another accepted one. Variants that are held are tried first, so that
    /// they stay.
    fn accept_contested(
        &self,
        resources: &[Arc<Resource>],
        is_contested: impl Fn(&Arc<Resource>) -> bool,
    ) -> AcceptedVariants {
        let mut accepted_variants = AcceptedVariants::new();
        for tries_held in [true, false] {
            let has_turn = |resource: &&Arc<Resource>| self.is_held(resource) == tries_held;
            for resource in resources.iter().filter(has_turn) {
                if is_contested(resource) && self.find_rival(resource, &accepted_variants).is_none()
                {
                    let list = accepted_variants.entry(resource.name.clone()).or_default();
                    list.push(resource.constraints.clone());
                }
            }
        }
        accepted_variants
    }

    /// Returns whether a variant is for a subscription. If not, a reason is
    /// added to `rejections`, unless the subscription has just ended.
    fn is_for_subscription(&self, resource: &Resource, rejections: &mut Vec<Rejection>) -> bool {
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
            rejections.push(Rejection::of(name, reason));
        }
        false
    }

    /// Returns whether this very variant is held.
    fn is_held(&self, resource: &Resource) -> bool {
        let entry = self.cache.entries.get(&resource.name);
        let constraints = resource.constraints.as_ref();
        entry.is_some_and(|entry| entry.contents.variant(constraints).is_some())
    }

    /// Returns the other variants of the resource's name that are held and that
    /// stay. A variant does not stay if the response removes it or leaves it
    /// out, if it is from an earlier stream, or if no subscription is left that
    /// it is for.
    fn other_held_variants<'b>(&'b self, resource: &'b Resource) -> impl Iterator<Item = &'b Held> {
        let name = &resource.name;
        let entry = self.cache.entries.get(name);
        let variants = entry
            .filter(|entry| entry.carried == Carried::No && !self.lists_all)
            .into_iter()
            .flat_map(|entry| entry.contents.variants());
        variants.filter(move |variant| {
            let constraints = variant.constraints.as_ref();
            constraints != resource.constraints.as_ref()
                && !self.removed.contains(&(name, constraints))
                && variant.is_requested(name, self.interest)
        })
    }

    /// Returns the constraints of a variant that a client could match beside
    /// this resource: a held one, or one of the `accepted_variants` from the
    /// same response. `None` if there is none; `Some(None)` is a variant
    /// without constraints.
    fn find_rival(
        &self,
        resource: &Resource,
        accepted_variants: &AcceptedVariants,
    ) -> Option<Option<Constraints>> {
        let constraints = resource.constraints.as_ref();
        let has_locators = self.interest.has_locators();
        let held_variants = self.other_held_variants(resource);
        let held_constraints = held_variants.map(|variant| variant.constraints.as_ref());
        let accepted_list = accepted_variants.get(&resource.name).into_iter().flatten();
        let accepted_constraints = accepted_list
            .map(Option::as_ref)
            .filter(|other| *other != constraints);
        let mut candidates = held_constraints.chain(accepted_constraints);
        let rival = candidates.find(|other| is_ambiguous(*other, constraints, has_locators))?;
        Some(rival.cloned())
    }
}

/// Counts the resources of each name. None is counted if all are without
/// constraints: then no name can have several.
fn count_variants(resources: &[Arc<Resource>]) -> BTreeMap<Name, usize> {
    let mut counts = BTreeMap::new();
    let has_constraints = |resource: &Arc<Resource>| resource.constraints.is_some();
    if resources.iter().any(has_constraints) {
        for resource in resources {
            *counts.entry(resource.name.clone()).or_default() += 1;
        }
    }
    counts
}

/// Makes the rejection of a variant that a client could match beside a `rival`;
/// `None` is a rival without constraints.
fn reject_ambiguous(resource: &Resource, rival: Option<&Constraints>) -> Rejection {
    let clients = resource.clients();
    let rival = rival.cloned().unwrap_or_else(Constraints::always);
    let reason = format!("a client could match both [{clients}] and [{rival}], which is held");
    Rejection::of(&resource.name, reason)
}
