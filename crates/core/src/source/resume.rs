//! A client that comes back: what it may hold from before, and what is not
//! taken from it for that (S82).
//!
//! The body of what it holds is known if the version that it names is that of
//! the contents now, or of a set that this process sent before and remembers.
//! Otherwise it is known by name only, if that.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::client_cache::{CachedResource, Variant, same_variant};
use super::{Dialect, PushContext, Subscription, Timeouts, TypeStream};
use crate::database::{ClientSet, Database, Position, Scope};
use crate::kind;
use crate::message::Mode;
use crate::moment::Moment;
use crate::name::Name;
use crate::resource::{Resource, Version};

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Resumption {
    pub(crate) at: Moment,
    /// Whether the first request is being read: what it names is resumed.
    pub(crate) first_request: bool,
    /// State of the world: it holds a whole set of which nothing is known, and
    /// has not accepted another.
    pub(crate) unknown_set: bool,
    /// How many resources it named the versions of.
    pub(crate) held_count: usize,
    /// How many names it came back with.
    pub(crate) named_count: usize,
    /// Listeners: before it was sent one, there were some with routes inside.
    pub(crate) had_inline_routes: bool,
    /// What it rejected on an earlier stream. Once it has accepted a set without
    /// it gets that once more: it may be another program by now.
    quarantined: Vec<Variant>,
    /// The set that it named, until it has accepted another, and how far views
    /// were when it was last compared.
    named_set: Option<(Arc<ClientSet>, Position)>,
    /// The version of the set that it named.
    pub(super) version: Option<Version>,
    /// The clusters that the client was sent beside the set that it named, in
    /// sets that it did not ACK. `None` once it has acknowledged another set.
    /// While it is set, the client may hold clusters beyond the named set.
    unacked: Option<BTreeMap<Name, Version>>,
}

impl Resumption {
    /// Whether the client may hold a resource of unknown body under the name:
    /// no set of it is known, or the one that it named lacks the name. A client
    /// that takes the good part of a set that it NACKs names the version from
    /// before (S17, S82). A resource that this server sent in a set that was
    /// not ACKed does not count: it may be the bad one, and an invalid cluster
    /// in its place would hide that (S12).
    pub(super) fn may_hold_unknown(&self, name: &Name) -> bool {
        let set = self.named_set.as_ref();
        let listed = set.is_some_and(|(set, _)| set.lists(name));
        let tried = self.unacked.as_ref();
        self.unknown_set || (!listed && tried.is_some_and(|tried| !tried.contains_key(name)))
    }
}

impl TypeStream {
    /// The first request of the type names a version, or versions.
    pub(crate) fn begin_resumption(&mut self, now: Moment) {
        self.resumption = Some(Resumption {
            at: now,
            first_request: true,
            unknown_set: self.mode == Mode::Sotw && self.kind.whole_set,
            held_count: 0,
            named_count: 0,
            had_inline_routes: false,
            quarantined: Vec::new(),
            named_set: None,
            version: None,
            unacked: None,
        });
    }

    /// The first request has been read. In state of the world the version tells
    /// what is held, as far as it is remembered.
    pub(crate) fn resume_set(&mut self, db: &mut Database, version: &Version) {
        if self.adopt_current_set(db, version) {
            return;
        }
        let Some(resumed) = &mut self.resumption else {
            return;
        };
        resumed.version = Some(version.clone());
        if !self.kind.whole_set {
            return self.record_named_resources(db);
        }
        let Some(set) = db.recall_set(self.type_id, version) else {
            return self.record_named_resources(db);
        };
        self.record_set(db, &set, false);
        let mut rejected = Vec::new();
        for (name, constraints, version) in &set.quarantined {
            let variant = (name.clone(), constraints.clone());
            let holds = self
                .client_cache
                .held(db, name)
                .iter()
                .any(|held| held.is_variant(&variant));
            let still = |r: &Arc<Resource>| {
                super::client_cache::variant_of(r) == variant && r.version == *version
            };
            if holds && self.desired_resources(db, name).iter().any(still) {
                self.quarantine
                    .insert(variant.clone(), (version.clone(), name.clone()));
                rejected.push(variant);
            }
        }
        if let Some(resumed) = &mut self.resumption {
            resumed.unknown_set = false;
            resumed.unacked = Some(set.unacked.clone());
            resumed.quarantined = rejected;
            resumed.named_set = Some((set, self.client_cache.heads_sum(db)));
        }
    }

    /// Records what a client holds by the set that it named; `all` is whether also
    /// clusters of a wildcard that are the same now: of these there may be very
    /// many.
    fn record_set(&mut self, db: &mut Database, set: &ClientSet, all: bool) {
        for resource in &set.resources {
            let name = &resource.name;
            let recorded = |held: &CachedResource| same_variant(&held.resource, resource);
            if !self.has_interest(db, name) || self.client_cache.records_of(name).any(recorded) {
                continue;
            }
            let same = |r: &Arc<Resource>| crate::database::same_resource(r, resource);
            let few = all || self.kind.drains || self.client_cache.covering_cursor(name).is_none();
            if few || !self.desired_resources(db, name).iter().any(same) {
                self.client_cache
                    .record(db, CachedResource::resumed(resource.clone()));
                self.dirty.insert(name.clone());
            }
        }
    }

