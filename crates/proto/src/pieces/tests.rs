//! Pieces against the decoder of the whole.

use std::io::Cursor;

use proptest::prelude::*;

use super::*;
use crate::discovery::DiscoveryResponse;
use crate::envoy::envoy::config::route::v3::{RouteConfiguration, Vhds, VirtualHost};
use crate::vhosts;

fn pieces(bytes: &[u8]) -> Result<Vec<(usize, Piece)>, PiecesError> {
    let mut pieces = Pieces::new(Cursor::new(bytes));
    let mut all = Vec::new();
    while let Some(piece) = pieces.next()? {
        all.push(piece);
    }
    Ok(all)
}

fn any(type_url: &str, value: Vec<u8>) -> Any {
    Any {
        type_url: type_url.to_owned(),
        value: value.into(),
    }
}

fn wrapped(any: Any, name: &str) -> Any {
    let wrapper = Resource {
        name: name.to_owned(),
        resource: Some(any),
        ..Resource::default()
    };
    self::any(types::RESOURCE, wrapper.encode_to_vec())
}

fn route(hosts: usize, vhds: bool) -> Any {
    let host = |n: usize| VirtualHost {
        name: format!("v{n}"),
        // One of them is longer than a chunk.
        domains: vec!["d".repeat(if n == 3 { 2 << 20 } else { n })],
        ..VirtualHost::default()
    };
    let route = RouteConfiguration {
        name: "r".into(),
        virtual_hosts: (0..hosts).map(host).collect(),
        vhds: vhds.then(Vhds::default),
        ..RouteConfiguration::default()
    };
    any(types::ROUTE_CONFIGURATION, route.encode_to_vec())
}

/// The same, from the decoded whole.
fn expected(response: &DiscoveryResponse) -> Vec<(usize, Piece)> {
    let mut all = Vec::new();
    for (index, any) in response.resources.iter().enumerate() {
        let (wrapper, inner) = match any.type_url == types::RESOURCE {
            true => {
                let mut wrapper = Resource::decode(any.value.clone()).unwrap();
                let inner = wrapper.resource.take().unwrap();
                (Some(wrapper), inner)
            }
            false => (None, any.clone()),
        };
        let is_route = inner.type_url == types::ROUTE_CONFIGURATION;
        let split = is_route.then(|| vhosts::split(&inner.value).unwrap());
        let Some(split) = split.flatten() else {
            all.push((index, Piece::Whole(any.clone())));
            continue;
        };
        let route = Route {
            type_url: inner.type_url,
            rest: split.rest,
            wrapper,
        };
        all.push((index, Piece::Route(Box::new(route))));
        let hosts = split.hosts.into_iter().enumerate();
        all.extend(hosts.map(|(n, host)| (index, Piece::Host(n, host))));
    }
    all
}

#[test]
fn every_resource_is_a_piece_and_every_host_of_a_route_that_has_vhds() {
    let cluster = any(types::CLUSTER, b"\x0a\x01c".to_vec());
    let response = DiscoveryResponse {
        version_info: "v".into(),
        resources: vec![
            cluster.clone(),
            route(5, true),
            route(5, false),
            wrapped(route(2, true), "r"),
            wrapped(cluster, "c"),
            route(0, true),
        ],
        nonce: "n".into(),
        ..DiscoveryResponse::default()
    };
    let found = pieces(&response.encode_to_vec()).unwrap();
    assert_eq!(found, expected(&response));
    assert_eq!(found.len(), 1 + 6 + 1 + 3 + 1 + 1);
}

#[test]
fn what_is_cut_off_anywhere_is_an_error() {
    let response = DiscoveryResponse {
        resources: vec![route(2, true), any("t/x", vec![1])],
        ..DiscoveryResponse::default()
    };
    let bytes = response.encode_to_vec();
    let first = bytes.len() - 10;
    for len in 1..bytes.len() {
        let found = pieces(&bytes[..len]);
        assert_eq!(found.is_ok(), len == first, "{len}: {found:?}");
    }
}

proptest! {
    #[test]
    fn arbitrary_bytes_are_what_the_decoder_makes_of_them(
        bytes in prop::collection::vec(0u8..=255, 0..60),
        lead in prop::sample::select(vec![&b""[..], b"\x12", b"\x12\x09\x0a\x03t/x\x12\x02ab"]),
    ) {
        let bytes = [lead, &bytes].concat();
        let decoded = DiscoveryResponse::decode(&bytes[..]);
        let found = pieces(&bytes);
        // Unused fields are not read.
        if let Ok(response) = decoded {
            prop_assert_eq!(found.unwrap(), expected(&response));
        }
    }
}
