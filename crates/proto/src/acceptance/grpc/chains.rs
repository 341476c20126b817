//! Which connections the filter chains of a listener match (C61, A36).
//!
//! A connection has to match one chain best. That fails only if two chains have
//! the same match, after each is taken apart into matches with one value for
//! each field.

use std::collections::HashMap;
use std::net::IpAddr;

use super::address::parse_ip;
use crate::acceptance::findings::Findings;
use crate::acceptance::place::{Place, clip};
use crate::acceptance::problem::{MAX_VALUE, Problem};
use crate::acceptance::report::IgnoreReason;
use crate::envoy::envoy::config::core::v3::CidrRange;
use crate::envoy::envoy::config::listener::v3::filter_chain_match::ConnectionSourceType;
use crate::envoy::envoy::config::listener::v3::{FilterChain, FilterChainMatch};

/// The most combinations of values that are compared in one listener.
const MAX_MATCHES: usize = 10_000;

/// Rejects chains with the same match, ranges without an IP address, and more
/// combinations of values than [`MAX_MATCHES`]. Reports chains that never match
/// as ignored; their matches are compared with the others' all the same.
pub(super) fn check_chains(chains: &[FilterChain], findings: &mut Findings<'_>) {
    let root = Place::ROOT;
    let any_connection = FilterChainMatch::default();
    let mut first_chains = HashMap::new();
    for (index, chain) in chains.iter().enumerate() {
        let place = root.item("filter_chains", index);
        let match_place = place.field("filter_chain_match");
        let chain_match = chain.filter_chain_match.as_ref().unwrap_or(&any_connection);
        if never_matches(chain_match) {
            findings.ignore(&place, IgnoreReason::Chain);
        }

        let Some(ranges) = Ranges::read_checked(chain_match, &match_place, findings) else {
            continue;
        };

        let Some(count) = count_combinations(chain_match)
            .filter(|count| first_chains.len() + count <= MAX_MATCHES)
        else {
            return findings.reject(&match_place, Problem::TooMany(MAX_MATCHES));
        };

        let mut matches = Vec::with_capacity(count);
        expand_matches(chain_match, &ranges, &mut matches);
        let first_indexes = matches
            .into_iter()
            .filter_map(|single| first_chains.insert(single, index));
        if let Some(first_index) = first_indexes.min() {
            let what = "a match".to_owned();
            let first = format!("filter_chains[{first_index}]");
            findings.reject(&match_place, Problem::Duplicate { what, first });
        }
    }
}

/// Returns whether no connection to a gRPC server matches (A36). gRPC servers
/// have no listener filters, so they know no server name and no application
/// protocol, and every connection counts as `raw_buffer`: nothing detects
/// another transport protocol. A destination port tells connections apart only
/// with `use_original_dst`, which they do not support; a match that has one is
/// never met, whatever the port.
fn never_matches(chain_match: &FilterChainMatch) -> bool {
    chain_match.destination_port.is_some()
        || !chain_match.server_names.is_empty()
        || !chain_match.application_protocols.is_empty()
        || !matches!(&*chain_match.transport_protocol, "" | "raw_buffer")
}

/// The ranges of a match, normalized.
struct Ranges {
    destination: Vec<Range>,
    source: Vec<Range>,
    direct_source: Vec<Range>,
}

/// The network address, and the length of its prefix.
type Range = (IpAddr, u8);

impl Ranges {
    /// Reads the ranges of a match, and checks its source type. Rejects the
    /// body and returns `None` if one is invalid.
    fn read_checked(
        chain_match: &FilterChainMatch,
        place: &Place<'_>,
        findings: &mut Findings<'_>,
    ) -> Option<Self> {
        let source_type = ConnectionSourceType::try_from(chain_match.source_type);
        if source_type.is_err() {
            let problem = Problem::value(
                chain_match.source_type,
                "a type of source that is supported",
            );
            findings.reject(&place.field("source_type"), problem);
        }

        let mut read_ranges =
            |field: &str, ranges: &[CidrRange]| read_ranges(field, ranges, place, findings);
        let destination = read_ranges("prefix_ranges", &chain_match.prefix_ranges);
        let source = read_ranges("source_prefix_ranges", &chain_match.source_prefix_ranges);
        let direct_source = read_ranges(
            "direct_source_prefix_ranges",
            &chain_match.direct_source_prefix_ranges,
        );

        source_type.ok()?;
        Some(Self {
            destination: destination?,
            source: source?,
            direct_source: direct_source?,
        })
    }
}

