//! What a peer is told by way of its own rejection: that a name does not exist,
//! where it believes nothing else (S35).
//!
//! Envoy starts only when it knows of every secret and every filter that its
//! listeners name, or after fifteen seconds. No answer that it accepts tells it
//! that there is none; a rejection ends the wait at once. So it is sent what it
//! must reject, in a response of its own, since a rejection costs all that is
//! beside it. The answer to that, whichever it is, says that it was heard: it
//! is no fault of anything, and nothing is sent again for it.

use std::collections::BTreeMap;

use super::{Context, Conversation, Key, Selected, Told, forms};
use crate::database::{Choice, Database};
use crate::kind::Absent;
use crate::resource::Nonce;

impl Conversation {
    /// How the peer is told that a name does not exist, by what it was told
    /// before.
    pub(super) fn absent_form(&self, told: &Told) -> Absent {
        let held = told.resource().is_some();
        match forms::absent(&self.kind, self.dialect, self.mode, held) {
            Absent::Unreadable if *told == Told::Older => Absent::Silence,
            form => form,
        }
    }

    /// Whether names that do not exist are spoken of apart.
    pub(super) fn speaks_apart(&self) -> bool {
        self.absent_form(&Told::Nothing) == Absent::Unreadable
    }

    /// Whether this is to be said apart from all else.
    pub(super) fn goes_apart(&self, key: &Key, choice: &Choice) -> bool {
        let gone = match choice {
            Choice::Absent => self.gone_as_error(key).is_none(),
            Choice::Failed(error, None) => !self.speaks_errors && error.code.is_data_error(),
            Choice::Failed(..) | Choice::Is(_) | Choice::Unknown => false,
        };
        let told = self.slot(key).map_or(&Told::Nothing, |slot| &slot.told);
        gone && self.absent_form(told) == Absent::Unreadable
    }

    /// All that is to be said apart, if that is all that is said.
    pub(super) fn select_apart(
        &mut self,
        db: &mut Database,
        context: &Context<'_>,
        selected: &mut Selected,
    ) {
        if !selected.is_empty() || !self.speaks_apart() {
            return;
        }
        selected.apart = true;
        selected.refused.extend(std::mem::take(&mut self.refused));
        let mut budget = context.limits.response_bytes;
        for key in std::mem::take(&mut self.pending) {
            self.select_key(db, context, key, &mut budget, selected);
        }
        selected.apart = !selected.is_empty();
    }

    /// Whether a response will be rejected, and is meant to be.
    pub(crate) fn expects_rejection(&self, nonce: &Nonce) -> bool {
        let mut responses = self.outstanding.iter();
        responses.any(|response| response.apart && response.nonce == *nonce)
    }

    /// What was said apart, or by silence, is no reason why something else was
    /// rejected.
    pub(super) fn spare_absent(&mut self, suspects: &mut BTreeMap<Key, Choice>) {
        if !self.speaks_apart() {
            return;
        }
        suspects.retain(|key, sent| {
            let absent = *sent == Choice::Absent;
            if absent {
                self.set_told(key, |_| Told::Absent);
                self.pending.insert(key.clone());
            }
            !absent
        });
    }
}
