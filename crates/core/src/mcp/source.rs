//! A source: one stream, sending.

use std::ops::Bound;

use super::collection_stream::{CollectionStream, Collections, weight};
use super::message::{RequestResources, Resources, SinkNode};
use crate::database::{Database, StreamId};
use crate::message::{ErrorDetail, InitialVersions};
use crate::resource::{Nonce, TypeUrl};

/// Collections that one stream may ask for. One more is refused, and the others
/// go on.
const MAX_COLLECTIONS: usize = 1024;

/// Bytes of versions that the sink of one stream may say it holds, in all its
/// collections together. Beyond that it is sent a full state, which needs none.
const MAX_CLAIMED: usize = 32 << 20;

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
    /// An ACK.
    Ack,
    /// A NACK, and why. It raises an alarm (M11).
    Nack(ErrorDetail),
    /// For a nonce that is not the newest: it was ignored (M4).
    Stale,
    /// For one collection too many: it was ignored.
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

    /// The collections with a response that is not acknowledged.
    pub fn pending(&self) -> impl Iterator<Item = &TypeUrl> {
        let pending = self.collections.iter();
        let pending = pending.filter(|(_, collection)| collection.is_pending());
        pending.map(|(name, _)| name)
    }

    /// Takes a request. Whether it is an ACK or a NACK is decided by its error
    /// alone (M3).
    ///
    /// # Errors
    /// The stream has to end.
    pub fn handle_request(
        &mut self,
        db: &mut Database,
        request: RequestResources,
    ) -> Result<Handled, SourceError> {
        if let Served::Only(served) = &self.served
            && *served != request.collection
        {
            return Err(SourceError::NotServed {
                asked: request.collection,
                served: served.clone(),
            });
        }
        if let Some(node) = &request.node {
            self.node.clone_from(node);
        }
        let request = self.within_budget(request);
        let known = self.collections.get_mut(&request.collection);
        Ok(match (known, &request.nonce) {
            (None, None) => self.begin(db, request),
            (Some(collection), None) => {
                collection.restart(db, &request);
                Handled::Restarted
            }
            (Some(collection), Some(nonce)) if collection.is_latest(nonce) => match request.error {
                None => {
                    collection.handle_ack(db, request.incremental);
                    Handled::Ack
                }
                Some(error) => {
                    let is_news = collection.handle_nack(db, request.incremental, &error.message);
                    self.nacks += u64::from(is_news);
                    Handled::Nack(error)
                }
            },
            (_, Some(_)) => {
                self.stale += 1;
                Handled::Stale
            }
        })
    }

    /// Takes the versions out of a request that are more than a stream may
    /// bring. The answer is a full state then.
    fn within_budget(&self, mut request: RequestResources) -> RequestResources {
        let others = self.collections.iter();
        let others = others.filter(|(name, _)| **name != request.collection);
        let others: usize = others.map(|(_, collection)| collection.claimed()).sum();
        let is_first = request.nonce.is_none();
        if is_first && others + weight(&request.initial_versions) > MAX_CLAIMED {
            request.initial_versions = InitialVersions::default();
            request.incremental = false;
        }
        request
    }

    fn begin(&mut self, db: &mut Database, request: RequestResources) -> Handled {
        if self.collections.len() >= MAX_COLLECTIONS {
            return Handled::Refused;
        }
        let collection = CollectionStream::new(db, self.stream, &request);
        self.collections.insert(request.collection, collection);
        Handled::First
    }

    /// Returns the next response, if there is one: of each collection in turn.
    pub fn poll_resources(&mut self, db: &mut Database) -> Option<Resources> {
        let last = self.last.clone();
        let after = last.clone().map_or(Bound::Unbounded, Bound::Excluded);
        self.poll_range(db, (after, Bound::Unbounded)).or_else(|| {
            let until = last.map_or(Bound::Unbounded, Bound::Included);
            self.poll_range(db, (Bound::Unbounded, until))
        })
    }

    fn poll_range(
        &mut self,
        db: &mut Database,
        range: (Bound<TypeUrl>, Bound<TypeUrl>),
    ) -> Option<Resources> {
        let nonces = &mut self.nonces;
        for (name, collection) in self.collections.range_mut(range) {
            let make_nonce = || {
                *nonces += 1;
                Nonce::of_number(*nonces)
            };
            if let Some((nonce, version, update)) = collection.poll(db, make_nonce) {
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

    /// Ends the stream, and what the database keeps for it.
    pub fn close(self, db: &mut Database) {
        for collection in self.collections.into_values() {
            collection.close(db);
        }
        db.close_stream(self.stream);
    }
}
