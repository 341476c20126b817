//! The arrival of a change: which clients have answered all that was sent for
//! it.
//!
//! ```text
//!   change ─▶ revision ─▶ its streams are woken ─▶ awaited streams
//!                                                        │ look, again and again
//!             answered, or disconnected ◀────────────────┘
//! ```
//!
//! Each look works it out from the present state of the awaited streams, and
//! from nothing that happened before. A stream has answered when, of each type,
//! nothing is left to send and no response is without an acknowledgement; or,
//! where newer changes never let that happen, when the client ACKed a response
//! after which nothing of the revision was left.

use std::sync::Arc;
use std::time::Duration;

use trunkline_core::database::Database;
use trunkline_core::message::ErrorDetail;
use trunkline_core::name::Name;
use trunkline_core::resource::{TypeUrl, Version};
use trunkline_core::session::{Session, TypeProgress};

use super::Server;
use super::revisions::{SentRevisions, TypeRevisions};
use super::shared::Shared;
use super::stream::Stream;

/// The names that are listed of what a client has not answered.
const MOST_NAMES: usize = 10;

/// Which clients are awaited, and for what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Awaited {
    /// All clients that are connected, and not only those that the change
    /// concerns.
    pub all_clients: bool,
    /// Removals, too, that are withheld while a client may use the resource.
    pub removals: bool,
}

/// The arrival of a change at the clients that were connected when it was made.
/// See [`Server::arrival`].
#[derive(Debug)]
pub struct Arrival {
    shared: Arc<Shared>,
    revision: u64,
    awaited: Awaited,
    /// The streams that have not answered; `None` until all that the change
    /// concerns are known.
    streams: Option<Vec<Arc<Stream>>>,
    /// The clients that have answered, or are gone.
    clients: Vec<ClientArrival>,
}

/// The arrival of a change at one client.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientArrival {
    /// The number of the client's stream.
    pub stream: u64,
    /// The id of its node.
    pub node: String,
    /// Whether it has answered.
    pub state: ArrivalState,
    /// The types of which it has not answered all, if it is awaited.
    pub outstanding: Vec<Outstanding>,
    /// The resources whose removal is withheld, because the client may use
    /// them: of this change or an earlier one.
    pub withheld: Vec<(TypeUrl, Name)>,
    /// The resources that it rejects: of this change or another one.
    pub rejected: Vec<RejectedResource>,
}

/// Whether a client has answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArrivalState {
    /// It has not.
    Awaited,
    /// It has answered all that was sent.
    Answered,
    /// Its stream has ended before that.
    Disconnected,
}

/// What a client has not answered, or was not sent yet, of one type.
#[derive(Clone, Debug, PartialEq)]
pub struct Outstanding {
    /// The type.
    pub type_url: TypeUrl,
    /// How long the oldest response has no acknowledgement; `None` if all have.
    pub unanswered: Option<Duration>,
    /// The first names in these responses; if there are none, those whose
    /// addition waits for another resource.
    pub names: Vec<Name>,
    /// The number of further names.
    pub more: usize,
}

/// A resource that a client rejects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RejectedResource {
    /// Its type.
    pub type_url: TypeUrl,
    /// Its name.
    pub name: Name,
    /// The version that the client rejects.
    pub version: Version,
    /// The error of the client's last NACK of the type. It may quote the
    /// resource, with secrets.
    pub error: Option<ErrorDetail>,
}

impl Server {
    /// Begins to await the change that made a revision; `None` if the contents
    /// have not had it. Awaited are the clients that were connected when it was
    /// made. A client that connects again is another one, and gets the contents
    /// as they are then.
    #[must_use]
    pub fn arrival(&self, revision: u64, awaited: Awaited) -> Option<Arrival> {
        (revision <= self.revision()).then(|| Arrival {
            shared: Arc::clone(&self.shared),
            revision,
            awaited,
            streams: None,
            clients: Vec::new(),
        })
    }
}

impl Arrival {
    /// Looks at the clients that have not answered, and returns whether there
    /// are none any more. Visits each of them once, and locks the database for
    /// one at a time. Returns false until all streams that the change concerns
    /// were woken.
    pub fn look(&mut self) -> bool {
        if self.streams.is_none() {
            if self.shared.hub.announced() < self.revision {
                return false;
            }
            self.streams = Some(self.concerned_streams());
        }

        let mut streams = self.streams.take().unwrap_or_default();
        let answered_streams = streams.extract_if(.., |stream| self.has_answered(stream));
        let new_clients: Vec<ClientArrival> = answered_streams
            .map(|stream| self.describe_answered(&stream))
            .collect();
        self.clients.extend(new_clients);
        let is_complete = streams.is_empty();
        self.streams = Some(streams);
        is_complete
    }

