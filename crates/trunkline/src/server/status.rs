//! The state of a server's clients, for people and for CSDS (S16).

use std::time::Duration;

use trunkline_core::Moment;
use trunkline_core::database::Database;
use trunkline_core::resource::TypeUrl;
use trunkline_core::session::{NameState, NameStatus, ResourceCounts, Session, TypeStatus};

use super::Server;
use super::revisions::{SentRevisions, TypeRevisions};
use super::stream::Stream;
use super::stream_state::StreamState;
use crate::status::{Client, ClientResource, Clients, Rejected, ResourceState, Sync, TypeState};

impl Clients for Server {
    fn clients(&self) -> Vec<Client> {
        let streams = self.shared.streams();
        let clients = streams.iter().filter_map(|stream| client_of(stream));
        clients.collect()
    }

    /// Lists the names that a stream subscribes to; none if it has ended.
    fn resources(&self, stream: u64) -> Vec<ClientResource> {
        let streams = self.shared.streams();
        let Some(stream) = streams.iter().find(|other| other.number == stream) else {
            return Vec::new();
        };
        let types: Vec<TypeStatus> = match &stream.lock().session {
            Some(session) => session.status().collect(),
            None => return Vec::new(),
        };
        let resources = types.iter().map(|status| resources_of_type(stream, status));
        resources.flatten().flatten().collect()
    }
}

/// Returns the names of one type that a stream subscribes to, each with its
/// state and its resource; `None` if the stream has ended. Neither the database
/// nor the stream is locked for longer than a slice of the names takes, so a
/// name may have changed before the end.
fn resources_of_type(stream: &Stream, status: &TypeStatus) -> Option<Vec<ClientResource>> {
    let type_url = &status.type_url;
    let mut listing = stream.lock().session.as_ref()?.list_names(type_url);
    loop {
        let state = stream.lock();
        let session = state.session.as_ref()?;
        let list_slice = |db: &mut Database| session.list_slice(db, &mut listing);
        if !stream.shared.with(list_slice) {
            let names = session.finish_listing(listing).into_iter();
            drop(state);
            let resource = |name: NameStatus| client_resource(type_url, status, name);
            return Some(names.map(resource).collect());
        }
        drop(state);
        stream.shared.hub.give_way();
    }
}

/// Describes the client of a stream; `None` if the stream has ended.
fn client_of(stream: &Stream) -> Option<Client> {
    let state = stream.lock();
    let StreamState {
        session, revisions, ..
    } = &*state;
    let session = session.as_ref()?;
    let now = stream.shared.hub.now();
    Some(Client {
        stream: stream.number,
        node: session.node().cloned().unwrap_or_default(),
        address: stream.connection.peer,
        identity: stream.identity.clone(),
        mode: stream.mode,
        only: stream.only.clone(),
        opened: stream.opened,
        types: session
            .status()
            .zip(count_types(stream, session, now))
            .map(|(status, counts)| type_state(status, counts, revisions, now))
            .collect(),
    })
}

/// The counts of one type on a stream.
struct TypeCounts {
    resources: ResourceCounts,
    unanswered: Option<Duration>,
}

/// Counts the resources of each type of a session, in the order of its status.
fn count_types(stream: &Stream, session: &Session, now: Moment) -> Vec<TypeCounts> {
    let types = stream.shared.with(|db| {
        let types = session.progress(db).into_iter();
        let types = types.map(|progress| (progress, progress.listed_counts(db)));
        types.collect::<Vec<_>>()
    });
    let counts = types.into_iter().map(|(progress, listed)| TypeCounts {
        resources: progress.resource_counts(listed),
        unanswered: progress.unanswered_since().map(|since| now - since),
    });
    counts.collect()
}

/// Describes the state of a type with a client.
fn type_state(
    status: TypeStatus,
    counts: TypeCounts,
    revisions: &SentRevisions,
    now: Moment,
) -> TypeState {
    let entry = revisions.of(&status.type_url);
    let acked_revision = entry.and_then(TypeRevisions::acked);
    TypeState {
        sync: sync_of(&status),
        current: counts.resources.current,
        desired: counts.resources.desired,
        last_sent: entry.map(|entry| now - entry.sent_at),
        unanswered: counts.unanswered,
        sent_version: entry.map(|entry| entry.sent.to_string()),
        acked_version: acked_revision.map(|revision| revision.to_string()),
        type_url: status.type_url,
        subscriptions: status.subscriptions,
        wildcard: status.wildcard,
        sent: status.last_nonce,
        acked: status.last_acked,
        error: status.error,
        oversized: entry.and_then(TypeRevisions::oversized),
        quarantined: status.quarantined,
    }
}

/// Returns a type's state in one word. It is NACKed while a resource is in
/// quarantine; stale while a response has no acknowledgement, or while none was
/// sent to a client that did not resume with everything; else in sync.
fn sync_of(status: &TypeStatus) -> Sync {
    let has_everything = status.last_nonce.is_some() || status.resumed_complete;
    if !status.quarantined.is_empty() {
        Sync::Nacked
    } else if status.has_pending_ack || !has_everything {
        Sync::Stale
    } else {
        Sync::Synced
    }
}

/// Describes one name with its state. A rejected one comes with the error of
/// the last NACK of its type: a NACK does not say which resource it is about.
fn client_resource(type_url: &TypeUrl, status: &TypeStatus, name: NameStatus) -> ClientResource {
    let mut rejected = None;
    let state = match name.state {
        NameState::Requested => ResourceState::Requested,
        NameState::Absent => ResourceState::DoesNotExist,
        NameState::Sent => ResourceState::Sent,
        NameState::Accepted => ResourceState::Acked,
        NameState::Rejected(version) => {
            let error = status.error.clone();
            rejected = error.map(|error| Rejected { version, error });
            ResourceState::Nacked
        }
    };
    ClientResource {
        type_url: type_url.clone(),
        name: name.name,
        state,
        resource: name.resource,
        rejected,
    }
}
