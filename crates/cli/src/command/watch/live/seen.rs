//! What happened to a name, from its states.

use std::sync::Arc;

use trunkline::client::{Cause, Origin, Raw, State, WatchError};
use trunkline::{Name, Resource, TypeUrl};

use super::ByName;
use super::select::Wanted;
use crate::kinds;

/// What happened to a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
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

impl What {
    /// The word for it.
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
pub(super) struct Known {
    pub(super) type_url: TypeUrl,
    /// Names that were asked for by themselves.
    asked: Vec<Name>,
    /// Wildcards and collections that were asked for.
    scopes: Vec<String>,
    told: ByName<Told>,
}

/// What was told of a name last.
#[derive(Default)]
struct Told {
    resource: Option<Arc<Resource>>,
    error: Option<WatchError>,
}

impl Known {
    /// Of what is wanted, nothing is known.
    pub(super) fn new(wanted: &Wanted) -> Self {
        let texts = |is_scope| {
            let selectors = wanted.selectors.iter();
            selectors
                .filter(move |one| one.is_scope == is_scope)
                .map(|one| one.text.as_str())
        };
        Self {
            type_url: wanted.type_url.clone(),
            asked: texts(false).map(Name::new).collect(),
            scopes: texts(true).map(str::to_owned).collect(),
            told: ByName::new(),
        }
    }

    pub(super) fn short(&self) -> &str {
        kinds::short(&self.type_url)
    }

    /// Whether each name that was asked for has a state.
    pub(super) fn is_answered(&self) -> bool {
        self.asked.iter().all(|name| self.told.contains_key(name))
    }

    /// What was asked for and has no answer: names; without any, wildcards and
    /// collections.
    pub(super) fn unanswered(&self) -> Vec<String> {
        let names = self.asked.iter();
        let names = names.filter(|name| !self.told.contains_key(*name));
        let names: Vec<String> = names.map(|name| self.label(name.as_str())).collect();
        match names.is_empty() {
            true => self.scopes.iter().map(|one| self.label(one)).collect(),
            false => names,
        }
    }

    /// What was asked for and has no resource.
    pub(super) fn missing(&self) -> Vec<String> {
        let is_found = |told: &Told| told.resource.is_some();
        let names = self.asked.iter();
        let names = names.filter(|name| !self.told.get(*name).is_some_and(is_found));
        let mut missing: Vec<String> = names.map(|name| self.label(name.as_str())).collect();
        if !self.told.values().any(is_found) {
            missing.extend(self.scopes.iter().map(|one| self.label(one)));
        }
        missing
    }

    fn label(&self, name: &str) -> String {
        format!("{}/{name}", self.short())
    }

    /// Takes the newest state of a name. Returns what happened since the last
    /// one, as far as it is worth telling: connections are told by themselves,
    /// so the name of a resource that stays in use hears nothing of them.
    pub(super) fn tell(&mut self, name: &Name, state: &State<Raw>) -> Vec<What> {
        let origin = state.value().map(|value| value.origin());
        if state.is_pending() || origin == Some(Origin::Static) {
            return Vec::new();
        }
        let is_asked = self.asked.contains(name);
        let mut told = self.told.remove(name).unwrap_or_default();
        let resource = state.value().map(|value| Arc::clone(value.resource()));
        let happened = told.take(resource, state.error().cloned(), is_asked);
        if told.resource.is_some() || is_asked {
            self.told.insert(name.clone(), told);
        }
        happened
    }
}

impl Told {
    /// Takes the newest resource and error. `is_asked` is whether the name was
    /// asked for by itself: of others, only those that have a resource, or are
    /// rejected, are worth telling.
    fn take(
        &mut self,
        resource: Option<Arc<Resource>>,
        error: Option<WatchError>,
        is_asked: bool,
    ) -> Vec<What> {
        let had = std::mem::replace(&mut self.resource, resource);
        let mut happened = Vec::new();
        match (&had, &self.resource) {
            (None, Some(_)) => happened.push(What::Added),
            (Some(had), Some(has)) if !is_same(had, has) => happened.push(What::Changed),
            (Some(_), None) => happened.push(What::Removed),
            _ => {}
        }
        if self.resource.is_some() && is_unreachable(error.as_ref()) {
            // Whether an error before it has ended is not known.
            return happened;
        }
        let is_wanted = is_asked || had.is_some() || self.resource.is_some();
        let had_error = std::mem::replace(&mut self.error, error);
        match (&had_error, &self.error) {
            (Some(_), None) if happened.is_empty() => happened.push(What::Recovered),
            (had, Some(error)) if had.as_ref() != Some(error) => {
                let is_told = happened == [What::Removed] && error.cause.is_definite();
                if !is_told && (is_wanted || error.cause == Cause::Rejected) {
                    happened.push(What::Failed(error.cause, self.in_use()));
                }
            }
            _ => {}
        }
        happened
    }

    fn in_use(&self) -> InUse {
        match self.resource {
            Some(_) => InUse::Yes,
            None => InUse::No,
        }
    }
}

fn is_unreachable(error: Option<&WatchError>) -> bool {
    error.is_some_and(|error| error.cause == Cause::Unreachable)
}

/// Whether two are the same but for their versions: in state of the world all
/// of a type have another one with each response.
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
        let mut told = Told::default();
        assert_eq!(told.take(resource("1"), None, false), [What::Added]);
        assert_eq!(told.take(resource("1"), None, false), []);
        assert_eq!(told.take(resource("2"), None, false), [What::Changed]);
        let gone = told.take(None, error(Cause::Deleted), false);
        assert_eq!(gone, [What::Removed]);
        assert_eq!(told.take(resource("2"), None, false), [What::Added]);
    }

    #[test]
    fn a_rejection_is_told_once_and_ends() {
        let mut told = Told::default();
        told.take(resource("1"), None, false);
        let rejected = What::Failed(Cause::Rejected, InUse::Yes);
        let mut take = |error| told.take(resource("1"), error, false);
        assert_eq!(take(error(Cause::Rejected)), [rejected]);
        assert_eq!(take(error(Cause::Rejected)), []);
        assert_eq!(take(error(Cause::Unreachable)), []);
        assert_eq!(take(error(Cause::Rejected)), []);
        assert_eq!(take(None), [What::Recovered]);
        assert_eq!(take(None), []);
    }

    #[test]
    fn what_comes_together_is_told_together() {
        let mut told = Told::default();
        let happened = told.take(resource("1"), error(Cause::Rejected), false);
        let rejected = What::Failed(Cause::Rejected, InUse::Yes);
        assert_eq!(happened, [What::Added, rejected]);
    }

    #[test]
    fn a_name_that_was_asked_for_hears_why_it_has_nothing() {
        for cause in [Cause::Silent, Cause::Deleted, Cause::Unreachable] {
            let failed = What::Failed(cause, InUse::No);
            let (mut asked, mut other) = (Told::default(), Told::default());
            assert_eq!(asked.take(None, error(cause), true), [failed]);
            assert_eq!(other.take(None, error(cause), false), []);
        }
    }
}
