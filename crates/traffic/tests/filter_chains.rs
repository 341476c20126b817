//! The choice of a filter chain (26): the most specific field decides, in order,
//! and nothing comes back to a less specific one.

#![allow(clippy::expect_used, clippy::unwrap_used)]

use std::net::SocketAddr;

use serde_json::{Value, json};
use trunkline_proto::envoy::envoy::config::listener::v3::Listener;
use trunkline_proto::text::{Format, Options, read_message};
use trunkline_traffic::listener::{FilterChains, FoundChain, Incoming};

fn listener(matches: &[Value], has_default: bool) -> Listener {
    use prost::Message;
    let chains: Vec<Value> = matches
        .iter()
        .map(|wanted| json!({"filter_chain_match": wanted}))
        .collect();
    let mut text = json!({"name": "l", "filter_chains": chains});
    if has_default {
        text["default_filter_chain"] = json!({});
    }
    let of = "envoy.config.listener.v3.Listener";
    let read = read_message(
        of,
        Format::Json,
        "case",
        &text.to_string(),
        None,
        &Options::default(),
    );
    Listener::decode(&*read.unwrap().message.encode_to_vec()).unwrap()
}

fn socket(text: &str) -> Option<SocketAddr> {
    (!text.is_empty()).then(|| text.parse().unwrap())
}

