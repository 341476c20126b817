//! The filter chains of a listener: no two match the same connections.
//!
//! Two matches are compared by the names that they have in common, and by the
//! rest as it is written. Ranges of addresses that are equal in another
//! spelling are left to Envoy.

use std::collections::HashMap;

use prost::Message as _;
use prost_reflect::DynamicMessage;

use super::read::{Part, has, inner, messages, report_at, texts};
use super::rejected::Rejected;
use crate::conditions::has_condition;
use crate::validate::walk::Walk;

const SERVER_NAMES: &str = "server_names";

/// Reports each filter chain that matches what one before it does. With a
/// `filter_chain_matcher`, Envoy does not look at their matches.
pub(super) fn check(walk: &mut Walk, listener: &DynamicMessage) {
    if has(listener, "filter_chain_matcher") {
        return;
    }
    let mut seen = HashMap::new();
    for (index, chain) in messages(listener, "filter_chains").into_iter().enumerate() {
        if has_condition(chain) {
            continue;
        }
        let mut same = None;
        for key in keys_of(chain) {
            let first = *seen.entry(key).or_insert(index);
            same = same.or(Some(first).filter(|first| *first != index));
        }
        if let Some(first) = same {
            let place = [
                Part::Field("filter_chains"),
                Part::Index(index),
                Part::Field("filter_chain_match"),
            ];
            report_at(walk, listener, &place, Rejected::SameMatch { first });
        }
    }
}

/// Returns a key for each name of a server that a filter chain matches, or one
/// for any: the rest of the match, encoded, and the name.
fn keys_of(chain: &DynamicMessage) -> Vec<(Vec<u8>, Option<String>)> {
    let Some(chain_match) = inner(chain, "filter_chain_match") else {
        return vec![(Vec::new(), None)];
    };
    let mut remainder = chain_match.clone();
    remainder.clear_field_by_name(SERVER_NAMES);
    let remainder = remainder.encode_to_vec();

    let names = texts(chain_match, SERVER_NAMES).map(str::to_ascii_lowercase);
    let keys: Vec<_> = names.map(|name| (remainder.clone(), Some(name))).collect();
    match keys.is_empty() {
        true => vec![(remainder, None)],
        false => keys,
    }
}
