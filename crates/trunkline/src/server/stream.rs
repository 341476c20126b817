//! The session of a stream: bytes in, frames out. No waiting.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::Notify;
use trunkline_core::message::Mode;
use trunkline_core::session::{Config, ProtocolError, Session};
use trunkline_proto::discovery::{DecodeError, Frames, Limits};

use super::report::{Peer, Report, Sent};
use super::shared::Shared;
use crate::wire::{self, Reader, Refused};

/// Bytes of one request: an Envoy that reconnects names all it holds (S80).
pub(super) const REQUEST_BYTES: usize = 64 << 20;

/// The peer broke the protocol.
#[derive(Debug, thiserror::Error)]
pub(super) enum Fault {
    /// What it sent cannot be read.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// What it said makes no sense.
    #[error(transparent)]
    Protocol(#[from] ProtocolError),
}

/// One stream; the database forgets it when this is dropped.
#[derive(Debug)]
pub(super) struct Stream {
    shared: Arc<Shared>,
    mode: Mode,
    number: u64,
    reader: Reader,
    /// Told by the database that there is something to look at.
    woken: Arc<Notify>,
    /// Begins with the first request, which says whose it is.
    session: Option<Session>,
}

impl Stream {
    pub(super) fn new(shared: Arc<Shared>, mode: Mode) -> Self {
        let limits = Limits {
            message_bytes: REQUEST_BYTES,
            ..Limits::default()
        };
        Self {
            number: shared.next_number(),
            shared,
            mode,
            reader: Reader::new(limits),
            woken: Arc::default(),
            session: None,
        }
    }

    /// Takes a request.
    pub(super) fn handle(&mut self, raw: Bytes) -> Result<(), Fault> {
        let now = self.shared.now();
        let opens = self.session.is_none();
        let refused;
        match self.mode {
            Mode::Sotw => {
                let read = self.reader.sotw(raw)?;
                refused = read.refused;
                let (shared, session) = self.session();
                shared.with(|db| session.handle_sotw(db, read.request, now))?;
            }
            Mode::Delta => {
                let read = self.reader.delta(raw)?;
                refused = read.refused;
                let (shared, session) = self.session();
                shared.with(|db| session.handle_delta(db, read.request, now))?;
            }
        }
        if opens {
            self.report(Report::Opened);
        }
        self.report_refused(&refused);
        self.report_events();
        Ok(())
    }

    /// The next message, built from the newest state.
    pub(super) fn poll(&mut self) -> Option<Frames> {
        let now = self.shared.now();
        let session = self.session.as_mut()?;
        let identifier = &self.shared.identifier;
        match self.mode {
            Mode::Sotw => {
                let response = self.shared.with(|db| session.poll_sotw(db, now))?;
                let frames = wire::sotw_frames(&response, identifier);
                self.report(Report::Sent(Sent {
                    type_url: &response.type_url,
                    nonce: &response.nonce,
                    resources: &response.resources,
                    removed: &[],
                    bytes: frames.len(),
                }));
                Some(frames)
            }
            Mode::Delta => {
                let response = self.shared.with(|db| session.poll_delta(db, now))?;
                let frames = wire::delta_frames(&response, identifier);
                self.report(Report::Sent(Sent {
                    type_url: &response.type_url,
                    nonce: &response.nonce,
                    resources: &response.resources,
                    removed: &response.removed,
                    bytes: frames.len(),
                }));
                Some(frames)
            }
        }
    }

    /// When to poll again, now that there was nothing to say.
    pub(super) fn deadline(&self) -> Option<tokio::time::Instant> {
        let due = self.session.as_ref()?.poll_timeout()?;
        Some(self.shared.instant(due))
    }

    /// By which the database wakes this stream.
    pub(super) fn waker(&self) -> Arc<Notify> {
        Arc::clone(&self.woken)
    }

    fn session(&mut self) -> (&Shared, &mut Session) {
        let (shared, mode, woken) = (&self.shared, self.mode, &self.woken);
        let open = || shared.open(Config::new(mode), Arc::clone(woken));
        (shared, self.session.get_or_insert_with(open))
    }

    fn report(&self, report: Report<'_>) {
        let node = self.session.as_ref().and_then(Session::node);
        let peer = Peer {
            stream: self.number,
            node: node.map_or("", |node| &node.id),
        };
        self.shared.report(peer, report);
    }

    fn report_refused(&self, refused: &[Refused]) {
        for name in refused {
            self.report(Report::Refused(name));
        }
    }

    fn report_events(&mut self) {
        while let Some(event) = self.session.as_mut().and_then(Session::poll_event) {
            self.report(Report::Event(&event));
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let Some(session) = self.session.take() else {
            return;
        };
        let node = session.node().map(|node| node.id.clone());
        self.shared.close(session);
        let peer = Peer {
            stream: self.number,
            node: node.as_deref().unwrap_or_default(),
        };
        self.shared.report(peer, Report::Closed);
    }
}
