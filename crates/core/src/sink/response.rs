//! Turns a response into the delivery that its owner must judge.
//!
//! A response that contradicts itself is NACKed before any part of it is used
//! (E9); resources that were not subscribed to are left out (C21); a resource
//! beyond a limit is rejected alone, and so is a variant that cannot be held
//! ([`super::overlap`]). Nothing is applied here: that takes a verdict.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::cache::Cache;
use super::error::ProtocolFault;
use super::incoming::Incoming;
use super::interest_state::InterestState;
use super::overlap::VariantFilter;
use super::verdict::Rejection;
use crate::kind::Kind;
use crate::limits::Limits;
use crate::message::{Form, WireResource};
use crate::name::Name;
use crate::params::Constraints;
use crate::resource::{Nonce, Resource, ResourceError, TypeUrl, Version};

/// How much of a name that is too long is quoted.
const QUOTED_NAME_BYTES: usize = 64;

/// The parts of a response that the owner must judge, by
/// [`super::Sink::handle_verdict`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The type of the response.
    pub type_url: TypeUrl,
    /// The nonce of the response.
    pub nonce: Nonce,
    /// Resources with bodies that are subscribed to.
    pub resources: Vec<Arc<Resource>>,
    /// Resources without bodies whose TTL is renewed (E10).
    pub heartbeats: Vec<Arc<Resource>>,
    /// Removed names, and collections that do not exist.
    pub removed: Vec<Name>,
    /// Removed variants (TP2); without constraints, the one for all clients.
    pub removed_variants: Vec<(Name, Option<Constraints>)>,
    /// Errors of names (C43), and of collections that are subscribed to (S61).
    pub errors: Vec<(Name, Arc<ResourceError>)>,
}

/// A response that waits for its verdict.
#[derive(Debug)]
pub(super) struct PendingVerdict {
    pub(super) delivery: Delivery,
    /// The version of the whole set (SotW).
    pub(super) version: Option<Version>,
    /// The response is a whole set: resources that it leaves out are removed
    /// (C29).
    pub(super) is_whole_set: bool,
    /// A part of the set was not subscribed to, or not any more, and is not
    /// kept (C21).
    pub(super) is_partial: bool,
    /// Rejections that do not depend on the owner's verdict.
    pub(super) limit_rejections: Vec<Rejection>,
    /// Variants that are rejected while others of their names are used (TP2).
    pub(super) variant_rejections: Vec<Rejection>,
}

/// Finds a contradiction in a response: a name that occurs twice, or in two
/// roles (E9).
pub(super) fn find_fault(incoming: &Incoming) -> Option<ProtocolFault> {
    match Mentions::gather(incoming) {
        Err(name) => Some(ProtocolFault::Duplicate(name.clone())),
        Ok(mentions) => mentions.find_contradiction(incoming),
    }
}

/// The names in a response, by role.
#[derive(Default)]
struct Mentions<'a> {
    variants: BTreeSet<(&'a Name, Option<&'a Constraints>)>,
    added: BTreeSet<&'a Name>,
    removed: BTreeSet<&'a Name>,
    failed: BTreeSet<&'a Name>,
}

impl<'a> Mentions<'a> {
    /// Gathers the names of a response. Fails with a name that occurs twice in
    /// one role.
    fn gather(incoming: &'a Incoming) -> Result<Self, &'a Name> {
        let mut mentions = Self::default();
        for wire_resource in &incoming.resources {
            let resource = wire_resource.resource.as_ref();
            let variant = (&resource.name, resource.constraints.as_ref());
            mentions.added.insert(&resource.name);
            check_first(mentions.variants.insert(variant), &resource.name)?;
        }
        for name in &incoming.removed {
            check_first(mentions.removed.insert(name), name)?;
        }
        for (name, _) in &incoming.errors {
            check_first(mentions.failed.insert(name), name)?;
        }
        Ok(mentions)
    }

    /// Finds a name that occurs in two roles. A variant may be removed while
    /// another of its name is added, but not the same one.
    fn find_contradiction(&self, incoming: &Incoming) -> Option<ProtocolFault> {
        let is_added = |(name, constraints): &&(Name, Option<Constraints>)| {
            self.variants.contains(&(name, constraints.as_ref()))
        };
        let variant = incoming.removed_variants.iter().find(is_added);
        let name = self.added.intersection(&self.removed).next();
        if let Some(name) = variant.map(|(name, _)| name).or(name.copied()) {
            return Some(ProtocolFault::AddedAndRemoved(name.clone()));
        }

        let is_answered =
            |name: &&&Name| self.added.contains(*name) || self.removed.contains(*name);
        let name = self.failed.iter().find(is_answered)?;
        Some(ProtocolFault::AnswerAndError((*name).clone()))
    }
}

/// Fails with the name unless `is_first`: the caller has found that the name is
/// mentioned for the first time in its role.
fn check_first(is_first: bool, name: &Name) -> Result<(), &Name> {
    if is_first { Ok(()) } else { Err(name) }
}

/// Makes the delivery of a response: the parts that are subscribed to and
/// within the limits. Resources over the limits become rejections.
pub(super) fn filter_response(
    incoming: Incoming,
    interest: &InterestState,
    cache: &Cache,
    limits: &Limits,
) -> PendingVerdict {
    let (mut pending, resources) = PendingVerdict::new(incoming);
    for wire_resource in resources {
        match interest.is_resource_requested(&wire_resource.resource) {
            true => pending.add_resource(wire_resource, limits),
            false => pending.is_partial = pending.is_whole_set, // C21
        }
    }
    pending.delivery.retain_relevant(interest, cache, limits);
    pending.refuse_variants(interest, cache);
    pending
}

/// Returns whether resources that a response leaves out are removed (C29). A
/// SotW response with heartbeats is no whole set: it mentions only resources
/// with a TTL (S59).
fn is_whole_set(incoming: &Incoming) -> bool {
    let is_heartbeat = |wire_resource: &WireResource| wire_resource.form == Form::Heartbeat;
    incoming.version.is_some()
        && Kind::of(&incoming.type_url).whole_set
        && !incoming.resources.iter().any(is_heartbeat)
}

impl PendingVerdict {
    /// Makes the pending verdict of a response, without its resources, which
    /// are returned beside it.
    fn new(incoming: Incoming) -> (Self, Vec<WireResource>) {
        let pending = Self {
            is_whole_set: is_whole_set(&incoming),
            is_partial: false,
            version: incoming.version,
            limit_rejections: Vec::new(),
            variant_rejections: Vec::new(),
            delivery: Delivery {
                type_url: incoming.type_url,
                nonce: incoming.nonce,
                resources: Vec::new(),
                heartbeats: Vec::new(),
                removed: incoming.removed,
                removed_variants: incoming.removed_variants,
                errors: incoming.errors,
            },
        };
        (pending, incoming.resources)
    }

