//! The revision of the contents up to which each type of a stream was sent and
//! acknowledged.

use trunkline_core::Moment;
use trunkline_core::resource::{Nonce, TypeUrl};
use trunkline_core::session::Event;

/// Pending ACKs of one type that are tracked.
const MAX_PENDING: usize = 4;

/// The revisions of each type on one stream.
#[derive(Debug, Default)]
pub(super) struct SentRevisions(Vec<TypeRevisions>);

#[derive(Debug)]
pub(super) struct TypeRevisions {
    type_url: TypeUrl,
    /// The responses without an acknowledgement.
    pending: Vec<SentRevision>,
    /// The newest revision that a response was built from.
    pub(super) sent: u64,
    /// When that response was built.
    pub(super) sent_at: Moment,
    /// The newest revision of which the response was ACKed.
    acked: Option<u64>,
    /// The newest revision of which all was sent and ACKed.
    settled: Option<u64>,
    /// The newest response and its length, if it is too large for gRPC and is
    /// not acknowledged yet.
    oversized: Option<(Nonce, usize)>,
}

/// A response without an acknowledgement.
#[derive(Debug)]
struct SentRevision {
    nonce: Nonce,
    /// The revision that it was built from.
    revision: u64,
    /// Whether nothing of the revision was left to send after it.
    is_last: bool,
}

impl TypeRevisions {
    /// Returns the length of the newest response, if it is too large for gRPC
    /// and is not acknowledged yet.
    pub(super) fn oversized(&self) -> Option<usize> {
        self.oversized.as_ref().map(|(_, bytes)| *bytes)
    }

    /// Returns the newest revision of which a response was ACKed.
    pub(super) fn acked(&self) -> Option<u64> {
        self.acked
    }

    /// Returns the newest revision of which all was sent and ACKed; `None` if
    /// there is none.
    pub(super) fn settled(&self) -> Option<u64> {
        self.settled
    }
}

impl SentRevisions {
    /// Notes that a response was built from a revision; `is_last` says that
    /// nothing of the type was left to send. It replaces a note that the
    /// response before was too large. Of more than [`MAX_PENDING`] pending ACKs
    /// of the type, the oldest is forgotten.
    pub(super) fn note_sent(
        &mut self,
        type_url: &TypeUrl,
        nonce: &Nonce,
        revision: u64,
        is_last: bool,
        now: Moment,
    ) {
        let entry = self.find_or_insert(type_url);
        (entry.sent, entry.sent_at) = (revision, now);
        entry.oversized = None;
        if entry.pending.len() == MAX_PENDING {
            entry.pending.remove(0);
        }
        entry.pending.push(SentRevision {
            nonce: nonce.clone(),
            revision,
            is_last,
        });
    }

    /// Finds the revisions of a type; its first response inserts them.
    fn find_or_insert(&mut self, type_url: &TypeUrl) -> &mut TypeRevisions {
        let index = self.0.iter().position(|entry| entry.type_url == *type_url);
        let index = index.unwrap_or_else(|| {
            self.0.push(TypeRevisions {
                type_url: type_url.clone(),
                pending: Vec::new(),
                sent: 0,
                sent_at: Moment::START,
                acked: None,
                settled: None,
                oversized: None,
            });
            self.0.len() - 1
        });
        &mut self.0[index]
    }

    /// Finds the revisions of a type; `None` before its first response.
    fn find_mut(&mut self, type_url: &TypeUrl) -> Option<&mut TypeRevisions> {
        self.0.iter_mut().find(|entry| entry.type_url == *type_url)
    }

    /// Notes that the newest response of a type is too large for gRPC: its
    /// nonce, and its length. Does nothing if no response of the type was
    /// noted.
    pub(super) fn note_oversized(&mut self, type_url: &TypeUrl, nonce: &Nonce, bytes: usize) {
        if let Some(entry) = self.find_mut(type_url) {
            entry.oversized = Some((nonce.clone(), bytes));
        }
    }

    /// Notes an ACK or a NACK: its response is no longer pending, and an ACK
    /// may raise the revision that the client has. Returns the revision of the
    /// response. Other events, and nonces that are no longer tracked, are
    /// ignored, and have none. After the last response no memory is kept.
    pub(super) fn note_acknowledgement(&mut self, event: &Event) -> Option<u64> {
        let (type_url, nonce, is_ack) = match event {
            Event::Acked { type_url, nonce } => (type_url, nonce, true),
            Event::Nacked {
                type_url, nonce, ..
            } => (type_url, nonce, false),
            _ => return None,
        };
        let entry = self.find_mut(type_url)?;
        let mut pending = entry.pending.iter();
        let index = pending.position(|response| response.nonce == *nonce)?;

        let SentRevision {
            revision, is_last, ..
        } = entry.pending.remove(index);
        if entry.pending.is_empty() {
            entry.pending = Vec::new();
        }
        entry
            .oversized
            .take_if(|(oversized_nonce, _)| oversized_nonce == nonce);
        if is_ack {
            entry.acked = entry.acked.max(Some(revision));
        }
        if is_ack && is_last {
            entry.settled = entry.settled.max(Some(revision));
        }
        Some(revision)
    }

    /// Returns the revisions of a type; `None` before its first response.
    pub(super) fn of(&self, type_url: &TypeUrl) -> Option<&TypeRevisions> {
        self.0.iter().find(|entry| entry.type_url == *type_url)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_accepted_counts_and_what_is_rejected_does_not() {
        let url = TypeUrl::new("t");
        let mut revisions = SentRevisions::default();
        revisions.note_sent(&url, &"1".into(), 5, true, Moment::START);
        revisions.note_sent(&url, &"2".into(), 7, false, Moment::START);
        let acked = |nonce: &str| Event::Acked {
            type_url: url.clone(),
            nonce: nonce.into(),
        };
        assert_eq!(revisions.note_acknowledgement(&acked("1")), Some(5));
        assert_eq!(
            revisions.of(&url).map(|m| (m.sent, m.acked)),
            Some((7, Some(5)))
        );
        assert_eq!(revisions.note_acknowledgement(&acked("9")), None);
        assert_eq!(revisions.of(&url).map(|m| m.acked), Some(Some(5)));
        revisions.note_acknowledgement(&acked("2"));
        assert_eq!(revisions.of(&url).map(|m| m.acked), Some(Some(7)));
        assert_eq!(
            revisions.of(&url).map(TypeRevisions::settled),
            Some(Some(5))
        );
    }

    #[test]
    fn s80_what_is_too_large_is_so_until_it_is_answered_or_followed() {
        let url = TypeUrl::new("t");
        let mut revisions = SentRevisions::default();
        let oversized =
            |revisions: &SentRevisions| revisions.of(&url).and_then(TypeRevisions::oversized);
        revisions.note_sent(&url, &"1".into(), 1, true, Moment::START);
        assert_eq!(oversized(&revisions), None);
        revisions.note_oversized(&url, &"1".into(), 5);
        assert_eq!(oversized(&revisions), Some(5));
        revisions.note_acknowledgement(&Event::Acked {
            type_url: url.clone(),
            nonce: "1".into(),
        });
        assert_eq!(oversized(&revisions), None);
        revisions.note_sent(&url, &"2".into(), 2, true, Moment::START);
        revisions.note_oversized(&url, &"2".into(), 6);
        revisions.note_sent(&url, &"3".into(), 3, true, Moment::START);
        assert_eq!(oversized(&revisions), None);
    }
}
