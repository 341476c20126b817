//! A source as a whole: its contents and all of its streams. With canaries it
//! has its contents twice while an update is rolled out (M14).
//!
//! ```text
//!              ┌─ newest ───▶ streams of canaries ── ACK, NACK ─▶ Rollout
//!   changes ──▶┤     │ names that wait                               │
//!              └─ promoted ◀──────────────── promoted ◀──────────────┘
//!                    └──────▶ streams of all others
//! ```
//!
//! Bodies are shared by both, so the second costs an index. Before anything was
//! promoted, others than canaries are not answered: an empty collection would
//! make a sink remove what it has from before.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::canary::{Rollout, Stage};
use super::message::{RequestResources, Resources, SinkNode};
use super::outdated::Outdated;
use super::source::{Handled, McpSource, Served, SourceError};
use crate::change::{Change, Transaction};
use crate::database::{ApplyError, Database, StreamId};
use crate::moment::Moment;
use crate::name::Name;
use crate::resource::TypeUrl;

/// Bytes of versions that all sinks together may say they hold. A stream gets
/// half of what the others leave.
const MAX_ALL_CLAIMED: usize = 128 << 20;

/// Which sinks are canaries, and how long an update has to do well there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Canaries {
    /// The annotation that a canary has.
    pub key: String,
    /// Its value.
    pub value: String,
    /// How long an update soaks after all canaries have ACKed it.
    pub soak: Duration,
}

impl Canaries {
    /// Returns whether a sink is a canary, by its annotations.
    fn has(&self, node: &SinkNode) -> bool {
        node.annotations.get(&self.key) == Some(&self.value)
    }
}

/// A stream of a publisher.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PublisherStream(u64);

/// The counts and the outdated memory of a stream that ended.
#[derive(Debug, Default)]
pub struct Closed {
    /// The number of NACKs (M11).
    pub nacks: u64,
    /// The number of requests with an old nonce (M4).
    pub stale: u64,
    /// Memory to be dropped where nobody waits.
    pub outdated: Outdated,
}

/// A source with all its streams; see the module's documentation.
#[derive(Debug)]
pub struct Publisher {
    served: Served,
    /// The contents for sinks that are no canaries.
    promoted: Database,
    /// The contents for canaries; `None` if there are no canaries.
    staging: Option<Staging>,
    streams: BTreeMap<PublisherStream, OpenStream>,
    /// The streams by their id in either database.
    streams_by_id: BTreeMap<(Side, StreamId), PublisherStream>,
    /// The number of streams so far.
    stream_count: u64,
}

/// The newest contents, on their way over canaries to everyone.
#[derive(Debug)]
struct Staging {
    canaries: Canaries,
    newest: Database,
    rollout: Rollout<PublisherStream>,
    /// The number of the newest contents.
    revision: u64,
    /// Names that may differ between `newest` and `promoted`.
    waiting_names: BTreeSet<(TypeUrl, Name)>,
    /// Whether any contents were promoted.
    has_promoted: bool,
}

/// The database that a stream reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Side {
    Newest,
    Promoted,
}

/// A stream that has said who it is.
#[derive(Debug)]
struct OpenStream {
    side: Side,
    machine: McpSource,
}

impl Publisher {
    /// Makes a source without contents. Without `canaries` every update goes to
    /// everyone at once.
    #[must_use]
    pub fn new(served: Served, canaries: Option<Canaries>) -> Self {
        let staging = canaries.map(|canaries| Staging {
            rollout: Rollout::new(0, canaries.soak),
            canaries,
            newest: Database::new(),
            revision: 0,
            waiting_names: BTreeSet::new(),
            has_promoted: false,
        });
        Self {
            served,
            promoted: Database::new(),
            staging,
            streams: BTreeMap::new(),
            streams_by_id: BTreeMap::new(),
            stream_count: 0,
        }
    }

    /// Returns the newest contents.
    #[must_use]
    pub fn contents(&self) -> &Database {
        match &self.staging {
            Some(staging) => &staging.newest,
            None => &self.promoted,
        }
    }

    /// Returns the progress of the newest contents; `None` without canaries.
    #[must_use]
    pub fn stage(&self) -> Option<&Stage<PublisherStream>> {
        let staging = self.staging.as_ref()?;
        Some(staging.rollout.stage())
    }

    /// Applies changes of several collections as one update. If there are
    /// canaries, they get it first.
    ///
    /// # Errors
    /// If the resulting contents would be invalid. Then nothing has changed.
    pub fn apply(&mut self, changes: Transaction, now: Moment) -> Result<(), ApplyError> {
        let Some(staging) = &mut self.staging else {
            return self.promoted.apply(changes);
        };
        let changed_names = names_of(&staging.newest, &changes);
        staging.newest.apply(changes)?;
        staging.waiting_names.extend(changed_names);
        staging.revision += 1;
        staging.rollout.propose(staging.revision);
        self.judge(now);
        Ok(())
    }

