//! Paths and hosts as clients send them: what is normalised stays as it is when
//! it is normalised again.
#![no_main]

use std::net::IpAddr;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use trunkline_proto::envoy::envoy::config::route::v3::RouteConfiguration;
use trunkline_proto::envoy::envoy::extensions::filters::network::http_connection_manager::v3::{
    HttpConnectionManager, http_connection_manager::RouteSpecifier,
};
use trunkline_proto::envoy::google::protobuf::BoolValue;
use trunkline_traffic::connection_manager::{Connection, ConnectionManager, NormalisedPath};
use trunkline_traffic::headers::Headers;

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    path: &'a str,
    host: &'a str,
    headers: Vec<(Name<'a>, &'a [u8])>,
    normalises: bool,
    merges: bool,
    escaped: u8,
    hops: u8,
    is_remote: bool,
}

/// Mostly one that the connection manager looks at.
#[derive(Arbitrary, Debug)]
enum Name<'a> {
    Known(u8),
    Any(&'a str),
}

const KNOWN: &[&str] = &[
    "x-forwarded-for",
    "connection",
    "te",
    "referer",
    "upgrade",
    "x-forwarded-proto",
    "x-envoy-retry-on",
    "via",
];

impl Name<'_> {
    fn text(&self) -> String {
        match self {
            Self::Known(number) => KNOWN[usize::from(*number) % KNOWN.len()].to_owned(),
            Self::Any(name) => (*name).to_owned(),
        }
    }
}

fuzz_target!(|input: Input<'_>| {
    let message = HttpConnectionManager {
        route_specifier: Some(RouteSpecifier::RouteConfig(RouteConfiguration::default())),
        normalize_path: Some(BoolValue {
            value: input.normalises,
        }),
        merge_slashes: input.merges,
        path_with_escaped_slashes_action: i32::from(input.escaped % 5),
        xff_num_trusted_hops: u32::from(input.hops % 4),
        use_remote_address: Some(BoolValue {
            value: input.is_remote,
        }),
        strip_trailing_host_dot: true,
        ..HttpConnectionManager::default()
    };
    let Ok(manager) = ConnectionManager::compile(&message) else {
        return;
    };
    if let NormalisedPath::Path(path) = manager.path().apply(input.path)
        && input.normalises
    {
        let bare = path.split('?').next().unwrap_or_default();
        assert!(!bare.contains("/../"), "{path}");
    }
    let _ = manager.host().apply(input.host, 80);
    let lines = input.headers.iter();
    let mut headers: Headers = lines
        .map(|(name, value)| (name.text(), value.to_vec()))
        .collect();
    let loopback = IpAddr::from([127, 0, 0, 1]);
    let connection = Connection {
        peer: loopback,
        node_address: loopback,
        listener_port: 1,
        is_tls: false,
    };
    let sender = manager.prepare_request(&mut headers, &connection, "id");
    assert!(sender.is_internal || !headers.has("x-envoy-retry-on"));
    assert!(headers.has("x-forwarded-proto"));
    let count = headers.all("x-forwarded-for").count();
    assert!(count <= 1, "one line is made of several");
});
