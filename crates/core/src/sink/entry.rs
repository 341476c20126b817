//! The state of one name of a sink, without bodies: these are in the owner's
//! database only.

use std::slice;

use twox_hash::XxHash3_128;

use super::event::WatchError;
use super::interest_state::InterestState;
use crate::name::Name;
use crate::params::Constraints;
use crate::resource::{Resource, Version};

/// The state of a name: CSDS's `ClientResourceStatus` (C44).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CacheState {
    /// Requested, and without a response.
    #[default]
    Requested,
    /// The server said that the name does not exist, or did not respond in
    /// time.
    DoesNotExist,
    /// The last response was ACKed.
    Acked,
    /// The last response was NACKed.
    Nacked,
    /// The server sent an error for the name (C43).
    ReceivedError,
    /// No response came in time, which counts as a transient error (C35).
    Timeout,
}

/// One variant that the database has from this server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// The clients that it is for; `None` is all of them (TP2).
    pub constraints: Option<Constraints>,
    /// Its version, which a new stream begins with (E9).
    pub version: Version,
    /// A hash of body, aliases and TTL: equal versions of servers that do not
    /// change them with the contents are told apart by it (C24).
    fingerprint: u64,
    /// Other names of the resource (S36).
    pub(super) aliases: Box<[Name]>,
}

impl Held {
    /// Returns other names of the resource (S36).
    #[must_use]
    pub fn aliases(&self) -> &[Name] {
        &self.aliases
    }

    /// Makes the record of a resource, without its body.
    pub(super) fn of(resource: &Resource) -> Self {
        Self {
            constraints: resource.constraints.clone(),
            version: resource.version.clone(),
            fingerprint: fingerprint(resource),
            aliases: resource.aliases.clone(),
        }
    }

    /// Returns whether the server was asked for the variant of this name.
    pub(super) fn is_requested(&self, name: &Name, interest: &InterestState) -> bool {
        interest.is_variant_requested(name, &self.aliases, self.constraints.as_ref())
    }
}

/// Hashes the parts of a resource that a version should stand for: its body,
/// aliases and TTL.
fn fingerprint(resource: &Resource) -> u64 {
    let body = resource.body.as_deref().unwrap_or_default();
    let mut hash = XxHash3_128::oneshot(body) as u64;
    let mut add = |bytes: &[u8]| hash = XxHash3_128::oneshot_with_seed(hash, bytes) as u64;
    for alias in &resource.aliases {
        add(alias.as_str().as_bytes());
    }
    if let Some(ttl) = resource.ttl {
        add(&ttl.as_nanos().to_le_bytes());
    }
    hash
}

/// The contents of a name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Contents {
    #[default]
    Nothing,
    /// The one variant of the name.
    One(Held),
    /// Several variants, sorted by constraints.
    Several(Vec<Held>),
    /// The name is an alias of this resource.
    Alias(Name),
}

/// Whether variants were received on an earlier stream, of which the server may
/// not know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Carried {
    #[default]
    No,
    /// The server was told the version. A variant that contradicts one that it
    /// sends is outdated.
    Told,
    /// The server knows of none. The first update of the name has all variants.
    Untold,
    /// The server knows of none, and has sent one that was rejected, or an
    /// error.
    Mentioned,
}

/// The state of one name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) state: CacheState,
    pub(super) contents: Contents,
    /// The last error; reported once (C28), and cleared when the resource
    /// arrives.
    pub(super) error: Option<Box<WatchError>>,
    pub(super) carried: Carried,
    /// The resource came from another server, where its version means nothing
    /// (E9).
    pub(super) is_foreign: bool,
}

impl Contents {
    /// Returns the variants of the name's own resource.
    pub(super) fn variants(&self) -> &[Held] {
        match self {
            Self::Nothing | Self::Alias(_) => &[],
            Self::One(variant) => slice::from_ref(variant),
            Self::Several(variants) => variants,
        }
    }

    /// Returns the variants as a list, which is empty for an alias and without
    /// contents.
    fn into_variants(self) -> Vec<Held> {
        match self {
            Self::Nothing | Self::Alias(_) => Vec::new(),
            Self::One(variant) => vec![variant],
            Self::Several(variants) => variants,
        }
    }

