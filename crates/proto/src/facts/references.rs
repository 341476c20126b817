//! The references of a resource.
//!
//! The whole message is walked, through every `Any` of a known type, and a few
//! messages are known to hold references wherever they stand. So a filter that
//! carries a route configuration, a fallback or a nested filter chain needs no
//! code of its own.
//!
//! Not counted: a source that is a file (nobody serves it), `cluster_header`
//! (decided by each request), and the clusters of `EnvoyGrpc` and `HttpUri`,
//! which mostly name clusters of the bootstrap.

use std::collections::BTreeSet;

use bytes::Bytes;
use prost_reflect::{DynamicMessage, MessageDescriptor, ReflectMessage, Value};

use super::{FactsError, MAX_REFERENCES, text, texts};
use crate::{
    canonical::{MAX_DEPTH, any_parts},
    descriptor::{self, full_name, types},
    redact,
};

/// Messages and the field in which they name a cluster, or a list of them.
pub(super) const CLUSTERS: &[(&str, &str)] = &[
    ("envoy.config.route.v3.RouteAction", "cluster"),
    (
        "envoy.config.route.v3.RouteAction.RequestMirrorPolicy",
        "cluster",
    ),
    (
        "envoy.config.route.v3.WeightedCluster.ClusterWeight",
        "name",
    ),
    (
        "envoy.extensions.clusters.aggregate.v3.ClusterConfig",
        "clusters",
    ),
    (
        "envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy",
        "cluster",
    ),
    (
        "envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy.WeightedCluster.ClusterWeight",
        "name",
    ),
    ("envoy.extensions.filters.udp.udp_proxy.v3.Route", "cluster"),
    (
        "envoy.extensions.filters.udp.udp_proxy.v3.UdpProxyConfig",
        "cluster",
    ),
    (
        "envoy.extensions.router.cluster_specifiers.matcher.v3.ClusterAction",
        "cluster",
    ),
];

/// A message that names a resource and its source.
pub(super) struct Named {
    pub(super) message: &'static str,
    pub(super) name: &'static str,
    source: &'static str,
    /// Whether it counts without a source: a secret without one is static,
    /// routes without one are a mistake that the client will report.
    sourceless: bool,
    type_url: &'static str,
}

impl Named {
    /// Returns whether the name is a reference, by the source that goes with
    /// it: nobody serves a file.
    fn is_reference(&self, source: &Source) -> bool {
        match source {
            Source::Server => true,
            Source::File => false,
            Source::Missing => self.sourceless,
        }
    }
}

pub(super) const NAMED: &[Named] = &[
    Named {
        message: "envoy.extensions.filters.network.http_connection_manager.v3.Rds",
        name: "route_config_name",
        source: "config_source",
        sourceless: true,
        type_url: types::ROUTE_CONFIGURATION,
    },
    Named {
        message: "envoy.extensions.transport_sockets.tls.v3.SdsSecretConfig",
        name: "name",
        source: "sds_config",
        sourceless: false,
        type_url: types::SECRET,
    },
    Named {
        message: "envoy.config.endpoint.v3.LedsClusterLocalityConfig",
        name: "leds_collection_name",
        source: "leds_config",
        sourceless: false,
        type_url: types::LB_ENDPOINT,
    },
];

