//! The status of a stream, for people (S16).

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Session;
use crate::database::Database;
use crate::message::ErrorDetail;
use crate::name::Name;
use crate::params::ParamsId;
use crate::resource::{Nonce, Resource, TypeUrl, Version};
use crate::source::{AnswerKind, PendingAck, SubscriptionKey, TypeStream};

/// The status of one type on one stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeStatus {
    /// The type.
    pub type_url: TypeUrl,
    /// The number of names and globs that the client subscribes to, including
    /// the wildcard.
    pub subscriptions: usize,
    /// Whether the client subscribes to the wildcard.
    pub wildcard: bool,
    /// The newest response.
    pub last_nonce: Option<Nonce>,
    /// The newest response that the client ACKed.
    pub last_acked: Option<Nonce>,
    /// Whether an ACK is pending.
    pub has_pending_ack: bool,
    /// Whether the client resumed with all resources that it subscribes to, so
    /// that nothing had to be sent.
    pub resumed_complete: bool,
    /// The last error of the client about a resource that it still NACKs.
    pub error: Option<ErrorDetail>,
    /// Resources that were NACKed alone, with their versions.
    pub quarantined: Vec<(Name, Version)>,
}

/// The status of one name on one stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameStatus {
    /// The requested name, or a name that a wildcard covers.
    pub name: Name,
    /// The state of the name.
    pub state: NameState,
    /// The resource that the client holds, or was sent if the ACK is pending.
    pub resource: Option<Arc<Resource>>,
}

/// The state of a name at the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NameState {
    /// The client subscribed to the name; nothing was sent yet.
    Requested,
    /// The client was told that the name does not exist.
    Absent,
    /// The resource was sent, and its ACK is pending.
    Sent,
    /// The client ACKed the resource.
    Accepted,
    /// The client NACKed this version of the resource.
    Rejected(Version),
}

impl Session {
    /// Returns the status of every name of a type, in order of names: those
    /// that the client is subscribed to, holds, was sent or NACKed. Visits all
    /// of them: [`Self::list_names`] does so in slices.
    pub fn name_statuses(&self, db: &mut Database, type_url: &TypeUrl) -> Vec<NameStatus> {
        let mut listing = self.list_names(type_url);
        while self.list_slice(db, &mut listing) {}
        self.finish_listing(listing)
    }

    /// Returns the status of one name; `None` if the client is not subscribed
    /// to it.
    pub fn name_status(
        &self,
        db: &mut Database,
        type_url: &TypeUrl,
        name: &Name,
    ) -> Option<NameStatus> {
        let type_stream = self.type_stream(type_url.as_str())?;
        let entry = db.find(type_stream.type_id, name)?;
        let key = SubscriptionKey {
            entry,
            params: type_stream.params,
        };
        let answer = type_stream.subscriptions.get(key)?.acked_answer;

        let answering_name = type_stream.subscriptions.resolved_name(key);
        let held_name = answering_name.unwrap_or(name);
        let records = type_stream.client_cache.held(db, held_name);
        let accepted_record = records.into_iter().find(|record| record.is_accepted());
        let is_certain = certain_resource(db, type_stream, held_name).is_some();
        let held_resource = accepted_record.map(|record| record.resource);

        let choice = type_stream.resolve(db, key);
        let resolved_name = choice.resource().map_or(name, |resource| &resource.name);

        let sent_resource = find_sent_resource(type_stream, key, resolved_name);
        let (state, resource) = match (choice.resource(), sent_resource) {
            (Some(resource), _) if type_stream.is_quarantined(resource) => {
                (NameState::Rejected(resource.version.clone()), held_resource)
            }
            (_, Some(sent_resource)) => (NameState::Sent, sent_resource),
            (_, None) if answer == AnswerKind::Absent => (NameState::Absent, None),
            (_, None) if is_certain => (NameState::Accepted, held_resource),
            (_, None) => (NameState::Requested, held_resource),
        };
        Some(NameStatus {
            name: name.clone(),
            state,
            resource,
        })
    }

