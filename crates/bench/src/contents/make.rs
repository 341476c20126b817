//! Resources of which a client can tell cheaply which revision they are.

use bytes::Bytes;
use prost::{Message, Name as _};
use trunkline_proto::envoy::envoy::config::cluster::v3::{Cluster, cluster};
use trunkline_proto::envoy::envoy::config::core::v3::{
    Address, AggregatedConfigSource, ApiVersion, ConfigSource, Metadata, SocketAddress, address,
    config_source, socket_address,
};
use trunkline_proto::envoy::envoy::config::endpoint::v3::{
    ClusterLoadAssignment, Endpoint, LbEndpoint, LocalityLbEndpoints, lb_endpoint,
};
use trunkline_proto::envoy::envoy::config::listener::v3::{ApiListener, Listener};
use trunkline_proto::envoy::envoy::config::route::v3::{
    DirectResponseAction, Route, RouteAction, RouteConfiguration, RouteMatch, VirtualHost, route,
    route_action, route_match,
};
use trunkline_proto::envoy::envoy::extensions::filters::network::http_connection_manager::v3::{
    HttpConnectionManager, Rds, http_connection_manager,
};
use trunkline_proto::envoy::google::protobuf::{Any, Duration, Struct, Value, value};

use super::{Kind, Mark, Place, Variants};

/// What all contents have in common.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recipe {
    /// The types there are: a resource refers to another only if it is there.
    pub(crate) kinds: Vec<Kind>,
    /// What every name begins with.
    pub(crate) prefix: String,
    /// About how many bytes each has at least.
    pub(crate) size: usize,
    /// How many variants each has, and for whom they are.
    pub(crate) variants: Variants,
}

impl Recipe {
    /// Returns the name of the resources at an index, which is the same in
    /// every type.
    pub(crate) fn name(&self, index: usize) -> String {
        format!("{}-{index:06}", self.prefix)
    }

    /// Returns the index of a name; `None` if it is not one of the tool's.
    pub(crate) fn index(&self, name: &str) -> Option<usize> {
        let digits = name.strip_prefix(self.prefix.as_str())?.strip_prefix('-')?;
        digits.parse().ok()
    }

    /// Makes a revision of a resource, encoded.
    pub(crate) fn body(&self, place: Place, revision: u32) -> Bytes {
        let Place {
            kind,
            index,
            variant,
        } = place;
        let name = self.name(index);
        let mark = Mark { revision, variant }.text();
        let bytes = match kind {
            Kind::Clusters => self.cluster(name, mark).encode_to_vec(),
            Kind::Endpoints => self.endpoints(name, mark, index).encode_to_vec(),
            Kind::Listeners => self.listener(name, mark).encode_to_vec(),
            Kind::Routes => self.routes(name, mark).encode_to_vec(),
            Kind::Hosts => self.host(name, mark).encode_to_vec(),
        };
        bytes.into()
    }

    /// Returns whether there are resources of a type.
    fn has(&self, kind: Kind) -> bool {
        self.kinds.contains(&kind)
    }

    /// Makes a cluster, whose mark is its `alt_stat_name`. Its endpoints come
    /// by EDS if there are any.
    fn cluster(&self, name: String, mark: String) -> Cluster {
        let by_discovery = self.has(Kind::Endpoints);
        let kind = match by_discovery {
            true => cluster::DiscoveryType::Eds,
            false => cluster::DiscoveryType::StrictDns,
        };
        let load = (!by_discovery).then(|| ClusterLoadAssignment {
            cluster_name: name.clone(),
            endpoints: vec![locality("backend.example".into(), 8080, String::new())],
            ..ClusterLoadAssignment::default()
        });
        let mut cluster = Cluster {
            name,
            alt_stat_name: mark,
            cluster_discovery_type: Some(cluster::ClusterDiscoveryType::Type(kind.into())),
            eds_cluster_config: by_discovery.then(|| cluster::EdsClusterConfig {
                eds_config: Some(ads()),
                ..Default::default()
            }),
            connect_timeout: Some(Duration {
                seconds: 1,
                nanos: 0,
            }),
            load_assignment: load,
            ..Cluster::default()
        };
        let lacking = self.size.saturating_sub(cluster.encoded_len());
        cluster.metadata = padding(lacking);
        cluster
    }