/// The facts that a walk finds in a message and in those inside it.
pub(super) struct WalkResult {
    /// The references, sorted, each once.
    pub(super) references: Vec<(&'static str, String)>,
    /// Route configurations inside the message that have VHDS.
    pub(super) leaves: Vec<String>,
    pub(super) holds_secrets: bool,
    pub(super) holds_keys: bool,
}

/// Finds the references of a message and of all messages inside it, and the
/// inner route configurations that use VHDS.
///
/// # Errors
/// A body inside the message is not of its type, messages nest too deep, or
/// there are more than [`MAX_REFERENCES`] references.
pub(super) fn find(message: &DynamicMessage) -> Result<WalkResult, FactsError> {
    let mut walk = Walk::default();
    walk.walk_message(message, 0)?;
    Ok(WalkResult {
        references: walk.references.into_iter().collect(),
        leaves: walk.leaves.into_iter().collect(),
        holds_secrets: walk.holds_secrets,
        holds_keys: walk.holds_keys,
    })
}

/// Returns the references in a message's own fields. `name` is the full name of
/// the message.
pub(super) fn own_references(
    name: &str,
    message: &DynamicMessage,
) -> BTreeSet<(&'static str, String)> {
    let mut walk = Walk::default();
    walk.add_own_references(name, message);
    walk.references
}

/// Returns whether a field of a message names a cluster, or a list of them. The
/// message is given by its full name.
pub(crate) fn names_cluster(message: &str, field: &str) -> bool {
    CLUSTERS.contains(&(message, field))
}

/// The field of a filter that is subscribed to by the filter's name (ECDS).
const EXTENSION: &str = "config_discovery";

/// Fields of any message in which a reference is found otherwise than by a
/// field that names a cluster.
pub(crate) const ODD_FIELDS: [&str; 2] = [EXTENSION, "route_config"];

/// Returns whether a message has references otherwise than by a field that
/// names a cluster. The message is given by its full name.
pub(crate) fn is_odd(message: &str) -> bool {
    NAMED.iter().any(|named| named.message == message)
        || [CLUSTER, SCOPED_ROUTE, SCOPED_RDS].contains(&message)
}

const CLUSTER: &str = "envoy.config.cluster.v3.Cluster";
const SCOPED_ROUTE: &str = "envoy.config.route.v3.ScopedRouteConfiguration";
const SCOPED_RDS: &str = "envoy.extensions.filters.network.http_connection_manager.v3.ScopedRds";

/// Decodes a body as the type `message`. The error names `type_url`.
pub(super) fn decode_message(
    message: MessageDescriptor,
    type_url: &str,
    body: Bytes,
) -> Result<DynamicMessage, FactsError> {
    DynamicMessage::decode(message, body).map_err(|source| {
        let type_url = type_url.to_owned();
        FactsError::Malformed { type_url, source }
    })
}

#[derive(Default)]
struct Walk {
    references: BTreeSet<(&'static str, String)>,
    leaves: BTreeSet<String>,
    /// There is something that is never shown.
    holds_secrets: bool,
    /// There is something inline that a `Secret` may hold.
    holds_keys: bool,
}

impl Walk {
    /// Adds the references of a message and of the messages inside it. `depth`
    /// is the number of enclosing messages, through every `Any`.
    fn walk_message(&mut self, message: &DynamicMessage, depth: usize) -> Result<(), FactsError> {
        if depth > MAX_DEPTH {
            return Err(FactsError::TooDeep);
        }

        let descriptor = message.descriptor();
        if descriptor.full_name() == "google.protobuf.Any" {
            return self.walk_any(message, depth);
        }

        self.add_own_references(descriptor.full_name(), message);

        let secrets = redact::find_own_secrets(message);
        self.holds_secrets |= secrets.any;
        self.holds_keys |= secrets.keys;

        let is_inside = depth > 0;
        if is_inside && descriptor.full_name() == full_name(types::ROUTE_CONFIGURATION) {
            self.add_leaf(message);
        }
        if self.references.len() > MAX_REFERENCES {
            return Err(FactsError::TooMany);
        }

        for (_, value) in message.fields() {
            self.walk_value(value, depth)?;
        }
        Ok(())
    }

    /// Walks the messages in a value: the value itself, the items of a list or
    /// the values of a map.
    fn walk_value(&mut self, value: &Value, depth: usize) -> Result<(), FactsError> {
        match value {
            Value::Message(message) => self.walk_message(message, depth + 1),
            Value::List(list) => list
                .iter()
                .try_for_each(|item| self.walk_value(item, depth)),
            Value::Map(map) => map
                .values()
                .try_for_each(|value| self.walk_value(value, depth)),
            _ => Ok(()),
        }
    }

    /// Walks the body of an `Any`. Skips a body of an unknown type, whose
    /// references cannot be found.
    fn walk_any(&mut self, any: &DynamicMessage, depth: usize) -> Result<(), FactsError> {
        let Some((url, body)) = any_parts(any) else {
            return Ok(());
        };
        let Some(descriptor) = descriptor::message(&url) else {
            return Ok(());
        };
        self.walk_message(&decode_message(descriptor, &url, body)?, depth + 1)
    }