    /// What was the same when the client came back may have changed before the
    /// first set is sent.
    pub(super) fn compare_set_again(&mut self, db: &mut Database) {
        let reach = self.client_cache.heads_sum(db);
        let resumed = self
            .resumption
            .as_mut()
            .filter(|_| self.last_nonce.is_none());
        let Some((set, compared)) = resumed.and_then(|resumed| resumed.named_set.as_mut()) else {
            return;
        };
        if std::mem::replace(compared, reach) != reach {
            let set = Arc::clone(set);
            self.record_set(db, &set, false);
        }
    }

    /// A set was rejected: the client holds what it came back with, all of it.
    pub(super) fn fall_back_to_named_set(&mut self, db: &mut Database) {
        let Some(resumed) = &mut self.resumption else {
            return;
        };
        resumed.unacked = None;
        if let Some((set, _)) = resumed.named_set.take() {
            self.record_set(db, &set, true);
        }
    }

    /// A set was accepted: the one before counts no longer.
    pub(super) fn forget_named_set(&mut self) {
        if let Some(resumed) = &mut self.resumption {
            (resumed.named_set, resumed.unacked) = (None, None);
        }
    }

    /// The peer has accepted something: what it rejected on an earlier stream
    /// gets its second chance.
    pub(super) fn retry_quarantined(&mut self) {
        let Some(resumed) = &mut self.resumption else {
            return;
        };
        if !self.client_cache.pending_acks().is_empty() {
            return;
        }
        for variant in std::mem::take(&mut resumed.quarantined) {
            if let Some((_, requested_name)) = self.quarantine.remove(&variant) {
                self.dirty.insert(requested_name);
            }
        }
    }

    /// The resource that a client holds at a version which is not the current
    /// one: from the history, or of unknown body (S82). Hosts are always of
    /// unknown body, since they may be held under another name.
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

    /// A client holds something under each name that it lists.
    fn record_named_resources(&mut self, db: &mut Database) {
        let names = self.subscriptions.keys();
        let names: Vec<Name> = names
            .map(|key| db.name(self.type_id, key.entry).clone())
            .collect();
        for name in names {
            // What a whole set has, it brings.
            let comes = self.kind.whole_set && !self.desired_resources(db, &name).is_empty();
            if self.kind.survives_reconnect
                && !comes
                && self.client_cache.held(db, &name).is_empty()
            {
                let held = CachedResource::unknown_body(name, Version::new(""));
                self.client_cache.record(db, held);
            }
        }
    }

    /// The reading of the first request ends.
    pub(crate) fn end_first_request(&mut self) {
        let named = self.subscriptions.len();
        if let Some(resumed) = self.resumption.as_mut().filter(|r| r.first_request) {
            resumed.named_count = named;
            resumed.first_request = false;
        }
    }

    /// Takes a client that names the version of the current set to hold that
    /// set. This is sure only for a wildcard without other subscriptions. The
    /// set is sent once all the same: a client that took a part of a set that
    /// it NACKed names the version from before (S50, S82).
    fn adopt_current_set(&mut self, db: &mut Database, version: &Version) -> bool {
        let only = self.client_cache.cursors().len() == 1 && self.subscriptions.is_empty();
        let Some(view) = self.client_cache.cursor_of(&Scope::All).filter(|_| only) else {
            return false;
        };
        let cursor = view.id;
        let same = Version::of_hash(db.fingerprint_sum(cursor)) == *version;
        if same && let Some(view) = self.client_cache.cursor_mut(cursor) {
            view.move_to_head(db);
            self.acked_version = Some(version.clone());
            let departed = db.recall_set(self.type_id, version);
            let tried = departed.map(|set| set.unacked.clone());
            match &mut self.resumption {
                Some(resumed) if self.type_url.as_str() == kind::CDS => {
                    resumed.unknown_set = false;
                    resumed.unacked = Some(tried.unwrap_or_default());
                }
                resumed => *resumed = None,
            }
        }
        same
    }

    /// Records the clusters that an Envoy resumed with, known by the names of
    /// its endpoints, where the current set lacks them. What it took of a set
    /// that it NACKed it may use, since another server may have sent routes to
    /// it.
    pub(crate) fn record_clusters_of_endpoints(&mut self, db: &mut Database, names: Vec<Name>) {
        let Some(resumed) = self.resumption.as_ref() else {
            return;
        };
        if !self.sends_invalid_clusters() || self.dialect != Dialect::Envoy {
            return;
        }
        let tried = resumed.unacked.as_ref();
        let took = names.iter().filter_map(|name| {
            let version = tried?.get(name)?;
            db.recall_body(self.type_id, name, version)
                .map(CachedResource::resumed)
        });
        let took: Vec<CachedResource> = took.collect();
        let unknown = names
            .into_iter()
            .filter(|name| resumed.may_hold_unknown(name))
            .map(|name| CachedResource::unknown_body(name, Version::new("")));
        let came_with: Vec<CachedResource> = took.into_iter().chain(unknown).collect();
        let Some(view) = self.client_cache.cursor_of(&Scope::All) else {
            return;
        };
        let listed = db.list(view.id);
        for held in came_with {
            let name = held.resource.name.clone();
            let is_cluster = listed.binary_search_by(|r| r.name.cmp(&name)).is_ok();
            let refers = |r: &Arc<Resource>| {
                let mut references = r.facts().references.iter();
                references.any(|to| to.name == name && to.type_url.as_str() == kind::EDS)
            };
            let is_known = !self.client_cache.held(db, &name).is_empty();
            if !is_cluster && !is_known && !listed.iter().any(refers) {
                self.client_cache.record(db, held);
                self.dirty.insert(name);
            }
        }
    }

