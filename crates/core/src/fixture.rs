//! Resources that the unit tests of several modules need.

use std::sync::Arc;

use crate::change::Change;
use crate::facts::{Facts, RareFacts};
use crate::hosts::Domains;
use crate::kind::VHDS;
use crate::resource::Resource;

/// Puts a virtual host in place: for all clients, or those of a constraint, and
/// in some base sets.
pub(crate) fn put_host(
    name: &str,
    domains: &[&str],
    clients: Option<&str>,
    base_sets: &[&str],
) -> Change {
    let rare = RareFacts {
        base_sets: base_sets.iter().map(|set| Box::from(*set)).collect(),
        ..RareFacts::default()
    };

    let facts = Facts {
        domains: Domains::new(domains),
        rare: rare.boxed(),
        ..Facts::default()
    };

    let host = Resource {
        constraints: clients.map(|text| text.parse().unwrap()),
        facts: Some(Box::new(facts)),
        ..Resource::new(name.into(), "x".into())
    };
    Change::Upsert(VHDS.into(), Arc::new(host))
}
