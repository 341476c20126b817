//! The HTTP filters of a connection manager, and their overrides in routes
//! (C59, A39).

use std::collections::HashMap;

use super::{decode_body, extension};
use crate::acceptance::extensions::Side;
use crate::acceptance::findings::Findings;
use crate::acceptance::place::{Place, clip};
use crate::acceptance::problem::{MAX_VALUE, Problem};
use crate::acceptance::report::IgnoreReason;
use crate::descriptor::full_name;
use crate::envoy::envoy::config::route::v3::FilterConfig;
use crate::envoy::envoy::extensions::filters::network::http_connection_manager::v3::HttpFilter;
use crate::envoy::envoy::extensions::filters::network::http_connection_manager::v3::http_filter::ConfigType;
use crate::envoy::google::protobuf::Any;

/// A terminal filter to add.
const ROUTER: &str = "envoy.filters.http.router";
/// The message around an override, with its options.
const FILTER_CONFIG: &str = "envoy.config.route.v3.FilterConfig";

/// Checks the filters of a connection manager, which is at `place`.
pub(super) fn check(
    filters: &[HttpFilter],
    side: Side,
    place: &Place<'_>,
    findings: &mut Findings<'_>,
) {
    let mut names = HashMap::new();
    // The last filter that is used: its index, and whether it is terminal.
    let mut last: Option<(usize, bool)> = None;
    // Whether the last one of the list is broken, so that it may be terminal.
    let mut ends_broken = false;
    // A terminal filter that comes too early would be the last one.
    let mut lacks_terminal = true;
    for (index, filter) in filters.iter().enumerate() {
        let filter_place = place.item("http_filters", index);
        check_name(filter, index, &mut names, &filter_place, findings);
        let verdict = check_filter(filter, side, &filter_place, findings);
        ends_broken = matches!(verdict, Verdict::Broken);
        match verdict {
            Verdict::Broken | Verdict::Skipped => {}
            Verdict::Used { is_terminal } => {
                // C59: a terminal filter is the last one.
                if let Some((before, true)) = last {
                    let name = shown(&filters[before].name);
                    findings.reject(&place.item("http_filters", before), Problem::NotLast(name));
                    lacks_terminal = false;
                }
                last = Some((index, is_terminal));
            }
        }
    }
    match last {
        _ if ends_broken => {}
        Some((index, false)) if lacks_terminal => {
            let name = shown(&filters[index].name);
            let problem = Problem::NotTerminal(name, ROUTER);
            findings.reject(&place.item("http_filters", index), problem);
        }
        None => findings.reject(&place.field("http_filters"), Problem::NoFilter(ROUTER)),
        _ => {}
    }
}

/// Rejects a filter without a name, or with that of another (C59).
fn check_name<'a>(
    filter: &'a HttpFilter,
    index: usize,
    names: &mut HashMap<&'a str, usize>,
    place: &Place<'_>,
    findings: &mut Findings<'_>,
) {
    if filter.name.is_empty() {
        return findings.reject(&place.field("name"), Problem::Missing);
    }
    if let Some(first) = names.insert(&filter.name, index) {
        let what = format!("the name {:?}", shown(&filter.name));
        let first = format!("http_filters[{first}]");
        findings.reject(&place.field("name"), Problem::Duplicate { what, first });
    }
}

enum Verdict {
    /// It is a reason to reject the resource.
    Broken,
    /// It is optional, and not supported.
    Skipped,
    Used {
        is_terminal: bool,
    },
}

/// Checks the configuration of a filter. One that is not supported on this side
/// is skipped if it is optional (C59).
fn check_filter(
    filter: &HttpFilter,
    side: Side,
    place: &Place<'_>,
    findings: &mut Findings<'_>,
) -> Verdict {
    let place = place.field("typed_config");
    let Some(ConfigType::TypedConfig(any)) = &filter.config_type else {
        if filter.is_optional {
            findings.ignore(&place, IgnoreReason::Optional(String::new()));
            return Verdict::Skipped;
        }
        findings.reject(&place, Problem::Missing);
        return Verdict::Broken;
    };
    let Some(found) = extension(any, &place, findings) else {
        return Verdict::Broken;
    };
    let known = findings.policy().http_filters.get(&found.name);
    let Some(known) = known.filter(|known| known.runs_on(side)) else {
        if filter.is_optional {
            findings.ignore(&place, IgnoreReason::Optional(found.shown_name()));
            return Verdict::Skipped;
        }
        findings.reject(&place, Problem::Extension(found.shown_name()));
        return Verdict::Broken;
    };
    if !known.is_config() || (found.body.is_none() && !known.takes_struct()) {
        findings.reject(&place, Problem::Misplaced(found.shown_name()));
        return Verdict::Broken;
    }
    if let Some(body) = found.body {
        known.check(body, &place, findings);
    }
    Verdict::Used {
        is_terminal: known.is_terminal(),
    }
}

/// Checks the overrides of a virtual host, a route or a weighted cluster, which
/// is at `place`. Their filter need not exist, nor run on this side: a route
/// does not know its listener (A39).
pub(super) fn check_overrides(
    overrides: &HashMap<String, Any>,
    place: &Place<'_>,
    findings: &mut Findings<'_>,
) {
    if overrides.is_empty() {
        return;
    }
    // In one order, so that the same body has the same reasons.
    let mut entries: Vec<_> = overrides.iter().collect();
    entries.sort_by_key(|(name, _)| *name);
    for (name, any) in entries {
        let place = place.entry("typed_per_filter_config", name);
        if full_name(&any.type_url) != FILTER_CONFIG {
            check_override(any, false, &place, findings);
            continue;
        }
        let wrapped: Option<FilterConfig> =
            decode_body(FILTER_CONFIG, &any.value, &place, findings);
        let Some(wrapped) = wrapped else { continue };
        match &wrapped.config {
            Some(config) => {
                check_override(
                    config,
                    wrapped.is_optional,
                    &place.field("config"),
                    findings,
                );
            }
            None if wrapped.is_optional || wrapped.disabled => {}
            None => findings.reject(&place.field("config"), Problem::Missing),
        }
    }
}

fn check_override(any: &Any, is_optional: bool, place: &Place<'_>, findings: &mut Findings<'_>) {
    let Some(found) = extension(any, place, findings) else {
        return;
    };
    match findings.policy().http_filters.get(&found.name) {
        None if is_optional => findings.ignore(place, IgnoreReason::Optional(found.shown_name())),
        None => findings.reject(place, Problem::Extension(found.shown_name())),
        Some(known) if !known.is_override() => {
            findings.reject(place, Problem::Misplaced(found.shown_name()));
        }
        Some(known) => match found.body {
            Some(body) => known.check(body, place, findings),
            None if known.takes_struct() => {}
            None => findings.reject(place, Problem::Misplaced(found.shown_name())),
        },
    }
}

fn shown(name: &str) -> String {
    clip(name, MAX_VALUE).to_owned()
}
