//! Whether a client has answered all that it is to be sent, by type.
//!
//! It is worked out from the present state, not from what happened: a stream
//! that was not woken yet for a change has not sent all.

use hashbrown::HashSet;

use super::Session;
use crate::database::{Database, Scope};
use crate::moment::Moment;
use crate::name::Name;
use crate::resource::TypeUrl;
use crate::source::{AnswerKind, TypeStream};

/// The progress of one type on one stream.
#[derive(Clone, Copy, Debug)]
pub struct TypeProgress<'s> {
    type_stream: &'s TypeStream,
    has_sent_all: bool,
}

/// The number of resources of a type that the database lists for a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListedCounts {
    listed: usize,
    unsent: usize,
}

/// The number of resources of a type that a client has, and should have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResourceCounts {
    /// The resources that the client ACKed and that are desired.
    pub current: usize,
    /// The resources that the client should have. A name that it subscribes to
    /// counts unless the last answer that it ACKed was that the name does not
    /// exist.
    pub desired: usize,
}

impl Session {
    /// Returns the progress of each type, in order of rank. Visits no names
    /// except those that are deferred.
    #[must_use]
    pub fn progress(&self, db: &Database) -> Vec<TypeProgress<'_>> {
        let type_streams = self.type_streams.iter();
        let progress = type_streams.map(|type_stream| TypeProgress {
            type_stream,
            has_sent_all: self.has_sent_all(db, type_stream),
        });
        progress.collect()
    }

    /// Returns the progress of one type; `None` if the client has not
    /// subscribed to it.
    #[must_use]
    pub fn type_progress<'s>(
        &'s self,
        db: &Database,
        type_url: &TypeUrl,
    ) -> Option<TypeProgress<'s>> {
        let type_stream = self.type_stream(type_url.as_str())?;
        Some(TypeProgress {
            type_stream,
            has_sent_all: self.has_sent_all(db, type_stream),
        })
    }

    /// Returns whether all updates of a type were sent, except withheld
    /// removals: no name is dirty, no suspect of a NACK is to be tried again,
    /// and no addition waits for a dependency.
    fn has_sent_all(&self, db: &Database, type_stream: &TypeStream) -> bool {
        let stream_params = self.params_of(&type_stream.type_url);
        let changes_params = type_stream.next_params(stream_params) != type_stream.params;
        self.unfinished.is_none()
            && !changes_params
            && type_stream.is_quiet(db)
            && type_stream.suspects.is_empty()
            && type_stream.deferred_additions().next().is_none()
    }
}

impl<'s> TypeProgress<'s> {
    /// Returns the type.
    #[must_use]
    pub fn type_url(&self) -> &'s TypeUrl {
        &self.type_stream.type_url
    }

    /// Returns whether all updates were sent, except removals that are
    /// withheld.
    #[must_use]
    pub fn has_sent_all(&self) -> bool {
        self.has_sent_all
    }

    /// Returns whether all updates were sent, except removals that are
    /// withheld, and every response has an acknowledgement.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.has_sent_all && self.unanswered_since().is_none()
    }

    /// Returns how many resources the views of the client's cursors list, and
    /// how many changes were not sent. Visits no names.
    #[must_use]
    pub fn listed_counts(&self, db: &Database) -> ListedCounts {
        let type_stream = self.type_stream;
        let cursors = type_stream.client_cache.cursors().iter();
        let unsent_count: usize = cursors.map(|cursor| cursor.unsent_count(db)).sum();
        ListedCounts {
            listed: type_stream.listed_count(db),
            unsent: unsent_count + db.dirty(type_stream.subscriber).count(),
        }
    }

    /// Returns how many resources the client has and should have. Visits its
    /// subscriptions and the names that are outstanding, without the database.
    /// Each change that was not sent counts as a resource that the client does
    /// not have.
    #[must_use]
    pub fn resource_counts(&self, counts: ListedCounts) -> ResourceCounts {
        let type_stream = self.type_stream;
        let mut cursors = type_stream.client_cache.cursors().iter();
        let has_all = cursors.any(|cursor| cursor.scope == Scope::All);
        // The wildcard lists what the names resolve to.
        let named_subscriptions = type_stream.subscriptions.iter().filter(|_| !has_all);
        let desired_subscriptions = named_subscriptions
            .filter(|(_, subscription)| subscription.acked_answer != AnswerKind::Absent);
        let desired_count = desired_subscriptions.count() + counts.listed;
        let outstanding_count = self.outstanding_names().len() + counts.unsent;
        ResourceCounts {
            current: desired_count.saturating_sub(outstanding_count),
            desired: desired_count,
        }
    }

    /// Returns the names of which the client lacks the desired resource: sent
    /// without an acknowledgement, to be evaluated or tried, deferred, NACKed,
    /// withheld.
    fn outstanding_names(&self) -> HashSet<Name> {
        let type_stream = self.type_stream;
        let pending_acks = type_stream.client_cache.pending_acks().iter();
        let sent_resources = pending_acks.flat_map(|pending_ack| pending_ack.resources());
        let nacked_variants = type_stream
            .quarantine
            .keys()
            .chain(type_stream.suspects.keys());
        let mut names: HashSet<Name> = sent_resources
            .map(|resource| resource.name.clone())
            .collect();
        names.extend(nacked_variants.map(|(name, _)| name.clone()));
        names.extend(type_stream.withheld.names().cloned());
        names.extend(type_stream.dirty.iter().cloned());
        names.extend(type_stream.deferred_additions().cloned());
        names
    }

    /// Returns the moment at which the oldest response without an
    /// acknowledgement was sent; `None` if there is none.
    #[must_use]
    pub fn unanswered_since(&self) -> Option<Moment> {
        let oldest_response = self.type_stream.client_cache.pending_acks().front();
        oldest_response.map(|oldest| oldest.sent_at)
    }

    /// Returns the names in responses without an acknowledgement, in the order
    /// of the responses. A name may be there twice.
    pub fn unanswered_names(&self) -> impl Iterator<Item = Name> + 's {
        let pending_acks = self.type_stream.client_cache.pending_acks().iter();
        let sent_names = pending_acks.flat_map(super::status::sent_names);
        sent_names.map(|(name, _)| name)
    }

    /// Returns the names whose addition waits for a dependency (S73), in order.
    pub fn deferred_additions(&self) -> impl Iterator<Item = &'s Name> {
        self.type_stream.deferred_additions()
    }

    /// Returns the names whose removal is withheld, because the client may
    /// still use the resource (S73, S81), in order.
    #[must_use]
    pub fn withheld_removals(&self, db: &mut Database) -> Vec<&'s Name> {
        let type_stream = self.type_stream;
        let is_withheld = |name: &&Name| {
            !type_stream.addition_deadlines.contains_key(*name)
                && !type_stream.client_cache.held(db, name).is_empty()
                && type_stream.desired_resources(db, name).is_empty()
        };
        // Hosts are deferred for other reasons; their removal never is.
        if type_stream.kind.on_demand {
            return Vec::new();
        }
        type_stream.deferred.iter().filter(is_withheld).collect()
    }
}
