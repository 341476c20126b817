//! A sink: one stream at a time, receiving. It outlives its streams, and
//! resumes with the versions that it holds (M12).
//!
//! ```text
//!   begin_stream ─▶ poll_request: first ─▶ handle_resources ─▶ Delivery
//!                         ▲                       │               │ owner applies,
//!                         └── ACK or NACK ◀───────┴─ malformed    ▼ persists
//!                                        ◀──────────────── handle_verdict
//! ```
//!
//! A sink keeps names and versions; the resources themselves are the owner's,
//! who gets them as a [`Transaction`]. An ACK is said after the owner's verdict
//! and never before (M11).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::message::{RequestResources, Resources, ResourcesUpdate, SinkNode};
use crate::change::{Change, Transaction};
use crate::message::{ErrorDetail, InitialVersions};
use crate::name::Name;
use crate::resource::{Nonce, TypeUrl, Version};

/// `INVALID_ARGUMENT` of gRPC: the code of every NACK.
const INVALID_ARGUMENT: i32 = 3;

/// The parts of a response that the owner has to judge: all of them are
/// accepted, or none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The collection.
    pub collection: TypeUrl,
    /// The version of the collection at the source, for people only.
    pub version: Version,
    /// The changes of the owner's contents, whose types are collections.
    pub changes: Transaction,
}

/// Why a resource, or a response as a whole, is rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejected {
    /// The resource; `None` if it is none in particular.
    pub name: Option<Name>,
    /// What is wrong, with the field where it is known.
    pub reason: String,
}

impl fmt::Display for Rejected {
    /// Writes the reason, after the name if there is one.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "{name}: {}", self.reason),
            None => f.write_str(&self.reason),
        }
    }
}

/// The judgement of a sink's owner on a delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The changes are applied, and persisted where there is a store (M11).
    Accept,
    /// Nothing has changed, and why.
    Reject(Vec<Rejected>),
}

/// The outcome of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Received {
    /// It waits for the owner's verdict.
    Delivered(Delivery),
    /// It was rejected without asking the owner, and why.
    Rejected(Rejected),
}

/// A response that cannot be answered. The source is at fault; other
/// collections go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SinkError {
    /// Nobody asked for the collection.
    #[error("a response for the collection {0}, which was not asked for")]
    NotAskedFor(TypeUrl),
    /// The response before it has no verdict yet (M2).
    #[error("a second response for the collection {0} before the first was acknowledged")]
    NotAcknowledged(TypeUrl),
}

/// The receiving side of one stream after another; see the module's
/// documentation.
#[derive(Debug)]
pub struct McpSink {
    node: SinkNode,
    collections: BTreeMap<TypeUrl, CollectionState>,
}

/// One collection of a sink. It outlives streams.
#[derive(Debug)]
struct CollectionState {
    /// Whether the sink was made to ask for incremental updates (M6).
    is_incremental: bool,
    /// The versions that were accepted last.
    versions: BTreeMap<Name, Version>,
    /// Whether the newest response was rejected.
    is_rejected: bool,
    /// Whether a stream ended between a delivery and its verdict, so that the
    /// owner may hold more than `versions` say. Full states are asked for until
    /// one is accepted: changes could leave such a resource in place for ever.
    is_uncertain: bool,
    /// The next request to the source.
    next_request: Option<NextRequest>,
    /// The response that waits for a verdict.
    pending: Option<PendingVerdict>,
}

/// A request that is to be sent.
#[derive(Debug)]
enum NextRequest {
    /// The first request, or one that begins the conversation anew (M13).
    First,
    /// An ACK, or a NACK if there is an error.
    Acknowledge(Nonce, Option<ErrorDetail>),
}

/// A response that waits for a verdict.
#[derive(Debug)]
struct PendingVerdict {
    nonce: Nonce,
    /// Whether the response is a full state.
    replaces_all: bool,
    /// The versions that count once the response is accepted; `None` is a name
    /// that is gone.
    versions: Vec<(Name, Option<Version>)>,
}

impl McpSink {
    /// Makes a sink of these collections that holds nothing. `incremental` is
    /// whether it asks for incremental updates; a source may send full states
    /// all the same (M6).
    #[must_use]
    pub fn new(
        node: SinkNode,
        collections: impl IntoIterator<Item = TypeUrl>,
        incremental: bool,
    ) -> Self {
        let state = |name| {
            let state = CollectionState {
                is_incremental: incremental,
                versions: BTreeMap::new(),
                is_rejected: false,
                is_uncertain: false,
                next_request: None,
                pending: None,
            };
            (name, state)
        };

        Self {
            node,
            collections: collections.into_iter().map(state).collect(),
        }
    }

