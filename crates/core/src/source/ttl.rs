//! Renews resources with a TTL before it runs out (S58-S60).
//!
//! In delta, a heartbeat has the name, version and TTL alone. On a SotW stream
//! Envoy takes such a response for the whole set and deletes everything, so
//! there the resource itself is resent.

use std::sync::Arc;

use super::client_cache::Advance;
use super::{Push, TypeStream};
use crate::database::{Database, same_resource};
use crate::message::Mode;
use crate::moment::Moment;
use crate::name::Name;
use crate::resource::Resource;

impl TypeStream {
    /// Sets the timers of the resources in a push to half their TTL: a resource
    /// that was just sent needs no renewal until then (S59). The timers of
    /// removals and of resources without a TTL are cancelled (S60). `wraps` is
    /// whether a SotW client reads a TTL at all (S58).
    pub(crate) fn start_ttl_timers(&mut self, push: &Push, wraps: bool, now: Moment) {
        let has_ttl = push.resources().any(|resource| resource.ttl.is_some());
        if !has_ttl && self.ttl_timers.next().is_none() {
            return;
        }

        let updates = push.updates.iter();
        let updated_names = updates.map(|update| (update.name(), update.resource.as_ref()));
        let items = push.advances.iter().flat_map(Advance::items);
        let advanced_names = items.map(|(name, item)| (name, item.as_ref()));
        for (name, resource) in updated_names.chain(advanced_names) {
            let ttl = resource.and_then(|resource| resource.ttl);
            match ttl.filter(|_| self.sends_ttl(wraps)) {
                Some(ttl) => self.ttl_timers.set(name.clone(), now + ttl / 2),
                None => _ = self.ttl_timers.cancel(name),
            }
        }
    }

    /// Returns whether TTLs are sent; `wraps` as in [`Self::start_ttl_timers`].
    fn sends_ttl(&self, wraps: bool) -> bool {
        let is_read_in_sotw = wraps && self.kind.ttl_in_sotw;
        !self.kind.on_demand && (self.mode == Mode::Delta || is_read_in_sotw)
    }

    /// Takes the heartbeats that are due, and sets their timers again. A SotW
    /// stream has none: its names are resent instead. A name whose resource is
    /// about to change needs neither.
    pub(crate) fn take_due_heartbeats(
        &mut self,
        db: &mut Database,
        now: Moment,
    ) -> Vec<Arc<Resource>> {
        let mut heartbeats = Vec::new();
        for name in self.ttl_timers.expire(now) {
            let resources = self.held_and_desired(db, &name);
            if resources.is_empty() {
                continue;
            }

            match self.mode {
                Mode::Delta => {
                    if let Some(ttl) = resources.iter().filter_map(|resource| resource.ttl).min() {
                        self.ttl_timers.set(name, now + ttl / 2);
                    }
                    heartbeats.extend(resources);
                }
                Mode::Sotw => self.resend_name(db, name),
            }
        }
        heartbeats
    }

    /// Returns the resources of a name that the client surely holds and that
    /// are desired as they are.
    fn held_and_desired(&self, db: &mut Database, name: &Name) -> Vec<Arc<Resource>> {
        let desired_resources = self.desired_resources(db, name);
        let is_desired = |record: &Arc<Resource>| {
            desired_resources
                .iter()
                .any(|resource| same_resource(resource, record))
        };
        let held_resources = self.client_cache.held(db, name).into_iter();
        let accepted_records = held_resources.filter(|record| record.is_accepted());
        let resources = accepted_records.map(|record| record.resource);
        resources.filter(is_desired).collect()
    }

    /// Resends a name to its subscriptions and to the cursor that covers it.
    fn resend_name(&mut self, db: &mut Database, name: Name) {
        self.resend_subscriptions(db, &name);
        if self.client_cache.covering_cursor(&name).is_some() {
            self.client_cache.make_exception(db, &name);
            self.resend_names.insert(name.clone());
        }
        self.dirty.insert(name);
    }
}
