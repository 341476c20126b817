//! What a client gets without asking: virtual hosts of its base sets, each as if
//! it had asked for it. So it can end any of them, and after a reconnect it is
//! sent what changed and no more.

use std::collections::BTreeSet;

use super::Session;
use crate::database::{Database, TypeId};
use crate::hosts::HostName;
use crate::kind;
use crate::message::{InitialVersions, Locator};
use crate::name::Name;
use crate::resource::TypeUrl;

/// The sets and hosts that a client gets without asking.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BaseSubscriptions {
    /// Names of sets.
    pub sets: Vec<Box<str>>,
    /// Hosts by name: `<route configuration>/<host>`.
    pub hosts: Vec<Name>,
}

impl Session {
    /// Says what the client gets without asking, before it asks for virtual
    /// hosts at all.
    pub fn set_base_subscriptions(&mut self, base: BaseSubscriptions) {
        self.config.base_subscriptions = base;
    }

    /// The hosts that a first request for virtual hosts is taken to ask for.
    pub(super) fn base_hosts_of_request(
        &self,
        db: &mut Database,
        type_id: TypeId,
        names: &[Locator],
        initial: &InitialVersions,
    ) -> Vec<Name> {
        if self.config.base_subscriptions == BaseSubscriptions::default() {
            return Vec::new();
        }
        let sent = match self.config.single_type {
            None => self.routes_with_hosts(db),
            Some(_) => BTreeSet::new(),
        };
        let mut routes: BTreeSet<String> = sent.iter().map(Name::to_string).collect();
        // A stream of its own is for one route configuration, and does not say
        // for which but by what it asks for or holds.
        let names = names.iter().map(|locator| locator.name.as_str());
        let names = names.chain(initial.iter().map(|(name, _)| name.as_str()));
        let named = names.filter_map(|name| Some(HostName::split(name)?.route.to_owned()));
        routes.extend(named.take(self.config.limits.types));
        let under = |route| self.base_hosts_of_route(db, type_id, route);
        routes.iter().flat_map(|route| under(route)).collect()
    }

    /// The hosts under one route configuration.
    fn base_hosts_of_route(&self, db: &Database, type_id: TypeId, route: &str) -> Vec<Name> {
        let is_under = |name: &&Name| {
            let name = HostName::split(name.as_str());
            name.is_some_and(|name| name.route == route)
        };
        let mut hosts: BTreeSet<Name> = self
            .config
            .base_subscriptions
            .hosts
            .iter()
            .filter(is_under)
            .cloned()
            .collect();
        for set in &self.config.base_subscriptions.sets {
            hosts.extend(db.base_hosts(type_id, set, route));
        }
        hosts.into_iter().collect()
    }

    /// A route configuration came that leaves its hosts to VHDS, to a client
    /// that asked for virtual hosts before.
    pub(super) fn subscribe_base_hosts(&mut self, db: &mut Database, route: &Name) {
        let url = TypeUrl::from(kind::VHDS);
        let Some(type_id) = db.find_type(&url) else {
            return;
        };
        let names = self.base_hosts_of_route(db, type_id, route.as_str());
        if let Some(hosts) = self.type_stream_mut(kind::VHDS) {
            let params = hosts.params;
            for name in names {
                if hosts.type_id == type_id && !hosts.is_subscribed(db, &name, params) {
                    hosts.subscribe(db, &name, params, &InitialVersions::default());
                }
            }
        }
    }
}
