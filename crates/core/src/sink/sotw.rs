//! The asking in state-of-the-world requests: each lists everything (C17).
//!
//! An empty list is a wildcard if it comes first, and nothing once anything was
//! named (C25). So there is no direct way from the empty wildcard to nothing:
//! it is named first, then dropped.
//!
//! ```text
//!   [] (all)  ──▶  ["*"] (all)  ──▶  [] (nothing)
//! ```

use super::config::SinkConfig;
use super::interest_state::InterestState;
use super::type_state::TypeState;
use crate::Moment;
use crate::interest::{Interest, InterestDiff, Wildcard};
use crate::message::{Locator, Node, SotwRequest};

/// The next request: an answer, news, or both.
pub(super) fn request(
    type_state: &mut TypeState,
    node: Option<Node>,
    config: &SinkConfig,
    now: Moment,
) -> SotwRequest {
    let names = match type_state.has_due_ack() && has_changes(&type_state.interest) {
        true => sent_locators(&type_state.interest),
        false => {
            let legacy = type_state.has_legacy_wildcard();
            let (names, settled) = take_changes(&mut type_state.interest, legacy);
            type_state.apply_sent(&settled, config, now);
            names
        }
    };
    SotwRequest {
        node,
        type_url: Some(type_state.type_url.clone()),
        names,
        version: type_state.version.clone(),
        nonce: type_state.nonce.clone(),
        error: type_state.take_due_ack().flatten(),
    }
}

/// Whether the source does not know what is wanted. Naming again what it was
/// told would change nothing.
pub(super) fn has_changes(interest: &InterestState) -> bool {
    let told = interest.sent();
    !interest.removed().is_empty()
        || interest
            .added()
            .iter()
            .any(|wanted| !told.has_selector(&wanted))
}

/// The names that the source was told of, once more. An answer says nothing
/// new: what was dropped in a request that the source ignored as stale, and is
/// wanted again now, would look to it as if it had been held all the time.
fn sent_locators(interest: &InterestState) -> Vec<Locator> {
    locators(interest.sent(), interest.wildcard() == Wildcard::Legacy)
}

/// The names of the next request, and what it settles.
fn take_changes(interest: &mut InterestState, legacy: bool) -> (Vec<Locator>, InterestDiff) {
    let before = interest.wildcard();
    if before == Wildcard::Legacy && interest.wanted().is_empty() {
        interest.set_wildcard(Wildcard::Explicit);
        return (vec!["*".into()], InterestDiff::default());
    }
    let bare = matches!(before, Wildcard::Never | Wildcard::Legacy) && legacy;
    let names = locators(interest.wanted(), bare);
    let star = interest.wanted().has_wildcard() && !names.is_empty();
    let others = names.len() > usize::from(star);
    let edges = interest.record_sent(before.after_sotw(star, others, legacy));
    (names, edges)
}

/// An interest on the wire; `bare`: the whole type may be asked for by naming nothing.
pub(super) fn locators(interest: &Interest, bare: bool) -> Vec<Locator> {
    let only_star = interest.has_wildcard() && interest.len() == 1;
    match only_star && bare {
        true => Vec::new(),
        false => interest
            .iter()
            .map(|selector| selector.as_str().into())
            .collect(),
    }
}
