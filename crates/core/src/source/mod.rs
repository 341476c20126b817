//! The sending side: one type on one stream.
//!
//! A type stream knows what its client is subscribed to, what the client's
//! cache holds, and which responses it acknowledged. The next push is the
//! difference between the first two, worked out when the transport can take a
//! message; nothing is queued.
//!
//! ```text
//!   request ─▶ subscriptions, cursors ───┐
//!   database ─▶ dirty names, advances ───┴▶ push ─▶ response
//!                                            ▲         │
//!                          client cache ─────┘         ▼
//!   applied to the client cache ◀── ACK ◀──────── pending ACK
//!   suspects, trials, quarantine ◀── NACK ◀────────────┘
//! ```
//!
//! State of the world and delta share all of it; `delta.rs` and `sotw.rs` only
//! read requests and write responses.

mod ack;
mod advance;
mod check;
mod client_cache;
mod count;
mod delta;
mod dependencies;
mod errors;
mod evaluate;
mod expected_nack;
mod groups;
mod matching;
mod nack;
mod negative;
mod params;
mod past_set;
mod push;
mod refuse;
mod remember;
mod request;
mod restore;
mod resume;
mod routes_without_vhds;
mod sort;
mod sotw;
mod subscribe;
mod subscriptions;
mod surplus;
mod trials;
mod ttl;
mod wildcard;
mod withheld;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

pub(crate) use ack::Replacement;
pub(crate) use client_cache::{CachedResource, ClientCache, PendingAck, Variant};
pub(crate) use dependencies::DependencyState;
use nack::Unverified;
pub use negative::Dialect;
pub(crate) use negative::is_negative_version;
pub(crate) use push::{Push, PushContext, Timeouts};
pub(crate) use request::{RequestContext, SubscriptionChange};
pub(crate) use resume::{MOST_RESUMED, Resumption};
use routes_without_vhds::RoutesWithoutVhds;
use sort::SortedNames;
pub(crate) use subscriptions::{AnswerKind, Subscription, SubscriptionKey, Subscriptions};

use crate::database::{Choice, Database, StreamId, SubscriberId, TypeId};
use crate::interest::Wildcard;
use crate::kind::Kind;
use crate::message::{ErrorDetail, Mode};
use crate::moment::Moment;
use crate::name::Name;
use crate::params::ParamsId;
use crate::resource::{Nonce, Resource, TypeUrl, Version};
use crate::timer::Timers;
use withheld::Withheld;

