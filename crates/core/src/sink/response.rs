//! From a response to what its owner must judge.
//!
//! Contradictions reject the response before anything of it is used (E9); what
//! nobody asked for is left out (C21); what is beyond a limit is refused alone.
//! Nothing is applied here: that takes a verdict.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::asking::Asking;
use super::cache::Cache;
use super::error::ProtocolFault;
use super::verdict::Rejection;
use super::wire::Incoming;
use crate::kind::Kind;
use crate::limits::Limits;
use crate::message::Form;
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
    /// Which variants are gone (TP2).
    pub removed_variants: Vec<(Name, Constraints)>,
    /// What cannot be given, and why (C43): names, and collections asked for (S61).
    pub errors: Vec<(Name, Arc<ResourceError>)>,
}

/// A response that waits for its verdict.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) delivery: Delivery,
    /// The state that the response brings about (SotW).
    pub(super) version: Option<Version>,
    /// What it leaves out is gone (C29).
    pub(super) whole: bool,
    /// What is rejected whatever the owner says.
    pub(super) refused: Vec<Rejection>,
}

/// How a response contradicts itself, if it does.
pub(super) fn fault(incoming: &Incoming) -> Option<ProtocolFault> {
    let mut added = BTreeSet::new();
    let mut variants = BTreeSet::new();
    for delivered in &incoming.resources {
        let resource = &delivered.resource;
        if !variants.insert((&resource.name, resource.constraints.as_ref())) {
            return Some(ProtocolFault::Duplicate(resource.name.clone()));
        }
        added.insert(&resource.name);
    }
    let mut removed = BTreeSet::new();
    for name in &incoming.removed {
        if !removed.insert(name) {
            return Some(ProtocolFault::Duplicate(name.clone()));
        }
    }
    // A variant may go while another comes, but not the same one.
    for (name, constraints) in &incoming.removed_variants {
        if variants.contains(&(name, Some(constraints))) {
            return Some(ProtocolFault::AddedAndRemoved(name.clone()));
        }
    }
    if let Some(name) = added.intersection(&removed).next() {
        return Some(ProtocolFault::AddedAndRemoved((*name).clone()));
    }
    let mut failed = BTreeSet::new();
    for (name, _) in &incoming.errors {
        if !failed.insert(name) {
            return Some(ProtocolFault::Duplicate(name.clone()));
        }
        if added.contains(name) || removed.contains(name) {
            return Some(ProtocolFault::AnswerAndError(name.clone()));
        }
    }
    None
}

/// Leaves what was asked for and is within limits.
pub(super) fn sift(incoming: Incoming, asking: &Asking, cache: &Cache, limits: &Limits) -> Pending {
    let whole_set = Kind::of(&incoming.type_url).whole_set;
    let beats = |form| form == Form::Heartbeat;
    let mut pending = Pending {
        // A heartbeat is no whole set: it mentions only what runs out (S59).
        whole: incoming.version.is_some()
            && whole_set
            && !incoming.resources.iter().any(|d| beats(d.form)),
        version: incoming.version,
        refused: Vec::new(),
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
    let Delivery {
        resources,
        heartbeats,
        removed,
        removed_variants,
        errors,
        ..
    } = &mut pending.delivery;
    for delivered in incoming.resources {
        let resource = delivered.resource;
        if !asking.reaches_resource(&resource) {
            continue; // C21
        }
        if let Some(refusal) = too_long(&resource, limits) {
            pending.refused.push(refusal);
        } else if beats(delivered.form) {
            heartbeats.push(resource);
        } else {
            resources.push(resource);
        }
    }
    removed.retain(|name| cache.entries.contains_key(name));
    removed_variants.retain(|(name, _)| cache.entries.contains_key(name));
    errors.retain(|(name, _)| name.as_str().len() <= limits.name_bytes && asking.hears_of(name));
    for (_, error) in errors {
        shorten(error, limits.error_bytes);
    }
    pending
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
