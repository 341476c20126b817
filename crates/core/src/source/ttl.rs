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
    /// Starts the timers of the resources in a push. A resource that was just
    /// sent needs no renewal for a while (S59), one without a TTL needs none
    /// (S60). `wraps` is whether a SotW client reads a TTL at all (S58).
    pub(crate) fn start_ttl_timers(&mut self, push: &Push, wraps: bool, now: Moment) {
        let has_ttl = push.resources().any(|r| r.ttl.is_some());
        if !has_ttl && self.ttl_timers.next().is_none() {
            return;
        }
        let single = push
            .updates
            .iter()
            .map(|update| (update.name(), update.resource.as_ref()));
        let items = push.advances.iter().flat_map(Advance::items);
        let items = items.map(|(name, item)| (name, item.as_ref()));
        for (name, resource) in single.chain(items) {
            match resource
                .and_then(|r| r.ttl)
                .filter(|_| self.sends_ttl(wraps))
            {
                Some(ttl) => self.ttl_timers.set(name.clone(), now + ttl / 2),
                None => {
                    self.ttl_timers.cancel(name);
                }
            }
        }
    }

    /// Whether TTLs are sent; `wraps` as in [`Self::start_ttl_timers`].
    fn sends_ttl(&self, wraps: bool) -> bool {
        let in_sotw = wraps && self.kind.ttl_in_sotw;
        !self.kind.on_demand && (self.mode == Mode::Delta || in_sotw)
    }

    /// The heartbeats that are due. On a SotW stream the names are marked for a
    /// resend instead.
    pub(crate) fn due_heartbeats(&mut self, db: &mut Database, now: Moment) -> Vec<Arc<Resource>> {
        let mut heartbeats = Vec::new();
        for name in self.ttl_timers.expire(now) {
            let good = self.held_and_desired(db, &name);
            if good.is_empty() {
                continue;
            }
            match self.mode {
                Mode::Delta => {
                    if let Some(ttl) = good.iter().filter_map(|r| r.ttl).min() {
                        self.ttl_timers.set(name, now + ttl / 2);
                    }
                    heartbeats.extend(good);
                }
                Mode::Sotw => self.resend_name(db, name),
            }
        }
        heartbeats
    }

    /// The resources of a name that the client surely holds and that are
    /// desired as they are.
    fn held_and_desired(&self, db: &mut Database, name: &Name) -> Vec<Arc<Resource>> {
        let desired = self.desired_resources(db, name);
        let held = self.client_cache.held(db, name).into_iter();
        let good = held.filter(|held| {
            held.is_accepted()
                && desired
                    .iter()
                    .any(|desired| same_resource(desired, &held.resource))
        });
        good.map(|held| held.resource).collect()
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
