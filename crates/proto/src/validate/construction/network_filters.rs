//! The filters of a filter chain, and of a listener.

use prost_reflect::DynamicMessage;

use super::filter_list::{self, Kind};
use super::read::{Part, messages};
use crate::validate::walk::Walk;

const NETWORK: Kind = Kind {
    name: "network",
    other_packages: &["http.", "listener.", "udp."],
    terminal: &[
        "network.direct_response.v3.Config",
        "network.echo.v3.Echo",
        "network.http_connection_manager.v3.HttpConnectionManager",
        "network.tcp_proxy.v3.TcpProxy",
    ],
    not_terminal: &[
        "network.connection_limit.v3.ConnectionLimit",
        "network.ext_authz.v3.ExtAuthz",
        "network.local_ratelimit.v3.LocalRateLimit",
        "network.mongo_proxy.v3.MongoProxy",
        "network.ratelimit.v3.RateLimit",
        "network.rbac.v3.RBAC",
        "network.set_filter_state.v3.Config",
        "network.sni_cluster.v3.SniCluster",
    ],
    remedy: "a terminal one such as envoy.filters.network.tcp_proxy",
};

/// Filters of listeners are never terminal.
const LISTENER: Kind = Kind {
    name: "listener",
    other_packages: &["http.", "network."],
    terminal: &[],
    not_terminal: &[],
    remedy: "",
};

/// Reports the mistakes in the filters of a filter chain.
pub(super) fn check_chain(walk: &mut Walk, chain: &DynamicMessage) {
    let place = [Part::Field("filters")];
    let filters = messages(chain, "filters");
    filter_list::check_filters(walk, chain, &place, &NETWORK, &filters);
}

/// Reports the mistakes in the filters of a listener, which are before its
/// filter chains.
pub(super) fn check_listener_filters(walk: &mut Walk, listener: &DynamicMessage) {
    let place = [Part::Field("listener_filters")];
    let filters = messages(listener, "listener_filters");
    filter_list::check_filters(walk, listener, &place, &LISTENER, &filters);
}
