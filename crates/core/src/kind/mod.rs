//! The table of resource types: what the rules need to know about each.
//!
//! It follows the observed behaviour of real clients. Envoy's types are in
//! `table.rs`; a program [registers](Kind::register) its own. A type that is not
//! known is opaque: subscribed to by name, never a whole set, without order.

mod table;

use std::sync::{PoisonError, RwLock, RwLockReadGuard};

pub use table::{ALL, CDS, ECDS, EDS, LDS, LEDS, RDS, RTDS, SDS, SRDS, VHDS};

use crate::resource::TypeUrl;

/// The properties of one type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// The short name that people use: `cds`.
    pub short: &'static str,
    /// A SotW response is the whole set, or full state, and a resource that it
    /// leaves out is deleted (S38; gRPC's `allResourcesRequiredInSotW`); otherwise leaving out a resource means nothing (S39).
    pub whole_set: bool,
    /// An empty first request is a wildcard (S18).
    pub legacy_wildcard: bool,
    /// The type's place in make before break (S52): resources of a lower rank
    /// are sent before resources that refer to them.
    pub rank: u8,
    /// The negative answer that Envoy understands in delta (S35).
    pub(crate) envoy_negative: NegativeForm,
    /// The negative answer that Envoy understands in SotW.
    pub(crate) envoy_negative_in_sotw: NegativeForm,
    /// A wildcard brings nothing by itself; names are subscribed to one by one
    /// (S66).
    pub on_demand: bool,
    /// A replaced resource drains: its references stay in use for a while
    /// (S73).
    pub(crate) drains: bool,
    /// A client that reconnects may still use a resource that the database no
    /// longer has (S82).
    pub(crate) survives_reconnect: bool,
    /// The types that a resource of this type may refer to.
    pub refers_to: &'static [&'static str],
    /// A TTL may be sent on a SotW stream (S59).
    pub(crate) ttl_in_sotw: bool,
}

/// The form of a negative answer: how a client is told that a name does not
/// exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NegativeForm {
    /// The name in `removed_resources`.
    Removed,
    /// A resource that has its name and nothing else.
    EmptyBody,
    /// A resource without a body that has its own name as alias.
    Bodyless,
    /// A body that cannot be decoded, in a response of its own. The client
    /// NACKs it, and that ends its wait; a response that it ACKs would leave it
    /// waiting.
    Unreadable,
    /// No answer: every form does more harm than none.
    Silence,
}

/// The properties of a type that is not known.
const OPAQUE: Kind = Kind {
    short: "",
    whole_set: false,
    legacy_wildcard: false,
    rank: u8::MAX,
    envoy_negative: NegativeForm::Removed,
    envoy_negative_in_sotw: NegativeForm::Silence,
    on_demand: false,
    drains: false,
    survives_reconnect: false,
    refers_to: &[],
    ttl_in_sotw: true,
};

/// Types that a program added to the table.
static REGISTERED: RwLock<Vec<(TypeUrl, Kind)>> = RwLock::new(Vec::new());

/// Why a type cannot be registered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{type_url} is known already, with other properties; register a type once")]
pub struct RegisterError {
    /// The type.
    pub type_url: TypeUrl,
}

impl Kind {
    /// Returns the properties of a type. One that is neither built in nor
    /// registered is opaque.
    #[must_use]
    pub fn of(type_url: &TypeUrl) -> Self {
        find_built_in(type_url)
            .or_else(|| find_registered(&lock_registered(), type_url))
            .unwrap_or(OPAQUE)
    }

    /// Returns whether a type is in the table, built in or registered.
    #[must_use]
    pub(crate) fn is_known(type_url: &TypeUrl) -> bool {
        find_built_in(type_url).is_some() || find_registered(&lock_registered(), type_url).is_some()
    }