    /// Returns the resources of a type that the client holds, by name. A name
    /// is left out if the client NACKed a resource of it after the last ACK,
    /// since it may hold either resource (S17). Visits all names.
    pub fn held_resources(
        &self,
        db: &mut Database,
        type_url: &TypeUrl,
    ) -> BTreeMap<Name, Arc<Resource>> {
        let Some(type_stream) = self.type_stream(type_url.as_str()) else {
            return BTreeMap::new();
        };
        let names = self.held_names(db, type_url);
        let certain_entry =
            |name: Name| Some((name.clone(), certain_resource(db, type_stream, &name)?));
        names.into_iter().filter_map(certain_entry).collect()
    }

    /// Proves the invariants of all type streams.
    ///
    /// # Errors
    /// Says which invariant does not hold.
    pub fn check(&self, db: &mut Database) -> Result<(), String> {
        let mut type_streams = self.type_streams.iter();
        type_streams.try_for_each(|type_stream| {
            let result = type_stream.check(db);
            result.map_err(|fault| format!("{}: {fault}", type_stream.type_url))
        })
    }

    /// Returns the number of unbounded hosts that the client subscribes to
    /// (S72).
    #[must_use]
    pub fn unbounded_hosts(&self) -> usize {
        let type_streams = self.type_streams.iter();
        type_streams
            .map(|type_stream| type_stream.subscriptions.unbounded_hosts())
            .sum()
    }

    /// Returns the parameters that choose the client's variants of a type.
    #[must_use]
    pub fn params_of_type(&self, type_url: &TypeUrl) -> ParamsId {
        let type_stream = self.type_stream(type_url.as_str());
        type_stream.map_or_else(
            || self.params_of(type_url),
            |type_stream| type_stream.params,
        )
    }

    /// Returns the status of each type, in order of rank.
    pub fn status(&self) -> impl Iterator<Item = TypeStatus> + '_ {
        self.type_streams.iter().map(|type_stream| TypeStatus {
            type_url: type_stream.type_url.clone(),
            // The wildcard of an on-demand type has no cursor, but counts.
            subscriptions: type_stream.subscription_count()
                + usize::from(type_stream.kind.on_demand && type_stream.wildcard.is_on()),
            wildcard: type_stream.wildcard.is_on(),
            last_nonce: type_stream.last_nonce.clone(),
            last_acked: type_stream.last_acked.clone(),
            has_pending_ack: !type_stream.client_cache.pending_acks().is_empty(),
            resumed_complete: type_stream.last_nonce.is_none() && is_all_answered(type_stream),
            error: type_stream.last_error.clone(),
            quarantined: type_stream
                .quarantine
                .iter()
                .map(|((name, _), (version, _))| (name.clone(), version.clone()))
                .collect(),
        })
    }
}

/// Returns the names that a pending response answers or changes, in its order,
/// with their resources.
pub(super) fn sent_names(
    pending_ack: &PendingAck,
) -> impl Iterator<Item = (Name, Option<Arc<Resource>>)> {
    let written_answers = pending_ack
        .answers
        .iter()
        .filter(|answer| !answer.is_implicit);
    let answered = written_answers.map(|answer| (answer.name.clone(), None));
    let updates = pending_ack.updates.iter();
    let updated = updates.map(|update| (update.name().clone(), update.resource.clone()));
    let items = pending_ack
        .advances
        .iter()
        .flat_map(|advance| advance.items());
    answered.chain(updated).chain(items.cloned())
}

/// Returns the resource of a name in the last pending response that changes the
/// name or answers the subscription. Returns `Some(None)` if that response has
/// no resource of the name, and `None` if there is no such response.
fn find_sent_resource(
    type_stream: &TypeStream,
    key: SubscriptionKey,
    name: &Name,
) -> Option<Option<Arc<Resource>>> {
    let mut pending_acks = type_stream.client_cache.pending_acks().iter().rev();
    pending_acks.find_map(|pending_ack| {
        let update = pending_ack.updates_of(name).last();
        let resource = update.map(|update| update.resource.clone());
        resource.or_else(|| pending_ack.answer_to(key).map(|_| None))
    })
}

/// Returns whether the client waits for nothing: all its names are answered,
/// and no name is to be evaluated.
fn is_all_answered(type_stream: &TypeStream) -> bool {
    let mut subscriptions = type_stream.subscriptions.iter();
    !type_stream.owes_response
        && type_stream.dirty.is_empty()
        && type_stream.sorted.is_empty()
        && type_stream.deferred.is_empty()
        && subscriptions
            .all(|(_, subscription)| subscription.acked_answer != AnswerKind::Unanswered)
}

