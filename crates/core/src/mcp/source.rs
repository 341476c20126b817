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

/// The outcome of a request.
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
    /// Checks the size of the sink's node. A source does so, too; a caller that
    /// has the source behind a lock can check before, and drop a request that
    /// fails.
    ///
    /// # Errors
    /// If the node is too large. Then the stream has to end.
    pub fn check(&self) -> Result<(), SourceError> {
        let bytes = self.node.as_ref().map_or(0, SinkNode::weight);
        match bytes > MAX_NODE {
            true => Err(SourceError::Node { bytes }),
            false => Ok(()),
        }
    }
}

/// One stream of a source: the conversation of each collection. Contents are in
/// a [`Database`], which streams share.
#[derive(Debug)]
pub struct McpSource {
    stream: StreamId,
    served: Served,
    node: SinkNode,
    collections: Collections,
    /// The collection of the last response. The next response is of another
    /// one, if another has something to send.
    last_collection: Option<TypeUrl>,
    /// Bytes of the versions that the sink says it holds, in all collections.
    claimed_bytes: usize,
    /// The memory that the last request made outdated, until it is taken.
    outdated: Outdated,
    /// The number of responses so far.
    nonce_count: u64,
    /// The number of requests that were ignored because of their nonce.
    stale_count: u64,
    /// The number of NACKs.
    nack_count: u64,
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
            last_collection: None,
            claimed_bytes: 0,
            outdated: Outdated::default(),
            nonce_count: 0,
            stale_count: 0,
            nack_count: 0,
        }
    }

    /// Returns the stream in the database, which
    /// [`Database::take_woken_streams`] names after a change.
    #[must_use]
    pub fn stream(&self) -> StreamId {
        self.stream
    }

    /// Returns the node of the sink, from its newest request that has one.
    #[must_use]
    pub fn node(&self) -> &SinkNode {
        &self.node
    }

    /// Returns the number of requests that were ignored because of their nonce
    /// (M4).
    #[must_use]
    pub fn stale(&self) -> u64 {
        self.stale_count
    }

    /// Returns the number of NACKs on this stream (M11).
    #[must_use]
    pub fn nacks(&self) -> u64 {
        self.nack_count
    }

    /// Returns whether the sink holds the newest state of every collection that
    /// it asked for.
    #[must_use]
    pub fn is_current(&self, db: &Database) -> bool {
        let mut collections = self.collections.values();
        collections.all(|collection| collection.is_current(db))
    }

    /// Returns the collections whose newest state the sink has rejected (M5),
    /// and why.
    pub fn rejected<'a>(
        &'a self,
        db: &'a Database,
    ) -> impl Iterator<Item = (&'a TypeUrl, &'a str)> {
        let collections = self.collections.iter();
        collections.filter_map(|(name, collection)| Some((name, collection.rejection(db)?)))
    }

    /// Returns the number of bytes of the versions that the sink says it holds.
    #[must_use]
    pub fn claimed(&self) -> usize {
        self.claimed_bytes
    }

    /// Returns whether the versions that the sink says it holds are being
    /// compared. A further poll goes on with that, and may have a response
    /// then.
    #[must_use]
    pub fn is_comparing(&self) -> bool {
        let mut collections = self.collections.values();
        collections.any(CollectionStream::is_comparing)
    }

    /// Takes the memory that the last request made outdated. If it is not
    /// taken, the next request drops it.
    pub fn take_outdated(&mut self) -> Outdated {
        std::mem::take(&mut self.outdated)
    }

    /// Returns the collections with a response that is not acknowledged.
    pub fn pending(&self) -> impl Iterator<Item = &TypeUrl> {
        let collections = self.collections.iter();
        let pending_collections = collections.filter(|(_, collection)| collection.is_pending());
        pending_collections.map(|(name, _)| name)
    }

    /// Handles a request. Its error alone decides whether it is an ACK or a
    /// NACK (M3). The versions in a request are shared: a caller that keeps a
    /// clone decides when they are dropped.
    ///
    /// # Errors
    /// If the stream has to end.
    pub fn handle_request(
        &mut self,
        db: &mut Database,
        request: RequestResources,
    ) -> Result<Handled, SourceError> {
        self.handle_request_within(db, request, MAX_CLAIMED)
    }

    /// Handles a request as [`Self::handle_request`] does, with `room` for so
    /// many bytes of versions that the sink says it holds.
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

        Ok(match request.nonce.clone() {
            None => self.handle_first(db, request, room),
            Some(nonce) => self.handle_acknowledgement(db, request, &nonce),
        })
    }

    /// Handles a request with a nonce: an ACK, or a NACK if it has an error. It
    /// is ignored if the nonce is not the newest of its collection (M4).
    fn handle_acknowledgement(
        &mut self,
        db: &mut Database,
        request: RequestResources,
        nonce: &Nonce,
    ) -> Handled {
        let known_collection = self.collections.get_mut(&request.collection);
        let Some(collection) = known_collection.filter(|known| known.is_latest(nonce)) else {
            self.stale_count += 1;
            return Handled::Stale;
        };

        match request.error {
            None => {
                self.claimed_bytes -= collection.claimed_bytes();
                self.outdated = Outdated::default();
                collection.handle_ack(db, request.incremental, &mut self.outdated);
                self.claimed_bytes += collection.claimed_bytes();
                Handled::Ack
            }
            Some(error) => {
                let is_news = collection.handle_nack(db, request.incremental, &error.message);
                self.nack_count += u64::from(is_news);
                Handled::Nack(error)
            }
        }
    }

    /// Handles a request without a nonce: the first for its collection, or one
    /// that begins the conversation anew. Versions that there is no room for
    /// are ignored.
    fn handle_first(
        &mut self,
        db: &mut Database,
        mut request: RequestResources,
        room: usize,
    ) -> Handled {
        let known_collection = self.collections.get(&request.collection);
        let old_bytes = known_collection.map_or(0, CollectionStream::claimed_bytes);
        let other_bytes = self.claimed_bytes - old_bytes;
        let new_bytes = weight(&request.initial_versions);
        let has_room = new_bytes == 0 || other_bytes + new_bytes <= room.min(MAX_CLAIMED);
        self.outdated = Outdated::default();
        if !has_room {
            // A full state needs no versions.
            request.initial_versions = InitialVersions::default();
            request.incremental = false;
        }

        let handled = match self.collections.get_mut(&request.collection) {
            None => self.begin(db, request),
            Some(collection) => {
                collection.restart(db, &request, &mut self.outdated);
                self.claimed_bytes = other_bytes + collection.claimed_bytes();
                Handled::Restarted
            }
        };

        match handled {
            Handled::First | Handled::Restarted if !has_room => Handled::VersionsIgnored,
            handled => handled,
        }
    }

    /// Begins the conversation of a collection, unless there are too many, or
    /// its name is too long.
    fn begin(&mut self, db: &mut Database, request: RequestResources) -> Handled {
        let is_long = request.collection.as_str().len() > MAX_NAME;
        if is_long || self.collections.len() >= MAX_COLLECTIONS {
            return Handled::Refused;
        }
        let collection = CollectionStream::new(db, self.stream, &request);
        self.claimed_bytes += collection.claimed_bytes();
        self.collections.insert(request.collection, collection);
        Handled::First
    }

    /// Returns the next response, if there is one. Collections have their
    /// turns, beginning after the one of the last response. At most [`SLICE`]
    /// of the versions that the sink says it holds are compared in one call;
    /// nothing is sent of a collection before all are: see
    /// [`Self::is_comparing`] (S85).
    pub fn poll_resources(&mut self, db: &mut Database) -> Option<Resources> {
        let last = self.last_collection.clone();
        let start = last.clone().map_or(Bound::Unbounded, Bound::Excluded);
        let mut budget = SLICE;
        let response = self.poll_range(db, (start, Bound::Unbounded), &mut budget);
        response.or_else(|| {
            let end = last.map_or(Bound::Unbounded, Bound::Included);
            self.poll_range(db, (Bound::Unbounded, end), &mut budget)
        })
    }

    /// Returns the response of the first collection in a range that has one;
    /// `None` if none has.
    fn poll_range(
        &mut self,
        db: &mut Database,
        range: (Bound<TypeUrl>, Bound<TypeUrl>),
        budget: &mut usize,
    ) -> Option<Resources> {
        let nonce_count = &mut self.nonce_count;
        for (name, collection) in self.collections.range_mut(range) {
            let make_nonce = || {
                *nonce_count += 1;
                Nonce::of_number(*nonce_count)
            };

            if let Some((nonce, version, update)) = collection.poll(db, budget, make_nonce) {
                self.last_collection = Some(name.clone());
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

    /// Ends the stream. The database drops collections that nobody else asks
    /// for and that have no contents. Returns memory to be dropped where nobody
    /// waits.
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
