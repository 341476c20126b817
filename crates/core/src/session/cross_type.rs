//! Effects of sending one type on another type of the same stream.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{Config, Session};
use crate::database::Database;
use crate::kind;
use crate::name::Name;
use crate::order::OtherTypes;
use crate::resource::{Resource, TypeUrl};
use crate::source::{Push, TypeStream};

impl Session {
    /// Marks resources of other types for resending that a push makes the
    /// client lose, or wait for: endpoints of clusters, and hosts of route
    /// configurations. Called while the client cache still has the resources
    /// that the push replaces.
    pub(super) fn resend_dependents(&mut self, db: &mut Database, index: usize, push: &Push) {
        let type_stream = &self.type_streams[index];
        match type_stream.type_url.as_str() {
            kind::CDS => self.resend_endpoints(db, index, |clusters| {
                let relisted_clusters = clusters.relisted_after_nack();
                push.resources().chain(relisted_clusters)
            }),
            kind::RDS => {
                let changed_routes = routes_with_changed_vhds(db, type_stream, push);
                self.restart_virtual_hosts(db, &changed_routes);
            }
            // A replaced listener forgets the virtual hosts of its inline
            // routes.
            kind::LDS => {
                let listeners = push.resources();
                let inline_routes: Vec<Name> = listeners
                    .flat_map(|listener| listener.facts().inline_vhds_routes())
                    .cloned()
                    .collect();
                self.restart_virtual_hosts(db, &inline_routes);
            }
            _ => {}
        }
    }

    /// Resends the endpoints of pending sets of clusters after a NACK: these
    /// sets list the NACKed clusters again.
    pub(super) fn resend_endpoints_after_nack(&mut self, db: &Database, index: usize) {
        let type_stream = &self.type_streams[index];
        if type_stream.type_url.as_str() == kind::CDS && type_stream.sends_whole_sets() {
            self.resend_endpoints(db, index, |clusters| {
                let pending_acks = clusters.client_cache.pending_acks().iter();
                pending_acks.flat_map(|pending_ack| pending_ack.resources())
            });
        }
    }

