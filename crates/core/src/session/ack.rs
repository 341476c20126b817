//! ACKs and NACKs, and their effects on other types of the stream.

use std::sync::Arc;

use super::{Event, Session};
use crate::database::Database;
use crate::facts::Reference;
use crate::kind;
use crate::message::{ErrorDetail, Mode};
use crate::moment::Moment;
use crate::name::Name;
use crate::order::DrainDeadlines;
use crate::resource::{Nonce, Resource, Version};
use crate::source::{Dialect, MOST_RESUMED, Replacement, SubscriptionKey, TypeStream};

impl Session {
    /// Returns whether the acknowledgement of a response is pending. A response
    /// that was merged into a later one, since the client was silent, can only
    /// be NACKed.
    pub(super) fn is_pending(&self, index: usize, nonce: &Nonce, is_nack: bool) -> bool {
        let client_cache = &self.type_streams[index].client_cache;
        if is_nack {
            client_cache.is_pending(nonce)
        } else {
            client_cache.pending_ack(nonce).is_some()
        }
    }

    /// Returns whether a nonce is that of the newest response of a type.
    pub(super) fn is_newest(&self, index: usize, nonce: &Nonce) -> bool {
        self.type_streams[index].last_nonce.as_ref() == Some(nonce)
    }

    /// Returns the version of a pending SotW response.
    pub(super) fn sent_version(&self, index: usize, nonce: &Nonce) -> Option<Version> {
        let pending_ack = self.type_streams[index].client_cache.pending_ack(nonce)?;
        pending_ack.version.clone()
    }

    /// Handles an acknowledgement: it is a NACK if there is an error, and for
    /// no other reason (S11). An expected NACK counts as an ACK, unless its
    /// text blames a resource that the client should take.
    pub(super) fn handle_acknowledgement(
        &mut self,
        db: &mut Database,
        index: usize,
        nonce: Nonce,
        error: Option<ErrorDetail>,
        now: Moment,
    ) {
        let type_stream = &mut self.type_streams[index];
        let type_url = type_stream.type_url.clone();
        if error.is_some() && type_stream.expects_nack_of_merged(&nonce) {
            self.events.push_back(Event::Acked { type_url, nonce });
            return;
        }

        let blames_resource =
            |error: &ErrorDetail| type_stream.blames_pushed_resource(&nonce, error);
        let is_nack_expected =
            type_stream.expects_nack(&nonce) && !error.as_ref().is_some_and(blames_resource);
        if is_nack_expected {
            match &error {
                Some(_) => type_stream.handle_expected_nack(db, &nonce),
                None => type_stream.acks_unreadable = true,
            }
        }

        match error.filter(|_| !is_nack_expected) {
            Some(error) => self.handle_nack(db, index, nonce, error),
            None => self.handle_ack(db, index, nonce, now),
        }
    }

    /// Handles an ACK, and reports it. References of replaced resources begin
    /// to drain.
    fn handle_ack(&mut self, db: &mut Database, index: usize, nonce: Nonce, now: Moment) {
        let type_stream = &mut self.type_streams[index];
        let type_url = type_stream.type_url.clone();
        let drains = type_stream.kind.drains;
        let effects = type_stream.handle_ack(db, &nonce);
        type_stream.last_acked = Some(nonce.clone());
        type_stream.forget_error();

        if effects.replaced_unknown {
            self.drain_unknown(db, index, now);
        }
        self.drain_replaced(db, &effects.replacements, drains, now);
        self.events.push_back(Event::Acked { type_url, nonce });
    }

