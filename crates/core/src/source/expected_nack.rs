//! Responses that a client is expected to NACK: how it learns that a name does
//! not exist, where it believes nothing else (S35).
//!
//! Envoy does not start before it has every secret and every filter that its
//! listeners name, or fifteen seconds have passed. No response that it ACKs
//! tells it that there is none, but a NACK ends the wait at once. So it is sent
//! a resource that it cannot read, in a response of its own, since a NACK costs
//! all that is beside it. With the ACK or NACK the negative answer counts as
//! delivered: nothing becomes a suspect and nothing is sent again.

use super::client_cache::error_mentions;
use super::{Push, PushContext, TypeStream, negative};
use crate::database::Database;
use crate::kind::NegativeForm;
use crate::message::ErrorDetail;
use crate::resource::Nonce;

impl TypeStream {
    /// Returns the form of a negative answer for this client and type;
    /// `is_held` is whether the client may hold a resource of the name.
    pub(super) fn negative_form(&self, is_held: bool) -> NegativeForm {
        negative::negative_form(&self.kind, self.dialect, self.mode, is_held)
    }

    /// Returns whether negative answers need responses of their own.
    pub(super) fn sends_unreadable(&self) -> bool {
        self.negative_form(false) == NegativeForm::Unreadable
    }

    /// Selects the answers of a response whose NACK is expected, if there are
    /// any. A push that has other contents is not changed: it must not be
    /// NACKed.
    pub(super) fn select_unreadable(
        &mut self,
        db: &mut Database,
        context: &PushContext<'_>,
        push: &mut Push,
    ) {
        if !self.sends_unreadable() || !push.is_empty() {
            return;
        }

        push.expects_nack = true;
        push.refused.extend(std::mem::take(&mut self.refused));
        let mut budget = context.limits.response_bytes;
        self.select_names(db, context, &mut budget, push);
        push.expects_nack = !push.is_empty();
    }

    /// Returns whether the NACK of a response is expected.
    pub(crate) fn expects_nack(&self, nonce: &Nonce) -> bool {
        let pending_ack = self.client_cache.pending_ack(nonce);
        pending_ack.is_some_and(|pending_ack| pending_ack.expects_nack) && !self.acks_unreadable
    }

    /// Returns whether the text of a NACK names a resource of the response and
    /// none of its invalid clusters: then the invalid clusters are not the
    /// reason, or not the only one. False of a type that has none of these.
    pub(crate) fn blames_pushed_resource(&self, nonce: &Nonce, error: &ErrorDetail) -> bool {
        let Some(pending_ack) = self
            .client_cache
            .pending_ack(nonce)
            .filter(|_| self.sends_invalid_clusters())
        else {
            return false;
        };

        // An invalid cluster stands for each cluster of unknown body.
        let records = self.client_cache.records();
        let unknown_records = records.filter(|record| record.has_unknown_body());
        let mut invalid_names = unknown_records.map(|record| &record.resource.name);
        let mut pushed_names = pending_ack.resources().map(|resource| &resource.name);
        pushed_names.any(|name| error_mentions(error, name))
            && !invalid_names.any(|name| error_mentions(error, name))
    }

    /// Returns whether the NACK of a response that was merged into a later one
    /// is expected: it is acknowledged with that one.
    pub(crate) fn expects_nack_of_merged(&self, nonce: &Nonce) -> bool {
        let mut pending_acks = self.client_cache.pending_acks().iter();
        pending_acks.any(|pending_ack| {
            pending_ack.expects_nack && pending_ack.merged_nonces.contains(nonce)
        })
    }
}