    /// Removes the variants from the delivery that cannot be held beside
    /// others (TP2), and records the reasons.
    fn refuse_variants(&mut self, interest: &InterestState, cache: &Cache) {
        let removed_variants = self.delivery.removed_variants.iter();
        let filter = VariantFilter {
            interest,
            cache,
            removed: removed_variants
                .map(|(name, constraints)| (name, constraints.as_ref()))
                .collect(),
            lists_all: self.version.is_some(),
        };
        let resources = &mut self.delivery.resources;
        let listed_count = resources.len();
        self.variant_rejections = filter.refuse(resources);
        // What is left out without a rejection is not kept either.
        self.is_partial |= resources.len() + self.variant_rejections.len() < listed_count;
    }

    /// Adds a resource to the delivery, or rejects it if a name of it is too
    /// long.
    fn add_resource(&mut self, wire_resource: WireResource, limits: &Limits) {
        if let Some(rejection) = reject_long_name(&wire_resource.resource, limits) {
            self.limit_rejections.push(rejection);
            return;
        }
        match wire_resource.form {
            Form::Full | Form::Wrapped => self.delivery.resources.push(wire_resource.resource),
            Form::Heartbeat => self.delivery.heartbeats.push(wire_resource.resource),
        }
    }
}

impl Delivery {
    /// Keeps the removals of names in the cache and of collections, and the
    /// errors of requested names that are not too long, and cuts long error
    /// messages.
    fn retain_relevant(&mut self, interest: &InterestState, cache: &Cache, limits: &Limits) {
        let is_cached = |name: &Name| cache.entries.contains_key(name);
        let names_collection = |name: &Name| interest.sent().names_collection(name);
        self.removed
            .retain(|name| is_cached(name) || names_collection(name));
        self.removed_variants.retain(|(name, _)| is_cached(name));

        let max_bytes = limits.name_bytes;
        self.errors.retain(|(name, _)| {
            name.as_str().len() <= max_bytes && interest.accepts_error_for(name)
        });
        for (_, error) in &mut self.errors {
            clip_error(error, limits.error_bytes);
        }
    }
}

/// Rejects a resource of which the name or an alias is longer than the limit;
/// `None` if all fit. The rejection names no resource, so that nothing stores
/// a long name; its message quotes the start of the resource's name.
fn reject_long_name(resource: &Resource, limits: &Limits) -> Option<Rejection> {
    let max_bytes = limits.name_bytes;
    let mut names = std::iter::once(&resource.name).chain(&resource.aliases);
    names.any(|name| name.as_str().len() > max_bytes).then(|| {
        let start = clip(resource.name.as_str(), QUOTED_NAME_BYTES);
        Rejection::of_response(format!("{start}: a name is longer than {max_bytes} bytes"))
    })
}

/// Cuts the message of an error to a number of bytes. An error that is short
/// enough is not copied.
fn clip_error(error: &mut Arc<ResourceError>, max_bytes: usize) {
    if error.message.len() > max_bytes {
        *error = Arc::new(ResourceError {
            code: error.code,
            message: clip(&error.message, max_bytes).into(),
        });
    }
}

/// Cuts a text to a number of bytes, at a character boundary.
pub(super) fn clip(text: &str, max_bytes: usize) -> &str {
    let mut end = max_bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::clip;

    #[test]
    fn text_is_cut_between_characters() {
        for (text, longest, cut) in [
            ("abc", 3, "abc"),
            ("abc", 2, "ab"),
            ("aé", 2, "a"),
            ("aé", 3, "aé"),
            ("é", 1, ""),
            ("", 5, ""),
        ] {
            assert_eq!(clip(text, longest), cut);
        }
    }
}
