//! The asking in incremental requests: each says what changed.
//!
//! Answers to responses and changes of the asking never share a message: no
//! client that was observed combines them, and some sources lose one of both.

use super::config::SinkConfig;
use super::interest_state::InterestState;
use super::sotw::locators;
use super::type_state::TypeState;
use crate::Moment;
use crate::interest::{DeltaWildcard, InterestDiff};
use crate::message::{DeltaRequest, InitialVersions, Locator, Node};
use crate::name::Selector;

/// The next request: an answer if one is due, else news.
pub(super) fn request(
    type_state: &mut TypeState,
    node: Option<Node>,
    config: &SinkConfig,
    now: Moment,
) -> DeltaRequest {
    let blank = DeltaRequest {
        node,
        type_url: Some(type_state.type_url.clone()),
        ..DeltaRequest::default()
    };
    if let Some(error) = type_state.take_due_ack() {
        let nonce = type_state.nonce.clone();
        return DeltaRequest {
            nonce,
            error,
            ..blank
        };
    }
    // Only a first request may say what is held (S49).
    let initial_versions = match type_state.interest.has_sent_request() {
        true => InitialVersions::default(),
        false => type_state
            .cache
            .versions(&type_state.interest, config.glob_versions)
            .into(),
    };
    let legacy = type_state.has_legacy_wildcard();
    let tidings = take_changes(&mut type_state.interest, legacy);
    type_state.apply_sent(&tidings.sent, config, now);
    DeltaRequest {
        subscribe: tidings.subscribe,
        unsubscribe: tidings.unsubscribe,
        initial_versions,
        ..blank
    }
}

/// Whether the source does not know what is wanted, or is to send it again (E9).
pub(super) fn has_changes(interest: &InterestState) -> bool {
    !interest.added().is_empty() || !interest.removed().is_empty()
}

/// What the next request subscribes to and unsubscribes from.
struct SubscriptionDelta {
    subscribe: Vec<Locator>,
    unsubscribe: Vec<Locator>,
    sent: InterestDiff,
}

/// Tells the source what changed since the last request.
fn take_changes(interest: &mut InterestState, legacy: bool) -> SubscriptionDelta {
    let bare = legacy && !interest.has_sent_request();
    let subscribe = locators(interest.added(), bare);
    let star = interest.added().has_wildcard() && !subscribe.is_empty();
    let says = DeltaWildcard {
        subscribes_star: star,
        subscribes_names: subscribe.len() > usize::from(star),
        unsubscribes_star: interest.removed().has_selector(&Selector::Wildcard),
    };
    let unsubscribe = locators(interest.removed(), false);
    let wildcard = interest.wildcard().after_delta(says, legacy);
    SubscriptionDelta {
        subscribe,
        unsubscribe,
        sent: interest.record_sent(wildcard),
    }
}