    /// Handles a NACK, and reports it with the resources that it quarantines.
    /// The client's text is truncated to its limit.
    fn handle_nack(
        &mut self,
        db: &mut Database,
        index: usize,
        nonce: Nonce,
        mut error: ErrorDetail,
    ) {
        truncate_text(&mut error.message, self.config.limits.error_bytes);
        let type_stream = &mut self.type_streams[index];
        let type_url = type_stream.type_url.clone();
        type_stream.last_error = Some(error.clone());
        let quarantined_resources = type_stream.handle_nack(db, &nonce, &error);
        type_stream.forget_error();
        self.resend_endpoints_after_nack(db, index);

        self.events.push_back(Event::Nacked {
            type_url: type_url.clone(),
            nonce,
            error: error.clone(),
        });
        for quarantined in quarantined_resources {
            self.events.push_back(Event::Quarantined {
                type_url: type_url.clone(),
                name: quarantined.name,
                version: quarantined.version,
                error: error.clone(),
            });
        }
    }

    /// Begins the resumption of a type: the client holds resources from an
    /// earlier stream (S82).
    pub(super) fn resume_type(&mut self, db: &Database, index: usize, now: Moment) {
        self.resume_stream(db, now);
        self.type_streams[index].begin_resumption(now);
    }

    /// Starts the time in which a reconnected client subscribes to all its
    /// types. An Envoy may still use the references that drained on earlier
    /// streams, so these go on draining. Does nothing on a stream of one type,
    /// or at a second call.
    pub(super) fn resume_stream(&mut self, db: &Database, now: Moment) {
        if self.config.single_type.is_some() || self.resuming_until.is_some() {
            return;
        }
        self.resuming_until = Some(now + self.config.resume_window);
        if self.dialect() == Dialect::Envoy {
            self.recall_draining(db, now);
        }
    }

    /// Adds the references and types that drained on earlier streams, and whose
    /// deadline has not passed.
    fn recall_draining(&mut self, db: &Database, now: Moment) {
        let deadlines = |end| DrainDeadlines {
            by_name: end,
            by_wildcard: end,
            from_earlier_stream: true,
        };

        let references = db.recall_draining().filter(|(_, end)| now < *end);
        self.draining
            .extend(references.map(|(reference, end)| (reference.clone(), deadlines(end))));

        let types = db.recall_draining_types().filter(|(_, end)| now < *end);
        self.draining_types
            .extend(types.map(|(url, end)| (url, deadlines(end))));
    }

    /// Passes the draining references of an Envoy whose stream ends to the
    /// database, including those of listeners that pending responses may have
    /// replaced, and forgets them here. Does nothing for other clients.
    pub(super) fn remember_draining(&mut self, db: &mut Database) {
        if self.dialect() != Dialect::Envoy {
            return;
        }

        let now = self.polled_at;
        let mut type_streams = self.type_streams.iter();
        if let Some(index) = type_streams.position(|type_stream| type_stream.kind.drains) {
            let replacements = self.type_streams[index].pending_replacements(db);
            self.drain_replaced(db, &replacements, true, now);
            if self.type_streams[index].may_replace_unknown() {
                self.drain_unknown(db, index, now);
            }
        }

        let references = std::mem::take(&mut self.draining).into_iter();
        if references.len() > 0 {
            let references_with_end =
                references.map(|(reference, deadlines)| (reference, deadlines.by_wildcard));
            db.remember_draining(references_with_end, now);
        }
        for (url, deadlines) in std::mem::take(&mut self.draining_types) {
            db.remember_draining_type(url, deadlines.by_wildcard);
        }
    }

    /// Infers the clusters that an Envoy resumed with on a SotW stream from the
    /// names of its endpoints, where possible (S82). Which of them are removed
    /// may change until the first set is sent, so this is repeated until then.
    pub(super) fn infer_clusters_from_endpoints(&mut self, db: &mut Database) {
        let clusters = self.type_stream(kind::CDS);
        let awaits_first_set = clusters.is_some_and(|clusters| clusters.last_nonce.is_none());
        if self.config.mode != Mode::Sotw || !awaits_first_set {
            return;
        }

        let endpoints = self.type_stream(kind::EDS);
        let Some(endpoints) = endpoints.filter(|endpoints| endpoints.resumption.is_some()) else {
            return;
        };

        let subscriptions = endpoints.subscriptions.iter();
        let resumed_subscriptions =
            subscriptions.filter(|(_, subscription)| subscription.is_resumed);
        let names: Vec<Name> = resumed_subscriptions
            .take(MOST_RESUMED)
            .map(|(key, _)| db.name(endpoints.type_id, key.entry).clone())
            .collect();
        if let Some(clusters) = self.type_stream_mut(kind::CDS) {
            clusters.record_clusters_of_endpoints(db, names);
        }
    }

