//! Resumption: what a client that reconnects may hold from before, and keeps
//! for a while although it is gone (S82).
//!
//! The body of a resource that it holds is known if the client names the
//! version of the current one, or of a set that this process sent before and
//! remembers, or of one that was current in the past and can be worked out.
//! Otherwise its name is known, if that.
//!
//! In delta, the initial resource versions of a client are read name by name
//! (`subscribe`) or compared with a view (`wildcard`); in state of the world it
//! has one version for the set, which is what this file is about.
//!
//! What a client held when it disconnected is remembered in `remember`; older
//! sets are found by `past_set`. To go back to an accepted resource on one
//! stream, after a NACK, is another matter: see `restore`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use hashbrown::HashSet;

use super::client_cache::{CachedResource, Variant, same_variant, variant_of};
use super::{Dialect, PushContext, Subscription, SubscriptionKey, Timeouts, TypeStream};
use crate::database::{ClientSet, Database, Position, SLICE, Scope, same_resource};
use crate::kind;
use crate::message::Mode;
use crate::moment::Moment;
use crate::name::Name;
use crate::resource::{Resource, Version};
use crate::timer::EarliestDeadline;

/// The most names of a reconnected client from which its resources are
/// inferred: more than an Envoy has. The inference is made at once.
pub(crate) const MOST_RESUMED: usize = 128 * SLICE;

/// The most names of a client that is taken for one that reconnected, if its
/// responses are whole sets: all its names are evaluated for the first (S38).
/// One with more is served as if it were new.
const MOST_IN_SET: usize = 16 * SLICE;

/// The knowledge of the state of a reconnected client, for one type.
#[derive(Debug)]
pub(crate) struct Resumption {
    /// The moment of the first request.
    pub(crate) started_at: Moment,
    /// Whether the first request is being read: its names are resumed.
    pub(crate) is_first_request: bool,
    /// SotW: the client holds a whole set of which nothing is known, and has
    /// not ACKed another.
    pub(crate) unknown_set: bool,
    /// The number of resources whose versions the client named.
    pub(crate) held_count: usize,
    /// The number of names that the client resumed with.
    pub(crate) named_count: usize,
    /// Listeners only: whether some had inline routes before the first
    /// response.
    pub(crate) had_inline_routes: bool,
    /// Variants that the client NACKed on an earlier stream. They are sent once
    /// more when it has ACKed a set without them: it may be another program by
    /// now.
    quarantined_variants: Vec<Variant>,
    /// The set that the client named, until it has ACKed another, and the sum
    /// of the heads of views when the set was last compared with them.
    named_set: Option<(Arc<ClientSet>, Position)>,
    /// The version of the set that the client named.
    pub(super) version: Option<Version>,
    /// The clusters that the client was sent beside the set that it named, in
    /// sets that it did not ACK. `None` once it has acknowledged another set.
    /// While it is set, the client may hold clusters beyond the named set.
    unacked_versions: Option<BTreeMap<Name, Version>>,
}

impl Resumption {
    /// Returns whether the client may hold a resource of unknown body under the
    /// name: no set of it is known, or the set that it named lacks the name. A
    /// client that takes the good part of a set that it NACKs names the version
    /// before that set (S17, S82). A resource that this server sent in a set
    /// that was not ACKed does not count: it may be the bad one, and an invalid
    /// cluster in its place would hide that (S12).
    pub(super) fn may_hold_unknown(&self, name: &Name) -> bool {
        let named_set = self.named_set.as_ref();
        let is_in_named_set = named_set.is_some_and(|(set, _)| set.lists(name));
        let unacked_versions = self.unacked_versions.as_ref();
        let may_hold_more =
            unacked_versions.is_some_and(|unacked_versions| !unacked_versions.contains_key(name));
        self.unknown_set || (!is_in_named_set && may_hold_more)
    }
}