    /// Adds the references in the message's own fields. `name` is the full name
    /// of the message.
    fn add_own_references(&mut self, name: &str, message: &DynamicMessage) {
        if let Some((_, field)) = CLUSTERS.iter().find(|(message, _)| *message == name) {
            // The field is a text or a list of texts; reading it as the other kind
            // yields nothing.
            self.add_reference(types::CLUSTER, text(message, field));
            for cluster in texts(message, field) {
                self.add_reference(types::CLUSTER, Some(cluster));
            }
        }

        if let Some(named) = NAMED.iter().find(|named| named.message == name)
            && named.is_reference(&read_source(message, named.source))
        {
            self.add_reference(named.type_url, text(message, named.name));
        }
        if message.has_field_by_name(EXTENSION) {
            self.add_extension_config(message);
        }

        match name {
            CLUSTER => self.add_endpoints(message),
            SCOPED_ROUTE => {
                let routes_name = text(message, "route_configuration_name");
                self.add_reference(types::ROUTE_CONFIGURATION, routes_name);
            }
            SCOPED_RDS => self.add_scoped_routes(message),
            _ => {}
        }
    }

    /// Adds the scoped routes of a listener that come from a server: a
    /// collection, or the wildcard if there is no locator.
    fn add_scoped_routes(&mut self, scopes: &DynamicMessage) {
        if read_source(scopes, "scoped_rds_config_source") == Source::Server {
            let name = text(scopes, "srds_resources_locator").unwrap_or("*".into());
            self.add_reference(types::SCOPED_ROUTE_CONFIGURATION, Some(name));
        }
    }

    /// Adds a route configuration inside another message to the leaves, if it
    /// uses VHDS and its virtual hosts come from a server.
    fn add_leaf(&mut self, route: &DynamicMessage) {
        let vhds = route.get_field_by_name("vhds");
        let vhds = vhds.as_ref().and_then(|value| value.as_message());
        if vhds.is_some_and(|vhds| read_source(vhds, "config_source") == Source::Server) {
            self.leaves.extend(text(route, "name"));
        }
    }

    /// Adds the endpoints of a cluster of type EDS, unless they come from a
    /// file. A client subscribes to them by the service name of the cluster;
    /// without a service name, by the cluster's own name.
    fn add_endpoints(&mut self, cluster: &DynamicMessage) {
        const EDS: i32 = 3;
        let kind = cluster.get_field_by_name("type");
        if kind.and_then(|kind| kind.as_enum_number()) != Some(EDS) {
            return;
        }

        let config = cluster.get_field_by_name("eds_cluster_config");
        let config = config.as_ref().and_then(|config| config.as_message());
        if config.is_some_and(|config| read_source(config, "eds_config") == Source::File) {
            return;
        }

        let service_name = config.and_then(|config| text(config, "service_name"));
        let name = service_name.or_else(|| text(cluster, "name"));
        self.add_reference(types::CLUSTER_LOAD_ASSIGNMENT, name);
    }

    /// Adds the configuration of a filter, if it comes from a server: a client
    /// subscribes to it by the filter's name (ECDS).
    fn add_extension_config(&mut self, filter: &DynamicMessage) {
        let config = filter.get_field_by_name(EXTENSION);
        let config = config.as_ref().and_then(|v| v.as_message());
        if config.is_some_and(|config| read_source(config, "config_source") == Source::Server) {
            self.add_reference(types::TYPED_EXTENSION_CONFIG, text(filter, "name"));
        }
    }

    /// Adds a reference, if there is a name.
    fn add_reference(&mut self, type_url: &'static str, name: Option<String>) {
        self.references.extend(name.map(|name| (type_url, name)));
    }
}

/// The source of a resource.
#[derive(PartialEq)]
enum Source {
    /// A stream, this one or another.
    Server,
    /// A file beside the client.
    File,
    Missing,
}

/// Reads the source in a field of the type `ConfigSource`. A source that is not
/// a file is a server.
fn read_source(message: &DynamicMessage, field: &str) -> Source {
    let is_set = message.has_field_by_name(field);
    let value = message.get_field_by_name(field).filter(|_| is_set);
    let Some(source) = value.as_ref().and_then(|value| value.as_message()) else {
        return Source::Missing;
    };
    let has = |name| source.has_field_by_name(name);
    if has("path") || has("path_config_source") {
        Source::File
    } else {
        Source::Server
    }
}