    /// Makes the contents of a list of variants, which is sorted by
    /// constraints.
    fn of(mut variants: Vec<Held>) -> Self {
        match variants.len() {
            0 => Self::Nothing,
            1 => variants.pop().map_or(Self::Nothing, Self::One),
            _ => Self::Several(variants),
        }
    }

    /// Finds a variant: `Ok` with its index, or `Err` with the index at which
    /// to insert it.
    pub(super) fn position(&self, constraints: Option<&Constraints>) -> Result<usize, usize> {
        self.variants()
            .binary_search_by(|variant| variant.constraints.as_ref().cmp(&constraints))
    }

    /// Returns the variant with these constraints; `None` if there is none.
    pub(super) fn variant(&self, constraints: Option<&Constraints>) -> Option<&Held> {
        let index = self.position(constraints).ok()?;
        Some(&self.variants()[index])
    }

    /// Stores a variant. Returns the one with equal constraints that it
    /// replaces. An alias becomes a name of its own.
    pub(super) fn put(&mut self, variant: Held) -> Option<Held> {
        match (self.position(variant.constraints.as_ref()), &mut *self) {
            (Ok(_), Self::One(replaced)) => Some(std::mem::replace(replaced, variant)),
            (Ok(index), Self::Several(list)) => Some(std::mem::replace(&mut list[index], variant)),
            (Err(index), Self::One(_) | Self::Several(_)) => {
                let mut list = std::mem::take(self).into_variants();
                list.insert(index, variant);
                *self = Self::Several(list);
                None
            }
            (_, Self::Nothing | Self::Alias(_)) => {
                *self = Self::One(variant);
                None
            }
        }
    }

    /// Removes the variants for which `is_kept` returns `false`, and returns
    /// them. The caller cancels their TTL timers.
    pub(super) fn drop_unless(&mut self, is_kept: impl Fn(&Held) -> bool) -> Vec<Held> {
        if self.variants().iter().all(&is_kept) {
            return Vec::new();
        }
        let variants = std::mem::take(self).into_variants();
        let (kept_variants, dropped_variants) =
            variants.into_iter().partition(|variant| is_kept(variant));
        *self = Self::of(kept_variants);
        dropped_variants
    }
}

impl Entry {
    /// Records that the server has spoken of the name, though with an error or
    /// with a resource that was rejected: it knows the name, and need not list
    /// it again to show that it exists.
    pub(super) fn note_mention(&mut self) {
        if self.carried == Carried::Untold {
            self.carried = Carried::Mentioned;
        }
    }

    /// Returns whether the database has a value of the name.
    pub(super) fn has_value(&self) -> bool {
        self.contents != Contents::Nothing
    }

    /// Returns whether the server has said nothing of the name. That no
    /// response came in time is no word of it, unless that means that the name
    /// does not exist (C34).
    pub(super) fn is_unanswered(&self) -> bool {
        let waits = matches!(self.state, CacheState::Requested | CacheState::Timeout);
        waits && !self.has_value()
    }

    /// Returns whether the name of this entry is an alias of the resource with
    /// that name.
    pub(super) fn is_alias_of(&self, name: &Name) -> bool {
        matches!(&self.contents, Contents::Alias(resource_name) if resource_name == name)
    }

    /// Returns whether a subscription covers the entry of this name: one of its
    /// variants, or, if there is none, the name that was rejected or failed.
    pub(super) fn is_covered(&self, name: &Name, interest: &InterestState) -> bool {
        match (&self.contents, self.state) {
            (Contents::Nothing, CacheState::Nacked | CacheState::ReceivedError) => {
                interest.is_requested(name)
            }
            (contents, _) => {
                let mut variants = contents.variants().iter();
                variants.any(|variant| variant.is_requested(name, interest))
            }
        }
    }

    /// Returns the version to send on a new stream: that of the only variant,
    /// if the server still believes that we have it. `None` for an alias, for
    /// several variants, and for a resource that the server withdrew, that
    /// another server sent, or that has no version.
    pub(super) fn initial_version(&self) -> Option<&Version> {
        let error = self.error.as_ref();
        let is_withdrawn = error.is_some_and(|error| error.cause.is_withdrawal());
        let Contents::One(variant) = &self.contents else {
            return None;
        };

        let has_version = !variant.version.as_str().is_empty();
        (!is_withdrawn && !self.is_foreign && has_version).then_some(&variant.version)
    }
}
