//! A file of virtual hosts, of any number, all of one route configuration that
//! leaves them to VHDS.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use prost::encoding::{WireType, encode_key, encode_varint, encoded_len_varint, key_len};
use prost::{Message, Name as _};
use trunkline_proto::envoy::envoy::config::core::v3::{
    HeaderValue, HeaderValueOption, header_value_option::HeaderAppendAction,
};
use trunkline_proto::envoy::envoy::config::route::v3::{
    Decorator, RetryPolicy, Route, RouteAction, RouteConfiguration, RouteMatch, Vhds, VirtualHost,
    route, route_action, route_match,
};
use trunkline_proto::envoy::google::protobuf::{Duration, UInt32Value};

use super::make::ads;

/// The route configuration that all of them are of.
const ROUTE: &str = "bench";
/// Virtual hosts that share a namespace, which is a part of their domains.
const EACH_NAMESPACE: usize = 1000;
/// Virtual hosts that share a cluster.
const EACH_CLUSTER: usize = 10;
/// `DiscoveryResponse.resources`.
const RESOURCES: u32 = 2;
/// `RouteConfiguration.virtual_hosts`.
const VIRTUAL_HOSTS: u32 = 2;

/// How virtual hosts are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Each by itself, after their route configuration.
    Apart,
    /// Inside of a route configuration that leaves them to VHDS.
    Inside,
    /// Inside of one that does not: a client gets all of them.
    Whole,
}

/// Makes the virtual host at a place: two domains, and two routes to a cluster;
/// about 300 bytes.
fn virtual_host(index: usize) -> VirtualHost {
    let (service, namespace) = (index, index / EACH_NAMESPACE);
    let backend = index / EACH_CLUSTER;
    let cluster = format!("outbound|8080||app-{backend:07}.ns-{namespace:04}");
    let route = |prefix: &str, timeout: i64| Route {
        r#match: Some(RouteMatch {
            path_specifier: Some(route_match::PathSpecifier::Prefix(prefix.into())),
            ..RouteMatch::default()
        }),
        action: Some(route::Action::Route(RouteAction {
            cluster_specifier: Some(route_action::ClusterSpecifier::Cluster(cluster.clone())),
            timeout: Some(Duration {
                seconds: timeout,
                nanos: 0,
            }),
            ..RouteAction::default()
        })),
        decorator: Some(Decorator {
            operation: format!("svc-{service:07}:8080{prefix}*"),
            ..Decorator::default()
        }),
        ..Route::default()
    };
    VirtualHost {
        name: format!("svc-{service:07}"),
        domains: vec![
            format!("svc-{service:07}.ns-{namespace:04}.example.com"),
            format!("svc-{service:07}.ns-{namespace:04}:8080"),
        ],
        routes: vec![route("/api/", 15), route("/", 60)],
        request_headers_to_add: vec![HeaderValueOption {
            header: Some(HeaderValue {
                key: "x-namespace".into(),
                value: format!("ns-{namespace:04}"),
                ..HeaderValue::default()
            }),
            append_action: HeaderAppendAction::OverwriteIfExistsOrAdd.into(),
            ..HeaderValueOption::default()
        }],
        retry_policy: Some(RetryPolicy {
            retry_on: "connect-failure,refused-stream".into(),
            num_retries: Some(UInt32Value { value: 2 }),
            ..RetryPolicy::default()
        }),
        ..VirtualHost::default()
    }
}

/// Writes a file of `count` virtual hosts and their route configuration, a
/// binary `DiscoveryResponse`.
///
/// # Errors
/// The file cannot be written.
pub(crate) fn write(path: &Path, count: usize, form: Form) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(1 << 20, File::create(path)?);
    // A message in parts is one message.
    let name = RouteConfiguration {
        name: ROUTE.into(),
        ..RouteConfiguration::default()
    };
    let way = RouteConfiguration {
        vhds: (form != Form::Whole).then(|| Vhds {
            config_source: Some(ads()),
        }),
        ..RouteConfiguration::default()
    };
    let (name, way) = (name.encode_to_vec(), way.encode_to_vec());
    if form != Form::Apart {
        write_inside(&mut out, &name, count, &way)?;
    } else {
        let route = [name, way].concat();
        write_any(&mut out, &RouteConfiguration::full_name(), &route)?;
        let url = VirtualHost::full_name();
        for index in 0..count {
            let mut host = virtual_host(index);
            host.name = format!("{ROUTE}/{}", host.name);
            write_any(&mut out, &url, &host.encode_to_vec())?;
        }
    }
    out.flush()
}

