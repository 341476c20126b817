//! From a response to what its owner must judge.
//!
//! Contradictions reject the response before anything of it is used (E9); what
//! nobody asked for is left out (C21); what is beyond a limit is refused alone.
//! Nothing is applied here: that takes a verdict.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::cache::Cache;
use super::error::ProtocolFault;
use super::incoming::Incoming;
use super::interest_state::InterestState;
use super::verdict::Rejection;
use crate::kind::Kind;
use crate::limits::Limits;
use crate::message::{Form, WireResource};
use crate::name::Name;
use crate::params::Constraints;
use crate::resource::{Nonce, Resource, ResourceError, TypeUrl, Version};

/// What the owner must judge, by [`super::Sink::handle_verdict`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The type of all of it.
    pub type_url: TypeUrl,
    /// The response.
    pub nonce: Nonce,
    /// What was sent in full and asked for.
    pub resources: Vec<Arc<Resource>>,
    /// What is still good, without its body (E10).
    pub heartbeats: Vec<Arc<Resource>>,
    /// What is gone, by name.
    pub removed: Vec<Name>,
    /// Which variants are gone (TP2); without constraints, the one for all.
    pub removed_variants: Vec<(Name, Option<Constraints>)>,
    /// What cannot be given, and why (C43): names, and collections asked for (S61).
    pub errors: Vec<(Name, Arc<ResourceError>)>,
}

/// A response that waits for its verdict.
#[derive(Debug)]
pub(super) struct PendingVerdict {
    pub(super) delivery: Delivery,
    /// The state that the response brings about (SotW).
    pub(super) version: Option<Version>,
    /// What it leaves out is gone (C29).
    pub(super) is_whole_set: bool,
    /// A part of such a set was not asked for, and is not kept (C21).
    pub(super) is_partial: bool,
    /// What is rejected whatever the owner says.
    pub(super) over_limits: Vec<Rejection>,
}

/// How a response contradicts itself, if it does.
pub(super) fn fault(incoming: &Incoming) -> Option<ProtocolFault> {
    match Mentions::gather(incoming) {
        Err(name) => Some(ProtocolFault::Duplicate(name.clone())),
        Ok(mentions) => mentions.contradiction(incoming),
    }
}

/// What a response speaks of, each once.
#[derive(Default)]
struct Mentions<'a> {
    variants: BTreeSet<(&'a Name, Option<&'a Constraints>)>,
    added: BTreeSet<&'a Name>,
    removed: BTreeSet<&'a Name>,
    failed: BTreeSet<&'a Name>,
}

impl<'a> Mentions<'a> {
    /// Fails with a name that is there twice in one role.
    fn gather(incoming: &'a Incoming) -> Result<Self, &'a Name> {
        let mut all = Self::default();
        for delivered in &incoming.resources {
            let Resource {
                name, constraints, ..
            } = delivered.resource.as_ref();
            all.added.insert(name);
            once(all.variants.insert((name, constraints.as_ref())), name)?;
        }
        for name in &incoming.removed {
            once(all.removed.insert(name), name)?;
        }
        for (name, _) in &incoming.errors {
            once(all.failed.insert(name), name)?;
        }
        Ok(all)
    }

    /// A name that is there in two roles.
    fn contradiction(&self, incoming: &Incoming) -> Option<ProtocolFault> {
        // A variant may go while another comes, but not the same one.
        let again = |(name, gone): &&(Name, Option<Constraints>)| {
            self.variants.contains(&(name, gone.as_ref()))
        };
        let variant = incoming.removed_variants.iter().find(again);
        let name = self.added.intersection(&self.removed).next();
        if let Some(name) = variant.map(|(name, _)| name).or(name.copied()) {
            return Some(ProtocolFault::AddedAndRemoved(name.clone()));
        }
        let answered = |name: &&&Name| self.added.contains(*name) || self.removed.contains(*name);
        let name = self.failed.iter().find(answered)?;
        Some(ProtocolFault::AnswerAndError((*name).clone()))
    }
}

fn once(first: bool, name: &Name) -> Result<(), &Name> {
    if first { Ok(()) } else { Err(name) }
}

/// Leaves what was asked for and is within limits.
pub(super) fn filter_response(
    incoming: Incoming,
    interest: &InterestState,
    cache: &Cache,
    limits: &Limits,
) -> PendingVerdict {
    // A heartbeat is no whole set: it mentions only what runs out (S59).
    let beats = |delivered: &WireResource| delivered.form == Form::Heartbeat;
    let whole = incoming.version.is_some()
        && Kind::of(&incoming.type_url).whole_set
        && !incoming.resources.iter().any(beats);
    let mut pending = PendingVerdict {
        is_whole_set: whole,
        is_partial: false,
        version: incoming.version,
        over_limits: Vec::new(),
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
    for delivered in incoming.resources {
        match interest.is_resource_requested(&delivered.resource) {
            true => pending.add_resource(delivered, limits),
            false => pending.is_partial = whole, // C21
        }
    }
    pending.delivery.retain_relevant(interest, cache, limits);
    pending
}

impl PendingVerdict {
    fn add_resource(&mut self, delivered: WireResource, limits: &Limits) {
        if let Some(refusal) = too_long(&delivered.resource, limits) {
            self.over_limits.push(refusal);
            return;
        }
        match delivered.form {
            Form::Full | Form::Wrapped => self.delivery.resources.push(delivered.resource),
            Form::Heartbeat => self.delivery.heartbeats.push(delivered.resource),
        }
    }
}

impl Delivery {
    /// Leaves the removals and errors that concern someone.
    fn retain_relevant(&mut self, interest: &InterestState, cache: &Cache, limits: &Limits) {
        let known = |name: &Name| cache.entries.contains_key(name);
        self.removed.retain(known);
        self.removed_variants.retain(|(name, _)| known(name));
        let longest = limits.name_bytes;
        self.errors
            .retain(|(name, _)| name.as_str().len() <= longest && interest.accepts_error_for(name));
        for (_, error) in &mut self.errors {
            shorten(error, limits.error_bytes);
        }
    }
}

fn too_long(resource: &Resource, limits: &Limits) -> Option<Rejection> {
    let longest = limits.name_bytes;
    let mut names = std::iter::once(&resource.name).chain(&resource.aliases);
    names.any(|name| name.as_str().len() > longest).then(|| {
        let start = clip(resource.name.as_str(), 64);
        Rejection::of_response(format!("{start}: a name is longer than {longest} bytes"))
    })
}

fn shorten(error: &mut Arc<ResourceError>, longest: usize) {
    if error.message.len() > longest {
        *error = Arc::new(ResourceError {
            code: error.code,
            message: clip(&error.message, longest).into(),
        });
    }
}

/// At most so many bytes of a text, by whole characters.
pub(super) fn clip(text: &str, longest: usize) -> &str {
    let mut end = longest.min(text.len());
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