impl TypeStream {
    /// Begins the resumption of a client whose first request of the type names
    /// a version, or versions. Called before the names of that request are
    /// read.
    pub(crate) fn begin_resumption(&mut self, now: Moment) {
        self.resumption = Some(Resumption {
            started_at: now,
            is_first_request: true,
            unknown_set: self.mode == Mode::Sotw && self.kind.whole_set,
            held_count: 0,
            named_count: 0,
            had_inline_routes: false,
            quarantined_variants: Vec::new(),
            named_set: None,
            version: None,
            unacked_versions: None,
        });
    }

    /// Records the set that a SotW client holds, as far as the version in its
    /// first request tells: the current set, a remembered or rebuilt one, or
    /// else resources of unknown body. Called when the names of the request
    /// have been read. Returns the subscriptions of which the client may hold
    /// anything, for [`Self::record_unknown`]. A client with more names than
    /// [`MOST_IN_SET`] is served as if it were new.
    pub(super) fn resume_set(
        &mut self,
        db: &mut Database,
        version: &Version,
    ) -> Vec<SubscriptionKey> {
        if self.adopt_current_set(db, version) {
            return Vec::new();
        }
        if self.sends_whole_sets() && self.subscriptions.len() > MOST_IN_SET {
            self.resumption = None;
        }
        if self.resumption.is_none() {
            return Vec::new();
        }

        let set = match self.kind.whole_set {
            true => self.find_set(db, version),
            false => None,
        };
        if let Some(resumption) = &mut self.resumption {
            resumption.version = Some(version.clone());
        }

        let Some(set) = set else {
            return match self.kind.survives_reconnect {
                true => self.subscriptions.keys().collect(),
                false => Vec::new(),
            };
        };

        self.record_set(db, &set, false);
        let quarantined_variants = self.resume_quarantine(db, &set);
        if let Some(resumption) = &mut self.resumption {
            resumption.unknown_set = false;
            resumption.unacked_versions = Some(set.unacked_versions.clone());
            resumption.quarantined_variants = quarantined_variants;
            resumption.named_set = Some((set, self.client_cache.heads_sum(db)));
        }
        Vec::new()
    }

    /// Puts resources that the client NACKed on an earlier stream into
    /// quarantine, where they are still desired and the client has another
    /// resource in their place. Returns their variants.
    fn resume_quarantine(&mut self, db: &mut Database, set: &ClientSet) -> Vec<Variant> {
        let mut quarantined = Vec::new();
        for (name, constraints, version) in &set.quarantined {
            let variant = (name.clone(), constraints.clone());
            let held_resources = self.client_cache.held(db, name);
            let has_another = held_resources
                .iter()
                .any(|record| record.is_variant(&variant));
            let is_nacked = |resource: &Arc<Resource>| {
                variant_of(resource) == variant && resource.version == *version
            };
            if has_another && self.desired_resources(db, name).iter().any(is_nacked) {
                let entry = (version.clone(), name.clone());
                self.quarantine.insert(variant.clone(), entry);
                quarantined.push(variant);
            }
        }
        quarantined
    }

    /// Records the resources of the set that a client named, as far as it is
    /// subscribed to them. Clusters of a wildcard that have not changed are
    /// left out unless `with_unchanged` is set: there may be very many.
    fn record_set(&mut self, db: &mut Database, set: &ClientSet, with_unchanged: bool) {
        for resource in &set.resources {
            let name = &resource.name;
            let is_recorded = |record: &CachedResource| same_variant(&record.resource, resource);
            if !self.has_interest(db, name) || self.client_cache.records_of(name).any(is_recorded) {
                continue;
            }

            let are_few = self.kind.drains || self.client_cache.covering_cursor(name).is_none();
            let is_same = |desired: &Arc<Resource>| same_resource(desired, resource);
            if with_unchanged || are_few || !self.desired_resources(db, name).iter().any(is_same) {
                self.client_cache
                    .record(db, CachedResource::resumed(resource.clone()));
                self.dirty.insert(name.clone());
            }
        }
    }

