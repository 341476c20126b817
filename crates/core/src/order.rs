//! Make before break, decided for each referenced resource (S52, S73).
//!
//! Two rules, both about what this client is subscribed to and holds:
//!
//! - An addition is deferred until the client holds each dependency of an
//!   earlier type: a route waits for its new cluster. It is not deferred for a
//!   dependency that the client is not subscribed to, that does not exist or is
//!   in quarantine, and never beyond a timeout, so that silence stalls nothing.
//! - A removal is deferred while a resource that the client holds refers to it
//!   and is about to be replaced. This may take long; nothing else waits for
//!   it. A resumed resource whose body is not known may refer to anything until
//!   it is replaced.
//!
//! Additions never wait for removals.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use hashbrown::HashSet;

use crate::database::Database;
use crate::facts::Reference;
use crate::kind::{self, Kind};
use crate::moment::Moment;
use crate::name::Name;
use crate::resource::{Resource, TypeUrl};
use crate::source::{DependencyState, TypeStream};

/// Dependencies of resources that the client has replaced or unsubscribed from,
/// and until when they stay: an old listener drains, and gRPC routes by its old
/// tree until it has the next (S73, S81).
pub(crate) type DrainingReferences = BTreeMap<Reference, DrainDeadlines>;

/// The deadlines until which one dependency stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DrainDeadlines {
    /// For a dependency that the client is subscribed to by name: it
    /// unsubscribes when it needs it no longer.
    pub(crate) by_name: Moment,
    /// For a dependency that a wildcard covers.
    pub(crate) by_wildcard: Moment,
    /// The dependency was in use on an earlier stream, so the names that the
    /// client sends on this one say nothing about it.
    pub(crate) from_earlier_stream: bool,
}

/// Dependencies that the client uses now and whose referrers are about to be
/// replaced.
#[derive(Default)]
struct InUse {
    /// References of resources that the client holds.
    references: HashSet<Reference>,
    /// Types of which it may use any resource: it holds a resource of unknown
    /// body that may refer to them.
    types: HashSet<&'static str>,
}

impl InUse {
    /// Returns whether the client may use this resource.
    fn may_include(&self, url: &TypeUrl, name: &Name) -> bool {
        self.types.contains(url.as_str()) || self.references.contains(&reference(url, name))
    }
}

/// A resource that is to be removed from a client.
#[derive(Clone, Copy)]
pub(crate) struct Removal<'r> {
    pub(crate) type_url: &'r TypeUrl,
    pub(crate) name: &'r Name,
    /// Whether the client is subscribed to it by name.
    pub(crate) by_name: bool,
    /// Whether sets list an invalid cluster in its place until it is removed.
    pub(crate) has_invalid_cluster: bool,
}

/// The type streams of a stream, except for one.
#[derive(Clone, Copy)]
pub(crate) struct OtherTypes<'a> {
    /// Those with a lower index.
    lower: &'a [TypeStream],
    /// Those with a higher index.
    higher: &'a [TypeStream],
}

impl<'a> OtherTypes<'a> {
    /// Splits the type stream at an index from the others, so that it can
    /// change while they are read.
    pub(crate) fn split(
        type_streams: &'a mut [TypeStream],
        index: usize,
    ) -> (&'a mut TypeStream, Self) {
        let (lower, tail) = type_streams.split_at_mut(index);
        #[expect(clippy::expect_used, reason = "the index is that of a type stream")]
        let (type_stream, higher) = tail.split_first_mut().expect("there is one");
        (type_stream, Self { lower, higher })
    }

    /// Returns the other type streams.
    pub(crate) fn iter(self) -> impl Iterator<Item = &'a TypeStream> {
        self.lower.iter().chain(self.higher)
    }

    /// Returns the type stream of a type, unless it is the one that is left
    /// out.
    pub(crate) fn find(self, url: &str) -> Option<&'a TypeStream> {
        self.iter().find(|other| other.type_url.as_str() == url)
    }
}

/// The other types of a stream, as one type sees them.
pub(crate) struct Order<'a> {
    others: OtherTypes<'a>,
    draining: &'a DrainingReferences,
    draining_types: &'a BTreeMap<&'static str, DrainDeadlines>,
    now: Moment,
    /// The client resumed a moment ago, and has yet to say what it holds.
    is_resuming: bool,
    /// Computed for the first removal.
    in_use: OnceCell<InUse>,
    /// Computed for the first name that does not exist.
    in_use_except_by_clusters: OnceCell<InUse>,
    /// The references of resources that the client will hold and that are
    /// desired; computed for the first name that does not exist.
    desired_references: OnceCell<HashSet<Reference>>,
}

