//! A source: one stream, sending.

use std::ops::Bound;

use super::collection_stream::{CollectionStream, Collections, weight};
use super::message::{RequestResources, Resources, SinkNode};
use super::outdated::Outdated;
use crate::database::{Database, SLICE, StreamId};
use crate::message::{ErrorDetail, InitialVersions};
use crate::resource::{Nonce, TypeUrl};

/// Collections that one stream may ask for. One more is refused, and the others
/// go on.
const MAX_COLLECTIONS: usize = 1024;

/// Bytes of versions that the sink of one stream may say it holds, in all its
/// collections together. Beyond that it is sent a full state, which needs none.
const MAX_CLAIMED: usize = 32 << 20;

/// Bytes of the name of a collection that may be asked for.
const MAX_NAME: usize = 1024;

/// Bytes of what a sink says of itself.
const MAX_NODE: usize = 64 << 10;

/// The collections that a source serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Served {
    /// Any: one that does not exist is empty, and pushed when it appears (M10).
    Any,
    /// This one alone. A request for another ends the stream (M10).
    Only(TypeUrl),
}

/// What a request was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Handled {
    /// The first for its collection.
    First,
    /// The conversation of its collection begins anew (M13).
    Restarted,
    /// Either of them, with more versions than there is room for: they were
    /// ignored, and the answer is a full state.
    VersionsIgnored,
    /// An ACK.
    Ack,
    /// A NACK, and why. It raises an alarm (M11).
    Nack(ErrorDetail),
    /// For a nonce that is not the newest: it was ignored (M4).
    Stale,
    /// For one collection too many, or one with a name that is too long: it was
    /// ignored.
    Refused,
}

/// Why a stream ends. The sink is at fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SourceError {
    /// A source of one collection was asked for another.
    #[error("the collection {asked} is not served here; ask for {served}")]
    NotServed {
        /// The collection that was asked for.
        asked: TypeUrl,
        /// The collection that is served.
        served: TypeUrl,
    },
    /// The sink says too much of itself.
    #[error("the sink's node has {bytes} bytes of id and annotations; {MAX_NODE} are read")]
    Node {
        /// The bytes of its id and annotations.
        bytes: usize,
    },
}

impl RequestResources {
    /// Checks what the sink says of itself. A source does so too; a caller that
    /// has it behind a lock can check before, and drop a request that fails.
    ///
    /// # Errors
    /// It is too much, and the stream has to end.
    pub fn check(&self) -> Result<(), SourceError> {
        let bytes = self.node.as_ref().map_or(0, SinkNode::weight);
        match bytes > MAX_NODE {
            true => Err(SourceError::Node { bytes }),
            false => Ok(()),
        }
    }
}

/// One stream of a source: what each collection's conversation is at. Contents
/// are in a [`Database`], which streams share.
#[derive(Debug)]
pub struct McpSource {
    stream: StreamId,
    served: Served,
    node: SinkNode,
    collections: Collections,
    /// The collection of the last response: the next one is another's, if
    /// another has something to say.
    last: Option<TypeUrl>,
    /// Bytes of what the sink says it holds, in all collections.
    claimed: usize,
    /// What the last request made outdated, until it is taken.
    outdated: Outdated,
    nonces: u64,
    stale: u64,
    nacks: u64,
}

impl McpSource {
    /// Begins a stream. The database wakes it by [`Self::stream`].
    #[must_use]
    pub fn new(db: &mut Database, served: Served) -> Self {
        Self {
            stream: db.open_stream(),
            served,
            node: SinkNode::default(),
            collections: Collections::new(),
            last: None,
            claimed: 0,
            outdated: Outdated::default(),
            nonces: 0,
            stale: 0,
            nacks: 0,
        }
    }

    /// The stream in the database, which
    /// [`Database::take_woken_streams`] names after a change.
    #[must_use]
    pub fn stream(&self) -> StreamId {
        self.stream
    }

    /// Who the sink is, as far as it said so.
    #[must_use]
    pub fn node(&self) -> &SinkNode {
        &self.node
    }

    /// Requests that were ignored because of their nonce (M4).
    #[must_use]
    pub fn stale(&self) -> u64 {
        self.stale
    }

    /// NACKs on this stream (M11).
    #[must_use]
    pub fn nacks(&self) -> u64 {
        self.nacks
    }

    /// Whether the sink holds the newest state of every collection that it
    /// asked for.
    #[must_use]
    pub fn is_current(&self, db: &Database) -> bool {
        let mut collections = self.collections.values();
        collections.all(|collection| collection.is_current(db))
    }