/// Writes a route configuration with the virtual hosts inside of it. `before`
/// and `behind` are its encoded fields in front of them and after them. The
/// virtual hosts are made twice, because their length comes first.
fn write_inside(
    out: &mut impl Write,
    before: &[u8],
    count: usize,
    behind: &[u8],
) -> io::Result<()> {
    let hosts: usize = (0..count)
        .map(|index| delimited_len(VIRTUAL_HOSTS, virtual_host(index).encoded_len()))
        .sum();
    let len = before.len() + hosts + behind.len();
    write_any_head(out, &RouteConfiguration::full_name(), len)?;
    out.write_all(before)?;
    for index in 0..count {
        let host = virtual_host(index).encode_to_vec();
        write_head(out, VIRTUAL_HOSTS, host.len())?;
        out.write_all(&host)?;
    }
    out.write_all(behind)
}

/// Writes a resource: the message of this type with this body.
fn write_any(out: &mut impl Write, message: &str, body: &[u8]) -> io::Result<()> {
    write_any_head(out, message, body.len())?;
    out.write_all(body)
}

/// Writes a resource but for its body of so many bytes, which the caller writes
/// next.
fn write_any_head(out: &mut impl Write, message: &str, body: usize) -> io::Result<()> {
    let url = format!("type.googleapis.com/{message}");
    let len = delimited_len(1, url.len()) + delimited_len(2, body);
    write_head(out, RESOURCES, len)?;
    write_head(out, 1, url.len())?;
    out.write_all(url.as_bytes())?;
    write_head(out, 2, body)
}

/// Writes the key and the length of a field, whose `len` bytes the caller
/// writes next.
fn write_head(out: &mut impl Write, field: u32, len: usize) -> io::Result<()> {
    let mut bytes = Vec::with_capacity(16);
    encode_key(field, WireType::LengthDelimited, &mut bytes);
    encode_varint(len as u64, &mut bytes);
    out.write_all(&bytes)
}

/// Returns the length of a field with `len` bytes of contents.
fn delimited_len(field: u32, len: usize) -> usize {
    key_len(field) + encoded_len_varint(len as u64) + len
}

#[cfg(test)]
mod tests {
    use super::*;
    use trunkline_proto::discovery::DiscoveryResponse;

    fn written(count: usize, form: Form) -> DiscoveryResponse {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("hosts.pb");
        write(&path, count, form).unwrap();
        let bytes = std::fs::read(path).unwrap();
        DiscoveryResponse::decode(&bytes[..]).unwrap()
    }

    #[test]
    fn a_virtual_host_has_two_domains_and_about_300_bytes() {
        let host = virtual_host(123_456);
        assert_eq!(host.domains.len(), 2);
        let len = host.encoded_len();
        assert!((270..330).contains(&len), "{len}");
    }

    #[test]
    fn every_form_has_all_of_them() {
        let apart = written(20, Form::Apart);
        assert_eq!(apart.resources.len(), 21);
        let first = VirtualHost::decode(&apart.resources[1].value[..]).unwrap();
        assert_eq!(first.name, "bench/svc-0000000");
        for (form, on_demand) in [(Form::Inside, true), (Form::Whole, false)] {
            let inside = written(20, form);
            assert_eq!(inside.resources.len(), 1);
            let route = RouteConfiguration::decode(&inside.resources[0].value[..]).unwrap();
            assert_eq!(
                (route.name.as_str(), route.virtual_hosts.len()),
                (ROUTE, 20)
            );
            assert_eq!(route.vhds.is_some(), on_demand);
            assert_eq!(route.encode_to_vec(), inside.resources[0].value);
        }
    }
}