    /// Whether clusters of which the body is not known are listed by what every
    /// client refuses: it keeps what it has then.
    pub(super) fn sends_invalid_clusters(&self) -> bool {
        self.type_url.as_str() == kind::CDS && self.sends_whole_sets()
    }

    /// The type whose names say more of what an Envoy holds than the first
    /// request of this type, and until when the first set waits for its
    /// request: endpoints name the clusters, routes name the listeners in use
    /// (S82).
    pub(crate) fn awaited_type(&self) -> Option<(&'static str, Moment)> {
        let resumed = self.resumption.as_ref();
        let resumed = resumed.filter(|r| r.unknown_set || r.unacked.is_some())?;
        let by_wildcard =
            self.sends_whole_sets() && self.client_cache.cursor_of(&Scope::All).is_some();
        if !by_wildcard || self.dialect != Dialect::Envoy || self.last_nonce.is_some() {
            return None;
        }
        let names = match self.type_url.as_str() {
            kind::CDS => kind::EDS,
            kind::LDS => kind::RDS,
            _ => return None,
        };
        Some((names, resumed.at + FIRST_REQUESTS_WINDOW))
    }

    /// Until when the first set waits that replaces one of which nothing is known:
    /// what it lacks the client drops, also what only waits for its turn (S38, S82).
    fn dependency_deadline(&self, hold: Duration) -> Option<Moment> {
        let resumed = self.resumption.as_ref().filter(|r| r.unknown_set)?;
        let first = self.sends_whole_sets() && self.last_nonce.is_none();
        first.then(|| resumed.at + hold)
    }

    /// Whether the first set would lack something that waits for what it refers to.
    pub(crate) fn awaits_dependencies(&self, db: &mut Database, context: &PushContext<'_>) -> bool {
        let until = self.dependency_deadline(context.dependency_timeout);
        if until.is_none_or(|until| until <= context.now) {
            return false;
        }
        let views = self.client_cache.cursors().iter();
        let mut listed: Vec<_> = views.flat_map(|view| db.list(view.id)).collect();
        for key in self.subscriptions.keys() {
            listed.extend(self.resolve(db, key).resource().cloned());
        }
        let order = context.order;
        let mut listed = listed.iter();
        listed.any(|resource| order.must_defer_addition(db, &self.kind, resource))
    }

    /// Whether the client is not told that a name does not exist. After a
    /// reconnect it may use what it has of the name until it unsubscribes. And
    /// a listener may be warming for a route that is gone: told so, it would
    /// replace the listener that serves, although its successor is on its way
    /// (S81).
    pub(super) fn withholds_absence(
        &self,
        db: &mut Database,
        context: &PushContext<'_>,
        name: &Name,
        subscription: Subscription,
    ) -> bool {
        let lingers = self.kind.survives_reconnect
            && (!self.kind.whole_set || self.dialect == Dialect::Standard);
        if !lingers {
            return false;
        }
        if context.order.is_losing_references(db, &self.type_url, name) {
            return !context.order.is_referenced(db, &self.type_url, name);
        }
        let Some(resumed) = self.resumption.as_ref().filter(|_| subscription.is_resumed) else {
            return false;
        };
        let since = context.now < resumed.at + context.drain_time;
        if !since || context.order.is_referenced(db, &self.type_url, name) {
            return false;
        }
        let used = context.order.has_referring_type(&self.type_url);
        used || context.now < resumed.at + context.resume_window
    }

    /// The moments at which the client has had time enough.
    pub(super) fn resume_deadlines(&self, times: Timeouts) -> Vec<Moment> {
        let Timeouts {
            resume_window: resume,
            dependency_timeout: hold,
            drain_time: drain,
            ..
        } = times;
        let resumed = self.resumption.as_ref();
        let resumed = resumed.filter(|_| !self.deferred.is_empty());
        let of = |r: &Resumption| [r.at + resume, r.at + hold, r.at + drain];
        let mut all: Vec<_> = resumed.map(of).into_iter().flatten().collect();
        all.extend(self.awaited_type().map(|(_, until)| until));
        all.extend(self.dependency_deadline(hold));
        all
    }
}

/// How long all first requests of a client that comes back take to arrive.
const FIRST_REQUESTS_WINDOW: Duration = Duration::from_millis(100);
