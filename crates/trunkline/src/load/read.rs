//! From the messages of a report to the values that are kept.

use std::time::{Duration, SystemTime};

use prost::Message as _;
use trunkline_proto::envoy::envoy::config::core::v3::address::Address as Kind;
use trunkline_proto::envoy::envoy::config::core::v3::envoy_internal_address::AddressNameSpecifier;
use trunkline_proto::envoy::envoy::config::core::v3::socket_address::PortSpecifier;
use trunkline_proto::envoy::envoy::config::core::v3::{Address, SocketAddress};
use trunkline_proto::load_stats::{
    ClusterStats, Interval, NamedMetric, UnnamedMetric, UpstreamEndpointStats,
    UpstreamLocalityStats,
};

use super::report::{ClusterFigures, Drops, EndpointLoad, LocalityLoad, Metric, Place, Requests};

/// Converts the report on one cluster: its figures as a whole, and those of its
/// localities. The caller reads the names of the cluster.
pub(super) fn read_cluster(
    stats: ClusterStats,
    received: SystemTime,
) -> (ClusterFigures, Vec<LocalityLoad>) {
    let interval = read_duration(stats.load_report_interval);
    let drops = stats
        .dropped_requests
        .into_iter()
        .map(|category_drops| Drops {
            category: category_drops.category,
            count: category_drops.dropped_count,
        });
    let figures = ClusterFigures {
        received,
        interval,
        dropped: stats.total_dropped_requests,
        drops: drops.collect(),
    };

    let localities = stats.upstream_locality_stats.into_iter();
    let loads = localities.map(|stats| read_locality(stats, received, interval));
    (figures, loads.collect())
}

/// Converts a duration. A missing one, and a negative part of one, become zero.
fn read_duration(duration: Option<Interval>) -> Duration {
    let Some(duration) = duration else {
        return Duration::ZERO;
    };
    let seconds = u64::try_from(duration.seconds).unwrap_or_default();
    let nanos = u32::try_from(duration.nanos).unwrap_or_default();
    Duration::from_secs(seconds).saturating_add(Duration::from_nanos(nanos.into()))
}

/// Converts the report on one locality, with the interval of its cluster.
fn read_locality(
    stats: UpstreamLocalityStats,
    received: SystemTime,
    interval: Duration,
) -> LocalityLoad {
    let locality = stats.locality.unwrap_or_default();
    let requests = Requests {
        successful: stats.total_successful_requests,
        in_progress: stats.total_requests_in_progress,
        errors: stats.total_error_requests,
        issued: stats.total_issued_requests,
    };

    // These metrics have fields of their own; their names are those of ORCA.
    let named_metrics = [
        ("cpu_utilization", stats.cpu_utilization),
        ("mem_utilization", stats.mem_utilization),
        ("application_utilization", stats.application_utilization),
    ];
    let named_metrics = named_metrics.into_iter();
    let named_metrics = named_metrics.filter_map(|(name, stats)| read_known_metric(name, stats));
    let endpoints = stats.upstream_endpoint_stats.into_iter();

    LocalityLoad {
        place: Place {
            region: locality.region,
            zone: locality.zone,
            sub_zone: locality.sub_zone,
            priority: stats.priority,
        },
        received,
        interval,
        requests,
        metrics: named_metrics
            .chain(read_metrics(stats.load_metric_stats))
            .collect(),
        endpoints: endpoints.map(read_endpoint).collect(),
    }
}

/// Converts the report on one endpoint.
fn read_endpoint(stats: UpstreamEndpointStats) -> EndpointLoad {
    EndpointLoad {
        address: read_address(&stats.address),
        requests: Requests {
            successful: stats.total_successful_requests,
            in_progress: stats.total_requests_in_progress,
            errors: stats.total_error_requests,
            issued: stats.total_issued_requests,
        },
        metrics: read_metrics(stats.load_metric_stats).collect(),
    }
}

/// Reads the metrics that have a name in the message.
fn read_metrics(stats: Vec<NamedMetric>) -> impl Iterator<Item = Metric> {
    stats.into_iter().map(|stats| Metric {
        name: stats.metric_name,
        answers: stats.num_requests_finished_with_metric,
        total: stats.total_metric_value,
    })
}

/// Reads a metric that has a field of its own, under this name.
fn read_known_metric(name: &str, stats: Option<UnnamedMetric>) -> Option<Metric> {
    stats.map(|stats| Metric {
        name: name.to_owned(),
        answers: stats.num_requests_finished_with_metric,
        total: stats.total_metric_value,
    })
}

/// The bytes of the longest address that is read: a path may be long.
const ADDRESS_BYTES: usize = 4096;

/// Reads an encoded address as a text. One that is too long, or no address, is
/// empty.
fn read_address(bytes: &[u8]) -> String {
    if bytes.len() > ADDRESS_BYTES {
        return String::new();
    }
    let address = Address::decode(bytes);
    address.map(write_address).unwrap_or_default()
}

/// Formats an address for people: `host:port`, a path, or the name of an
/// internal listener. Returns an empty text for an unknown kind of address.
fn write_address(address: Address) -> String {
    match address.address {
        Some(Kind::SocketAddress(socket)) => write_socket_address(socket),
        Some(Kind::Pipe(pipe)) => pipe.path,
        Some(Kind::EnvoyInternalAddress(internal)) => match internal.address_name_specifier {
            Some(AddressNameSpecifier::ServerListenerName(name)) => name,
            None => internal.endpoint_id,
        },
        None => String::new(),
    }
}

/// Formats a socket address as `host:port`, with an IPv6 host in brackets.
fn write_socket_address(socket: SocketAddress) -> String {
    let host = if socket.address.contains(':') {
        format!("[{}]", socket.address)
    } else {
        socket.address
    };
    match socket.port_specifier {
        Some(PortSpecifier::PortValue(port)) => format!("{host}:{port}"),
        Some(PortSpecifier::NamedPort(port)) => format!("{host}:{port}"),
        None => host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn socket(address: &str, port: Option<PortSpecifier>) -> String {
        write_socket_address(SocketAddress {
            address: address.into(),
            port_specifier: port,
            ..SocketAddress::default()
        })
    }

    #[test]
    fn addresses_are_written_as_people_write_them() {
        let port = || Some(PortSpecifier::PortValue(80));
        assert_eq!(socket("10.0.0.1", port()), "10.0.0.1:80");
        assert_eq!(socket("::1", port()), "[::1]:80");
        assert_eq!(
            socket("a", Some(PortSpecifier::NamedPort("http".into()))),
            "a:http"
        );
        assert_eq!(socket("a", None), "a");
    }

    #[test]
    fn an_odd_duration_is_none() {
        let of = |seconds, nanos| read_duration(Some(Interval { seconds, nanos }));
        assert_eq!(of(1, 500_000_000), Duration::from_millis(1500));
        assert_eq!(of(-1, -1), Duration::ZERO);
        assert!(of(i64::MAX, i32::MAX) > Duration::from_secs(1));
        assert_eq!(read_duration(None), Duration::ZERO);
    }
}
