//! Base subscriptions: hosts that a client is subscribed to without asking. The
//! client can unsubscribe from any of them, and after a reconnect it is sent
//! only the changes.

use std::collections::BTreeSet;

use super::Session;
use crate::database::{Database, TypeId};
use crate::hosts::HostName;
use crate::kind;
use crate::message::{InitialVersions, Locator};
use crate::name::Name;
use crate::resource::TypeUrl;

/// The sets and hosts that a client is subscribed to without asking.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BaseSubscriptions {
    /// Names of base sets.
    pub sets: Vec<Box<str>>,
    /// Hosts by name: `<route configuration>/<host>`.
    pub hosts: Vec<Name>,
}

impl Session {
    /// Sets the base subscriptions, before the client subscribes to any virtual
    /// host.
    pub fn set_base_subscriptions(&mut self, base: BaseSubscriptions) {
        self.config.base_subscriptions = base;
    }

    /// Returns the base subscriptions that are added to the first request of
    /// virtual hosts: those under each route configuration that the client was
    /// sent, or whose hosts the request names. Returns none for other types.
    pub(super) fn base_hosts_of_request(
        &self,
        db: &mut Database,
        index: usize,
        names: &[Locator],
        initial: &InitialVersions,
    ) -> Vec<Name> {
        let type_stream = &self.type_streams[index];
        if !type_stream.kind.on_demand {
            return Vec::new();
        }
        if self.config.base_subscriptions == BaseSubscriptions::default() {
            return Vec::new();
        }

        // A stream of one type is sent no routes.
        let sent_routes = match self.config.single_type {
            None => self.routes_with_hosts(db),
            Some(_) => BTreeSet::new(),
        };
        let mut routes: BTreeSet<String> = sent_routes.iter().map(Name::to_string).collect();
        // A VHDS stream is for one route configuration, and only the names that
        // it subscribes to or holds say which.
        let subscribed_names = names.iter().map(|locator| locator.name.as_str());
        let held_names = initial.iter().map(|(name, _)| name.as_str());
        let named_routes = subscribed_names
            .chain(held_names)
            .filter_map(|name| Some(HostName::split(name)?.route.to_owned()));
        routes.extend(named_routes.take(self.config.limits.types));

        let base_hosts = routes
            .iter()
            .flat_map(|route| self.base_hosts_of_route(db, type_stream.type_id, route));
        base_hosts.collect()
    }

    /// Returns the base subscriptions under one route configuration, without
    /// duplicates: single hosts, and the hosts of base sets.
    fn base_hosts_of_route(&self, db: &Database, type_id: TypeId, route: &str) -> Vec<Name> {
        let is_under = |name: &&Name| {
            let name = HostName::split(name.as_str());
            name.is_some_and(|name| name.route == route)
        };
        let base = &self.config.base_subscriptions;
        let mut hosts: BTreeSet<Name> = base.hosts.iter().filter(is_under).cloned().collect();
        for set in &base.sets {
            hosts.extend(db.base_hosts(type_id, set, route));
        }
        hosts.into_iter().collect()
    }

    /// Adds the base subscriptions of a route configuration that uses VHDS and
    /// is sent to a client that has subscribed to virtual hosts before. A
    /// client that may not see virtual hosts gets none.
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
