//! Who sent a request, and what is believed of its headers (54, 55; facts 2.1,
//! 2.2).

use std::net::IpAddr;

use trunkline_proto::acceptance::{Place, Problem};
use trunkline_proto::envoy::envoy::extensions::filters::network::http_connection_manager::v3::HttpConnectionManager;

use super::Connection;
use crate::address::Range;
use crate::findings::Findings;
use crate::headers::Headers;

/// Headers by which only clients inside the mesh may direct the proxy.
const INTERNAL_ONLY: &[&str] = &[
    "x-envoy-retriable-status-codes",
    "x-envoy-retriable-header-names",
    "x-envoy-retry-on",
    "x-envoy-retry-grpc-on",
    "x-envoy-max-retries",
    "x-envoy-upstream-alt-stat-name",
    "x-envoy-upstream-rq-timeout-ms",
    "x-envoy-upstream-rq-per-try-timeout-ms",
    "x-envoy-upstream-rq-timeout-alt-response",
    "x-envoy-expected-rq-timeout-ms",
    "x-envoy-hedge-on-per-try-timeout",
    "x-envoy-internal",
    "x-envoy-force-trace",
    "x-envoy-ip-tags",
    "x-envoy-original-url",
];

/// Headers that an edge removes besides.
const EDGE_ONLY: &[&str] = &[
    "x-envoy-original-path",
    "x-envoy-decorator-operation",
    "x-envoy-downstream-service-cluster",
    "x-envoy-downstream-service-node",
];

/// How clients are told apart.
#[derive(Debug, Clone)]
pub(super) struct Trust {
    uses_remote_address: bool,
    trusted_hops: usize,
    skips_xff: bool,
    appends_port: bool,
    internal: Box<[Range]>,
    scheme: Option<Box<str>>,
}

/// What is known of the sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sender {
    /// The address that is trusted to be the client's.
    pub address: IpAddr,
    /// Whether the client is inside the mesh.
    pub is_internal: bool,
    /// Whether this proxy is the first, and the client outside.
    pub is_edge: bool,
}

impl Trust {
    /// Compiles the rules about senders: whose `x-forwarded-for` to trust, and
    /// which addresses are internal.
    pub(super) fn compile(
        message: &HttpConnectionManager,
        place: &Place<'_>,
        findings: &mut Findings,
    ) -> Self {
        let detects_address = !message.original_ip_detection_extensions.is_empty();
        findings.unsupported(
            &place.field("original_ip_detection_extensions"),
            detects_address,
        );

        let internal_config = message.internal_address_config.as_ref();
        let range_messages = internal_config.map_or(&[][..], |config| &config.cidr_ranges);
        let config_place = place.field("internal_address_config");
        let internal = crate::route::compile_each(
            "cidr_ranges",
            range_messages,
            &config_place,
            |range, place| {
                let range = Range::compile(range);
                if range.is_none() {
                    findings.add(place, Problem::Other("is no range of addresses".to_owned()));
                }
                range
            },
        );

        Self {
            uses_remote_address: message.use_remote_address.is_some_and(|flag| flag.value),
            trusted_hops: message.xff_num_trusted_hops as usize,
            skips_xff: message.skip_xff_append,
            appends_port: message.append_x_forwarded_port,
            internal,
            scheme: read_scheme(message),
        }
    }

    /// Judges the sender, and changes the headers that say who it is. With
    /// `use_remote_address`, the sender is the peer of the connection, which is
    /// appended to `x-forwarded-for`; otherwise the header names the sender.
    pub(super) fn apply(&self, headers: &mut Headers, connection: &Connection) -> Sender {
        let is_single;
        let sender_address;
        if self.uses_remote_address {
            is_single = !headers.has("x-forwarded-for");
            sender_address = match self.trusted_hops {
                0 => Some(connection.peer),
                hops => {
                    let hop_address = last_address(headers, hops - 1).map(|(address, _)| address);
                    Some(hop_address.unwrap_or(connection.peer))
                }
            };
            self.append_address(headers, connection);
            if self.trusted_hops == 0 || !headers.has("x-forwarded-proto") {
                headers.set("x-forwarded-proto", connection.scheme());
            }
            if self.appends_port {
                headers.set("x-forwarded-port", connection.listener_port.to_string());
            }
        } else {
            let last_entry = last_address(headers, self.trusted_hops);
            is_single = last_entry.is_some_and(|(_, is_single)| is_single);
            sender_address = last_entry.map(|(address, _)| address);
        }

        if let Some(scheme) = &self.scheme {
            headers.set("x-forwarded-proto", scheme.to_string());
        } else if !headers.has("x-forwarded-proto") {
            headers.append("x-forwarded-proto", connection.scheme());
        }

        let is_internal_address = sender_address.is_some_and(|address| self.is_internal(address));
        let is_internal = is_single && is_internal_address;
        let sender = Sender {
            address: sender_address.unwrap_or(connection.peer),
            is_internal,
            is_edge: self.uses_remote_address && !is_internal,
        };
        sanitise(headers, sender);
        sender
    }

    /// Appends the peer's address to `x-forwarded-for`, unless the policy
    /// forbids it.
    fn append_address(&self, headers: &mut Headers, connection: &Connection) {
        if self.skips_xff {
            return;
        }
        // A loopback address has no meaning for the next hop.
        let address = match connection.peer.is_loopback() {
            true => connection.node_address,
            false => connection.peer,
        };
        headers.join("x-forwarded-for", ",", &address.to_string());
    }

    /// Returns whether an address is in the configured ranges.
    fn is_internal(&self, address: IpAddr) -> bool {
        self.internal.iter().any(|range| range.has(address))
    }
}

/// Returns the scheme that all requests are given; `None` if they keep theirs.
fn read_scheme(message: &HttpConnectionManager) -> Option<Box<str>> {
    use trunkline_proto::envoy::envoy::config::core::v3::scheme_header_transformation::Transformation;
    let transformation = message.scheme_header_transformation.as_ref()?;
    match transformation.transformation.as_ref()? {
        Transformation::SchemeToOverwrite(scheme) => Some(scheme.as_str().into()),
    }
}

/// Marks a request from an internal sender. Removes the headers that only
/// internal senders may set from other requests.
fn sanitise(headers: &mut Headers, sender: Sender) {
    if sender.is_internal {
        headers.set("x-envoy-internal", "true");
        return;
    }
    headers.remove_of_envoy(INTERNAL_ONLY);
    if sender.is_edge {
        headers.remove_of_envoy(EDGE_ONLY);
        headers.set("x-envoy-external-address", sender.address.to_string());
    }
}

/// Returns the address in `x-forwarded-for` that `skipped` others follow, and
/// whether it is the only one of the list. Returns `None` if there are fewer, or
/// it is no address.
fn last_address(headers: &Headers, skipped: usize) -> Option<(IpAddr, bool)> {
    let list = headers.text("x-forwarded-for")?;
    let mut addresses = list.rsplit(',').skip(skipped);
    let address = addresses.next()?.trim().parse().ok()?;
    Some((address, !list.contains(',')))
}