/// One resource type on one stream.
#[derive(Debug)]
pub(crate) struct TypeStream {
    pub(crate) type_url: TypeUrl,
    pub(crate) kind: Kind,
    pub(crate) type_id: TypeId,
    pub(crate) mode: Mode,
    pub(crate) dialect: Dialect,
    /// Whether the client understands `resource_errors` (TP3).
    pub(crate) supports_resource_errors: bool,
    /// Whether the client may not see the type.
    pub(crate) denied: bool,
    /// The resources that the client may not have.
    pub(crate) withheld: Withheld,
    pub(crate) subscriber: SubscriberId,
    /// The parameters of plain names, and of cursors.
    pub(crate) params: ParamsId,
    /// Subscriptions whose parameters are being changed to `params`.
    pub(crate) params_change: Option<params::ParamsChange>,
    /// The parameters that came with a wildcard or glob, in place of the
    /// stream's (TP2).
    pub(crate) scope_params: Option<ParamsId>,
    pub(crate) wildcard: Wildcard,
    pub(crate) subscriptions: Subscriptions,
    /// Names of the request being read that came as locators whose parameters
    /// are those of plain names (TP2).
    pub(crate) located_names: BTreeSet<(Name, ParamsId)>,
    pub(crate) client_cache: ClientCache,
    /// What is known of a client that reconnected, from its first requests
    /// (S82).
    pub(crate) resumption: Option<Resumption>,
    /// Names to evaluate when the type stream may send.
    pub(crate) dirty: BTreeSet<Name>,
    /// Dirty names that were looked at, while there are very many.
    pub(crate) sorted: SortedNames,
    /// Names whose update waits for another type or for the client; they become
    /// dirty again when something happens on the stream.
    pub(crate) deferred: BTreeSet<Name>,
    /// The latest moment until which an addition is deferred for another type
    /// (S73).
    pub(crate) addition_deadlines: BTreeMap<Name, Moment>,
    /// Names covered by a cursor that are sent again although nothing changed
    /// (S28, S59).
    pub(crate) resend_names: BTreeSet<Name>,
    /// Variants of a NACKed response that brought more than one, by the version
    /// that was sent and the requested name.
    pub(crate) suspects: BTreeMap<Variant, (Version, Name)>,
    /// Groups of suspects that will be sent alone (S12).
    pub(crate) trials: VecDeque<Vec<Variant>>,
    /// The number of NACKs since the last ACK.
    pub(crate) consecutive_nacks: u32,
    /// The moment at which the last trial was sent.
    pub(crate) last_trial_at: Moment,
    /// Variants that were NACKed alone, by version and requested name: not sent
    /// again unchanged (S12).
    pub(crate) quarantine: BTreeMap<Variant, (Version, Name)>,
    /// Names of which several variants failed together: not all of them may be
    /// bad.
    pub(crate) quarantined_together: BTreeSet<Name>,
    /// Variants that came in a response whose NACK was expected: they count as
    /// accepted and may be bad.
    pub(crate) unverified: BTreeMap<Variant, Unverified>,
    /// The client ACKed a response that other clients NACK, so its NACKs have
    /// other reasons.
    pub(crate) acks_unreadable: bool,
    /// Unverified variants that have been suspects.
    pub(crate) suspected_once: BTreeSet<(Variant, Version)>,
    /// Names that never exist. The removal of one tells a client that waits for
    /// virtual hosts that there are none yet (S76).
    pub(crate) placeholders: BTreeSet<Name>,
    /// Route configurations without VHDS: nothing is sent of their hosts.
    pub(crate) routes_without_vhds: RoutesWithoutVhds,
    /// Refused names, which are answered as absent and not remembered (S72).
    pub(crate) refused: BTreeSet<Name>,
    /// A counter that gives each negative answer without a body a version of
    /// its own.
    pub(crate) negative_counter: u64,
    /// A hash of the refused names of the last list, to see whether the next
    /// list differs.
    refused_hash: u64,
    /// The same hash of the list that is being read: the sum of the hashes of
    /// its names.
    pub(crate) refusing_hash: u64,
    pub(crate) last_nonce: Option<Nonce>,
    pub(crate) last_acked: Option<Nonce>,
    /// The version of the last set that the client ACKed.
    pub(crate) acked_version: Option<Version>,
    /// The versions of the last sets that the client NACKed: C-core sends the
    /// one that it NACKed when it reconnects.
    pub(crate) nacked_versions: VecDeque<Version>,
    /// The last error of the client about a resource that it still NACKs (S16).
    pub(crate) last_error: Option<ErrorDetail>,
    /// The client waits for a response, even an empty one (S25).
    pub(crate) owes_response: bool,
    /// Whether the next push is a trial, so that neither changes nor trials
    /// starve.
    pub(crate) trial_turn: bool,
    /// When a resource with a TTL has to be sent again (S59).
    pub(crate) ttl_timers: Timers<Name>,
}

/// The configuration that all types of a stream share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TypeStreamConfig {
    pub(crate) mode: Mode,
    pub(crate) dialect: Dialect,
    pub(crate) supports_resource_errors: bool,
    pub(crate) denied: bool,
    pub(crate) withholds_keys: bool,
    pub(crate) params: ParamsId,
}

impl TypeStream {
    /// Starts a type on a stream, without subscriptions, and adds it to the
    /// database as a subscriber.
    pub(crate) fn new(
        db: &mut Database,
        stream: StreamId,
        url: &TypeUrl,
        type_id: TypeId,
        config: TypeStreamConfig,
    ) -> Self {
        let TypeStreamConfig {
            mode,
            dialect,
            supports_resource_errors,
            denied,
            withholds_keys,
            params,
        } = config;
        Self {
            type_url: url.clone(),
            kind: Kind::of(url),
            type_id,
            mode,
            dialect,
            supports_resource_errors,
            denied,
            withheld: Withheld::new(withholds_keys),
            subscriber: db.add_subscriber(stream, type_id, params),
            params,
            params_change: None,
            scope_params: None,
            wildcard: Wildcard::Never,
            subscriptions: Subscriptions::new(params),
            located_names: BTreeSet::new(),
            client_cache: ClientCache::new(type_id),
            resumption: None,
            dirty: BTreeSet::new(),
            sorted: SortedNames::default(),
            deferred: BTreeSet::new(),
            addition_deadlines: BTreeMap::new(),
            resend_names: BTreeSet::new(),
            suspects: BTreeMap::new(),
            trials: VecDeque::new(),
            consecutive_nacks: 0,
            last_trial_at: Moment::START,
            quarantine: BTreeMap::new(),
            quarantined_together: BTreeSet::new(),
            unverified: BTreeMap::new(),
            acks_unreadable: false,
            suspected_once: BTreeSet::new(),
            placeholders: BTreeSet::new(),
            routes_without_vhds: RoutesWithoutVhds::default(),
            refused: BTreeSet::new(),
            negative_counter: 1,
            refused_hash: 0,
            refusing_hash: 0,
            last_nonce: None,
            last_acked: None,
            acked_version: None,
            nacked_versions: VecDeque::new(),
            last_error: None,
            owes_response: false,
            trial_turn: false,
            ttl_timers: Timers::default(),
        }
    }

