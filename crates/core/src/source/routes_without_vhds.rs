//! Route configurations without VHDS, whose hosts are paused.
//!
//! A route configuration that lost its `vhds` block reads no hosts. Envoy keeps
//! those that it had and uses them when the block is back, so changes of hosts
//! are sent then and not before (S76).

use hashbrown::HashSet;

use super::{AnswerKind, CachedResource, TypeStream};
use crate::database::Database;
use crate::hosts::HostName;
use crate::name::Name;
use crate::resource::Nonce;

/// Route configurations without VHDS, as the client knows them.
#[derive(Debug, Default)]
pub(crate) struct RoutesWithoutVhds {
    routes: HashSet<Name>,
    fingerprint: Option<RoutesFingerprint>,
}

/// The state that the set of route configurations without VHDS was computed
/// from; the set is computed again when this differs.
#[derive(Debug, PartialEq, Eq)]
struct RoutesFingerprint {
    subscriptions: usize,
    held_sum: u128,
    last_nonce: Option<Nonce>,
    pending_acks: usize,
}

impl RoutesWithoutVhds {
    /// Computes which route configurations of the client have no VHDS, unless
    /// what it depends on has not changed. `rds` is the type stream of RDS. A route
    /// configuration that does not exist counts as one without.
    pub(crate) fn update(&mut self, db: &mut Database, rds: &TypeStream) {
        let fingerprint = Some(RoutesFingerprint {
            subscriptions: rds.subscriptions.len(),
            held_sum: rds.client_cache.fingerprint_sum(),
            last_nonce: rds.last_nonce.clone(),
            pending_acks: rds.client_cache.pending_acks().len(),
        });
        if self.fingerprint == fingerprint {
            return;
        }

        self.fingerprint = fingerprint;
        self.routes.clear();
        for (key, subscription) in rds.subscriptions.iter() {
            let name = db.name(rds.type_id, key.entry).clone();
            let held_resources = rds.client_cache.held_after_acks(db, &name);
            let uses_vhds =
                |record: &CachedResource| record.resource.facts().vhds_version().is_some();
            let lacks_vhds = match held_resources.iter().find(|record| record.is_accepted()) {
                Some(accepted) => !uses_vhds(accepted),
                None => rds.last_answer(key, *subscription) == AnswerKind::Absent,
            };
            if lacks_vhds {
                self.routes.insert(name);
            }
        }
    }

    /// Returns whether a host, or a virtual host, belongs to one of these route
    /// configurations.
    pub(super) fn contains_host(&self, name: &Name) -> bool {
        let route = HostName::split(name.as_str()).map(|name| name.route);
        let lacks_vhds = |route: &str| self.routes.contains(&Name::new(route));
        !self.routes.is_empty() && route.is_some_and(lacks_vhds)
    }
}