/// Reads the ranges of the list `field`, in their order. Rejects the body for
/// each range that is invalid, and returns `None` if there is one.
fn read_ranges(
    field: &str,
    ranges: &[CidrRange],
    place: &Place<'_>,
    findings: &mut Findings<'_>,
) -> Option<Vec<Range>> {
    let mut normal_ranges = Some(Vec::with_capacity(ranges.len()));
    for (index, range) in ranges.iter().enumerate() {
        let Some(normal_range) = normalize(range) else {
            let place = place.item(field, index);
            let quoted = clip(&range.address_prefix, MAX_VALUE).to_owned();
            findings.reject(&place.field("address_prefix"), Problem::NotIp(quoted));
            normal_ranges = None;
            continue;
        };
        if let Some(normal_ranges) = &mut normal_ranges {
            normal_ranges.push(normal_range);
        }
    }
    normal_ranges
}

/// Returns a range with its prefix length limited to the address family, and
/// without the bits beyond the prefix (A36). Returns `None` if the prefix is
/// not an IP address.
fn normalize(range: &CidrRange) -> Option<Range> {
    let length = range.prefix_len.as_ref().map_or(0, |length| length.value);
    match parse_ip(&range.address_prefix)? {
        IpAddr::V4(ip) => {
            let length = length.min(32);
            let mask = u32::MAX.checked_shl(32 - length).unwrap_or(0);
            let network = (u32::from(ip) & mask).to_be_bytes();
            Some((IpAddr::from(network), length as u8))
        }
        IpAddr::V6(ip) => {
            let length = length.min(128);
            let mask = u128::MAX.checked_shl(128 - length).unwrap_or(0);
            let network = (u128::from(ip) & mask).to_be_bytes();
            Some((IpAddr::from(network), length as u8))
        }
    }
}

/// Returns the number of matches with one value for each field that
/// [`expand_matches`] makes of one. Returns `None` if the number overflows.
fn count_combinations(chain_match: &FilterChainMatch) -> Option<usize> {
    [
        chain_match.prefix_ranges.len(),
        chain_match.source_prefix_ranges.len(),
        chain_match.direct_source_prefix_ranges.len(),
        chain_match.source_ports.len(),
        chain_match.server_names.len(),
        chain_match.application_protocols.len(),
    ]
    .into_iter()
    .try_fold(1_usize, |product, count| product.checked_mul(count.max(1)))
}

/// A match with one value for each field, or none.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Single<'a> {
    destination_port: Option<u32>,
    destination: Option<Range>,
    server_name: Option<&'a str>,
    transport_protocol: &'a str,
    application_protocol: Option<&'a str>,
    direct_source: Option<Range>,
    source_type: i32,
    source: Option<Range>,
    source_port: Option<u32>,
}

/// Adds all combinations of values of a match, with one value for each field.
/// The caller has checked by [`count_combinations`] that there are not too many.
fn expand_matches<'a>(
    chain_match: &'a FilterChainMatch,
    ranges: &Ranges,
    matches: &mut Vec<Single<'a>>,
) {
    let texts = |texts: &'a [String]| options(texts.iter().map(|text| &**text));
    let ports = options(chain_match.source_ports.iter().copied());
    let destination_port = chain_match.destination_port.as_ref();
    let destination_port = destination_port.map(|port| port.value);

    for &destination in &options(ranges.destination.iter().copied()) {
        for &server_name in &texts(&chain_match.server_names) {
            for &application_protocol in &texts(&chain_match.application_protocols) {
                for &direct_source in &options(ranges.direct_source.iter().copied()) {
                    for &source in &options(ranges.source.iter().copied()) {
                        matches.extend(ports.iter().map(|&source_port| Single {
                            destination_port,
                            destination,
                            server_name,
                            transport_protocol: &chain_match.transport_protocol,
                            application_protocol,
                            direct_source,
                            source_type: chain_match.source_type,
                            source,
                            source_port,
                        }));
                    }
                }
            }
        }
    }
}

/// Returns each value as an option; without any, the one option of none.
fn options<T>(values: impl Iterator<Item = T>) -> Vec<Option<T>> {
    let mut options: Vec<_> = values.map(Some).collect();
    if options.is_empty() {
        options.push(None);
    }
    options
}