    /// Makes the endpoints of a cluster, whose mark is the hostname of the
    /// first.
    fn endpoints(&self, name: String, mark: String, index: usize) -> ClusterLoadAssignment {
        let address = |n: usize| {
            let [_, a, b, c] = u32::try_from(n).unwrap_or_default().to_be_bytes();
            format!("10.{a}.{b}.{c}")
        };
        let mut assignment = ClusterLoadAssignment {
            cluster_name: name,
            endpoints: vec![locality(address(index), 8080, mark)],
            ..ClusterLoadAssignment::default()
        };
        // A large one has many endpoints, as real ones do.
        while assignment.encoded_len() < self.size {
            let more = assignment.endpoints[0].lb_endpoints.len();
            let next = lb_endpoint(address(index + more), 8080, String::new());
            assignment.endpoints[0].lb_endpoints.push(next);
        }
        assignment
    }

    /// Makes a listener, whose mark is its `stat_prefix`. Its routes come by
    /// RDS if there are any.
    fn listener(&self, name: String, mark: String) -> Listener {
        let specifier = match self.has(Kind::Routes) {
            true => http_connection_manager::RouteSpecifier::Rds(Rds {
                config_source: Some(ads()),
                route_config_name: name.clone(),
            }),
            false => http_connection_manager::RouteSpecifier::RouteConfig(
                self.routes(name.clone(), "local".into()),
            ),
        };
        let manager = HttpConnectionManager {
            stat_prefix: "bench".into(),
            route_specifier: Some(specifier),
            ..HttpConnectionManager::default()
        };
        let mut listener = Listener {
            name,
            stat_prefix: mark,
            api_listener: Some(ApiListener {
                api_listener: Some(Any {
                    type_url: format!("type.googleapis.com/{}", HttpConnectionManager::full_name()),
                    value: manager.encode_to_vec(),
                }),
            }),
            ..Listener::default()
        };
        let lacking = self.size.saturating_sub(listener.encoded_len());
        listener.metadata = padding(lacking);
        listener
    }

    /// Makes a route configuration, whose mark is the name of its virtual host.
    /// Its routes lead to the cluster of its name, if there are clusters.
    fn routes(&self, name: String, mark: String) -> RouteConfiguration {
        let action = match self.has(Kind::Clusters) {
            true => route::Action::Route(RouteAction {
                cluster_specifier: Some(route_action::ClusterSpecifier::Cluster(name.clone())),
                ..RouteAction::default()
            }),
            false => route::Action::DirectResponse(DirectResponseAction {
                status: 200,
                ..DirectResponseAction::default()
            }),
        };
        let one = |prefix: String| Route {
            r#match: Some(RouteMatch {
                path_specifier: Some(route_match::PathSpecifier::Prefix(prefix)),
                ..RouteMatch::default()
            }),
            action: Some(action.clone()),
            ..Route::default()
        };
        let mut routes = RouteConfiguration {
            name,
            virtual_hosts: vec![VirtualHost {
                name: mark,
                domains: vec!["*".into()],
                routes: vec![one("/".into())],
                ..VirtualHost::default()
            }],
            ..RouteConfiguration::default()
        };
        while routes.encoded_len() < self.size {
            let more = routes.virtual_hosts[0].routes.len();
            let next = one(format!("/{more}/"));
            routes.virtual_hosts[0].routes.insert(0, next);
        }
        routes
    }

    /// Makes a virtual host with two domains, the host of its name and a longer
    /// one. Its mark is the name of the first route.
    fn host(&self, name: String, mark: String) -> VirtualHost {
        let short = name.rsplit_once('/').map_or(&*name, |(_, host)| host);
        let long = format!("{short}.svc.cluster.local");
        let one = |prefix: String, name: String| Route {
            name,
            r#match: Some(RouteMatch {
                path_specifier: Some(route_match::PathSpecifier::Prefix(prefix)),
                ..RouteMatch::default()
            }),
            action: Some(route::Action::Route(RouteAction {
                cluster_specifier: Some(route_action::ClusterSpecifier::Cluster(format!(
                    "outbound|80||{long}"
                ))),
                ..RouteAction::default()
            })),
            ..Route::default()
        };
        let mut host = VirtualHost {
            domains: vec![short.to_owned(), long.clone()],
            routes: vec![one("/".into(), mark)],
            name,
            ..VirtualHost::default()
        };
        while host.encoded_len() < self.size {
            let more = host.routes.len();
            host.routes.push(one(format!("/{more}/"), String::new()));
        }
        host
    }
}