impl<'a> Order<'a> {
    /// Makes the order of one type among others, for one push. `draining` and
    /// `draining_types` are the references, and the types of which any resource
    /// may be referred to, that stay in use for a while. `is_resuming` is
    /// whether the client reconnected and has yet to subscribe to all its
    /// types.
    pub(crate) fn new(
        others: OtherTypes<'a>,
        draining: &'a DrainingReferences,
        draining_types: &'a BTreeMap<&'static str, DrainDeadlines>,
        now: Moment,
        is_resuming: bool,
    ) -> Self {
        Self {
            others,
            draining,
            draining_types,
            now,
            is_resuming,
            in_use: OnceCell::new(),
            in_use_except_by_clusters: OnceCell::new(),
            desired_references: OnceCell::new(),
        }
    }

    /// Returns whether a dependency of a resource has to be sent first: the
    /// client lacks it, or cannot use it yet (S73). A dependency that cannot be
    /// sent is not waited for.
    pub(crate) fn must_defer_addition(
        &self,
        db: &mut Database,
        kind: &Kind,
        resource: &Resource,
    ) -> bool {
        let references = &resource.facts().references;
        references.iter().any(
            |reference| match self.dependency_state(db, kind, reference) {
                DependencyState::Pending => true,
                DependencyState::Held => self.lacks_dependency(db, kind, reference),
                DependencyState::Unavailable | DependencyState::NotSubscribed => false,
            },
        )
    }

    /// Returns whether a resource that the client holds cannot be used before a
    /// dependency arrives: a cluster needs its endpoints (S52).
    fn lacks_dependency(&self, db: &mut Database, kind: &Kind, reference: &Reference) -> bool {
        let Some(type_stream) = self.type_stream(&reference.type_url) else {
            return false;
        };
        let choice = db.choose_name(type_stream.type_id, &reference.name, type_stream.params);
        let Some(resource) = choice.resource() else {
            return false;
        };
        let mut dependencies = resource.facts().references.iter();
        dependencies.any(|dependency| {
            self.dependency_state(db, kind, dependency) == DependencyState::Pending
        })
    }

    /// Returns the state of a dependency at the client. A type that is not sent
    /// before `kind` counts as `NotSubscribed`.
    fn dependency_state(
        &self,
        db: &mut Database,
        kind: &Kind,
        reference: &Reference,
    ) -> DependencyState {
        let rank = Kind::of(&reference.type_url).rank;
        match self.type_stream(&reference.type_url) {
            _ if rank >= kind.rank => DependencyState::NotSubscribed,
            Some(type_stream) => type_stream.dependency_state(db, &reference.name),
            // A client that reconnects subscribes to its types in any order
            // (S82).
            None if self.is_resuming => DependencyState::Pending,
            None => DependencyState::NotSubscribed,
        }
    }

    /// Returns whether the client may still use a resource that is to be
    /// removed: old referrers drain, a referrer is about to be replaced, or the
    /// client has yet to subscribe to a type that may refer to it (S73, S81).
    /// This is the rule for all types. A caller may know of a reason not to wait:
    /// `removal_waits` in `source/surplus.rs`, `must_defer_item` in
    /// `source/advance.rs`.
    pub(crate) fn must_defer_removal(&self, db: &mut Database, removal: Removal<'_>) -> bool {
        let Removal { type_url, name, .. } = removal;
        if self.is_draining(db, removal) || self.awaits_referring_type(type_url) {
            return true;
        }
        let in_use = self.in_use.get_or_init(|| self.find_in_use(db, |_| true));
        in_use.may_include(type_url, name)
    }

    /// Returns whether old referrers of a resource may be draining.
    ///
    /// A set with an invalid cluster is sent no longer than needed, since Envoy
    /// NACKs it. If an Envoy resumed with a route name for each listener, it
    /// unsubscribes from these when the listener has drained, so a type that
    /// began to drain on this stream is not waited for. One that began on an
    /// earlier stream is: the names do not tell its listeners from their
    /// successors (S82).
    fn is_draining(&self, db: &mut Database, removal: Removal<'_>) -> bool {
        let key = reference(removal.type_url, removal.name);
        let name_deadlines = self.draining.get(&key);
        let draining_type = self.draining_types.get(removal.type_url.as_str());
        let type_deadlines = draining_type.filter(|deadlines| {
            deadlines.from_earlier_stream
                || !(removal.has_invalid_cluster && self.names_all_routes(db))
        });

        let mut deadlines = name_deadlines.into_iter().chain(type_deadlines);
        deadlines.any(|deadlines| {
            let deadline = if removal.by_name {
                deadlines.by_name
            } else {
                deadlines.by_wildcard
            };
            self.now < deadline
        })
    }

