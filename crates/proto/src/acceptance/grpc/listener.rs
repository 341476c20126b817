//! Listeners: API listeners of clients, and listeners of servers (C61, A36).

use std::collections::HashMap;
use std::net::SocketAddr;

use super::{address, chains, manager, tls};
use crate::acceptance::extensions::Side;
use crate::acceptance::findings::Findings;
use crate::acceptance::place::{Place, clip};
use crate::acceptance::problem::{MAX_VALUE, Problem};
use crate::descriptor::full_name;
use crate::envoy::envoy::config::core::v3::address::Address as OneAddress;
use crate::envoy::envoy::config::core::v3::socket_address::PortSpecifier;
use crate::envoy::envoy::config::listener::v3::filter::ConfigType;
use crate::envoy::envoy::config::listener::v3::{Filter, FilterChain, Listener};
use crate::envoy::google::protobuf::Any;

/// Returns whether a listener is for a server at an address. A listener for
/// another address is accepted, but the server does not serve (C61).
#[must_use]
pub fn is_at(listener: &Listener, server: SocketAddr) -> bool {
    let address = listener
        .address
        .as_ref()
        .and_then(|address| address.address.as_ref());
    let Some(OneAddress::SocketAddress(socket)) = address else {
        return false;
    };
    let port = match socket.port_specifier {
        Some(PortSpecifier::PortValue(port)) => port,
        _ => return false,
    };
    let ip = address::parse_ip(&socket.address);
    ip == Some(server.ip()) && port == u32::from(server.port())
}

/// Checks a listener. One with an `api_listener` is for clients, any other for
/// servers.
pub(in crate::acceptance) fn check(findings: &mut Findings<'_>, listener: &Listener) {
    match &listener.api_listener {
        Some(api) => check_client(api.api_listener.as_ref(), findings),
        None => check_server(listener, findings),
    }
}

/// Checks an API listener, which has to be a connection manager (A27).
fn check_client(any: Option<&Any>, findings: &mut Findings<'_>) {
    let root = Place::ROOT;
    let place = root.field("api_listener");
    let place = place.field("api_listener");
    match any {
        Some(any) if full_name(&any.type_url) == manager::MANAGER => {
            manager::check_manager(&any.value, Side::Client, &place, findings);
        }
        Some(any) => {
            let name = clip(full_name(&any.type_url), MAX_VALUE).to_owned();
            findings.reject(&place, Problem::Extension(name));
        }
        None => findings.reject(&place, Problem::Missing),
    }
}

/// Checks a listener of a server (C61).
fn check_server(listener: &Listener, findings: &mut Findings<'_>) {
    let root = Place::ROOT;
    if !listener.listener_filters.is_empty() {
        findings.reject(&root.field("listener_filters"), Problem::Insecure);
    }
    if (listener.use_original_dst.as_ref()).is_some_and(|flag| flag.value) {
        findings.reject(&root.field("use_original_dst"), Problem::Insecure);
    }

    let place = root.field("address");
    if let Some(socket) = address::check_socket(listener.address.as_ref(), &place, findings) {
        address::check_port(socket, &place.field("socket_address"), findings);
    }

    for (index, chain) in listener.filter_chains.iter().enumerate() {
        check_chain(chain, &root.item("filter_chains", index), findings);
    }
    if let Some(chain) = &listener.default_filter_chain {
        check_chain(chain, &root.field("default_filter_chain"), findings);
    }
    if listener.filter_chains.is_empty() && listener.default_filter_chain.is_none() {
        findings.reject(&root, Problem::NoChain);
    }
    chains::check_chains(&listener.filter_chains, findings);
}

/// Checks the filters of a chain, which has to be exactly one connection
/// manager: no other network filter is supported (C61).
fn check_chain(chain: &FilterChain, place: &Place<'_>, findings: &mut Findings<'_>) {
    let mut names = HashMap::new();
    for (index, filter) in chain.filters.iter().enumerate() {
        let filter_place = place.item("filters", index);
        if filter.name.is_empty() {
            findings.reject(&filter_place.field("name"), Problem::Missing);
        } else if let Some(first_index) = names.insert(&*filter.name, index) {
            let what = format!("the name {:?}", clip(&filter.name, MAX_VALUE));
            let first = format!("filters[{first_index}]");
            let place = filter_place.field("name");
            findings.reject(&place, Problem::Duplicate { what, first });
        }
        let is_last = index + 1 == chain.filters.len();
        check_filter(filter, is_last, &filter_place, findings);
    }

    if chain.filters.is_empty() {
        let problem = Problem::NoFilter("envoy.filters.network.http_connection_manager");
        findings.reject(&place.field("filters"), problem);
    }
    if let Some(socket) = &chain.transport_socket {
        tls::check_downstream(socket, &place.field("transport_socket"), findings);
    }
}

/// Rejects a network filter other than a connection manager, and one that is
/// not last.
fn check_filter(filter: &Filter, is_last: bool, place: &Place<'_>, findings: &mut Findings<'_>) {
    let config_place = place.field("typed_config");
    let Some(ConfigType::TypedConfig(any)) = &filter.config_type else {
        return findings.reject(&config_place, Problem::Missing);
    };
    let message = full_name(&any.type_url);
    if message != manager::MANAGER {
        let message = clip(message, MAX_VALUE).to_owned();
        return findings.reject(&config_place, Problem::Extension(message));
    }
    if !is_last {
        let name = clip(&filter.name, MAX_VALUE).to_owned();
        findings.reject(place, Problem::NotLast(name));
    }
    manager::check_manager(&any.value, Side::Server, &config_place, findings);
}