/// Returns whether two bodies are equal messages, however they are encoded.
pub(crate) fn same(kind: Kind, one: &[u8], other: &[u8]) -> bool {
    fn equal<M: Message + Default + PartialEq>(one: &[u8], other: &[u8]) -> bool {
        matches!((M::decode(one), M::decode(other)), (Ok(one), Ok(other)) if one == other)
    }
    match kind {
        Kind::Clusters => equal::<Cluster>(one, other),
        Kind::Endpoints => equal::<ClusterLoadAssignment>(one, other),
        Kind::Listeners => equal::<Listener>(one, other),
        Kind::Routes => equal::<RouteConfiguration>(one, other),
        Kind::Hosts => equal::<VirtualHost>(one, other),
    }
}

/// Returns the source of a type that comes by the same stream.
pub(super) fn ads() -> ConfigSource {
    ConfigSource {
        resource_api_version: ApiVersion::V3.into(),
        config_source_specifier: Some(config_source::ConfigSourceSpecifier::Ads(
            AggregatedConfigSource {},
        )),
        ..ConfigSource::default()
    }
}

/// Makes a locality of one endpoint.
fn locality(address: String, port: u32, hostname: String) -> LocalityLbEndpoints {
    LocalityLbEndpoints {
        lb_endpoints: vec![lb_endpoint(address, port, hostname)],
        ..LocalityLbEndpoints::default()
    }
}

/// Makes an endpoint of a cluster.
fn lb_endpoint(address: String, port: u32, hostname: String) -> LbEndpoint {
    let socket = SocketAddress {
        address,
        port_specifier: Some(socket_address::PortSpecifier::PortValue(port)),
        ..SocketAddress::default()
    };
    LbEndpoint {
        host_identifier: Some(lb_endpoint::HostIdentifier::Endpoint(Endpoint {
            address: Some(Address {
                address: Some(address::Address::SocketAddress(socket)),
            }),
            hostname,
            ..Endpoint::default()
        })),
        ..LbEndpoint::default()
    }
}

/// Makes metadata that makes a message about `bytes` bytes longer; `None` if
/// that is too little for any.
fn padding(bytes: usize) -> Option<Metadata> {
    // What is around the text takes some of it.
    let text = "x".repeat(bytes.checked_sub(24)?);
    let text = Value {
        kind: Some(value::Kind::StringValue(text)),
    };
    let fields = Struct {
        fields: [("padding".to_owned(), text)].into(),
    };
    Some(Metadata {
        filter_metadata: [("bench".to_owned(), fields)].into(),
        ..Metadata::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recipe(kinds: &[Kind], size: usize) -> Recipe {
        Recipe {
            kinds: kinds.to_vec(),
            prefix: "route/bench".into(),
            size,
            ..Recipe::default()
        }
    }

    #[test]
    fn a_body_says_its_revision_and_its_name() {
        for kinds in [
            &Kind::ALL[..],
            &[Kind::Clusters],
            &[Kind::Listeners],
            &[Kind::Routes],
        ] {
            let recipe = recipe(kinds, 0);
            for kind in kinds.iter().copied() {
                let place = Place {
                    variant: 3,
                    ..Place::only(kind, 7)
                };
                let body = recipe.body(place, 42);
                let mark = Mark {
                    revision: 42,
                    variant: 3,
                };
                assert_eq!(kind.read_mark(&body), Some(mark), "{kind:?}");
                let name = trunkline_proto::discovery::name_of(&body).unwrap();
                assert_eq!(recipe.index(name), Some(7));
                assert!(same(kind, &body, &recipe.body(place, 42)));
                assert!(!same(kind, &body, &recipe.body(place, 43)));
                let other = recipe.body(Place::only(kind, 7), 42);
                assert!(!same(kind, &body, &other));
            }
        }
        assert_eq!(recipe(&[], 0).index("other-000001"), None);
        assert_eq!(Kind::Clusters.read_mark(b"\x0a\x01a"), None);
    }

    #[test]
    fn a_body_is_as_large_as_asked() {
        let recipe = recipe(&Kind::ALL, 1000);
        for kind in Kind::ALL {
            let len = recipe.body(Place::only(kind, 1), 2).len();
            assert!((960..1100).contains(&len), "{kind:?}: {len}");
        }
    }

    #[test]
    fn the_library_takes_every_body() {
        let recipe = recipe(&Kind::ALL, 300);
        for kind in Kind::ALL {
            let body = recipe.body(Place::only(kind, 1), 2);
            let resource = trunkline::wire::accept(&kind.url().into(), body).unwrap();
            assert_eq!(resource.name.as_str(), "route/bench-000001");
        }
    }
}