    /// Returns every client that is or was awaited, in the order of the numbers
    /// of their streams.
    #[must_use]
    pub fn clients(&self) -> Vec<ClientArrival> {
        let streams = self.streams.iter().flatten();
        let awaited_clients = streams.map(|stream| self.describe(stream));
        let clients = self.clients.iter().cloned().chain(awaited_clients);
        let mut clients: Vec<ClientArrival> = clients.collect();
        clients.sort_by_key(|client| client.stream);
        clients
    }

    /// Returns the streams that are awaited: all, or those that were connected
    /// before the change and that it concerns. A stream that only a later
    /// change concerns may be among them.
    fn concerned_streams(&self) -> Vec<Arc<Stream>> {
        let mut streams = self.shared.streams();
        streams.retain(|stream| {
            let is_concerned =
                stream.woken_for() >= self.revision && stream.lock().opened_at < self.revision;
            self.awaited.all_clients || is_concerned
        });
        streams
    }

    /// Returns whether a client has answered all that was sent for the change,
    /// or is gone.
    fn has_answered(&self, stream: &Stream) -> bool {
        let state = stream.lock();
        let Some(session) = &state.session else {
            return true;
        };
        let has_answered = self.shared.with(|db| {
            let types = session.progress(db);
            let is_settled = |progress| self.is_settled(progress, &state.revisions);
            types.iter().all(is_settled) && !(self.awaited.removals && has_withheld(&types, db))
        });
        drop(state);
        self.shared.hub.give_way();
        has_answered
    }

    /// Returns whether a client has answered all of a type: now, or at some
    /// time since the revision was made.
    fn is_settled(&self, progress: &TypeProgress<'_>, revisions: &SentRevisions) -> bool {
        let entry = revisions.of(progress.type_url());
        let settled_revision = entry.and_then(TypeRevisions::settled);
        progress.is_settled() || settled_revision >= Some(self.revision)
    }

    /// Describes a client that has answered, or is gone. A newer change may
    /// have reached it meanwhile; what is outstanding of that is left out.
    fn describe_answered(&self, stream: &Stream) -> ClientArrival {
        let mut client = self.describe(stream);
        if client.state == ArrivalState::Awaited {
            client.state = ArrivalState::Answered;
            client.outstanding.clear();
        }
        client
    }

    /// Describes how far a client is.
    fn describe(&self, stream: &Stream) -> ClientArrival {
        let mut client = ClientArrival {
            stream: stream.number,
            node: stream.node_id().to_owned(),
            state: ArrivalState::Disconnected,
            outstanding: Vec::new(),
            withheld: Vec::new(),
            rejected: Vec::new(),
        };
        let state = stream.lock();
        let Some(session) = &state.session else {
            return client;
        };

        let now = self.shared.hub.now();
        self.shared.with(|db| {
            for progress in session.progress(db) {
                let withheld = progress.withheld_removals(db).into_iter();
                let withheld = withheld.map(|name| (progress.type_url().clone(), name.clone()));
                client.withheld.extend(withheld);
                if !self.is_settled(&progress, &state.revisions) {
                    client.outstanding.push(outstanding_of(&progress, now));
                }
            }
        });
        client.rejected = list_rejected(session);
        let awaits_removals = self.awaited.removals && !client.withheld.is_empty();
        client.state = match client.outstanding.is_empty() && !awaits_removals {
            true => ArrivalState::Answered,
            false => ArrivalState::Awaited,
        };
        client
    }
}

/// Returns whether the removal of a resource of one of these types is withheld.
fn has_withheld(types: &[TypeProgress<'_>], db: &mut Database) -> bool {
    let mut types = types.iter();
    types.any(|progress| !progress.withheld_removals(db).is_empty())
}

/// Describes what is outstanding of a type: responses without an
/// acknowledgement, or else additions that wait.
fn outstanding_of(progress: &TypeProgress<'_>, now: trunkline_core::Moment) -> Outstanding {
    let unanswered = progress.unanswered_since().map(|since| now - since);
    let mut names: Vec<Name> = match unanswered {
        Some(_) => progress.unanswered_names().collect(),
        None => progress.deferred_additions().cloned().collect(),
    };
    names.sort();
    names.dedup();
    let more = names.len().saturating_sub(MOST_NAMES);
    names.truncate(MOST_NAMES);
    Outstanding {
        type_url: progress.type_url().clone(),
        unanswered,
        names,
        more,
    }
}

/// Lists the resources that a client rejects.
fn list_rejected(session: &Session) -> Vec<RejectedResource> {
    let resources = session.status().flat_map(|status| {
        let quarantine = status.quarantined.into_iter();
        quarantine.map(move |(name, version)| RejectedResource {
            type_url: status.type_url.clone(),
            name,
            version,
            error: status.error.clone(),
        })
    });
    resources.collect()
}
