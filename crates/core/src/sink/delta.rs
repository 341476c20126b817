//! The asking in incremental requests: each says what changed.
//!
//! Answers to responses and changes of the asking never share a message: no
//! client that was observed combines them, and some sources lose one of both.

use super::asking::Asking;
use super::config::SinkConfig;
use super::conversation::Conversation;
use super::sotw::names;
use crate::Moment;
use crate::interest::{DeltaWildcard, InterestDiff};
use crate::message::{DeltaRequest, Locator, Node};
use crate::name::Selector;

/// The next request: an answer if one is due, else news.
pub(super) fn request(
    conversation: &mut Conversation,
    node: Option<Node>,
    config: &SinkConfig,
    now: Moment,
) -> DeltaRequest {
    let blank = DeltaRequest {
        node,
        type_url: Some(conversation.type_url.clone()),
        ..DeltaRequest::default()
    };
    if let Some(error) = conversation.take_answer() {
        let nonce = conversation.nonce.clone();
        return DeltaRequest {
            nonce,
            error,
            ..blank
        };
    }
    // Only a first request may say what is held (S49).
    let initial_versions = match conversation.asking.has_asked() {
        true => Vec::new(),
        false => conversation
            .cache
            .versions(&conversation.asking, config.glob_versions),
    };
    let legacy = conversation.legacy();
    let tidings = tell(&mut conversation.asking, legacy);
    conversation.settle(&tidings.settles, config, now);
    DeltaRequest {
        subscribe: tidings.subscribe,
        unsubscribe: tidings.unsubscribe,
        initial_versions,
        ..blank
    }
}

/// Whether the source does not know what is wanted, or is to send it again (E9).
pub(super) fn has_news(asking: &Asking) -> bool {
    !asking.added().is_empty() || !asking.removed().is_empty()
}

/// What the next request subscribes to and unsubscribes from.
struct Tidings {
    subscribe: Vec<Locator>,
    unsubscribe: Vec<Locator>,
    settles: InterestDiff,
}

/// Tells the source what changed since the last request.
fn tell(asking: &mut Asking, legacy: bool) -> Tidings {
    let bare = legacy && !asking.has_asked();
    let subscribe = names(asking.added(), bare);
    let star = asking.added().has_wildcard() && !subscribe.is_empty();
    let says = DeltaWildcard {
        subscribes_star: star,
        subscribes_names: subscribe.len() > usize::from(star),
        unsubscribes_star: asking.removed().has_selector(&Selector::Wildcard),
    };
    let unsubscribe = names(asking.removed(), false);
    let wildcard = asking.wildcard().after_delta(says, legacy);
    Tidings {
        subscribe,
        unsubscribe,
        settles: asking.commit(wildcard),
    }
}