    /// Records whether listeners had inline routes when the client reconnected:
    /// it may have one of these, although the first push has others.
    pub(super) fn record_inline_routes(&mut self, db: &mut Database) {
        let Some(listeners) = self.type_stream_mut(kind::LDS) else {
            return;
        };
        // A listener with inline routes refers to clusters itself.
        let is_due = listeners.resumption.is_some() && listeners.last_nonce.is_none();
        let has_inline_routes = is_due && listeners.desires_reference_to(db, kind::CDS);
        if let Some(resumption) = &mut listeners.resumption {
            resumption.had_inline_routes |= has_inline_routes;
        }
    }

    /// Discards the number of route names in a client's first request of routes
    /// if it was sent listeners before: the names may be those of the new
    /// listeners, and say nothing about the resources that it resumed with.
    /// `index` is of the type of the request; other types are not concerned.
    pub(super) fn discount_route_names(&mut self, index: usize) {
        let listeners = self.type_stream(kind::LDS);
        let is_sent = listeners.is_some_and(|listeners| listeners.last_nonce.is_some());
        let type_stream = &mut self.type_streams[index];
        let is_routes = type_stream.type_url.as_str() == kind::RDS;
        if let Some(resumption) = &mut type_stream.resumption
            && is_routes
            && is_sent
        {
            resumption.named_count = 0;
        }
    }

    /// Lets the references of an unknown listener drain when an Envoy resumes
    /// with a listener whose routes it lacks: the listener is warming, and the
    /// one that it replaces serves until then.
    pub(super) fn drain_replaced_by_warming(&mut self, db: &mut Database, now: Moment) {
        let mut type_streams = self.type_streams.iter();
        let listeners_index =
            type_streams.position(|type_stream| type_stream.type_url.as_str() == kind::LDS);
        let routes = self.type_stream(kind::RDS);
        let (Some(index), Some(routes)) = (listeners_index, routes) else {
            return;
        };

        let listeners = &self.type_streams[index];
        if listeners.resumption.is_none() && listeners.last_nonce.is_some() {
            return;
        }

        let lacks_route = |key: SubscriptionKey| {
            let name = db.name(routes.type_id, key.entry).clone();
            routes.client_cache.held(db, &name).is_empty()
        };
        let mut keys = routes.subscriptions.keys().take(MOST_RESUMED);
        let is_warming = listeners.dialect == Dialect::Envoy && keys.any(lacks_route);
        drop(keys);
        if is_warming {
            self.drain_unknown(db, index, now);
        }
    }

    /// Lets the references of unsubscribed resources drain. gRPC unsubscribes
    /// from a route configuration before it has the next one, and goes on
    /// routing by the old one. So the references of the old one stay until the
    /// client unsubscribes from their targets, too (S81). References whose
    /// targets the client has unsubscribed from no longer drain.
    pub(super) fn drain_unsubscribed(
        &mut self,
        db: &mut Database,
        index: usize,
        unsubscribed: &[Arc<Resource>],
        now: Moment,
    ) {
        if !self.draining.is_empty() {
            let type_streams = &self.type_streams;
            let is_resuming = self.resuming_until.is_some_and(|end| now < end);
            self.draining.retain(|reference, _| {
                let mut types = type_streams.iter().map(|type_stream| &type_stream.type_url);
                let is_awaited = is_resuming && !types.any(|url| *url == reference.type_url);
                is_awaited || has_interest_in(db, type_streams, reference)
            });
        }

        if self.type_streams[index].dialect == Dialect::Standard {
            if unsubscribed.iter().any(|resource| resource.body.is_none()) {
                self.drain_unknown(db, index, now);
            }
            let references = unsubscribed
                .iter()
                .flat_map(|resource| &resource.facts().references);
            self.drain_references(db, references, false, now);
        }
    }