    /// Compares the set that a client named with the contents once more, if
    /// views have changed since the last comparison and the first set was not
    /// sent yet. Does nothing otherwise.
    pub(super) fn compare_set_again(&mut self, db: &mut Database) {
        let heads = self.client_cache.heads_sum(db);
        let resumption = self
            .resumption
            .as_mut()
            .filter(|_| self.last_nonce.is_none());
        let named_set = resumption.and_then(|resumption| resumption.named_set.as_mut());
        let Some((set, compared_heads)) = named_set else {
            return;
        };
        if std::mem::replace(compared_heads, heads) != heads {
            let set = Arc::clone(set);
            self.record_set(db, &set, false);
        }
    }

    /// Records all of the set that the client named, since it NACKed a set that
    /// was sent on this stream: it still has what it had. Does nothing after
    /// the first NACK or ACK.
    pub(super) fn fall_back_to_named_set(&mut self, db: &mut Database) {
        let Some(resumption) = &mut self.resumption else {
            return;
        };
        resumption.unacked_versions = None;
        if let Some((set, _)) = resumption.named_set.take() {
            self.record_set(db, &set, true);
        }
    }

    /// Forgets the set that the client named, since it ACKed another.
    pub(super) fn forget_named_set(&mut self) {
        if let Some(resumption) = &mut self.resumption {
            (resumption.named_set, resumption.unacked_versions) = (None, None);
        }
    }

    /// Takes resources that the client NACKed on an earlier stream out of
    /// quarantine, once it has acknowledged everything on this one: the client
    /// may be another program by now. Each resource is tried once.
    pub(super) fn retry_quarantined(&mut self) {
        let Some(resumption) = &mut self.resumption else {
            return;
        };
        if !self.client_cache.pending_acks().is_empty() {
            return;
        }
        for variant in std::mem::take(&mut resumption.quarantined_variants) {
            if let Some((_, requested_name)) = self.quarantine.remove(&variant) {
                self.dirty.insert(requested_name);
            }
        }
    }

    /// Returns the resource that a client holds at a version other than the
    /// current one: from the history, or of unknown body (S82). Hosts are
    /// always of unknown body, since they may be held under another name.
    pub(super) fn resumed_resource(
        &self,
        db: &Database,
        name: &Name,
        version: &Version,
    ) -> CachedResource {
        let body = db.recall_body(self.type_id, name, version);
        match body.filter(|_| !self.kind.on_demand) {
            Some(body) => CachedResource::resumed(body),
            None => CachedResource::unknown_body(name.clone(), version.clone()),
        }
    }

    /// Records a resource of unknown body for each of these subscriptions for
    /// which none is known. A name that the next whole set has needs none, and
    /// neither do types of which a client keeps nothing when it reconnects.
    pub(super) fn record_unknown(
        &mut self,
        db: &mut Database,
        keys: impl Iterator<Item = SubscriptionKey>,
    ) {
        for key in keys {
            let name = db.name(self.type_id, key.entry).clone();
            let is_listed = self.kind.whole_set && !self.desired_resources(db, &name).is_empty();
            if !is_listed && self.client_cache.held(db, &name).is_empty() {
                let record = CachedResource::unknown_body(name, Version::unknown());
                self.client_cache.record(db, record);
            }
        }
    }

    /// Ends the first request of a resumed client, and counts its names: those
    /// of later requests are not resumed. Does nothing at a later request.
    pub(crate) fn end_first_request(&mut self) {
        let named_count = self.subscriptions.len();
        if let Some(resumption) = &mut self.resumption
            && resumption.is_first_request
        {
            resumption.named_count = named_count;
            resumption.is_first_request = false;
        }
    }