/// Destination, source, server name, transport protocol, application protocols.
type Connection<'c> = (&'c str, &'c str, &'c str, &'c str, &'c [&'c str]);

fn find(chains: &FilterChains, connection: Connection<'_>) -> Option<FoundChain> {
    let (destination, source, server_name, transport_protocol, application_protocols) = connection;
    chains.find(&Incoming {
        destination: socket(destination),
        source: socket(source),
        direct_source: socket(source),
        server_name,
        transport_protocol,
        application_protocols,
    })
}

fn check(matches: &[Value], cases: &[(Connection<'_>, Option<usize>)]) {
    let chains = FilterChains::compile(&listener(matches, false)).unwrap();
    for (connection, expected) in cases {
        let found = find(&chains, *connection);
        assert_eq!(found, expected.map(FoundChain::Listed), "{connection:?}");
    }
}

const FAR: &str = "9.9.9.9:5000";

#[test]
fn d26_a_port_that_a_chain_names_excludes_chains_for_any_port() {
    check(
        &[
            json!({"destination_port": 443, "server_names": ["a.test"]}),
            json!({}),
        ],
        &[
            (("1.1.1.1:443", FAR, "a.test", "tls", &[]), Some(0)),
            (("1.1.1.1:443", FAR, "b.test", "tls", &[]), None),
            (("1.1.1.1:80", FAR, "a.test", "tls", &[]), Some(1)),
        ],
    );
}

#[test]
fn d26_the_longest_range_of_the_destination_wins() {
    let range = |prefix: &str, length: u32| json!({"prefix_ranges": [{"address_prefix": prefix, "prefix_len": length}]});
    check(
        &[
            range("10.0.0.0", 8),
            range("10.1.0.0", 16),
            range("fd00::", 8),
            json!({}),
        ],
        &[
            (("10.1.2.3:80", FAR, "", "", &[]), Some(1)),
            (("10.2.2.3:80", FAR, "", "", &[]), Some(0)),
            (("[fd00::1]:80", FAR, "", "", &[]), Some(2)),
            (("11.0.0.1:80", FAR, "", "", &[]), Some(3)),
            (("", "", "", "", &[]), Some(3)),
        ],
    );
}

#[test]
fn d26_a_server_name_is_exact_then_its_longest_suffix_then_any() {
    let names = |names: &[&str]| json!({"server_names": names});
    check(
        &[
            names(&["www.A.test", "b.test"]),
            names(&["*.a.test"]),
            names(&["*.test"]),
            json!({}),
        ],
        &[
            (("1.1.1.1:1", FAR, "www.a.test", "tls", &[]), Some(0)),
            (("1.1.1.1:1", FAR, "b.test", "tls", &[]), Some(0)),
            (("1.1.1.1:1", FAR, "x.www.a.test", "tls", &[]), Some(1)),
            (("1.1.1.1:1", FAR, "a.test", "tls", &[]), Some(2)),
            (("1.1.1.1:1", FAR, "test", "tls", &[]), Some(3)),
            (("1.1.1.1:1", FAR, "", "raw_buffer", &[]), Some(3)),
        ],
    );
}

#[test]
fn d26_protocols_come_after_names_in_the_order_of_the_client() {
    check(
        &[
            json!({"transport_protocol": "tls", "application_protocols": ["h2"]}),
            json!({"transport_protocol": "tls", "application_protocols": ["http/1.1"]}),
            json!({"transport_protocol": "tls"}),
            json!({}),
        ],
        &[
            (
                ("1.1.1.1:1", FAR, "", "tls", &["x", "http/1.1", "h2"]),
                Some(1),
            ),
            (("1.1.1.1:1", FAR, "", "tls", &["h2", "http/1.1"]), Some(0)),
            (("1.1.1.1:1", FAR, "", "tls", &["x"]), Some(2)),
            (("1.1.1.1:1", FAR, "", "raw_buffer", &["h2"]), Some(3)),
        ],
    );
}

#[test]
fn d26_sources_are_told_apart_last() {
    let ranges = json!([{"address_prefix": "9.0.0.0", "prefix_len": 8}]);
    check(
        &[
            json!({"source_type": "SAME_IP_OR_LOOPBACK"}),
            json!({"source_type": "EXTERNAL", "source_prefix_ranges": ranges, "source_ports": [5000, 5001]}),
            json!({"source_type": "EXTERNAL", "source_prefix_ranges": ranges}),
            json!({}),
        ],
        &[
            (("1.1.1.1:1", "127.0.0.1:7", "", "", &[]), Some(0)),
            (("1.1.1.1:1", "[::1]:7", "", "", &[]), Some(0)),
            (("1.1.1.1:1", "1.1.1.1:7", "", "", &[]), Some(0)),
            // Of IPv4, only one loopback address is one.
            (("1.1.1.1:1", "127.0.0.2:7", "", "", &[]), None),
            (("1.1.1.1:1", "", "", "", &[]), Some(0)),
            (("1.1.1.1:1", "9.9.9.9:5001", "", "", &[]), Some(1)),
            (("1.1.1.1:1", "9.9.9.9:5002", "", "", &[]), Some(2)),
            // A chain for external sources excludes the one for any.
            (("1.1.1.1:1", "8.9.9.9:5000", "", "", &[]), None),
        ],
    );
    let direct = json!({"direct_source_prefix_ranges": ranges});
    check(
        &[direct, json!({})],
        &[
            (("1.1.1.1:1", "9.9.9.9:1", "", "", &[]), Some(0)),
            (("1.1.1.1:1", "8.9.9.9:1", "", "", &[]), Some(1)),
        ],
    );
}

#[test]
fn d26_the_default_chain_takes_what_no_chain_matches() {
    let only = [json!({"destination_port": 443})];
    let chains = FilterChains::compile(&listener(&only, true)).unwrap();
    let found = |port: &str| find(&chains, (port, FAR, "", "", &[]));
    assert_eq!(found("1.1.1.1:443"), Some(FoundChain::Listed(0)));
    assert_eq!(found("1.1.1.1:80"), Some(FoundChain::Default));
}

#[test]
fn d26_matches_that_cannot_be_are_findings() {
    let cases = [
        (
            vec![json!({}), json!({})],
            "filter_chains[1].filter_chain_match",
        ),
        // Both would be for one of the names.
        (
            vec![
                json!({"server_names": ["a.test", "b.test"]}),
                json!({"server_names": ["B.test"]}),
            ],
            "filter_chains[1].filter_chain_match",
        ),
        (
            vec![json!({"server_names": ["*w.test"]})],
            "filter_chains[0].filter_chain_match.server_names[0]",
        ),
        (
            vec![json!({"server_names": ["*"]})],
            "filter_chains[0].filter_chain_match.server_names[0]",
        ),
        (
            vec![json!({"address_suffix": "1.1"})],
            "filter_chains[0].filter_chain_match.address_suffix",
        ),
        (
            vec![json!({"prefix_ranges": [{"address_prefix": "10.0.0.0", "prefix_len": 33}]})],
            "filter_chains[0].filter_chain_match.prefix_ranges[0]",
        ),
    ];
    for (matches, path) in cases {
        let found = FilterChains::compile(&listener(&matches, false)).expect_err(path);
        assert_eq!(found.list()[0].path, path);
    }
}
