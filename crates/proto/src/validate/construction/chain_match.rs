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

/// Reports each filter chain with the same match as one before it. With a
/// `filter_chain_matcher`, Envoy ignores these matches.
pub(super) fn check_duplicates(walk: &mut Walk, listener: &DynamicMessage) {
    if has(listener, "filter_chain_matcher") {
        return;
    }

    let mut first_chains = HashMap::new();
    for (index, chain) in messages(listener, "filter_chains").into_iter().enumerate() {
        if has_condition(chain) {
            continue;
        }
        let mut duplicate = None;
        for key in match_keys(chain) {
            let first_index = *first_chains.entry(key).or_insert(index);
            duplicate = duplicate.or(Some(first_index).filter(|first| *first != index));
        }
        if let Some(first_index) = duplicate {
            let place = [
                Part::Field("filter_chains"),
                Part::Index(index),
                Part::Field("filter_chain_match"),
            ];
            report_at(
                walk,
                listener,
                &place,
                Rejected::SameMatch { first: first_index },
            );
        }
    }
}

/// Returns a key for each server name that a filter chain matches, or one key
/// if it matches any. A key has the encoded other fields of the match, and the
/// name.
fn match_keys(chain: &DynamicMessage) -> Vec<(Vec<u8>, Option<String>)> {
    let Some(chain_match) = inner(chain, "filter_chain_match") else {
        return vec![(Vec::new(), None)];
    };
    let mut without_names = chain_match.clone();
    without_names.clear_field_by_name(SERVER_NAMES);
    let other_fields = without_names.encode_to_vec();

    let names = texts(chain_match, SERVER_NAMES).map(str::to_ascii_lowercase);
    let keys: Vec<_> = names
        .map(|name| (other_fields.clone(), Some(name)))
        .collect();
    match keys.is_empty() {
        true => vec![(other_fields, None)],
        false => keys,
    }
}