    /// Moves the cursor of a client that names the version of the current set
    /// to the head of its view, since the client holds that set. This is
    /// certain only of a wildcard without other subscriptions. The set is sent
    /// once all the same: a client that took a part of a set that it NACKed
    /// names the version before (S50, S82). Returns whether the client named
    /// the current set.
    fn adopt_current_set(&mut self, db: &mut Database, version: &Version) -> bool {
        let is_only = self.client_cache.cursors().len() == 1 && self.subscriptions.is_empty();
        let cursor = self.client_cache.cursor_of(&Scope::All);
        let Some(id) = cursor.filter(|_| is_only).map(|cursor| cursor.id) else {
            return false;
        };

        // A withheld resource is not sent, even to a client that names its
        // version.
        let is_current =
            Version::of_hash(db.fingerprint_sum(id)) == *version && !self.withholds_any_of(db, id);
        if is_current && let Some(cursor) = self.client_cache.cursor_mut(id) {
            cursor.move_to_head(db);
            self.acked_version = Some(version.clone());
            let set = db.recall_set(self.type_id, version);
            match &mut self.resumption {
                Some(resumption) if self.type_url.as_str() == kind::CDS => {
                    resumption.unknown_set = false;
                    resumption.unacked_versions =
                        Some(set.map_or_else(BTreeMap::new, |set| set.unacked_versions.clone()));
                }
                resumption => *resumption = None,
            }
        }
        is_current
    }

    /// Records the clusters that an Envoy resumed with and that are known by
    /// the `names` of its endpoints, where the current set lacks both the name
    /// and another cluster with these endpoints. Has no effect for other
    /// clients.
    pub(crate) fn record_clusters_of_endpoints(&mut self, db: &mut Database, names: Vec<Name>) {
        let Some(resumption) = self.resumption.as_ref() else {
            return;
        };
        if !self.sends_invalid_clusters() || self.dialect != Dialect::Envoy {
            return;
        }
        let clusters = self.clusters_of_endpoints(db, resumption, names);
        let Some(cursor) = self.client_cache.cursor_of(&Scope::All) else {
            return;
        };

        // The set has the cluster already, by name or by its endpoints.
        let listed_clusters = db.list(cursor.id);
        let references = listed_clusters
            .iter()
            .flat_map(|resource| &resource.facts().references);
        let endpoints = references.filter(|resource| resource.type_url.as_str() == kind::EDS);
        let used_names: HashSet<&Name> = endpoints.map(|reference| &reference.name).collect();

        for record in clusters {
            let name = record.resource.name.clone();
            let is_listed = listed_clusters
                .binary_search_by(|resource| resource.name.cmp(&name))
                .is_ok();
            let is_recorded = !self.client_cache.held(db, &name).is_empty();
            if !is_listed && !is_recorded && !used_names.contains(&name) {
                self.client_cache.record(db, record);
                self.dirty.insert(name);
            }
        }
    }

    /// Returns the clusters that an Envoy may hold by the names of its
    /// endpoints: those of a set that it did not ACK, and others of unknown
    /// body. It may use the clusters that it took from a set that it NACKed,
    /// since another server may have sent routes to them.
    fn clusters_of_endpoints(
        &self,
        db: &Database,
        resumption: &Resumption,
        names: Vec<Name>,
    ) -> Vec<CachedResource> {
        let unacked_versions = resumption.unacked_versions.as_ref();
        let taken_clusters = names.iter().filter_map(|name| {
            let version = unacked_versions?.get(name)?;
            db.recall_body(self.type_id, name, version)
        });
        let mut held_resources: Vec<CachedResource> =
            taken_clusters.map(CachedResource::resumed).collect();

        let unknown_names = names
            .into_iter()
            .filter(|name| resumption.may_hold_unknown(name));
        held_resources.extend(
            unknown_names.map(|name| CachedResource::unknown_body(name, Version::unknown())),
        );
        held_resources
    }

