//! Why a host gets what it gets, for people.

use std::sync::Arc;

use super::super::{Database, TypeId};
use super::resolve::Given;
use crate::hosts::HostName;
use crate::name::Name;
use crate::params::ParamsId;
use crate::resource::Resource;

/// Why a host gets what it gets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostExplanation {
    /// The virtual hosts that match, the first to be preferred.
    pub considered: Vec<Considered>,
    /// What the client is given, and in which form.
    pub given: Option<(Arc<Resource>, Given)>,
}

/// A virtual host that matches a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Considered {
    /// By which of its domains.
    pub domain: String,
    /// Its name.
    pub name: Name,
    /// Whether it is for clients with these parameters.
    pub is_seen: bool,
}

impl Database {
    /// Why a client with these parameters gets what it gets for a host.
    pub fn explain_host(
        &mut self,
        type_id: TypeId,
        asked: &Name,
        params: ParamsId,
    ) -> HostExplanation {
        let table = &mut self.tables[type_id.0 as usize];
        let (Some(hosts), Some(name)) = (&table.hosts, HostName::split(asked.as_str())) else {
            return HostExplanation::default();
        };
        let host = hosts.sought(name);
        let mut considered = Vec::new();
        for domain in hosts.candidates(name.route, &host) {
            for owner in table.owners_of(name.route, domain) {
                let choice = table.own_choice(owner, params, &mut self.params, &mut self.work);
                let has_it = |r: &Arc<Resource>| r.facts().domains.contains(domain);
                considered.push(Considered {
                    domain: domain.to_string(),
                    name: table.entry(owner).name.clone(),
                    is_seen: choice.resource().is_some_and(has_it),
                });
            }
        }
        let found = table.match_host(asked, params, &mut self.params, &mut self.work);
        let given = found.and_then(|found| {
            let asked_at = table.intern(asked);
            let source = found.choice.resource().cloned();
            let given = source.and_then(|source| table.give(asked_at, asked, &source, &found));
            table.tidy(asked_at);
            given
        });
        HostExplanation { considered, given }
    }
}
