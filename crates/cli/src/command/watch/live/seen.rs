//! What happened to a name, from its states.

use std::sync::Arc;

use trunkline::client::{Cause, Origin, Raw, State, WatchError};
use trunkline::{Name, Resource, TypeUrl};

use super::ByName;
use super::select::TypeSelection;
use crate::kinds;

/// What happened to a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NameEvent {
    Added,
    Changed,
    Removed,
    /// An error has ended, and the resource is as it was.
    Recovered,
    /// There is an error; whether a resource stays in use in spite of it.
    Failed(Cause, InUse),
}

/// Whether a resource is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InUse {
    Yes,
    No,
}

impl NameEvent {
    /// Returns the word for the event.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Changed => "changed",
            Self::Removed => "removed",
            Self::Recovered => "recovered",
            Self::Failed(cause, _) => match cause {
                Cause::Unreachable => "unreachable",
                Cause::Rejected => "rejected",
                Cause::Deleted | Cause::Silent | Cause::Expired => "missing",
                Cause::TimedOut => "unanswered",
                Cause::Source(_) => "error",
            },
        }
    }
}

/// What was told of the names of a type.
pub(super) struct TypeRecord {
    pub(super) type_url: TypeUrl,
    /// Names that were asked for by themselves.
    requested_names: Vec<Name>,
    /// Wildcards and collections that were asked for.
    scopes: Vec<String>,
    records: ByName<NameRecord>,
}

/// What was told of a name last.
#[derive(Default)]
struct NameRecord {
    resource: Option<Arc<Resource>>,
    error: Option<WatchError>,
}

impl TypeRecord {
    /// Makes the record of a type whose resources are all unknown yet.
    pub(super) fn new(selection: &TypeSelection) -> Self {
        let texts = |is_scope| {
            let selectors = selection.selectors.iter();
            selectors
                .filter(move |selector| selector.is_scope == is_scope)
                .map(|selector| selector.text.as_str())
        };
        Self {
            type_url: selection.type_url.clone(),
            requested_names: texts(false).map(Name::new).collect(),
            scopes: texts(true).map(str::to_owned).collect(),
            records: ByName::new(),
        }
    }

    /// Returns the short name of the type, such as `cds`.
    pub(super) fn short(&self) -> &str {
        kinds::short(&self.type_url)
    }

    /// Returns whether each name that was asked for has a state.
    pub(super) fn is_answered(&self) -> bool {
        self.requested_names
            .iter()
            .all(|name| self.records.contains_key(name))
    }

    /// Returns the requested names that have no answer. If every name has one,
    /// returns the wildcards and collections instead.
    pub(super) fn unanswered(&self) -> Vec<String> {
        let names = self.requested_names.iter();
        let names = names.filter(|name| !self.records.contains_key(*name));
        let names: Vec<String> = names.map(|name| self.label(name.as_str())).collect();
        match names.is_empty() {
            true => self.scopes.iter().map(|scope| self.label(scope)).collect(),
            false => names,
        }
    }

    /// Returns the requested names that have no resource; and the wildcards and
    /// collections, if no resource of the type exists at all.
    pub(super) fn missing(&self) -> Vec<String> {
        let has_resource = |record: &NameRecord| record.resource.is_some();
        let names = self.requested_names.iter();
        let names = names.filter(|name| !self.records.get(*name).is_some_and(has_resource));
        let mut missing: Vec<String> = names.map(|name| self.label(name.as_str())).collect();
        if !self.records.values().any(has_resource) {
            missing.extend(self.scopes.iter().map(|scope| self.label(scope)));
        }
        missing
    }

    /// Returns a name with its type before it.
    fn label(&self, name: &str) -> String {
        format!("{}/{name}", self.short())
    }

    /// Records the newest state of a name, and returns the events since the
    /// state before. A lost connection is no event of a resource that stays in
    /// use: it is reported for the server itself.
    pub(super) fn record_state(&mut self, name: &Name, state: &State<Raw>) -> Vec<NameEvent> {
        let origin = state.value().map(|value| value.origin());
        if state.is_pending() || origin == Some(Origin::Static) {
            return Vec::new();
        }
        let is_requested = self.requested_names.contains(name);
        let mut record = self.records.remove(name).unwrap_or_default();
        let resource = state.value().map(|value| Arc::clone(value.resource()));
        let events = record.record(resource, state.error().cloned(), is_requested);
        if record.resource.is_some() || is_requested {
            self.records.insert(name.clone(), record);
        }
        events
    }
}

