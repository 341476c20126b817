//! Delta requests: each has the changes of the interest.
//!
//! Acknowledgements and subscriptions never share a request: no observed client
//! combines them, and some servers lose one of the two.

use super::config::SinkConfig;
use super::event::Effects;
use super::interest_state::InterestState;
use super::type_state::TypeState;
use crate::Moment;
use crate::interest::{DeltaWildcard, InterestDiff};
use crate::message::{DeltaRequest, InitialVersions, Locator, Node};

/// Builds the next request: an acknowledgement if one is due, else the changes
/// of the interest. It counts as sent.
pub(super) fn build_request(
    type_state: &mut TypeState,
    node: Option<Node>,
    config: &SinkConfig,
    now: Moment,
    effects: &mut Effects,
) -> DeltaRequest {
    let empty_request = DeltaRequest {
        node,
        type_url: Some(type_state.type_url.clone()),
        ..DeltaRequest::default()
    };

    if let Some(error) = type_state.take_due_ack() {
        return DeltaRequest {
            nonce: type_state.nonce.clone(),
            error,
            ..empty_request
        };
    }

    let is_first = !type_state.interest.has_sent_request();
    let initial_versions = tell_versions(type_state, config);
    let allows_legacy = type_state.has_legacy_wildcard();
    let changes = take_changes(&mut type_state.interest, allows_legacy);
    type_state.apply_sent_diff(&changes.diff, config, now, is_first, effects);
    DeltaRequest {
        subscribe: changes.subscribe,
        unsubscribe: changes.unsubscribe,
        initial_versions,
        ..empty_request
    }
}

/// Returns the versions of held resources for the first request of the stream;
/// none for a later one, which may not have versions (S49).
fn tell_versions(type_state: &mut TypeState, config: &SinkConfig) -> InitialVersions {
    let (interest, cache) = (&type_state.interest, &mut type_state.cache);
    match interest.has_sent_request() {
        true => InitialVersions::default(),
        false => cache.tell_versions(interest, config.glob_versions).into(),
    }
}

/// Returns whether there are changes to send, or selectors to subscribe to
/// again (E9).
pub(super) fn has_changes(interest: &InterestState) -> bool {
    !interest.added().is_empty() || !interest.removed().is_empty()
}

/// The subscriptions and unsubscriptions of the next request.
struct SubscriptionDelta {
    subscribe: Vec<Locator>,
    unsubscribe: Vec<Locator>,
    /// The changes of the interest that these are.
    diff: InterestDiff,
}

/// Takes the changes since the last request, which count as sent.
/// `allows_legacy` is whether an empty list can be a wildcard for the type
/// (S18).
fn take_changes(interest: &mut InterestState, allows_legacy: bool) -> SubscriptionDelta {
    let may_be_bare = allows_legacy && !interest.has_sent_request();
    let subscribe = interest.list_locators(interest.added(), may_be_bare);
    let subscribes_star = interest.added().has_wildcard() && !subscribe.is_empty();
    let change = DeltaWildcard {
        subscribes_star,
        subscribes_names: subscribe.iter().any(|locator| locator.name != "*"),
        unsubscribes_star: interest.removed().has_wildcard() && !interest.desired().has_wildcard(),
    };

    let unsubscribe = interest.list_locators(interest.removed(), false);
    let wildcard = interest.wildcard().after_delta(change, allows_legacy);
    SubscriptionDelta {
        subscribe,
        unsubscribe,
        diff: interest.record_sent(wildcard),
    }
}
