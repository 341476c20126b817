//! Polls the type streams of a session for the next response.

use std::collections::VecDeque;

use super::{Event, MAX_EVENTS, Session, cross_type};
use crate::database::{Database, SLICE};
use crate::message::{Mode, Response};
use crate::moment::Moment;
use crate::order::{Order, OtherTypes};
use crate::resource::Nonce;
use crate::source::{PendingAck, Push, PushContext, TypeStream};

/// The number of times that one poll evaluates all types, if they have few
/// names.
const MAX_ROUNDS: usize = 64;

impl Session {
    /// Returns the next response, or `None` if there is none. Types are polled
    /// in the order of rank, again as long as pushes without a response make
    /// progress. An unfinished request is read first, a slice of it with each
    /// call, without a response. [`Self::has_more`] tells after the call
    /// whether work is left that other streams need not wait for (S85).
    pub fn poll(&mut self, db: &mut Database, now: Moment) -> Option<Response> {
        if self.unfinished.is_some() {
            self.has_more = true;
            self.continue_request(db);
            return None;
        }

        self.begin_poll(db, now);
        let visited_before = db.work().entries;
        for _ in 0..MAX_ROUNDS {
            (self.has_silent_progress, self.has_more) = (false, false);
            let mut indexes = 0..self.type_streams.len();
            let response = indexes.find_map(|index| self.poll_type(db, now, index));
            if response.is_some() || !self.has_silent_progress {
                return response;
            }
            // Names may have been deferred for a push of this round, which
            // needed no response.
            self.mark_deferred_dirty();
            if db.work().entries - visited_before >= SLICE as u64 {
                break;
            }
        }

        // Other streams need not wait for the remaining work.
        self.has_more = true;
        None
    }

    /// Marks deferred names dirty if the database has changed or a deadline has
    /// passed, and drops references that have drained.
    fn begin_poll(&mut self, db: &mut Database, now: Moment) {
        let has_changes = self.has_changes(db);
        if has_changes {
            self.infer_clusters_from_endpoints(db);
        }

        let is_deadline_due = || self.poll_timeout().is_some_and(|deadline| deadline <= now);
        if has_changes || is_deadline_due() {
            self.mark_deferred_dirty();
        }
        self.draining
            .retain(|_, deadlines| now < deadlines.by_name.max(deadlines.by_wildcard));
        self.polled_at = now;
    }

    /// Returns whether the database has changes for the stream that were not
    /// evaluated.
    pub(super) fn has_changes(&self, db: &Database) -> bool {
        self.type_streams
            .iter()
            .any(|type_stream| type_stream.has_changes(db))
    }

    /// Marks deferred names of types that the client resumed with dirty: the
    /// response that is sent may refer to a name that was not answered (S82).
    fn mark_resumed_dirty(&mut self) {
        for type_stream in &mut self.type_streams {
            if type_stream.resumption.is_some() {
                type_stream.mark_deferred_dirty();
            }
        }
    }

    /// Marks the deferred names of all types dirty, after something has
    /// happened on the stream: they are evaluated again.
    pub(super) fn mark_deferred_dirty(&mut self) {
        for type_stream in &mut self.type_streams {
            type_stream.mark_deferred_dirty();
        }
    }

    /// Returns the next response of one type, recorded as sent. Returns `None`
    /// if the type has nothing to send, or may not send now.
    fn poll_type(&mut self, db: &mut Database, now: Moment, index: usize) -> Option<Response> {
        if !self.type_streams[index].may_send(now, self.config.ack_timeout) {
            return None;
        }

        if !self.apply_type_params(db, index, &mut SLICE.clone()) {
            // Other streams need not wait until all names have their
            // parameters.
            self.has_more = true;
            return None;
        }

        let is_complete = self.type_streams[index].is_complete(db);
        let is_set_incomplete = !is_complete && self.type_streams[index].sends_whole_sets();
        if is_set_incomplete || self.awaits_other_type(now, index) {
            return None;
        }

        let push = self.select_push(db, now, index, is_complete)?;
        let Some(response) = self.write_response(db, index, &push) else {
            self.apply_silently(db, index, push);
            return None;
        };

        self.type_streams[index].owes_response &= !is_complete;
        self.resend_dependents(db, index, &push);
        self.record_sent(db, now, index, &response, push);
        self.mark_resumed_dirty();
        Some(response)
    }

    /// Returns whether the first set of a resumed client waits for its first
    /// request of another type (S82).
    fn awaits_other_type(&self, now: Moment, index: usize) -> bool {
        let awaited_type = self.type_streams[index].awaited_type();
        awaited_type
            .is_some_and(|(url, deadline)| now < deadline && self.type_stream(url).is_none())
    }