/// Returns the resource of a name that the client ACKed. Returns `None` if
/// there is none, or if the client NACKed a resource of the name after that.
pub(super) fn certain_resource(
    db: &mut Database,
    type_stream: &TypeStream,
    name: &Name,
) -> Option<Arc<Resource>> {
    let records = type_stream.client_cache.held(db, name);
    let is_doubtful = records.iter().any(|record| !record.is_accepted());
    let record = records.into_iter().next_back().filter(|_| !is_doubtful)?;
    Some(record.resource)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::Change;
    use crate::facts::Facts;
    use crate::hosts::Domains;
    use crate::kind;
    use crate::message::{DeltaRequest, ErrorDetail, Mode};
    use crate::moment::Moment;
    use crate::session::Config;

    fn request(names: &[&str]) -> DeltaRequest {
        DeltaRequest {
            type_url: Some(kind::SDS.into()),
            subscribe: names.iter().map(|name| (*name).into()).collect(),
            ..DeltaRequest::default()
        }
    }

    fn put(db: &mut Database, names: &[&str]) {
        let upsert = |name: &&str| {
            let resource = Resource::new(Name::new(name), "x".into());
            Change::Upsert(kind::SDS.into(), Arc::new(resource))
        };
        db.apply(names.iter().map(upsert).collect()).unwrap();
    }

    #[test]
    fn s16_how_every_name_stands() {
        let (mut db, now) = (Database::new(), Moment::START);
        put(&mut db, &["a", "bad"]);
        let mut session = Session::open(&mut db, Config::new(Mode::Delta));
        let answer = |session: &mut Session, db: &mut Database, error: Option<ErrorDetail>| {
            let response = session
                .poll(db, now)
                .and_then(crate::message::Response::into_delta)
                .unwrap();
            let answer = DeltaRequest {
                nonce: Some(response.nonce),
                error,
                ..request(&[])
            };
            session.handle_delta(db, answer, now).unwrap();
        };
        let refuse = || {
            Some(ErrorDetail {
                code: 3,
                message: "no".into(),
            })
        };
        session
            .handle_delta(&mut db, request(&["a", "none"]), now)
            .unwrap();
        answer(&mut session, &mut db, None);
        session
            .handle_delta(&mut db, request(&["bad"]), now)
            .unwrap();
        answer(&mut session, &mut db, refuse());
        put(&mut db, &["b"]);
        session.handle_delta(&mut db, request(&["b"]), now).unwrap();
        session
            .poll(&mut db, now)
            .and_then(crate::message::Response::into_delta)
            .unwrap();
        session.handle_delta(&mut db, request(&["c"]), now).unwrap();
        let names = session.name_statuses(&mut db, &kind::SDS.into());
        let seen: Vec<(&str, NameState, bool)> = names
            .iter()
            .map(|n| (n.name.as_str(), n.state.clone(), n.resource.is_some()))
            .collect();
        let version = Version::of_body(b"x");
        let version_of_a = session.held_resources(&mut db, &kind::SDS.into())["a"]
            .version
            .clone();
        let mut back = Session::open(&mut db, Config::new(Mode::Delta));
        assert_eq!(back.status().count(), 0);
        let again = DeltaRequest {
            initial_versions: vec![("a".into(), version_of_a)].into(),
            ..request(&["a"])
        };
        back.handle_delta(&mut db, again, now).unwrap();
        assert_eq!(
            back.poll(&mut db, now)
                .and_then(crate::message::Response::into_delta),
            None
        );
        assert!(back.status().all(|status| status.resumed_complete));
        assert!(session.status().all(|status| !status.resumed_complete));
        assert_eq!(
            seen,
            [
                ("a", NameState::Accepted, true),
                ("b", NameState::Sent, true),
                ("bad", NameState::Rejected(version), false),
                ("c", NameState::Requested, false),
                ("none", NameState::Absent, false),
            ]
        );
        assert!(!session.is_acknowledged());
    }

    #[test]
    fn s16_a_host_stands_under_the_name_of_its_virtual_host() {
        let (mut db, now) = (Database::new(), Moment::START);
        let host = |name: &str, domain: &str| {
            let facts = Facts {
                domains: Domains::new([domain]),
                ..Facts::default()
            };
            let resource = Resource {
                facts: Some(Box::new(facts)),
                ..Resource::new(Name::new(name), "x".into())
            };
            Change::Upsert(kind::VHDS.into(), Arc::new(resource))
        };
        db.apply(vec![host("r/web", "a.com"), host("r/bad", "b.com")])
            .unwrap();
        let mut session = Session::open(&mut db, Config::new(Mode::Delta));
        let request = |name: &str, nonce, error: Option<&str>| DeltaRequest {
            type_url: Some(kind::VHDS.into()),
            subscribe: [name]
                .iter()
                .filter(|n| !n.is_empty())
                .map(|n| (*n).into())
                .collect(),
            nonce,
            error: error.map(|text| ErrorDetail {
                code: 3,
                message: text.into(),
            }),
            ..DeltaRequest::default()
        };
        let state = |session: &Session, db: &mut Database, name: &str| {
            let status = session.name_status(db, &kind::VHDS.into(), &Name::new(name));
            status.map(|status| (status.state, status.resource.map(|r| r.name.to_string())))
        };
        let web = || Some("r/web".to_owned());
        assert_eq!(state(&session, &mut db, "r/a.com"), None);
        let hear = |session: &mut Session, db: &mut Database, name: &str| {
            session
                .handle_delta(db, request(name, None, None), now)
                .unwrap();
        };
        hear(&mut session, &mut db, "r/a.com");
        assert_eq!(
            state(&session, &mut db, "r/a.com"),
            Some((NameState::Requested, None))
        );
        let first = session
            .poll(&mut db, now)
            .and_then(crate::message::Response::into_delta)
            .unwrap();
        assert_eq!(
            state(&session, &mut db, "r/a.com"),
            Some((NameState::Sent, web()))
        );
        session
            .handle_delta(&mut db, request("", Some(first.nonce), None), now)
            .unwrap();
        assert_eq!(
            state(&session, &mut db, "r/a.com"),
            Some((NameState::Accepted, web()))
        );
        hear(&mut session, &mut db, "r/b.com");
        let bad = session
            .poll(&mut db, now)
            .and_then(crate::message::Response::into_delta)
            .unwrap();
        session
            .handle_delta(&mut db, request("", Some(bad.nonce), Some("no")), now)
            .unwrap();
        let version = Version::of_body(b"x");
        assert_eq!(
            state(&session, &mut db, "r/b.com"),
            Some((NameState::Rejected(version), None))
        );
        let none = session
            .poll(&mut db, now)
            .and_then(crate::message::Response::into_delta)
            .unwrap();
        session
            .handle_delta(&mut db, request("", Some(none.nonce), None), now)
            .unwrap();
        hear(&mut session, &mut db, "r/c.com");
        let none = session
            .poll(&mut db, now)
            .and_then(crate::message::Response::into_delta)
            .unwrap();
        session
            .handle_delta(&mut db, request("", Some(none.nonce), None), now)
            .unwrap();
        assert_eq!(
            state(&session, &mut db, "r/c.com"),
            Some((NameState::Absent, None))
        );
        let names = session.name_statuses(&mut db, &kind::VHDS.into());
        let names: Vec<_> = names.iter().map(|n| n.name.as_str()).collect();
        assert_eq!(names, ["r/b.com", "r/bad", "r/c.com", "r/web"]);
        assert_eq!(session.params_of_type(&kind::VHDS.into()), ParamsId::EMPTY);
    }

    #[test]
    fn a_type_that_is_denied_has_no_names() {
        let (mut db, now) = (Database::new(), Moment::START);
        put(&mut db, &["a"]);
        let mut session = Session::open(&mut db, Config::new(Mode::Delta));
        session.deny(kind::SDS.into());
        session.handle_delta(&mut db, request(&["a"]), now).unwrap();
        let response = session
            .poll(&mut db, now)
            .and_then(crate::message::Response::into_delta)
            .unwrap();
        assert_eq!(response.type_url.as_str(), kind::SDS);
        assert_eq!(
            (response.resources, response.removed),
            (vec![].into(), vec!["a".into()])
        );
        session.close(&mut db);
        assert_eq!(db.check(), Ok(()));
    }
}
