//! SotW requests: each lists all selectors (C17).
//!
//! An empty list is a wildcard if it comes first, and no subscription once
//! anything was named (C25). So there is no direct way from the legacy wildcard
//! to no subscription: the wildcard is named first, then removed.
//!
//! ```text
//!   [] (wildcard)  ──▶  ["*"] (wildcard)  ──▶  [] (nothing)
//! ```

use super::config::SinkConfig;
use super::event::Effects;
use super::interest_state::InterestState;
use super::type_state::TypeState;
use crate::Moment;
use crate::interest::{InterestDiff, Wildcard};
use crate::message::{Locators, Node, SotwRequest};

/// Builds the next request, which counts as sent: an acknowledgement if one is
/// due, else the changes of the interest. Changes that are due together with an
/// acknowledgement wait for the request after it ([`sent_locators`]).
pub(super) fn build_request(
    type_state: &mut TypeState,
    node: Option<Node>,
    config: &SinkConfig,
    now: Moment,
    effects: &mut Effects,
) -> SotwRequest {
    let is_first = !type_state.interest.has_sent_request();
    let must_wait = type_state.has_due_ack() && has_changes(&type_state.interest);
    let names = match must_wait {
        true => sent_locators(&type_state.interest),
        false => {
            let allows_legacy = type_state.has_legacy_wildcard();
            let (names, diff) = take_changes(&mut type_state.interest, allows_legacy);
            type_state.apply_sent_diff(&diff, config, now, is_first, effects);
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

/// Returns whether there are changes to send. A subscription that was sent
/// before is no change: the server would see no difference.
pub(super) fn has_changes(interest: &InterestState) -> bool {
    let sent_interest = interest.sent();
    let mut added_subscriptions = interest.added().iter();
    !interest.removed().is_empty()
        || added_subscriptions.any(|subscription| !sent_interest.has(&subscription))
}

/// Returns the selectors of the last request, for an acknowledgement. An
/// acknowledgement never has changes: if a selector was removed in a request
/// that the server ignored as stale, and is added again now, the server would
/// never see that it was removed.
fn sent_locators(interest: &InterestState) -> Locators {
    let may_be_bare = interest.wildcard() == Wildcard::Legacy;
    interest.list_locators(interest.sent(), may_be_bare).into()
}

/// Takes the changes since the last request, which count as sent. Returns the
/// selectors of the next request and the changes that it sends; there are none
/// if it only names the legacy wildcard before that is removed. `allows_legacy`
/// is whether an empty list can be a wildcard for the type (S18).
fn take_changes(interest: &mut InterestState, allows_legacy: bool) -> (Locators, InterestDiff) {
    let old_state = interest.wildcard();
    if old_state == Wildcard::Legacy && interest.desired().is_empty() {
        interest.set_wildcard(Wildcard::Explicit);
        return (vec!["*".into()].into(), InterestDiff::default());
    }

    let may_be_bare = matches!(old_state, Wildcard::Never | Wildcard::Legacy) && allows_legacy;
    let names = interest.list_desired(may_be_bare);
    let lists_star = interest.desired().has_wildcard() && !names.is_empty();
    let lists_names = names.iter().any(|locator| locator.name != "*");
    let diff = interest.record_sent(old_state.after_sotw(lists_star, lists_names, allows_legacy));
    (names, diff)
}