    /// Begins a stream. Nothing is known of it before its first request.
    pub fn open(&mut self) -> PublisherStream {
        self.stream_count += 1;
        PublisherStream(self.stream_count)
    }

    /// Returns the machine of a stream, and whether its sink is a canary;
    /// `None` if the stream has made no request, or has ended.
    #[must_use]
    pub fn stream(&self, stream: PublisherStream) -> Option<(&McpSource, bool)> {
        let open = self.streams.get(&stream)?;
        let is_canary = self.staging.is_some() && open.side == Side::Newest;
        Some((&open.machine, is_canary))
    }

    /// Returns the database that a stream reads. That of an unknown stream is
    /// the promoted one.
    #[must_use]
    pub fn database(&self, stream: PublisherStream) -> &Database {
        let side = self.streams.get(&stream).map(|open| open.side);
        match (&self.staging, side) {
            (Some(staging), Some(Side::Newest)) => &staging.newest,
            _ => &self.promoted,
        }
    }

    /// Handles a request. The first on a stream decides whether its sink is a
    /// canary.
    ///
    /// # Errors
    /// If the stream has to end.
    pub fn handle_request(
        &mut self,
        stream: PublisherStream,
        request: RequestResources,
        now: Moment,
    ) -> Result<Handled, SourceError> {
        if !self.streams.contains_key(&stream) {
            self.begin(stream, request.node.as_ref());
        }

        let room = match request.initial_versions.is_empty() {
            true => 0,
            false => MAX_ALL_CLAIMED.saturating_sub(self.claimed_by_others(stream)) / 2,
        };
        let Some(open) = self.streams.get_mut(&stream) else {
            return Ok(Handled::Refused);
        };
        let db = match (&mut self.staging, open.side) {
            (Some(staging), Side::Newest) => &mut staging.newest,
            _ => &mut self.promoted,
        };
        let handled = open.machine.handle_request_within(db, request, room)?;

        let begins_collection = matches!(
            handled,
            Handled::First | Handled::Restarted | Handled::VersionsIgnored
        );
        if let Some(staging) = &mut self.staging
            && open.side == Side::Newest
            && begins_collection
        {
            // The canary has to take the collection, too, before anything is
            // promoted.
            staging.rollout.handle_disconnected(&stream, now);
            staging.rollout.handle_connected(stream);
        }
        self.judge(now);
        Ok(handled)
    }

    /// Returns the number of bytes of the versions that the sinks of other
    /// streams say they hold.
    fn claimed_by_others(&self, stream: PublisherStream) -> usize {
        let others = self.streams.iter().filter(|(other, _)| **other != stream);
        others.map(|(_, open)| open.machine.claimed()).sum()
    }

    /// Makes the machine of a stream, on the database for canaries or for other
    /// sinks, as the node of its first request says.
    fn begin(&mut self, stream: PublisherStream, node: Option<&SinkNode>) {
        let is_canary = |staging: &Staging| node.is_some_and(|node| staging.canaries.has(node));
        let side = match &self.staging {
            Some(staging) if is_canary(staging) => Side::Newest,
            _ => Side::Promoted,
        };
        let db = match (&mut self.staging, side) {
            (Some(staging), Side::Newest) => &mut staging.newest,
            _ => &mut self.promoted,
        };

        let machine = McpSource::new(db, self.served.clone());
        self.streams_by_id.insert((side, machine.stream()), stream);
        self.streams.insert(stream, OpenStream { side, machine });
    }

    /// Returns the next response on a stream, if there is one. Before anything
    /// was promoted, only canaries get responses.
    pub fn poll_resources(&mut self, stream: PublisherStream) -> Option<Resources> {
        let open = self.streams.get_mut(&stream)?;
        let db = match (&mut self.staging, open.side) {
            (Some(staging), Side::Newest) => &mut staging.newest,
            (Some(staging), Side::Promoted) if !staging.has_promoted => return None,
            _ => &mut self.promoted,
        };
        open.machine.poll_resources(db)
    }

    /// Returns whether a further poll of a stream goes on with comparing the
    /// versions that its sink says it holds.
    #[must_use]
    pub fn is_comparing(&self, stream: PublisherStream) -> bool {
        let open = self.streams.get(&stream);
        open.is_some_and(|open| open.machine.is_comparing())
    }

    /// Takes the memory that the last request of a stream made outdated, to be
    /// dropped where nobody waits.
    pub fn take_outdated(&mut self, stream: PublisherStream) -> Outdated {
        let open = self.streams.get_mut(&stream);
        open.map_or_else(Outdated::default, |open| open.machine.take_outdated())
    }

