//! The connections of a process, one for each distinct control plane (C12).

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::time::Instant;

use super::connection::{Connection, Live};
use super::dial::{self, Io};
use super::options::{Keepalive, TransportOptions};
use super::stream::Stream;
use super::tls::{Protocol, TlsClients};
use super::watched::Activity;
use super::{ConnectError, StreamError};
use crate::client::ControlPlane;

/// The most control planes that are remembered while nobody is connected to
/// them.
const MAX_REMEMBERED: usize = 64;

/// Connects to control planes. Clones share its connections.
#[derive(Clone, Debug)]
pub struct Connector {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    options: TransportOptions,
    tls: TlsClients,
    slots: Mutex<HashMap<ControlPlane, Arc<Slot>>>,
}

/// The connection to one control plane.
#[derive(Debug, Default)]
struct Slot {
    /// Held while connecting, so that all who wait share one attempt.
    state: tokio::sync::Mutex<SlotState>,
    pace: Arc<Pace>,
}

#[derive(Debug, Default)]
struct SlotState {
    /// Streams keep it alive, and nobody else.
    live: Weak<Live>,
    /// The last attempt, if it failed, and when it began.
    last_failure: Option<(Instant, ConnectError)>,
}

impl Connector {
    /// Makes a connector without a connection.
    #[must_use]
    pub fn new(options: TransportOptions) -> Self {
        Self {
            inner: Arc::new(Inner {
                options,
                tls: TlsClients::default(),
                slots: Mutex::default(),
            }),
        }
    }

    /// Opens a stream of a method, over the connection that equal control
    /// planes share; it is made if there is none. See [`Connection::open`].
    ///
    /// # Errors
    /// There is no connection, or no stream can be opened on it.
    pub async fn open(&self, plane: &ControlPlane, path: &str) -> Result<Stream, StreamError> {
        self.connect(plane).await?.open(path).await
    }

    /// Returns the open connection that equal control planes share, and makes it
    /// if there is none. Callers that wait for one attempt share its outcome.
    ///
    /// # Errors
    /// There is none, and the attempt to make one failed.
    pub async fn connect(&self, plane: &ControlPlane) -> Result<Connection, ConnectError> {
        let called_at = Instant::now();
        let slot = self.slot(plane);
        let mut state = slot.state.lock().await;
        let live = state.live.upgrade().map(|live| Connection { live });
        if let Some(connection) = live.filter(Connection::is_open) {
            return Ok(connection);
        }
        // An attempt that began while this caller waited is its attempt, too.
        if let Some((began_at, error)) = &state.last_failure
            && *began_at >= called_at
        {
            return Err(error.clone());
        }

        let began_at = Instant::now();
        let result = self.make(plane, &slot.pace).await;
        match &result {
            Ok(connection) => {
                state.live = Arc::downgrade(&connection.live);
                state.last_failure = None;
            }
            Err(error) => state.last_failure = Some((began_at, error.clone())),
        }
        result
    }

    /// Makes a connection that is not shared.
    ///
    /// # Errors
    /// The attempt failed.
    pub async fn dial(&self, plane: &ControlPlane) -> Result<Connection, ConnectError> {
        self.make(plane, &Arc::default()).await
    }

    /// Checks what a connection needs of this machine: the files of TLS, and
    /// the server's name. Nothing is connected.
    ///
    /// # Errors
    /// They cannot be used.
    pub async fn check(&self, plane: &ControlPlane) -> Result<(), ConnectError> {
        self.inner.tls.check(plane).await
    }

    /// Makes a connection. `pace` is that of the control plane, or a new one.
    async fn make(
        &self,
        plane: &ControlPlane,
        pace: &Arc<Pace>,
    ) -> Result<Connection, ConnectError> {
        let activity = Arc::new(Activity::default());
        let socket = self.socket(plane, Protocol::Http2, &activity).await?;
        Connection::begin(plane, socket, self.options(), activity, Arc::clone(pace)).await
    }

    /// Connects to the first host of a control plane that answers, with the
    /// handshake of TLS for the protocol. The error is that of the last host.
    pub(super) async fn socket(
        &self,
        plane: &ControlPlane,
        protocol: Protocol,
        activity: &Arc<Activity>,
    ) -> Result<Box<dyn Io>, ConnectError> {
        let result = dial::dial(plane, &self.inner.tls, protocol, activity).await;
        let mut last_error = match result {
            Ok(socket) => return Ok(socket),
            Err(error) => error,
        };
        for address in &plane.alternatives {
            let alternative = ControlPlane {
                address: address.clone(),
                ..plane.clone()
            };
            match dial::dial(&alternative, &self.inner.tls, protocol, activity).await {
                Ok(socket) => return Ok(socket),
                Err(error) => last_error = error,
            }
        }
        Err(last_error)
    }

    /// Returns the settings of connections and streams.
    pub(super) fn options(&self) -> &TransportOptions {
        &self.inner.options
    }

    /// Returns the slot of a control plane, and adds it if it is new. Slots that
    /// nobody uses are dropped when there are too many.
    fn slot(&self, plane: &ControlPlane) -> Arc<Slot> {
        let slots = self.inner.slots.lock();
        let mut slots = slots.unwrap_or_else(PoisonError::into_inner);
        if let Some(slot) = slots.get(plane) {
            return Arc::clone(slot);
        }
        if slots.len() >= MAX_REMEMBERED {
            slots.retain(|_, slot| slot.is_used());
        }
        let slot = Arc::default();
        slots.insert(plane.clone(), Arc::clone(&slot));
        slot
    }
}

impl Slot {
    /// Returns whether somebody waits for the slot, or has its connection. Called
    /// under the lock of the slots, so that nobody gets the slot meanwhile.
    fn is_used(self: &Arc<Self>) -> bool {
        Arc::strong_count(self) > 1
            || (self.state.try_lock()).map_or(true, |state| state.live.strong_count() > 0)
    }
}

/// How fast a control plane may be sent pings. It outlives connections.
#[derive(Debug, Default)]
pub(super) struct Pace {
    doublings: AtomicU32,
}

impl Pace {
    /// Returns the keepalive of the next connection: with a longer interval if
    /// the server said that there were too many pings.
    pub(super) fn slow(&self, keepalive: Keepalive) -> Keepalive {
        keepalive.slower(self.doublings.load(Ordering::Relaxed))
    }

    /// Records that the server closed a connection. If that was because of too
    /// many pings, the interval of later connections is doubled (gRFC A8).
    pub(super) fn note_go_away(&self, reason: Option<h2::Reason>) {
        if reason == Some(h2::Reason::ENHANCE_YOUR_CALM) {
            self.doublings.fetch_add(1, Ordering::Relaxed);
        }
    }
}
