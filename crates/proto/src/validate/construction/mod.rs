//! Checks of what Envoy makes of a message, beyond the rules on its fields.
//!
//! Envoy builds filters, matchers and clusters of a resource that it gets, and
//! rejects the resource when one cannot be built. The checks here find the
//! commonest of these mistakes before anything is served. Each is for one type
//! of message, and looks at nothing else.
//!
//! | file | message | the mistake |
//! |---|---|---|
//! | `domains` | `RouteConfiguration` | a domain twice among its virtual hosts, without VHDS |
//! | `weights` | `WeightedCluster` | a cluster without a weight; weights that sum to 0, or to more than 32 bits |
//! | `regex` | `RegexMatcher` | an expression that RE2 cannot read |
//! | `format` | routes, `SubstitutionFormatString` | a `%` in a format that begins no command |
//! | `http_filters` | `HttpConnectionManager` | see `filter_list` |
//! | `network_filters` | `FilterChain`, `Listener` | see `filter_list` |
//! | `filter_list` | — | a filter without configuration, or with that of another kind of filter; a terminal filter that is not the last one, or a last one that is not terminal |
//! | `chain_match` | `Listener` | two filter chains for the same connections |
//! | `address` | `Cluster`, `ClusterLoadAssignment`, `Listener` | a DNS name where Envoy resolves none |
//! | `cidr` | `Listener`, `CidrRange` of RBAC | a prefix that is no IP address |
//! | `discovery` | `Cluster` | EDS without `eds_config`; `LOGICAL_DNS` with another number of endpoints than one |
//! | `ring` | `Cluster` | a ring whose minimum is above its maximum; a Maglev table whose size is no prime |
//!
//! A check never rejects what Envoy takes: where that depends on the build or
//! the options of Envoy, nothing is said. Cases with Envoy's own verdicts are
//! in `tests/data/construction`. Parts with a condition are passed over, since
//! no client gets them all; the variants without conditions are checked again.

mod address;
mod chain_match;
mod cidr;
mod discovery;
mod domains;
mod filter_list;
mod format;
mod http_filters;
mod network_filters;
mod read;
mod regex;
mod rejected;
mod ring;
#[cfg(test)]
mod tests;
mod weights;

use prost_reflect::DynamicMessage;

pub use self::regex::RegexFault;
pub(crate) use self::regex::find_fault as find_regex_fault;
pub use self::rejected::Rejected;
use super::walk::Walk;

/// The check of one type of message.
#[derive(Clone, Copy)]
pub(crate) struct Check {
    /// Reports the mistakes of a message, which is where the walk is.
    pub(super) find: fn(&mut Walk, &DynamicMessage),
    /// The same check for a quick walk over bytes.
    pub(crate) quick: Quick,
}

/// How a quick walk over encoded bytes checks a message.
#[derive(Clone, Copy)]
pub(crate) enum Quick {
    /// It cannot: the descriptors decide.
    Never,
    /// By the checks of the messages in it.
    Parts,
    /// By a function of the body, which is false if there may be a mistake.
    Bytes(fn(&[u8]) -> bool),
}

/// Returns the check of a message by its full name; `None` if it has none.
pub(super) fn find_check(message: &str) -> Option<Check> {
    let entry = CHECKS.iter().find(|(name, ..)| *name == message)?;
    let (_, find, quick) = *entry;
    Some(Check { find, quick })
}

type Row = (&'static str, fn(&mut Walk, &DynamicMessage), Quick);

/// All checks, by the full name of the message.
const CHECKS: &[Row] = &[
    (
        "envoy.config.cluster.v3.Cluster",
        check_cluster,
        Quick::Never,
    ),
    (
        "envoy.config.core.v3.CidrRange",
        cidr::check_range,
        Quick::Never,
    ),
    // A header and an address are checked by the messages around them; in a
    // quick walk, these leave it to them.
    (
        "envoy.config.core.v3.HeaderValue",
        |_, _| {},
        Quick::Bytes(format::is_plain_header),
    ),
    (
        "envoy.config.core.v3.SocketAddress",
        |_, _| {},
        Quick::Bytes(address::is_plain),
    ),
    (
        "envoy.config.core.v3.SubstitutionFormatString",
        format::check_format_string,
        Quick::Never,
    ),
    (
        "envoy.config.endpoint.v3.ClusterLoadAssignment",
        address::check_assignment,
        Quick::Parts,
    ),
    (
        "envoy.config.listener.v3.FilterChain",
        network_filters::check_chain,
        Quick::Never,
    ),
    (
        "envoy.config.listener.v3.Listener",
        check_listener,
        Quick::Never,
    ),
    (
        "envoy.config.route.v3.Route",
        format::check_headers,
        Quick::Parts,
    ),
    (
        "envoy.config.route.v3.RouteConfiguration",
        check_route_configuration,
        Quick::Bytes(domains::is_plain),
    ),
    (
        "envoy.config.route.v3.VirtualHost",
        format::check_headers,
        Quick::Parts,
    ),
    (
        "envoy.config.route.v3.WeightedCluster",
        weights::check_weights,
        Quick::Bytes(weights::is_plain),
    ),
    (
        "envoy.config.route.v3.WeightedCluster.ClusterWeight",
        format::check_headers,
        Quick::Parts,
    ),
    (
        "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
        http_filters::check_manager,
        Quick::Never,
    ),
    (
        "envoy.type.matcher.v3.RegexMatcher",
        regex::check_matcher,
        Quick::Bytes(regex::is_plain),
    ),
];

/// Reports the mistakes that keep Envoy from building a cluster.
fn check_cluster(walk: &mut Walk, cluster: &DynamicMessage) {
    address::check_cluster(walk, cluster);
    discovery::check_cluster(walk, cluster);
    ring::check_sizes(walk, cluster);
}

/// Reports the mistakes that keep Envoy from building a listener.
fn check_listener(walk: &mut Walk, listener: &DynamicMessage) {
    address::check_listener(walk, listener);
    chain_match::check_duplicates(walk, listener);
    cidr::check_chains(walk, listener);
    network_filters::check_listener_filters(walk, listener);
}

fn check_route_configuration(walk: &mut Walk, route: &DynamicMessage) {
    domains::check_duplicates(walk, route);
    format::check_headers(walk, route);
}