    /// Ends at most `names` subscriptions in the database, so that other
    /// streams do not wait long (S85). Returns whether none is left; the
    /// cursors and the subscriber have ended then, too. The caller goes on
    /// until then, and uses the type stream for nothing else.
    pub(crate) fn close(&mut self, db: &mut Database, names: usize) -> bool {
        for key in self.subscriptions.drain_some(names) {
            db.unsubscribe(self.subscriber, key.entry, key.params);
        }
        if !self.subscriptions.is_empty() {
            return false;
        }

        let cursors = self.client_cache.cursors().iter();
        let ids: Vec<_> = cursors.map(|cursor| cursor.id).collect();
        for id in ids {
            self.client_cache.close_cursor(db, id);
        }
        db.remove_subscriber(self.subscriber);
        true
    }

    /// Cancels the response that is owed to a client that has no subscription
    /// left (S10). Does nothing while it has one.
    pub(crate) fn cancel_owed_response(&mut self) {
        self.owes_response &= self.wildcard.is_on() || self.subscription_count() > 0;
    }

    /// Returns whether every response is a whole set.
    pub(crate) fn sends_whole_sets(&self) -> bool {
        self.mode == Mode::Sotw && self.kind.whole_set
    }

    /// Returns whether the database is complete for everything that a response
    /// of this type would list: for all scopes, and for a whole set also for
    /// the names. Where it is not, the client would take missing resources for
    /// removed ones (S51).
    pub(crate) fn is_complete(&self, db: &mut Database) -> bool {
        let mut cursors = self.client_cache.cursors().iter();
        let has_complete_scopes = cursors.all(|cursor| db.is_complete(cursor.id));
        // Only the names of a cache may be unknown.
        let names_matter = self.sends_whole_sets() && db.is_cache();
        let mut keys = self.subscriptions.keys().filter(|_| names_matter);
        has_complete_scopes && keys.all(|key| self.resolve(db, key) != Choice::Unknown)
    }

    /// Returns the choice of the database for a subscription. For a client that
    /// cannot read errors, the resource that an error leaves in use replaces
    /// the error, if there is one (S61).
    pub(crate) fn resolve(&self, db: &mut Database, key: SubscriptionKey) -> Choice {
        match db.choose(self.type_id, key.entry, key.params) {
            Choice::Failed(_, Some(resource)) if !self.supports_resource_errors => {
                Choice::Resource(resource)
            }
            choice => choice,
        }
    }

    /// Returns the choice for a name that a cursor covers: the resource that
    /// the cursor lists, or else absent if the scope is complete. `None` if no
    /// cursor covers the name.
    pub(crate) fn cursor_choice(&self, db: &mut Database, name: &Name) -> Option<Choice> {
        let cursor = self.client_cache.covering_cursor(name)?;
        let entry = db.find(self.type_id, name);
        let listed_resource = entry.and_then(|entry| db.listed_resource(cursor.id, entry));
        Some(match listed_resource {
            Some(resource) => Choice::Resource(resource),
            None if db.is_complete(cursor.id) => Choice::Absent,
            None => Choice::Unknown,
        })
    }

    /// Returns the subscriptions of a name, one for each set of parameters.
    /// Cursors that cover the name are not among them.
    pub(crate) fn subscriptions_of(
        &self,
        db: &Database,
        name: &Name,
    ) -> Vec<(SubscriptionKey, Subscription)> {
        let entry = db.find(self.type_id, name).into_iter();
        let subscriptions = entry.flat_map(|entry| self.subscriptions.iter_of_entry(entry));
        subscriptions
            .map(|(key, subscription)| (key, *subscription))
            .collect()
    }

    /// Returns whether the client is subscribed to this name with these
    /// parameters.
    pub(crate) fn is_subscribed(&self, db: &Database, name: &Name, params: ParamsId) -> bool {
        let entry = db.find(self.type_id, name);
        entry.is_some_and(|entry| {
            self.subscriptions
                .get(SubscriptionKey { entry, params })
                .is_some()
        })
    }

    /// Returns whether any subscription covers a name or resolves to it.
    pub(crate) fn has_interest(&self, db: &Database, name: &Name) -> bool {
        let entry = db.find(self.type_id, name);
        let is_subscribed = |entry| self.subscriptions.iter_of_entry(entry).next().is_some();
        entry.is_some_and(is_subscribed)
            || self.subscriptions.resolved_count(name) > 0
            || self.client_cache.covering_cursor(name).is_some()
    }

