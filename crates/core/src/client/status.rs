//! The status of a client, for dumps, CSDS and metrics (C44, C65, C66).

use std::sync::Arc;

use super::server::Link;
use super::view::SourceView;
use super::{Client, Origin, ServerId, SourceId, State};
use crate::name::{Name, Selector};
use crate::params::Params;
use crate::resource::{Resource, TypeUrl};
use crate::sink::{CacheState, Cause, Subscription, WatchError};

/// The status of one name of one origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameStatus {
    /// The type.
    pub type_url: TypeUrl,
    /// The name.
    pub name: Name,
    /// Where the resource is from.
    pub origin: Origin,
    /// CSDS's `ClientResourceStatus` (C44).
    pub state: CacheState,
    /// The resources in use: one, or its variants.
    pub held: Vec<Arc<Resource>>,
    /// Why there is none, or only an old one.
    pub error: Option<WatchError>,
}

/// The status of one server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerStatus {
    /// Whether there is a stream.
    pub is_connected: bool,
    /// Whether the last stream, or the last attempt, ended without a response,
    /// and none came since (C36): the metric `connected` is its opposite (C66).
    pub has_failed: bool,
    /// Whether any subscription needs it.
    pub is_needed: bool,
    /// The number of times that requests had to wait (E6).
    pub rate_limited: u64,
    /// The number of names that it did not answer in time (E2).
    pub fetch_timeouts: u64,
}

impl Client {
    /// Returns the status of a server; `None` if there is no such server.
    #[must_use]
    pub fn server_status(&self, id: ServerId) -> Option<ServerStatus> {
        let server = self.servers.get(&id)?;
        Some(ServerStatus {
            is_connected: server.link == Link::Up,
            has_failed: server.has_failed,
            is_needed: server.is_needed(),
            rate_limited: server.limit_count,
            fetch_timeouts: server.fetch_timeouts,
        })
    }

    /// Returns the subscriptions of a source.
    pub fn subscriptions(&self, source: SourceId) -> Vec<(TypeUrl, Subscription)> {
        let source = self.sources.get(&source);
        let subscriptions = source.map(|source| source.subscriptions.iter().cloned());
        subscriptions.into_iter().flatten().collect()
    }

    /// Returns the status of every name that the client holds, or has
    /// subscribed to.
    #[must_use]
    pub fn statuses(&mut self) -> Vec<NameStatus> {
        let mut statuses = Vec::new();
        for (type_url, names) in &self.statics {
            statuses.extend(names.iter().map(|(name, resource)| NameStatus {
                type_url: type_url.clone(),
                name: name.clone(),
                origin: Origin::Static,
                state: CacheState::Acked,
                held: vec![resource.clone()],
                error: None,
            }));
        }

        for (id, source) in &mut self.sources {
            let mut view = SourceView::new(source, &mut self.servers);
            for (type_url, name) in view.keys() {
                let key = (type_url.clone(), name.clone());
                let variants = view.variants(&key);
                let state = view.state(&key, &Params::default());
                statuses.push(NameStatus {
                    state: cache_state(&state, !variants.is_empty()),
                    error: state.error,
                    type_url,
                    name,
                    origin: Origin::Source(*id),
                    held: variants,
                });
            }
        }
        statuses
    }

    /// Returns whether the bootstrap has a resource.
    #[must_use]
    pub fn has_static(&self, type_url: &str, name: &Name) -> bool {
        let names = self.statics.get(&TypeUrl::from(type_url));
        names.is_some_and(|names| names.contains_key(name))
    }

    /// Returns whether a source has spoken of a subscription: with a value, or
    /// with a definite error.
    pub fn is_answered(
        &mut self,
        source: SourceId,
        type_url: &TypeUrl,
        subscription: &Subscription,
    ) -> bool {
        let key = (type_url.clone(), subscription.clone());
        let source = self.sources.get_mut(&source);
        source.is_some_and(|source| !SourceView::new(source, &mut self.servers).is_missing(&key))
    }

    /// Returns the server whose contents a source uses (C46-C48); `None` if the
    /// source has no servers.
    #[must_use]
    pub fn server_in_use(&self, source: SourceId) -> Option<ServerId> {
        self.sources.get(&source)?.current_server()
    }

    /// Returns the reason why no server of a source can be reached; `None` if
    /// one can (C49).
    #[must_use]
    pub fn unreachable(&self, source: SourceId) -> Option<&WatchError> {
        self.sources.get(&source)?.unreachable_error.as_ref()
    }

    /// Returns whether a watch covers many names.
    #[must_use]
    pub fn is_of_many(&self, id: super::WatchId) -> bool {
        let watch = self.watches.get(id);
        watch.is_some_and(|watch| !matches!(watch.watched.selector, Selector::Name(_)))
    }
}

/// Returns CSDS's status of a name, by its error; `is_held` tells whether any
/// variant of it is in use (C44).
fn cache_state(state: &State, is_held: bool) -> CacheState {
    match state.error.as_ref().map(|error| error.cause) {
        None | Some(Cause::Unreachable) if is_held => CacheState::Acked,
        None | Some(Cause::Unreachable) => CacheState::Requested,
        Some(Cause::Rejected) => CacheState::Nacked,
        Some(Cause::Source(_)) => CacheState::ReceivedError,
        Some(Cause::TimedOut) => CacheState::Timeout,
        Some(Cause::Deleted | Cause::Silent | Cause::Expired) => CacheState::DoesNotExist,
    }
}
