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

/// What the owner has to judge: all of it is accepted, or none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The collection.
    pub collection: TypeUrl,
    /// The version of the collection at the source, for people only.
    pub version: Version,
    /// What becomes of the owner's contents, whose types are collections.
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

/// What a response was.
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

/// See the module's documentation.
#[derive(Debug)]
pub struct McpSink {
    node: SinkNode,
    collections: BTreeMap<TypeUrl, CollectionState>,
}

/// One collection of a sink. It outlives streams.
#[derive(Debug)]
struct CollectionState {
    /// Incremental updates are wished for (M6).
    incremental: bool,
    /// What was accepted last.
    versions: BTreeMap<Name, Version>,
    /// Whether the newest response was rejected.
    is_rejected: bool,
    /// A stream ended between a delivery and its verdict, so the owner may hold
    /// more than `versions` say. Full states are asked for until one is
    /// accepted: changes could leave such a resource in place for ever.
    is_uncertain: bool,
    /// What the source is to be told next.
    to_say: Option<Say>,
    /// The response that waits for a verdict.
    judged: Option<Judged>,
}

#[derive(Debug)]
enum Say {
    First,
    Acknowledge(Nonce, Option<ErrorDetail>),
}

/// A response that waits for a verdict: its nonce, and the versions that count
/// once it is accepted; `None` is a name that is gone.
#[derive(Debug)]
struct Judged {
    nonce: Nonce,
    replaces_all: bool,
    versions: Vec<(Name, Option<Version>)>,
}