    /// Begins a stream: every collection is asked for, with the versions that
    /// are held if incremental updates are asked for (M7, M12).
    pub fn begin_stream(&mut self) {
        for collection in self.collections.values_mut() {
            collection.end_stream();
            collection.next_request = Some(NextRequest::First);
        }
    }

    /// Asks anew for every collection whose newest response was rejected, for
    /// when the reason may be gone. The source restarts the conversation, and
    /// sends the rejected state, which it would not send again by itself (M5,
    /// M13).
    pub fn ask_again(&mut self) {
        for collection in self.collections.values_mut() {
            if collection.is_rejected && collection.pending.is_none() {
                collection.next_request = Some(NextRequest::First);
            }
        }
    }

    /// Ends a stream: requests that were to be sent on it are dropped. Accepted
    /// versions stay.
    pub fn end_stream(&mut self) {
        for collection in self.collections.values_mut() {
            collection.end_stream();
        }
    }

    /// Returns the versions of a collection that are held, by name.
    pub fn versions(&self, collection: &TypeUrl) -> impl Iterator<Item = (&Name, &Version)> {
        let state = self.collections.get(collection);
        state.into_iter().flat_map(|state| &state.versions)
    }

    /// Returns the next request, if there is one.
    pub fn poll_request(&mut self) -> Option<RequestResources> {
        let mut collections = self.collections.iter_mut();
        let (name, state, next_request) = collections.find_map(|(name, state)| {
            let next_request = state.next_request.take()?;
            Some((name, state, next_request))
        })?;

        let (nonce, error, initial_versions) = match next_request {
            NextRequest::First => (None, None, state.initial_versions()),
            NextRequest::Acknowledge(nonce, error) => {
                (Some(nonce), error, InitialVersions::default())
            }
        };
        Some(RequestResources {
            node: Some(self.node.clone()),
            collection: name.clone(),
            initial_versions,
            nonce,
            error,
            incremental: state.asks_for_changes(),
        })
    }

    /// Handles a response. One that no source may send is rejected without the
    /// owner; any other waits for the owner's verdict.
    ///
    /// # Errors
    /// If the response cannot be answered. Then it changes nothing.
    pub fn handle_resources(&mut self, response: Resources) -> Result<Received, SinkError> {
        let state = self.state_for_response(&response.collection)?;
        if let Some(rejected) = state.find_fault(&response.update) {
            state.nack(response.nonce, std::slice::from_ref(&rejected));
            return Ok(Received::Rejected(rejected));
        }

        state.pending = Some(PendingVerdict::new(response.nonce, &response.update));
        Ok(Received::Delivered(Delivery {
            changes: changes(&response.collection, response.update),
            collection: response.collection,
            version: response.version,
        }))
    }

    /// Handles a response of which only the collection and the nonce can be
    /// read: it is NACKed, and the last good state stays (M11).
    ///
    /// # Errors
    /// If the response cannot be answered.
    pub fn handle_malformed(
        &mut self,
        collection: &TypeUrl,
        nonce: Nonce,
        fault: &Rejected,
    ) -> Result<(), SinkError> {
        let state = self.state_for_response(collection)?;
        state.nack(nonce, std::slice::from_ref(fault));
        Ok(())
    }

    /// Handles the owner's verdict on a delivery; the next request acknowledges
    /// it. A verdict on a delivery of an earlier stream is ignored: the next
    /// stream begins with a full state.
    pub fn handle_verdict(&mut self, collection: &TypeUrl, verdict: &Verdict) {
        let Some(state) = self.collections.get_mut(collection) else {
            return;
        };
        let Some(pending) = state.pending.take() else {
            return;
        };
        match verdict {
            Verdict::Accept => {
                state.next_request = Some(NextRequest::Acknowledge(pending.nonce.clone(), None));
                state.accept(pending);
            }
            Verdict::Reject(rejections) => state.nack(pending.nonce, rejections),
        }
    }