    /// Selects the next push of a type. Returns `None` if the type has nothing
    /// to send, waits for dependencies, or has more dirty names to sort first.
    /// `is_complete` is whether the database is complete for the type; only
    /// then a response that is owed may be empty.
    fn select_push(
        &mut self,
        db: &mut Database,
        now: Moment,
        index: usize,
        is_complete: bool,
    ) -> Option<Push> {
        let (type_stream, other_types) = OtherTypes::split(&mut self.type_streams, index);
        cross_type::answer_first_vhds_request(db, &self.config, type_stream, other_types);
        cross_type::update_routes_without_vhds(db, type_stream, other_types);

        let is_resuming = self.resuming_until.is_some_and(|end| now < end);
        let order = Order::new(
            other_types,
            &self.draining,
            &self.draining_types,
            now,
            is_resuming,
        );
        let context = push_context(&self.config, &order, now);
        if type_stream.awaits_dependencies(db, &context) {
            return None;
        }
        if type_stream.sort_slice(db, &context) {
            self.has_more = true;
            return None;
        }

        let push = type_stream.select_push(db, &context);
        report_withheld(type_stream, &mut self.events);
        let may_be_empty = type_stream.owes_response && is_complete;
        if push.is_empty() && !may_be_empty {
            self.has_silent_progress |= push.has_more(db);
            self.has_more |= !type_stream.dirty.is_empty();
            type_stream.client_cache.advance_silently(db, push.advances);
            return None;
        }
        Some(push)
    }

    /// Writes a push as a response with the next nonce. Returns `None` if no
    /// part of it has to be written; the nonce is not used up then, and the
    /// caller applies the push without a response.
    fn write_response(&mut self, db: &mut Database, index: usize, push: &Push) -> Option<Response> {
        let wrap = self.may_wrap();
        let nonce = Nonce::of_number(self.next_nonce);
        let type_stream = &self.type_streams[index];
        let response = match self.config.mode {
            Mode::Delta => type_stream.write_delta(db, push, nonce)?.into(),
            Mode::Sotw => type_stream.write_sotw(db, push, nonce, wrap)?.into(),
        };
        self.next_nonce += 1;
        Some(response)
    }

    /// Applies a push of which no part has to be written, as if the client had
    /// ACKed it. The push is not empty, so it counts as progress.
    fn apply_silently(&mut self, db: &mut Database, index: usize, push: Push) {
        self.has_silent_progress = true;
        let type_stream = &mut self.type_streams[index];
        type_stream.client_cache.advance_silently(db, push.advances);
        type_stream.apply_silently(db, push.updates, push.answers);
    }

    /// Records a response as sent: its ACK is pending, and the timers of its
    /// TTLs run.
    fn record_sent(
        &mut self,
        db: &mut Database,
        now: Moment,
        index: usize,
        response: &Response,
        push: Push,
    ) {
        let wraps = self.may_wrap();
        let version = match response {
            Response::Delta(_) => None,
            Response::Sotw(response) => Some(response.version.clone()),
        };

        let type_stream = &mut self.type_streams[index];
        type_stream.start_ttl_timers(&push, wraps, now);
        let expects_nack = push.expects_nack || !type_stream.invalid_clusters(&push).is_empty();
        let pending_ack = PendingAck {
            nonce: response.nonce().clone(),
            version,
            sent_at: now,
            updates: push.updates,
            answers: push.answers,
            advances: push.advances,
            merged_nonces: Vec::new(),
            expects_nack,
        };
        type_stream.record_sent(db, pending_ack);
    }
}

/// Makes the context of a push from the configuration of its session.
fn push_context<'a>(
    config: &'a super::Config,
    order: &'a Order<'a>,
    now: Moment,
) -> PushContext<'a> {
    PushContext {
        order,
        limits: &config.limits,
        dependency_timeout: config.dependency_timeout,
        drain_time: config.drain_time,
        resume_window: config.resume_window,
        now,
    }
}

/// Reports the resources that a type withholds from the client, each version
/// once. Beyond [`MAX_EVENTS`] nothing is reported.
fn report_withheld(type_stream: &mut TypeStream, events: &mut VecDeque<Event>) {
    for (name, version) in type_stream.withheld.take_unreported() {
        if events.len() < MAX_EVENTS {
            let type_url = type_stream.type_url.clone();
            events.push_back(Event::Withheld {
                type_url,
                name,
                version,
            });
        }
    }
}