    /// Returns the type for whose first request the first set of this type
    /// waits, and until when: endpoints name the clusters that an Envoy uses,
    /// routes name its listeners (S82). `None` once a set was sent, or if
    /// everything that the client holds is known.
    pub(crate) fn awaited_type(&self) -> Option<(&'static str, Moment)> {
        let resumption = self.resumption.as_ref()?;
        if !resumption.unknown_set && resumption.unacked_versions.is_none() {
            return None;
        }
        let has_wildcard_set =
            self.sends_whole_sets() && self.client_cache.cursor_of(&Scope::All).is_some();
        let is_first_set = has_wildcard_set && self.last_nonce.is_none();
        if !is_first_set || self.dialect != Dialect::Envoy {
            return None;
        }

        let awaited_type = match self.type_url.as_str() {
            kind::CDS => kind::EDS,
            kind::LDS => kind::RDS,
            _ => return None,
        };
        Some((awaited_type, resumption.started_at + FIRST_REQUESTS_WINDOW))
    }

    /// Returns the moment until which the first set waits for dependencies, if
    /// it replaces a set of which nothing is known: the client drops the
    /// resources that the new set lacks, even those that are only deferred
    /// (S38, S82). `None` for other sets.
    fn dependency_deadline(&self, dependency_timeout: Duration) -> Option<Moment> {
        let resumption = self.resumption.as_ref()?;
        let is_first_set = self.sends_whole_sets() && self.last_nonce.is_none();
        (is_first_set && resumption.unknown_set).then(|| resumption.started_at + dependency_timeout)
    }

    /// Returns whether the first set waits because it would lack a resource
    /// whose addition is deferred. It does not wait beyond its deadline.
    pub(crate) fn awaits_dependencies(&self, db: &mut Database, context: &PushContext<'_>) -> bool {
        let deadline = self.dependency_deadline(context.dependency_timeout);
        if deadline.is_none_or(|deadline| deadline <= context.now) {
            return false;
        }
        let desired_resources = self.all_desired_resources(db);
        desired_resources
            .iter()
            .any(|resource| context.order.must_defer_addition(db, &self.kind, resource))
    }

    /// Returns whether the client must not be told now that a name does not
    /// exist. There are two reasons. After a reconnect the client may use the
    /// resource that it has of the name until it unsubscribes. And a listener
    /// may be warming for a route configuration that no longer exists: with the
    /// answer the listener would replace the one that serves, although its
    /// successor is about to be sent (S81).
    pub(super) fn withholds_absence(
        &self,
        db: &mut Database,
        context: &PushContext<'_>,
        name: &Name,
        subscription: Subscription,
    ) -> bool {
        let is_kept_after_reconnect = self.kind.survives_reconnect
            && (!self.kind.whole_set || self.dialect == Dialect::Standard);
        if !is_kept_after_reconnect {
            return false;
        }
        if context.order.is_losing_references(db, &self.type_url, name) {
            return !context.order.is_referenced(db, &self.type_url, name);
        }

        let Some(resumption) = self.resumption.as_ref().filter(|_| subscription.is_resumed) else {
            return false;
        };
        let may_drain = context.now < resumption.started_at + context.drain_time;
        if !may_drain || context.order.is_referenced(db, &self.type_url, name) {
            return false;
        }
        let may_be_used = context.order.has_referring_type(&self.type_url);
        may_be_used || context.now < resumption.started_at + context.resume_window
    }

    /// Adds the moments after which deferred names of a resumed client, and its
    /// first set, no longer wait.
    pub(super) fn add_resume_deadlines(
        &self,
        resumption: &Resumption,
        timeouts: &Timeouts,
        earliest: &mut EarliestDeadline,
    ) {
        if !self.deferred.is_empty() {
            earliest.add(resumption.started_at + timeouts.resume_window);
            earliest.add(resumption.started_at + timeouts.dependency_timeout);
            earliest.add(resumption.started_at + timeouts.drain_time);
        }
        earliest.add(self.awaited_type().map(|(_, deadline)| deadline));
        earliest.add(self.dependency_deadline(timeouts.dependency_timeout));
    }
}

/// The time in which all first requests of a reconnecting client arrive.
const FIRST_REQUESTS_WINDOW: Duration = Duration::from_millis(100);