    /// Lets every resource drain that a replaced resource of unknown body may
    /// refer to. Nothing drains for an Envoy that resumed with as many route
    /// configurations as listeners and has no inline routes now: it is taken to
    /// have had none before, and unsubscribes from its routes when their
    /// listener has drained.
    fn drain_unknown(&mut self, db: &mut Database, index: usize, now: Moment) {
        let type_stream = &self.type_streams[index];
        let refers_to = type_stream.kind.refers_to;
        let count_held = |type_stream: &TypeStream| {
            let resumption = type_stream.resumption.as_ref();
            resumption.map_or(0, |resumption| resumption.held_count)
        };
        let listener_count = count_held(type_stream);
        let route_count = self.type_stream(kind::RDS).map_or(0, count_held);
        let had_inline_routes = listener_count == 0
            || route_count < listener_count
            || type_stream.desires_reference_to(db, kind::CDS);

        let drains = match type_stream.dialect {
            Dialect::Envoy => type_stream.kind.drains && had_inline_routes,
            Dialect::Standard => true,
        };
        if drains {
            let deadlines = self.drain_deadlines(type_stream.kind.drains, now);
            let types = refers_to.iter().map(|url| (*url, deadlines));
            self.draining_types.extend(types);
        }
    }

    /// Returns the deadlines of references that begin to drain now. `drains` is
    /// whether their referrer itself drains: then it may use them for the drain
    /// time, and otherwise only until the client has its successor.
    fn drain_deadlines(&self, drains: bool, now: Moment) -> DrainDeadlines {
        let wildcard_time = if drains {
            self.config.drain_time
        } else {
            self.config.dependency_timeout
        };
        DrainDeadlines {
            by_name: now + self.config.drain_time,
            by_wildcard: now + wildcard_time,
            from_earlier_stream: false,
        }
    }

    /// Lets the references of replaced resources drain, except those that the
    /// successors have too. `drains` is whether the replaced resources
    /// themselves drain.
    fn drain_replaced(
        &mut self,
        db: &Database,
        replacements: &[Replacement],
        drains: bool,
        now: Moment,
    ) {
        for (resource, successors) in replacements {
            let is_kept = |reference: &&Reference| {
                successors
                    .iter()
                    .any(|successor| successor.facts().refers_to(reference))
            };

            let dropped_references = resource
                .facts()
                .references
                .iter()
                .filter(|reference| !is_kept(reference));
            self.drain_references(db, dropped_references, drains, now);
        }
    }

    /// Lets references drain whose targets the client is subscribed to; the
    /// others are ignored. `drains` is whether their referrer itself drains.
    fn drain_references<'r>(
        &mut self,
        db: &Database,
        references: impl Iterator<Item = &'r Reference>,
        drains: bool,
        now: Moment,
    ) {
        let deadlines = self.drain_deadlines(drains, now);
        for reference in references {
            if has_interest_in(db, &self.type_streams, reference) {
                self.draining.insert(reference.clone(), deadlines);
            }
        }
    }
}

/// Returns whether the client is subscribed to the target of a reference.
fn has_interest_in(db: &Database, type_streams: &[TypeStream], reference: &Reference) -> bool {
    let mut type_streams = type_streams.iter();
    let target_type = type_streams.find(|other| other.type_url == reference.type_url);
    target_type.is_some_and(|type_stream| type_stream.has_interest(db, &reference.name))
}

/// Truncates a text to a number of bytes, at a character boundary.
fn truncate_text(text: &mut String, bytes: usize) {
    text.truncate(text.floor_char_boundary(bytes));
}