    /// Returns the desired resources of a name: those that its subscriptions
    /// resolve to, those of subscriptions that resolve to the name, and the one
    /// that a cursor lists. A resource may occur twice.
    pub(crate) fn desired_resources(&self, db: &mut Database, name: &Name) -> Vec<Arc<Resource>> {
        let subscriptions = self.subscriptions_of(db, name).into_iter();
        let resolving_keys = self.subscriptions.keys_resolving_to(name);
        let keys = subscriptions.map(|(key, _)| key).chain(resolving_keys);
        let mut choices: Vec<Choice> = keys.map(|key| self.resolve(db, key)).collect();
        choices.extend(self.cursor_choice(db, name));

        let resources = choices.iter().filter_map(Choice::resource);
        // A subscription to this name may resolve to another one.
        let own_resources = resources.filter(|resource| resource.name == *name);
        own_resources.cloned().collect()
    }

    /// Returns whether nothing can be sent of a host for now, since its route
    /// configuration has no VHDS (S76). False of anything but hosts. An Envoy
    /// that waits for the host is answered when the route configuration uses
    /// VHDS again: until then Envoy would store a version without a virtual
    /// host, and name that version when it reconnects. Other clients are
    /// answered when they subscribe.
    fn is_host_paused(&self, db: &mut Database, name: &Name) -> bool {
        if !self.kind.on_demand || !self.routes_without_vhds.contains_host(name) {
            return false;
        }
        if self.dialect == Dialect::Envoy {
            return true;
        }

        let is_held = !self.client_cache.held(db, name).is_empty();
        let awaits_answer = |(key, subscription): &(SubscriptionKey, Subscription)| {
            let is_unanswered = subscription.acked_answer == AnswerKind::Unanswered
                && self.subscriptions.resolved_name(*key).is_none();
            subscription.resend || (is_unanswered && !is_held)
        };
        !self.subscriptions_of(db, name).iter().any(awaits_answer)
    }

    /// Marks all deferred names dirty, after something has happened on the
    /// stream: they are evaluated again with the next push.
    pub(crate) fn mark_deferred_dirty(&mut self) {
        match self.dirty.is_empty() {
            true => std::mem::swap(&mut self.dirty, &mut self.deferred),
            // An append would visit all names of both.
            false => self.dirty.extend(std::mem::take(&mut self.deferred)),
        }
    }

    /// Forgets that a name is to be sent, resent or deferred, because the
    /// client has no interest in it any more. NACKs and the client cache stay.
    pub(crate) fn forget_name(&mut self, name: &Name) {
        self.dirty.remove(name);
        self.sorted.remove(name);
        self.deferred.remove(name);
        self.addition_deadlines.remove(name);
        self.resend_names.remove(name);
        self.ttl_timers.cancel(name);
        self.withheld.forget(name);
    }

    /// Forgets the NACKs of a requested name (S83), except those of `desired`
    /// resources in the version that was NACKed. Other names under which
    /// resources were sent for the requested name become dirty.
    pub(crate) fn forget_nacks(&mut self, requested_name: &Name, desired: &[Arc<Resource>]) {
        let is_desired = |variant: &Variant, version: &Version| {
            let mut desired = desired.iter();
            desired.any(|resource| {
                client_cache::variant_of(resource) == *variant && resource.version == *version
            })
        };
        let is_outdated = |variant: &Variant, (version, requested): &mut (Version, Name)| {
            requested == requested_name && !is_desired(variant, version)
        };

        let released_entries = self.quarantine.extract_if(.., is_outdated);
        let released_variants: Vec<Variant> =
            released_entries.map(|(variant, _)| variant).collect();
        // Without the one that changed, the client may accept the others.
        if !released_variants.is_empty() && self.quarantined_together.remove(requested_name) {
            self.quarantine
                .retain(|_, (_, requested)| requested != requested_name);
        }

        let cleared_entries = self.suspects.extract_if(.., is_outdated);
        let cleared_suspects: Vec<Variant> = cleared_entries.map(|(variant, _)| variant).collect();
        // With the one that changed, the others are sent again.
        if !cleared_suspects.is_empty() {
            self.suspects
                .retain(|_, (_, requested)| requested != requested_name);
        }

        // The client may have taken the NACKed resource (S17).
        let names = released_variants
            .into_iter()
            .chain(cleared_suspects)
            .map(|(name, _)| name);
        self.dirty
            .extend(names.filter(|name| name != requested_name));
        self.forget_error();
    }

    /// Forgets the last error of the client if nothing is NACKed any more
    /// (S83).
    pub(crate) fn forget_error(&mut self) {
        if self.quarantine.is_empty() && self.suspects.is_empty() {
            self.last_error = None;
        }
    }
}

#[cfg(test)]
mod tests;