    /// Returns whether a referrer of a name is about to be replaced by one that
    /// does not refer to it; the client then unsubscribes from the name by
    /// itself. A resumed resource may refer to anything, and so may a type that
    /// a resuming client has yet to subscribe to. Clusters do not count: Envoy
    /// ACKs a cluster only when it has its endpoints, be they empty.
    pub(crate) fn is_losing_references(
        &self,
        db: &mut Database,
        url: &TypeUrl,
        name: &Name,
    ) -> bool {
        let in_use = self.in_use_except_by_clusters.get_or_init(|| {
            self.find_in_use(db, |type_stream| type_stream.type_url.as_str() != kind::CDS)
        });

        let mut referring_types = [kind::LDS, kind::RDS].iter();
        let is_missing = |referring: &&str| {
            let refers_to = Kind::of(&(*referring).into()).refers_to;
            refers_to.contains(&url.as_str()) && self.others.find(referring).is_none()
        };
        in_use.may_include(url, name) || (self.is_resuming && referring_types.any(is_missing))
    }

    /// Returns whether an Envoy resumed with a route name for each listener,
    /// while none of its possible listeners has inline routes.
    fn names_all_routes(&self, db: &mut Database) -> bool {
        let listeners = self.others.find(kind::LDS);
        let resumption = listeners.and_then(|listeners| listeners.resumption.as_ref());
        if resumption.is_some_and(|resumption| resumption.had_inline_routes) {
            return false;
        }

        let listener_count = listeners.map_or(0, |listeners| listeners.listed_count(db));
        let routes = self.others.find(kind::RDS);
        let resumption = routes.and_then(|routes| routes.resumption.as_ref());
        resumption.is_some_and(|resumption| resumption.named_count >= listener_count)
    }

    /// Returns whether a reconnected client has yet to subscribe to a type that
    /// may refer to this one, directly or through others.
    fn awaits_referring_type(&self, url: &TypeUrl) -> bool {
        let is_awaited = |referring: &&str| {
            Kind::reaches(referring, url.as_str()) && self.others.find(referring).is_none()
        };
        let mut referring_types = [kind::CDS, kind::LDS, kind::RDS].iter();
        self.is_resuming && Kind::is_referred_to(url) && referring_types.any(is_awaited)
    }

    /// Returns the dependencies whose referrers are about to be replaced, by
    /// the types for which `is_counted` is true.
    fn find_in_use(&self, db: &mut Database, is_counted: impl Fn(&TypeStream) -> bool) -> InUse {
        let mut in_use = InUse::default();
        let type_streams = self.others.iter();
        for type_stream in type_streams.filter(|type_stream| is_counted(type_stream)) {
            if type_stream.holds_unknown_bodies() {
                in_use.types.extend(type_stream.kind.refers_to);
            }
            type_stream.visit_dropped_references(db, |reference| {
                in_use.references.insert(reference.clone());
            });
        }
        in_use
    }

    /// Returns whether a resource that the client will hold, and that is
    /// desired, refers to a name: the client then waits for an answer about the
    /// name (S82). All names of one order must be of one type, since the
    /// references are collected for the first.
    pub(crate) fn is_referenced(&self, db: &mut Database, url: &TypeUrl, name: &Name) -> bool {
        let references = self.desired_references.get_or_init(|| {
            let mut references = HashSet::new();
            for type_stream in self.others.iter() {
                if type_stream.kind.refers_to.contains(&url.as_str()) {
                    type_stream.visit_references(db, |reference| {
                        references.insert(reference.clone());
                    });
                }
            }
            references
        });
        references.contains(&reference(url, name))
    }

    /// Returns whether the client is subscribed to a type that may refer to
    /// this one.
    pub(crate) fn has_referring_type(&self, url: &TypeUrl) -> bool {
        let mut others = self.others.iter();
        others.any(|other| other.kind.refers_to.contains(&url.as_str()))
    }

    /// Returns the type stream of another type, if the client has it.
    fn type_stream(&self, url: &TypeUrl) -> Option<&'a TypeStream> {
        self.others.find(url.as_str())
    }
}

/// Returns the key of a resource among references.
fn reference(url: &TypeUrl, name: &Name) -> Reference {
    Reference {
        type_url: url.clone(),
        name: name.clone(),
    }
}
