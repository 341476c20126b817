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
use crate::message::{DeltaRequest, Locator, Node};
use crate::name::Selector;

/// The next request: an answer if one is due, else news.
pub(super) fn request(
    conversation: &mut TypeState,
    node: Option<Node>,
    config: &SinkConfig,
    now: Moment,
) -> DeltaRequest {
    let blank = DeltaRequest {
        node,
        type_url: Some(conversation.type_url.clone()),
        ..DeltaRequest::default()
    };
    if let Some(error) = conversation.take_due_ack() {
        let nonce = conversation.nonce.clone();
        return DeltaRequest {
            nonce,
            error,
            ..blank
        };
    }
    // Only a first request may say what is held (S49).
    let initial_versions = match conversation.interest.has_sent_request() {
        true => Vec::new(),
        false => conversation
            .cache
            .versions(&conversation.interest, config.glob_versions),
    };
    let legacy = conversation.has_legacy_wildcard();
    let tidings = take_changes(&mut conversation.interest, legacy);
    conversation.apply_sent(&tidings.sent, config, now);
    DeltaRequest {
        subscribe: tidings.subscribe,
        unsubscribe: tidings.unsubscribe,
        initial_versions,
        ..blank
    }
}

/// Whether the source does not know what is wanted, or is to send it again (E9).
pub(super) fn has_changes(asking: &InterestState) -> bool {
    !asking.added().is_empty() || !asking.removed().is_empty()
}

/// What the next request subscribes to and unsubscribes from.
struct SubscriptionDelta {
    subscribe: Vec<Locator>,
    unsubscribe: Vec<Locator>,
    sent: InterestDiff,
}

/// Tells the source what changed since the last request.
fn take_changes(asking: &mut InterestState, legacy: bool) -> SubscriptionDelta {
    let bare = legacy && !asking.has_sent_request();
    let subscribe = locators(asking.added(), bare);
    let star = asking.added().has_wildcard() && !subscribe.is_empty();
    let says = DeltaWildcard {
        subscribes_star: star,
        subscribes_names: subscribe.len() > usize::from(star),
        unsubscribes_star: asking.removed().has_selector(&Selector::Wildcard),
    };
    let unsubscribe = locators(asking.removed(), false);
    let wildcard = asking.wildcard().after_delta(says, legacy);
    SubscriptionDelta {
        subscribe,
        unsubscribe,
        sent: asking.record_sent(wildcard),
    }
}