impl NameRecord {
    /// Records the newest resource and error, and returns the events.
    /// `is_requested` says whether the client subscribed to the name itself: of
    /// other names, only those that have a resource or are rejected are
    /// reported.
    fn record(
        &mut self,
        resource: Option<Arc<Resource>>,
        error: Option<WatchError>,
        is_requested: bool,
    ) -> Vec<NameEvent> {
        let previous = std::mem::replace(&mut self.resource, resource);
        let mut events = Vec::new();

        match (&previous, &self.resource) {
            (None, Some(_)) => events.push(NameEvent::Added),
            (Some(old), Some(new)) if !is_same(old, new) => events.push(NameEvent::Changed),
            (Some(_), None) => events.push(NameEvent::Removed),
            _ => {}
        }

        if self.resource.is_some() && is_unreachable(error.as_ref()) {
            // While the server is not reached, an earlier error may persist or not.
            return events;
        }

        let is_relevant = is_requested || previous.is_some() || self.resource.is_some();
        let previous_error = std::mem::replace(&mut self.error, error);

        match (&previous_error, &self.error) {
            (Some(_), None) if events.is_empty() => events.push(NameEvent::Recovered),
            (old_error, Some(error)) if old_error.as_ref() != Some(error) => {
                let is_explained = events == [NameEvent::Removed] && error.cause.is_definite();
                if !is_explained && (is_relevant || error.cause == Cause::Rejected) {
                    events.push(NameEvent::Failed(error.cause, self.in_use()));
                }
            }
            _ => {}
        }
        events
    }

    /// Returns whether a resource is in use in spite of an error.
    fn in_use(&self) -> InUse {
        match self.resource {
            Some(_) => InUse::Yes,
            None => InUse::No,
        }
    }
}

/// Returns whether the error is that no control plane can be reached.
fn is_unreachable(error: Option<&WatchError>) -> bool {
    error.is_some_and(|error| error.cause == Cause::Unreachable)
}

/// Returns whether two are the same but for their versions: in state of the
/// world all of a type have another one with each response.
fn is_same(a: &Resource, b: &Resource) -> bool {
    a.body == b.body && a.constraints == b.constraints && a.aliases == b.aliases && a.ttl == b.ttl
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource(body: &'static str) -> Option<Arc<Resource>> {
        Some(Arc::new(Resource::new("a".into(), body.into())))
    }

    fn error(cause: Cause) -> Option<WatchError> {
        let message = "why".into();
        Some(WatchError { cause, message })
    }

    #[test]
    fn a_resource_is_told_when_it_comes_changes_and_goes() {
        let mut told = NameRecord::default();
        assert_eq!(told.record(resource("1"), None, false), [NameEvent::Added]);
        assert_eq!(told.record(resource("1"), None, false), []);
        assert_eq!(
            told.record(resource("2"), None, false),
            [NameEvent::Changed]
        );
        let gone = told.record(None, error(Cause::Deleted), false);
        assert_eq!(gone, [NameEvent::Removed]);
        assert_eq!(told.record(resource("2"), None, false), [NameEvent::Added]);
    }

    #[test]
    fn a_rejection_is_told_once_and_ends() {
        let mut told = NameRecord::default();
        told.record(resource("1"), None, false);
        let rejected = NameEvent::Failed(Cause::Rejected, InUse::Yes);
        let mut take = |error| told.record(resource("1"), error, false);
        assert_eq!(take(error(Cause::Rejected)), [rejected]);
        assert_eq!(take(error(Cause::Rejected)), []);
        assert_eq!(take(error(Cause::Unreachable)), []);
        assert_eq!(take(error(Cause::Rejected)), []);
        assert_eq!(take(None), [NameEvent::Recovered]);
        assert_eq!(take(None), []);
    }

    #[test]
    fn what_comes_together_is_told_together() {
        let mut told = NameRecord::default();
        let happened = told.record(resource("1"), error(Cause::Rejected), false);
        let rejected = NameEvent::Failed(Cause::Rejected, InUse::Yes);
        assert_eq!(happened, [NameEvent::Added, rejected]);
    }

    #[test]
    fn a_name_that_was_asked_for_hears_why_it_has_nothing() {
        for cause in [Cause::Silent, Cause::Deleted, Cause::Unreachable] {
            let failed = NameEvent::Failed(cause, InUse::No);
            let (mut asked, mut other) = (NameRecord::default(), NameRecord::default());
            assert_eq!(asked.record(None, error(cause), true), [failed]);
            assert_eq!(other.record(None, error(cause), false), []);
        }
    }
}