    /// Returns the state of the collection of a response. Fails if the
    /// collection was not asked for, or its last response has no verdict yet.
    fn state_for_response(
        &mut self,
        collection: &TypeUrl,
    ) -> Result<&mut CollectionState, SinkError> {
        match self.collections.get_mut(collection) {
            None => Err(SinkError::NotAskedFor(collection.clone())),
            Some(state) if state.pending.is_some() => {
                Err(SinkError::NotAcknowledged(collection.clone()))
            }
            Some(state) => Ok(state),
        }
    }
}

impl CollectionState {
    /// Drops the request that was to be sent, and the response without a
    /// verdict, because their stream has ended.
    fn end_stream(&mut self) {
        self.is_uncertain |= self.pending.take().is_some();
        self.next_request = None;
    }

    /// Returns whether a request asks for incremental updates (M6).
    fn asks_for_changes(&self) -> bool {
        self.is_incremental && !self.is_uncertain
    }

    /// Returns the versions for a first request: none unless the answer may be
    /// incremental (M7).
    fn initial_versions(&self) -> InitialVersions {
        match self.asks_for_changes() {
            true => {
                let versions = self.versions.iter();
                versions
                    .map(|(name, version)| (name.clone(), version.clone()))
                    .collect()
            }
            false => InitialVersions::default(),
        }
    }

    /// Finds a fault in an update that no source may send: it is incremental
    /// and that was not asked for (M6), or it has a name twice. `None` if there
    /// is none.
    fn find_fault(&self, update: &ResourcesUpdate) -> Option<Rejected> {
        if update.is_incremental() && !self.asks_for_changes() {
            return Some(Rejected {
                name: None,
                reason: "the update is incremental, which was not asked for".to_owned(),
            });
        }

        let mut seen = BTreeSet::new();
        let removed = match update {
            ResourcesUpdate::FullState(_) => &[][..],
            ResourcesUpdate::Incremental { removed, .. } => removed,
        };
        let mut names = update.resources().iter().map(|resource| &resource.name);
        let repeated_name = names.find(|name| !seen.insert(*name));
        let repeated_name =
            repeated_name.or_else(|| removed.iter().find(|name| seen.contains(name)));
        repeated_name.map(|name| Rejected {
            name: Some(name.clone()),
            reason: "the name is in the update twice".to_owned(),
        })
    }

    /// Makes the next request a NACK of a response, with all reasons in one
    /// text.
    fn nack(&mut self, nonce: Nonce, rejections: &[Rejected]) {
        let reasons: Vec<_> = rejections.iter().map(ToString::to_string).collect();
        let error = ErrorDetail {
            code: INVALID_ARGUMENT,
            message: reasons.join("; "),
        };
        self.is_rejected = true;
        self.next_request = Some(NextRequest::Acknowledge(nonce, Some(error)));
    }

    /// Applies the versions of an accepted response.
    fn accept(&mut self, pending: PendingVerdict) {
        self.is_rejected = false;
        // Full state: a name that is not listed is gone (M8).
        if pending.replaces_all {
            self.versions.clear();
            self.is_uncertain = false;
        }
        for (name, version) in pending.versions {
            match version {
                Some(version) => self.versions.insert(name, version),
                // A name that is not known is ignored (M9).
                None => self.versions.remove(&name),
            };
        }
    }
}

impl PendingVerdict {
    /// Makes the pending verdict of a response, without its resources.
    fn new(nonce: Nonce, update: &ResourcesUpdate) -> Self {
        let resources = update.resources().iter();
        let mut versions: Vec<_> = resources
            .map(|resource| (resource.name.clone(), Some(resource.version.clone())))
            .collect();
        if let ResourcesUpdate::Incremental { removed, .. } = update {
            versions.extend(removed.iter().map(|name| (name.clone(), None)));
        }
        Self {
            nonce,
            replaces_all: !update.is_incremental(),
            versions,
        }
    }
}

/// Turns an update into changes of the owner's contents.
fn changes(collection: &TypeUrl, update: ResourcesUpdate) -> Transaction {
    match update {
        ResourcesUpdate::FullState(resources) => {
            vec![Change::ReplaceAll(collection.clone(), resources)]
        }
        ResourcesUpdate::Incremental { resources, removed } => {
            let upserts = resources
                .into_iter()
                .map(|resource| Change::Upsert(collection.clone(), resource));
            let removals = removed
                .into_iter()
                .map(|name| Change::Remove(collection.clone(), name));
            upserts.chain(removals).collect()
        }
    }
}