    /// Ends a slice: others that share the publisher can use it now.
    pub fn end_slice(&mut self) {
        self.promoted.end_slice();
        if let Some(staging) = &mut self.staging {
            staging.newest.end_slice();
        }
    }

    /// Ends a stream. Returns its counts and its memory; both are empty if it
    /// has made no request.
    pub fn close(&mut self, stream: PublisherStream, now: Moment) -> Closed {
        let Some(OpenStream { side, machine }) = self.streams.remove(&stream) else {
            return Closed::default();
        };

        self.streams_by_id.remove(&(side, machine.stream()));
        let (nacks, stale) = (machine.nacks(), machine.stale());
        let outdated = match (&mut self.staging, side) {
            (Some(staging), Side::Newest) => {
                let outdated = machine.close(&mut staging.newest);
                staging.rollout.handle_disconnected(&stream, now);
                outdated
            }
            _ => machine.close(&mut self.promoted),
        };

        Closed {
            nacks,
            stale,
            outdated,
        }
    }

    /// Returns the streams that changes concern.
    pub fn take_woken(&mut self) -> Vec<PublisherStream> {
        let promoted_ids = self.promoted.take_woken_streams();
        let newest_ids = match &mut self.staging {
            Some(staging) => staging.newest.take_woken_streams(),
            None => Vec::new(),
        };
        let promoted_ids = promoted_ids.into_iter().map(|id| (Side::Promoted, id));
        let newest_ids = newest_ids.into_iter().map(|id| (Side::Newest, id));
        promoted_ids
            .chain(newest_ids)
            .filter_map(|id| self.streams_by_id.get(&id).copied())
            .collect()
    }

    /// Returns the moment at which [`Self::promote`] has to be called again, if
    /// nothing happens before; `None` if no update soaks.
    #[must_use]
    pub fn deadline(&self) -> Option<Moment> {
        self.staging.as_ref()?.rollout.deadline()
    }

    /// Brings an update whose soak time is over to everyone. Returns the
    /// streams that may have news; none if no update is promoted now.
    pub fn promote(&mut self, now: Moment) -> Vec<PublisherStream> {
        let Some(staging) = &mut self.staging else {
            return Vec::new();
        };
        if staging.rollout.poll_promoted(now).is_none() {
            return Vec::new();
        }

        let waiting_names = std::mem::take(&mut staging.waiting_names).into_iter();
        let changes = waiting_names.map(|(type_url, name)| {
            let id = staging.newest.find_type(&type_url);
            let resource = id.and_then(|id| staging.newest.variants(id, &name).first());
            match resource {
                Some(resource) => Change::Upsert(type_url, resource.clone()),
                None => Change::Remove(type_url, name),
            }
        });
        let changes: Transaction = changes.collect();
        staging.has_promoted = true;

        // The newest contents are valid, and these are the same.
        let result = self.promoted.apply(changes);
        debug_assert!(result.is_ok(), "{result:?}");
        self.promoted.take_woken_streams();
        let streams = self.streams.iter();
        let other_streams = streams.filter(|(_, open)| open.side == Side::Promoted);
        other_streams.map(|(stream, _)| *stream).collect()
    }

    /// Tells the roll-out whether each canary has rejected the newest contents,
    /// or holds them.
    fn judge(&mut self, now: Moment) {
        let Some(staging) = &mut self.staging else {
            return;
        };

        let canaries = self.streams.iter();
        for (stream, open) in canaries.filter(|(_, open)| open.side == Side::Newest) {
            let mut rejections = open.machine.rejected(&staging.newest);
            match rejections.next() {
                Some((collection, reason)) => {
                    let reason = format!("{collection}: {reason}");
                    staging
                        .rollout
                        .handle_nack(stream, staging.revision, &reason);
                }
                None if open.machine.is_current(&staging.newest) => {
                    staging.rollout.handle_ack(stream, staging.revision, now);
                }
                None => {}
            }
        }
    }
}

/// Returns the names that changes may give other contents.
fn names_of(db: &Database, changes: &[Change]) -> Vec<(TypeUrl, Name)> {
    let mut names = Vec::new();
    for change in changes {
        let url = change.type_url();
        let mut add = |name: &Name| names.push((url.clone(), name.clone()));
        match change {
            Change::Upsert(_, resource) => add(&resource.name),
            Change::Remove(_, name)
            | Change::RemoveVariant(_, name, _)
            | Change::Fail(_, name, _) => add(name),
            Change::ReplaceAll(_, resources) => {
                resources.iter().for_each(|resource| add(&resource.name));
                if let Some(id) = db.find_type(url) {
                    db.resources(id).for_each(|resource| add(&resource.name));
                }
            }
        }
    }
    names
}
