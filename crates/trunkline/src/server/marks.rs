//! Up to which transaction a peer was told of each type, and answered.

use trunkline_core::resource::{Nonce, TypeUrl};
use trunkline_core::session::Event;

/// Responses of one type that can be without an answer at once.
const OUTSTANDING: usize = 4;

/// By type.
#[derive(Debug, Default)]
pub(super) struct Marks(Vec<Mark>);

#[derive(Debug)]
pub(super) struct Mark {
    type_url: TypeUrl,
    outstanding: Vec<(Nonce, u64)>,
    /// The newest transaction that a response was built from.
    pub(super) sent: u64,
    /// The newest that was accepted.
    acked: Option<u64>,
    /// The newest response and its length, if it is too large for gRPC and was
    /// not accepted yet.
    oversized: Option<(Nonce, usize)>,
}

impl Mark {
    pub(super) fn oversized(&self) -> Option<usize> {
        self.oversized.as_ref().map(|(_, bytes)| *bytes)
    }

    pub(super) fn acked(&self) -> Option<u64> {
        self.acked
    }
}

impl Marks {
    pub(super) fn sent(&mut self, type_url: &TypeUrl, nonce: &Nonce, revision: u64) {
        let place = self.0.iter().position(|mark| mark.type_url == *type_url);
        let place = place.unwrap_or_else(|| {
            self.0.push(Mark {
                type_url: type_url.clone(),
                outstanding: Vec::new(),
                sent: 0,
                acked: None,
                oversized: None,
            });
            self.0.len() - 1
        });
        let mark = &mut self.0[place];
        mark.sent = revision;
        mark.oversized = None;
        if mark.outstanding.len() == OUTSTANDING {
            mark.outstanding.remove(0);
        }
        mark.outstanding.push((nonce.clone(), revision));
    }

    /// The response is too large for gRPC.
    pub(super) fn oversized(&mut self, type_url: &TypeUrl, nonce: &Nonce, bytes: usize) {
        let mark = self.0.iter_mut().find(|mark| mark.type_url == *type_url);
        if let Some(mark) = mark {
            mark.oversized = Some((nonce.clone(), bytes));
        }
    }

    pub(super) fn answered(&mut self, event: &Event) {
        let (type_url, nonce, accepted) = match event {
            Event::Acked { type_url, nonce } => (type_url, nonce, true),
            Event::Nacked {
                type_url, nonce, ..
            } => (type_url, nonce, false),
            _ => return,
        };
        let mark = self.0.iter_mut().find(|mark| mark.type_url == *type_url);
        let Some(mark) = mark else { return };
        let Some(place) = mark.outstanding.iter().position(|(n, _)| n == nonce) else {
            return;
        };
        let (_, revision) = mark.outstanding.remove(place);
        mark.oversized.take_if(|(sent, _)| sent == nonce);
        if accepted {
            mark.acked = mark.acked.max(Some(revision));
        }
    }

    pub(super) fn of(&self, type_url: &TypeUrl) -> Option<&Mark> {
        self.0.iter().find(|mark| mark.type_url == *type_url)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_accepted_counts_and_what_is_rejected_does_not() {
        let url = TypeUrl::new("t");
        let mut marks = Marks::default();
        marks.sent(&url, &"1".into(), 5);
        marks.sent(&url, &"2".into(), 7);
        let acked = |nonce: &str| Event::Acked {
            type_url: url.clone(),
            nonce: nonce.into(),
        };
        marks.answered(&acked("1"));
        assert_eq!(
            marks.of(&url).map(|m| (m.sent, m.acked)),
            Some((7, Some(5)))
        );
        marks.answered(&acked("9"));
        assert_eq!(marks.of(&url).map(|m| m.acked), Some(Some(5)));
        marks.answered(&acked("2"));
        assert_eq!(marks.of(&url).map(|m| m.acked), Some(Some(7)));
    }

    #[test]
    fn s80_what_is_too_large_is_so_until_it_is_answered_or_followed() {
        let url = TypeUrl::new("t");
        let mut marks = Marks::default();
        let oversized = |marks: &Marks| marks.of(&url).and_then(Mark::oversized);
        marks.sent(&url, &"1".into(), 1);
        assert_eq!(oversized(&marks), None);
        marks.oversized(&url, &"1".into(), 5);
        assert_eq!(oversized(&marks), Some(5));
        marks.answered(&Event::Acked {
            type_url: url.clone(),
            nonce: "1".into(),
        });
        assert_eq!(oversized(&marks), None);
        marks.sent(&url, &"2".into(), 2);
        marks.oversized(&url, &"2".into(), 6);
        marks.sent(&url, &"3".into(), 3);
        assert_eq!(oversized(&marks), None);
    }
}