    /// Resends the endpoints of changed clusters, even if they are the same:
    /// until they come Envoy does not ACK the clusters (S53). `select_changed`
    /// selects the clusters of the type stream at `index`. Nothing is resent if
    /// the configuration says so, or the client did not subscribe to endpoints.
    fn resend_endpoints<'r, I: Iterator<Item = &'r Arc<Resource>>>(
        &'r mut self,
        db: &Database,
        index: usize,
        select_changed: impl FnOnce(&'r TypeStream) -> I,
    ) {
        if !self.config.repeat_endpoints {
            return;
        }
        let mut type_streams = self.type_streams.iter();
        let endpoints_index =
            type_streams.position(|type_stream| type_stream.type_url.as_str() == kind::EDS);
        let Some(endpoints_index) = endpoints_index else {
            return;
        };
        let indexes = [index, endpoints_index];
        let Ok([clusters, endpoints]) = self.type_streams.get_disjoint_mut(indexes) else {
            return;
        };

        for cluster in select_changed(clusters) {
            let references = cluster.facts().references.iter();
            let endpoint_references =
                references.filter(|reference| reference.type_url.as_str() == kind::EDS);
            for reference in endpoint_references {
                endpoints.resend_plain(db, &reference.name);
            }
        }
    }

    /// Restarts the hosts of route configurations that begin to use VHDS: Envoy
    /// has no virtual hosts then, and waits for a first response (S76). Their
    /// hosts are resent, with a placeholder in case there are none.
    fn restart_virtual_hosts(&mut self, db: &mut Database, routes: &[Name]) {
        for route in routes {
            self.subscribe_base_hosts(db, route);
        }
        if let Some(hosts) = self.type_stream_mut(kind::VHDS) {
            for route in routes {
                hosts.placeholders.insert(placeholder(route));
                hosts.resend_hosts(db, route);
            }
        }
    }

    /// Returns the route configurations with VHDS that the client was sent. On
    /// a stream of virtual hosts alone, all that exist.
    pub(super) fn routes_with_hosts(&self, db: &mut Database) -> BTreeSet<Name> {
        routes_with_hosts(db, &self.config, self.type_streams.iter())
    }
}

/// Answers the first VHDS request by removing one placeholder for each route
/// configuration that uses VHDS; Envoy goes on waiting after an empty response
/// (S66, S76).
pub(super) fn answer_first_vhds_request(
    db: &mut Database,
    config: &Config,
    type_stream: &mut TypeStream,
    others: OtherTypes<'_>,
) {
    if !type_stream.kind.on_demand || !type_stream.owes_response {
        return;
    }
    type_stream.owes_response = false;
    let routes = routes_with_hosts(db, config, others.iter());
    type_stream
        .placeholders
        .extend(routes.iter().map(placeholder));
}

/// Updates which hosts are paused, since their route configuration has no VHDS.
/// Has no effect on types without hosts.
pub(super) fn update_routes_without_vhds(
    db: &mut Database,
    hosts: &mut TypeStream,
    others: OtherTypes<'_>,
) {
    if let Some(routes) = others.find(kind::RDS).filter(|_| hosts.kind.on_demand) {
        hosts.routes_without_vhds.update(db, routes);
    }
}

/// Returns the route configurations with VHDS that the client was sent, by
/// themselves or inline in a listener, ACKed or not: Envoy requests hosts
/// before it ACKs their routes. On a stream of virtual hosts alone, returns all
/// that exist.
fn routes_with_hosts<'c>(
    db: &mut Database,
    config: &Config,
    type_streams: impl Iterator<Item = &'c TypeStream>,
) -> BTreeSet<Name> {
    let (mut routes, mut listeners) = (Vec::new(), Vec::new());
    if config.single_type.is_some() {
        routes = resources_of_type(db, kind::RDS);
        listeners = resources_of_type(db, kind::LDS);
    } else {
        for type_stream in type_streams {
            match type_stream.type_url.as_str() {
                kind::RDS => routes = type_stream.sent_resources(db),
                kind::LDS => listeners = type_stream.sent_resources(db),
                _ => {}
            }
        }
    }

    let vhds_routes = routes
        .iter()
        .filter(|route| route.facts().vhds_version().is_some());
    let inline_names = listeners
        .iter()
        .flat_map(|listener| listener.facts().inline_vhds_routes());
    let names = vhds_routes.map(|route| &route.name).chain(inline_names);
    names.cloned().collect()
}

/// Returns all resources of a type in the database; none if it does not know
/// the type.
fn resources_of_type(db: &Database, url: &str) -> Vec<Arc<Resource>> {
    let type_id = db.find_type(&TypeUrl::from(url));
    type_id.map_or_else(Vec::new, |id| db.resources(id).cloned().collect())
}

/// Returns the route configurations of a push with a `vhds` block that differs
/// from the one that the client ACKed last.
fn routes_with_changed_vhds(db: &mut Database, routes: &TypeStream, push: &Push) -> Vec<Name> {
    let mut names = Vec::new();
    let upserts = push
        .updates
        .iter()
        .filter_map(|update| update.resource.as_ref());
    for route in upserts {
        let held_resources = routes.client_cache.held(db, &route.name);
        let accepted_record = held_resources.iter().find(|record| record.is_accepted());
        let acked_version =
            accepted_record.and_then(|record| record.resource.facts().vhds_version());
        let new_version = route.facts().vhds_version();
        if new_version.is_some() && new_version != acked_version {
            names.push(route.name.clone());
        }
    }
    names
}

/// Returns the name of a host under a route configuration that no resource ever
/// has.
fn placeholder(route: &Name) -> Name {
    Name::new(&format!("{route}/.none"))
}
