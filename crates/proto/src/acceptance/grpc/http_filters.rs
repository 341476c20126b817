//! The HTTP filters of a connection manager, and their overrides in routes
//! (C59, A39).

use std::collections::HashMap;

use super::{decode_body, decode_extension};
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

/// Checks the filters of the connection manager at `place`. The last filter has
/// to be terminal, and no other (C59).
pub(super) fn check_filters(
    filters: &[HttpFilter],
    side: Side,
    place: &Place<'_>,
    findings: &mut Findings<'_>,
) {
    let mut names = HashMap::new();
    // The last used filter: its index, and whether it is terminal.
    let mut last_used: Option<(usize, bool)> = None;
    // Whether the last filter of the list is broken: it might be terminal, so
    // a missing terminal filter is not reported.
    let mut ends_broken = false;
    // A terminal filter that comes too early was reported: the list has one.
    let mut lacks_terminal = true;

    for (index, filter) in filters.iter().enumerate() {
        let filter_place = place.item("http_filters", index);
        check_name(filter, index, &mut names, &filter_place, findings);
        let verdict = check_filter(filter, side, &filter_place, findings);
        ends_broken = matches!(verdict, Verdict::Broken);
        let Verdict::Used { is_terminal } = verdict else {
            continue;
        };

        // C59: a terminal filter is the last one.
        if let Some((earlier, true)) = last_used {
            let name = clip_name(&filters[earlier].name);
            findings.reject(&place.item("http_filters", earlier), Problem::NotLast(name));
            lacks_terminal = false;
        }
        last_used = Some((index, is_terminal));
    }

    match last_used {
        _ if ends_broken => {}
        Some((index, false)) if lacks_terminal => {
            let name = clip_name(&filters[index].name);
            let problem = Problem::NotTerminal(name, ROUTER);
            findings.reject(&place.item("http_filters", index), problem);
        }
        None => findings.reject(&place.field("http_filters"), Problem::NoFilter(ROUTER)),
        _ => {}
    }
}

/// Rejects a filter without a name, or with the name of another filter (C59).
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
    if let Some(first_index) = names.insert(&filter.name, index) {
        let what = format!("the name {:?}", clip_name(&filter.name));
        let first = format!("http_filters[{first_index}]");
        findings.reject(&place.field("name"), Problem::Duplicate { what, first });
    }
}

/// What the check of a filter came to.
enum Verdict {
    /// The filter is a reason to reject the resource.
    Broken,
    /// The filter is optional, and not supported.
    Skipped,
    /// The filter is supported, and its configuration was checked.
    Used { is_terminal: bool },
}

/// Checks the configuration of a filter. An optional filter that is not
/// supported on this side is skipped (C59).
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

    let Some(extension_config) = decode_extension(any, &place, findings) else {
        return Verdict::Broken;
    };

    let http_filter = findings.policy().http_filters.get(&extension_config.name);
    let Some(http_filter) = http_filter.filter(|http_filter| http_filter.runs_on(side)) else {
        if filter.is_optional {
            findings.ignore(
                &place,
                IgnoreReason::Optional(extension_config.shown_name()),
            );
            return Verdict::Skipped;
        }
        findings.reject(&place, Problem::Extension(extension_config.shown_name()));
        return Verdict::Broken;
    };

    if !http_filter.is_config() || (extension_config.body.is_none() && !http_filter.takes_struct())
    {
        findings.reject(&place, Problem::Misplaced(extension_config.shown_name()));
        return Verdict::Broken;
    }
    if let Some(body) = extension_config.body {
        http_filter.check(body, &place, findings);
    }

    Verdict::Used {
        is_terminal: http_filter.is_terminal(),
    }
}

/// Checks the overrides of the virtual host, route or weighted cluster at
/// `place`. The overridden filter need not exist or run on this side, since a
/// route does not know its listener (A39).
pub(super) fn check_overrides(
    overrides: &HashMap<String, Any>,
    place: &Place<'_>,
    findings: &mut Findings<'_>,
) {
    if overrides.is_empty() {
        return;
    }
    // The order of a hash map varies, but equal bodies must have equal reasons.
    let mut entries: Vec<_> = overrides.iter().collect();
    entries.sort_by_key(|(name, _)| *name);
    for (name, any) in entries {
        let place = place.entry("typed_per_filter_config", name);
        if full_name(&any.type_url) != FILTER_CONFIG {
            check_override(any, false, &place, findings);
            continue;
        }

        let wrapper: Option<FilterConfig> =
            decode_body(FILTER_CONFIG, &any.value, &place, findings);
        let Some(wrapper) = wrapper else { continue };

        match &wrapper.config {
            Some(config) => {
                check_override(
                    config,
                    wrapper.is_optional,
                    &place.field("config"),
                    findings,
                );
            }
            None if wrapper.is_optional || wrapper.disabled => {}
            None => findings.reject(&place.field("config"), Problem::Missing),
        }
    }
}

/// Checks one override. Its type has to be a known filter that accepts
/// overrides.
fn check_override(any: &Any, is_optional: bool, place: &Place<'_>, findings: &mut Findings<'_>) {
    let Some(extension_config) = decode_extension(any, place, findings) else {
        return;
    };
    match findings.policy().http_filters.get(&extension_config.name) {
        None if is_optional => {
            findings.ignore(place, IgnoreReason::Optional(extension_config.shown_name()))
        }
        None => findings.reject(place, Problem::Extension(extension_config.shown_name())),
        Some(http_filter) if !http_filter.is_override() => {
            findings.reject(place, Problem::Misplaced(extension_config.shown_name()));
        }
        Some(http_filter) => match extension_config.body {
            Some(body) => http_filter.check(body, place, findings),
            None if http_filter.takes_struct() => {}
            None => findings.reject(place, Problem::Misplaced(extension_config.shown_name())),
        },
    }
}

fn clip_name(name: &str) -> String {
    clip(name, MAX_VALUE).to_owned()
}