impl McpSink {
    /// A sink of these collections, that holds nothing. `incremental` is
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
                incremental,
                versions: BTreeMap::new(),
                is_rejected: false,
                is_uncertain: false,
                to_say: None,
                judged: None,
            };
            (name, state)
        };
        Self {
            node,
            collections: collections.into_iter().map(state).collect(),
        }
    }

    /// A stream begins: every collection is asked for, with the versions that
    /// are held if incremental updates are wished for (M7, M12).
    pub fn begin_stream(&mut self) {
        for collection in self.collections.values_mut() {
            collection.end_stream();
            collection.to_say = Some(Say::First);
        }
    }

    /// Asks anew for every collection whose newest response was rejected: what
    /// was in its way may be gone. The source restarts the conversation, and
    /// sends what it would not send again by itself (M5, M13).
    pub fn ask_again(&mut self) {
        for collection in self.collections.values_mut() {
            if collection.is_rejected && collection.judged.is_none() {
                collection.to_say = Some(Say::First);
            }
        }
    }

    /// A stream ended: what was to be said on it is void. What was accepted
    /// stays.
    pub fn end_stream(&mut self) {
        for collection in self.collections.values_mut() {
            collection.end_stream();
        }
    }

    /// The versions of a collection that are held, by name.
    pub fn versions(&self, collection: &TypeUrl) -> impl Iterator<Item = (&Name, &Version)> {
        let state = self.collections.get(collection);
        state.into_iter().flat_map(|state| &state.versions)
    }

    /// Returns the next request, if there is one.
    pub fn poll_request(&mut self) -> Option<RequestResources> {
        let mut all = self.collections.iter_mut();
        let (name, state, say) =
            all.find_map(|(name, state)| state.to_say.take().map(|say| (name, state, say)))?;
        let (nonce, error, initial_versions) = match say {
            Say::First => (None, None, state.initial_versions()),
            Say::Acknowledge(nonce, error) => (Some(nonce), error, InitialVersions::default()),
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

    /// Takes a response.
    ///
    /// # Errors
    /// It cannot be answered, and changes nothing.
    pub fn handle_resources(&mut self, response: Resources) -> Result<Received, SinkError> {
        let state = self.state_for_response(&response.collection)?;
        if let Some(rejected) = state.find_fault(&response.update) {
            state.nack(response.nonce, std::slice::from_ref(&rejected));
            return Ok(Received::Rejected(rejected));
        }
        state.judged = Some(Judged::of(response.nonce, &response.update));
        Ok(Received::Delivered(Delivery {
            changes: changes(&response.collection, response.update),
            collection: response.collection,
            version: response.version,
        }))
    }

    /// Takes a response that cannot be read, but for its collection and nonce:
    /// it is a NACK, and the last good state stays (M11).
    ///
    /// # Errors
    /// It cannot be answered.
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

    /// Takes the owner's verdict on a delivery. One for a stream that ended
    /// counts no more: the next stream begins with a full state.
    pub fn handle_verdict(&mut self, collection: &TypeUrl, verdict: &Verdict) {
        let Some(state) = self.collections.get_mut(collection) else {
            return;
        };
        let Some(judged) = state.judged.take() else {
            return;
        };
        match verdict {
            Verdict::Accept => {
                state.to_say = Some(Say::Acknowledge(judged.nonce.clone(), None));
                state.accept(judged);
            }
            Verdict::Reject(rejected) => state.nack(judged.nonce, rejected),
        }
    }

    fn state_for_response(
        &mut self,
        collection: &TypeUrl,
    ) -> Result<&mut CollectionState, SinkError> {
        match self.collections.get_mut(collection) {
            None => Err(SinkError::NotAskedFor(collection.clone())),
            Some(state) if state.judged.is_some() => {
                Err(SinkError::NotAcknowledged(collection.clone()))
            }
            Some(state) => Ok(state),
        }
    }
}

impl CollectionState {
    /// What was to be said is void with its stream.
    fn end_stream(&mut self) {
        self.is_uncertain |= self.judged.take().is_some();
        self.to_say = None;
    }

    /// Whether a request asks for incremental updates (M6).
    fn asks_for_changes(&self) -> bool {
        self.incremental && !self.is_uncertain
    }

    /// The versions that a first request carries: none unless the answer can be
    /// the difference (M7).
    fn initial_versions(&self) -> InitialVersions {
        match self.asks_for_changes() {
            true => {
                let versions = self.versions.iter();
                versions.map(|(n, v)| (n.clone(), v.clone())).collect()
            }
            false => InitialVersions::default(),
        }
    }

    /// Finds what no source may send: an incremental update that was not asked
    /// for (M6), or a name twice.
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
        let twice = names.find(|name| !seen.insert(*name));
        let twice = twice.or_else(|| removed.iter().find(|name| seen.contains(name)));
        twice.map(|name| Rejected {
            name: Some(name.clone()),
            reason: "the name is in the update twice".to_owned(),
        })
    }

    fn nack(&mut self, nonce: Nonce, rejected: &[Rejected]) {
        let words: Vec<_> = rejected.iter().map(ToString::to_string).collect();
        let error = ErrorDetail {
            code: INVALID_ARGUMENT,
            message: words.join("; "),
        };
        self.is_rejected = true;
        self.to_say = Some(Say::Acknowledge(nonce, Some(error)));
    }

    fn accept(&mut self, judged: Judged) {
        self.is_rejected = false;
        // Full state: a name that is not listed is gone (M8).
        if judged.replaces_all {
            self.versions.clear();
            self.is_uncertain = false;
        }
        for (name, version) in judged.versions {
            match version {
                Some(version) => self.versions.insert(name, version),
                // A name that is not known is ignored (M9).
                None => self.versions.remove(&name),
            };
        }
    }
}

impl Judged {
    fn of(nonce: Nonce, update: &ResourcesUpdate) -> Self {
        let listed = update.resources().iter();
        let listed = listed.map(|r| (r.name.clone(), Some(r.version.clone())));
        let mut versions: Vec<_> = listed.collect();
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

/// The update as changes of a database.
fn changes(collection: &TypeUrl, update: ResourcesUpdate) -> Transaction {
    match update {
        ResourcesUpdate::FullState(resources) => {
            vec![Change::ReplaceAll(collection.clone(), resources)]
        }
        ResourcesUpdate::Incremental { resources, removed } => {
            let upserts = resources.into_iter();
            let upserts = upserts.map(|resource| Change::Upsert(collection.clone(), resource));
            let removals = removed.into_iter();
            let removals = removals.map(|name| Change::Remove(collection.clone(), name));
            upserts.chain(removals).collect()
        }
    }
}