    /// The collections whose newest state the sink has rejected (M5), and why.
    pub fn rejected<'a>(
        &'a self,
        db: &'a Database,
    ) -> impl Iterator<Item = (&'a TypeUrl, &'a str)> {
        let all = self.collections.iter();
        all.filter_map(|(name, collection)| Some((name, collection.rejection(db)?)))
    }

    /// Bytes of the versions that the sink says it holds.
    #[must_use]
    pub fn claimed(&self) -> usize {
        self.claimed
    }

    /// Whether the versions that the sink says it holds are being compared. A
    /// further poll goes on with that, and may have a response then.
    #[must_use]
    pub fn is_comparing(&self) -> bool {
        let mut collections = self.collections.values();
        collections.any(CollectionStream::is_comparing)
    }

    /// Takes what the last request made outdated. If it is not taken, the next
    /// request drops it.
    pub fn take_outdated(&mut self) -> Outdated {
        std::mem::take(&mut self.outdated)
    }

    /// The collections with a response that is not acknowledged.
    pub fn pending(&self) -> impl Iterator<Item = &TypeUrl> {
        let pending = self.collections.iter();
        let pending = pending.filter(|(_, collection)| collection.is_pending());
        pending.map(|(name, _)| name)
    }

    /// Takes a request. Whether it is an ACK or a NACK is decided by its error
    /// alone (M3). The versions in a request are shared: a caller that keeps a
    /// clone decides when they are dropped.
    ///
    /// # Errors
    /// The stream has to end.
    pub fn handle_request(
        &mut self,
        db: &mut Database,
        request: RequestResources,
    ) -> Result<Handled, SourceError> {
        self.handle_request_within(db, request, MAX_CLAIMED)
    }

    /// The same, where there is room for so many bytes of versions that the sink
    /// says it holds.
    pub(super) fn handle_request_within(
        &mut self,
        db: &mut Database,
        request: RequestResources,
        room: usize,
    ) -> Result<Handled, SourceError> {
        if let Served::Only(served) = &self.served
            && *served != request.collection
        {
            return Err(SourceError::NotServed {
                asked: request.collection,
                served: served.clone(),
            });
        }
        request.check()?;
        if let Some(node) = &request.node {
            self.node.clone_from(node);
        }
        let Some(nonce) = &request.nonce else {
            return Ok(self.handle_first(db, request, room));
        };
        let known = self.collections.get_mut(&request.collection);
        let latest = known.filter(|collection| collection.is_latest(nonce));
        let Some(collection) = latest else {
            self.stale += 1;
            return Ok(Handled::Stale);
        };
        Ok(match request.error {
            None => {
                self.claimed -= collection.claimed();
                self.outdated = Outdated::default();
                collection.handle_ack(db, request.incremental, &mut self.outdated);
                self.claimed += collection.claimed();
                Handled::Ack
            }
            Some(error) => {
                let is_news = collection.handle_nack(db, request.incremental, &error.message);
                self.nacks += u64::from(is_news);
                Handled::Nack(error)
            }
        })
    }

    /// Takes a request without a nonce: the first for its collection, or one that
    /// begins it anew.
    fn handle_first(
        &mut self,
        db: &mut Database,
        mut request: RequestResources,
        room: usize,
    ) -> Handled {
        let known = self.collections.get(&request.collection);
        let before = known.map_or(0, CollectionStream::claimed);
        let others = self.claimed - before;
        let claimed = weight(&request.initial_versions);
        let has_room = claimed == 0 || others + claimed <= room.min(MAX_CLAIMED);
        self.outdated = Outdated::default();
        if !has_room {
            // A full state needs none.
            request.initial_versions = InitialVersions::default();
            request.incremental = false;
        }
        let handled = match self.collections.get_mut(&request.collection) {
            None => self.begin(db, request),
            Some(collection) => {
                collection.restart(db, &request, &mut self.outdated);
                self.claimed = others + collection.claimed();
                Handled::Restarted
            }
        };
        match handled {
            Handled::First | Handled::Restarted if !has_room => Handled::VersionsIgnored,
            handled => handled,
        }
    }

    fn begin(&mut self, db: &mut Database, request: RequestResources) -> Handled {
        let is_long = request.collection.as_str().len() > MAX_NAME;
        if is_long || self.collections.len() >= MAX_COLLECTIONS {
            return Handled::Refused;
        }
        let collection = CollectionStream::new(db, self.stream, &request);
        self.claimed += collection.claimed();
        self.collections.insert(request.collection, collection);
        Handled::First
    }

    /// Returns the next response, if there is one: of each collection in turn.
    /// Of the versions that the sink says it holds, [`SLICE`] are compared, and
    /// nothing is sent of that collection before all are: see
    /// [`Self::is_comparing`] (S85).
    pub fn poll_resources(&mut self, db: &mut Database) -> Option<Resources> {
        let last = self.last.clone();
        let after = last.clone().map_or(Bound::Unbounded, Bound::Excluded);
        let mut budget = SLICE;
        let response = self.poll_range(db, (after, Bound::Unbounded), &mut budget);
        response.or_else(|| {
            let until = last.map_or(Bound::Unbounded, Bound::Included);
            self.poll_range(db, (Bound::Unbounded, until), &mut budget)
        })
    }

    fn poll_range(
        &mut self,
        db: &mut Database,
        range: (Bound<TypeUrl>, Bound<TypeUrl>),
        budget: &mut usize,
    ) -> Option<Resources> {
        let nonces = &mut self.nonces;
        for (name, collection) in self.collections.range_mut(range) {
            let make_nonce = || {
                *nonces += 1;
                Nonce::of_number(*nonces)
            };
            if let Some((nonce, version, update)) = collection.poll(db, budget, make_nonce) {
                self.last = Some(name.clone());
                return Some(Resources {
                    collection: name.clone(),
                    version,
                    nonce,
                    update,
                });
            }
        }
        None
    }

    /// Ends the stream, and what the database keeps for it: collections that
    /// nobody else asks for and that have no contents go. Returns what is left
    /// to drop.
    pub fn close(self, db: &mut Database) -> Outdated {
        let mut outdated = self.outdated;
        for collection in self.collections.into_values() {
            collection.close(db, &mut outdated);
        }
        db.close_stream(self.stream);
        db.drop_idle_types();
        outdated
    }
}