    /// Adds a type to the table, for all databases of the process. The caller
    /// does this before one of them has resources or subscribers of the type.
    /// Adding it again with the same properties changes nothing.
    ///
    /// ```
    /// use trunkline_core::kind::{self, Kind};
    ///
    /// let quotas = "type.googleapis.com/example.Quota".into();
    /// let kind = Kind::new("quota").with_whole_sets().with_rank(2);
    /// Kind::register(&quotas, kind.with_references(&[kind::CDS]))?;
    /// assert!(Kind::of(&quotas).whole_set);
    /// # Ok::<(), kind::RegisterError>(())
    /// ```
    ///
    /// # Errors
    /// If the type is known with other properties.
    pub fn register(type_url: &TypeUrl, kind: Self) -> Result<(), RegisterError> {
        let mut registered = REGISTERED.write().unwrap_or_else(PoisonError::into_inner);
        let built_in = find_built_in(type_url);
        match built_in.or_else(|| find_registered(&registered, type_url)) {
            Some(known_kind) if known_kind == kind => Ok(()),
            Some(_) => Err(RegisterError {
                type_url: type_url.clone(),
            }),
            None => {
                registered.push((type_url.clone(), kind));
                Ok(())
            }
        }
    }

    /// Makes a type that is subscribed to by name, is never a whole set, and is
    /// sent after all others.
    #[must_use]
    pub const fn new(short: &'static str) -> Self {
        Self { short, ..OPAQUE }
    }

    /// Makes a SotW response the whole set, and an empty first request a
    /// wildcard.
    #[must_use]
    pub const fn with_whole_sets(self) -> Self {
        Self {
            whole_set: true,
            legacy_wildcard: true,
            ..self
        }
    }

    /// Sets the rank: resources of a lower rank are sent before those that
    /// refer to them.
    #[must_use]
    pub const fn with_rank(self, rank: u8) -> Self {
        Self { rank, ..self }
    }

    /// Sets the types that a resource of this type may refer to.
    #[must_use]
    pub const fn with_references(self, refers_to: &'static [&'static str]) -> Self {
        Self { refers_to, ..self }
    }

    /// Returns whether resources of type `user` may refer to resources of type
    /// `used`, directly or through other types. A reference of a type to itself
    /// does not count.
    pub(crate) fn reaches(user: &str, used: &str) -> bool {
        let refers_to = Self::of(&user.into()).refers_to.iter();
        let mut other_types = refers_to.filter(|other| **other != user);
        other_types.any(|other| *other == used || Self::reaches(other, used))
    }

    /// Returns whether resources of some type may refer to this type.
    #[must_use]
    pub(crate) fn is_referred_to(type_url: &TypeUrl) -> bool {
        let refers = |kind: &Self| kind.refers_to.contains(&type_url.as_str());
        let mut built_in_types = table::TABLE.iter();
        built_in_types.any(|(_, kind)| refers(kind))
            || lock_registered().iter().any(|(_, kind)| refers(kind))
    }
}

/// Returns the properties of a type of Envoy; `None` for another type.
fn find_built_in(type_url: &TypeUrl) -> Option<Kind> {
    let mut entries = table::TABLE.iter();
    let entry = entries.find(|(url, _)| *url == type_url.as_str());
    entry.map(|(_, kind)| *kind)
}

/// Returns the properties of a type that a program has registered; `None` if it
/// has not.
fn find_registered(registered: &[(TypeUrl, Kind)], type_url: &TypeUrl) -> Option<Kind> {
    let mut entries = registered.iter();
    let entry = entries.find(|(url, _)| url == type_url);
    entry.map(|(_, kind)| *kind)
}

/// Locks the registered types for reading. The types of a poisoned lock are
/// whole all the same, because types are only ever added.
fn lock_registered() -> RwLockReadGuard<'static, Vec<(TypeUrl, Kind)>> {
    REGISTERED.read().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_is_registered_once() {
        let url: TypeUrl = "type.googleapis.com/test.Registered".into();
        assert_eq!(Kind::of(&url), OPAQUE);
        let kind = Kind::new("mine").with_rank(3).with_references(&[CDS]);
        Kind::register(&url, kind).unwrap();
        Kind::register(&url, kind).unwrap();
        assert_eq!(Kind::of(&url), kind);
        let error = RegisterError {
            type_url: url.clone(),
        };
        assert_eq!(Kind::register(&url, kind.with_whole_sets()), Err(error));
        assert!(Kind::register(&CDS.into(), kind).is_err());
        assert!(Kind::register(&CDS.into(), Kind::of(&CDS.into())).is_ok());
    }

    #[test]
    fn the_table_has_every_type_once() {
        for (url, (known, kind)) in ALL.iter().zip(&table::TABLE) {
            assert_eq!(url, known);
            assert_eq!(Kind::of(&(*url).into()), *kind);
            assert!(url.starts_with("type.googleapis.com/envoy."));
        }
    }
}
