//! From config sources to the sources and servers of the engine.
//!
//! Equal config sources are one source, and equal control planes that are
//! asked in the same way one server, whoever names them (C12).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use hashbrown::HashMap;
use trunkline_core::client::{Client as Machine, FallbackPolicy, ServerConfig, ServerId, SourceId};
use trunkline_core::message::{self, Mode};
use trunkline_core::params::Params;
use trunkline_core::resource::TypeUrl;
use trunkline_core::sink::{
    BackoffConfig, DataErrors, FetchStart, FetchTimeout, SinkConfig, StreamScope,
};
use trunkline_proto::discovery::Node;

use super::config_source::{ApiSource, ConfigSource, PathSource, Specifier, Transport};
use super::control_plane::ControlPlane;

/// How a source is told from others. A source that has a stream for each type
/// is one for each type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum SourceKey {
    Api(Arc<ApiSource>, Option<Duration>, Option<TypeUrl>),
    Path(PathSource, TypeUrl),
}

/// How a server is told from others.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct ServerKey {
    control_plane: Arc<ControlPlane>,
    transport: Transport,
    /// The only type of its streams.
    single_type: Option<TypeUrl>,
    fetch_timeout: Option<Duration>,
}

/// What is known of a server beside the engine.
#[derive(Clone, Debug)]
pub(super) enum ServerInfo {
    /// A control plane.
    Api {
        control_plane: Arc<ControlPlane>,
        transport: Transport,
        /// The only type of its streams.
        single_type: Option<TypeUrl>,
    },
    /// A file, of one source.
    File { path: PathSource, source: SourceId },
}

/// How all servers of a client are spoken with.
#[derive(Clone, Debug)]
pub(super) struct Manners {
    pub(super) node: Node,
    /// What becomes of a cached resource with a data error, where the control
    /// plane's features do not say (C41).
    pub(super) data_errors: DataErrors,
    pub(super) fallback: FallbackPolicy,
    /// The dynamic parameters that servers without locators are told (TP2).
    pub(super) params: Params,
}

/// The sources and servers of a client, by what they were made from.
#[derive(Debug, Default)]
pub(super) struct Sources {
    ids: HashMap<SourceKey, SourceId>,
    servers: HashMap<ServerKey, ServerId>,
    pub(super) info: HashMap<ServerId, ServerInfo>,
}

impl Sources {
    /// Returns the source of a type at control planes, and adds the source and
    /// its servers to the machine if they are new. Types of one aggregated
    /// stream share a source.
    pub(super) fn find_or_add_api_source(
        &mut self,
        machine: &mut Machine,
        api: &Arc<ApiSource>,
        fetch_timeout: Option<Duration>,
        type_url: &TypeUrl,
        manners: &Manners,
    ) -> SourceId {
        let single_type = (!is_aggregated(api.transport)).then(|| type_url.clone());
        let key = SourceKey::Api(Arc::clone(api), fetch_timeout, single_type.clone());
        if let Some(id) = self.ids.get(&key) {
            return *id;
        }

        let servers = api.servers.iter().map(|control_plane| {
            let key = ServerKey {
                control_plane: Arc::clone(control_plane),
                transport: api.transport,
                single_type: single_type.clone(),
                fetch_timeout,
            };
            self.find_or_add_server(machine, key, api, manners)
        });
        let servers = servers.collect();
        let id = machine.add_source(servers, manners.fallback);
        self.ids.insert(key, id);
        id
    }

    /// Returns the source of a type in a file, and adds the source to the
    /// machine if it is new.
    pub(super) fn find_or_add_file_source(
        &mut self,
        machine: &mut Machine,
        path: &PathSource,
        fetch_timeout: Option<Duration>,
        type_url: &TypeUrl,
        manners: &Manners,
    ) -> SourceId {
        let key = SourceKey::Path(path.clone(), type_url.clone());
        if let Some(id) = self.ids.get(&key) {
            return *id;
        }

        let server = machine.add_server(ServerConfig {
            sink: SinkConfig {
                scope: StreamScope::Single(type_url.clone()),
                fetch_timeout: fetch_timeout
                    .map_or(FetchTimeout::Never, FetchTimeout::DoesNotExist),
                data_errors: manners.data_errors,
                ..SinkConfig::new(Mode::Sotw, message::Node::default())
            },
            backoff: BackoffConfig::default(),
            rate_limit: None,
        });

        let id = machine.add_source(vec![server], FallbackPolicy::Grpc);
        self.ids.insert(key, id);
        let info = ServerInfo::File {
            path: path.clone(),
            source: id,
        };
        self.info.insert(server, info);
        id
    }

    /// Returns the config source that a source was made from; `None` if there
    /// is no such source.
    pub(super) fn config_source(&self, id: SourceId) -> Option<ConfigSource> {
        let (key, _) = self.ids.iter().find(|(_, source_id)| **source_id == id)?;
        Some(match key {
            SourceKey::Api(api, initial_fetch_timeout, _) => ConfigSource {
                specifier: Specifier::Api(Arc::clone(api)),
                initial_fetch_timeout: *initial_fetch_timeout,
            },
            SourceKey::Path(path, _) => Specifier::Path(path.clone()).into(),
        })
    }

    /// Returns the addresses or the path of each source, for people to read.
    pub(super) fn places(&self) -> BTreeMap<SourceId, String> {
        let places = self.ids.iter().map(|(key, id)| {
            let place = match key {
                SourceKey::Path(path, _) => path.path.display().to_string(),
                SourceKey::Api(api, ..) => {
                    let servers = api.servers.iter();
                    let addresses: Vec<_> =
                        servers.map(|server| server.address.to_string()).collect();
                    addresses.join(", ")
                }
            };
            (*id, place)
        });
        places.collect()
    }

    /// Returns the server of a key, and adds it to the machine if it is new.
    fn find_or_add_server(
        &mut self,
        machine: &mut Machine,
        key: ServerKey,
        api: &ApiSource,
        manners: &Manners,
    ) -> ServerId {
        if let Some(id) = self.servers.get(&key) {
            return *id;
        }

        let id = machine.add_server(ServerConfig {
            sink: sink_config(&key, api, manners),
            backoff: api.backoff,
            rate_limit: api.rate_limit,
        });
        let info = ServerInfo::Api {
            control_plane: Arc::clone(&key.control_plane),
            transport: key.transport,
            single_type: key.single_type.clone(),
        };
        self.servers.insert(key, id);
        self.info.insert(id, info);
        id
    }
}

/// Returns whether one stream of a server has all types.
fn is_aggregated(transport: Transport) -> bool {
    matches!(
        transport,
        Transport::Grpc {
            aggregated: true,
            ..
        }
    )
}

/// Returns the settings of the sink that subscribes at a server.
fn sink_config(key: &ServerKey, api: &ApiSource, manners: &Manners) -> SinkConfig {
    let features = key.control_plane.features;
    let mode = match key.transport {
        Transport::Grpc { mode, .. } => mode,
        Transport::Rest { .. } => Mode::Sotw,
    };
    let scope = match &key.single_type {
        None => StreamScope::Aggregated,
        Some(type_url) => StreamScope::Single(type_url.clone()),
    };
    let fetch_timeout = match key.fetch_timeout {
        _ if features.resource_timer_is_transient_error => FetchTimeout::UNAVAILABLE, // C35
        None => FetchTimeout::Never,
        Some(timeout) => FetchTimeout::DoesNotExist(timeout),
    };
    let data_errors = if features.fail_on_data_errors {
        DataErrors::Fail
    } else if features.ignore_resource_deletion {
        DataErrors::Keep
    } else {
        manners.data_errors
    };

    SinkConfig {
        scope,
        node_every_request: !api.node_on_first_message_only,
        // A poll is a short stream: its fetch timeout starts with the
        // subscription (E2).
        fetch_start: match key.transport {
            Transport::Grpc { .. } => FetchStart::Sent,
            Transport::Rest { .. } => FetchStart::Subscribed,
        },
        fetch_timeout,
        data_errors,
        locators: features.locators,
        ..SinkConfig::new(mode, engine_node(&manners.node, &manners.params))
    }
}

/// Returns the part of a node that the protocol engine reads.
fn engine_node(node: &Node, params: &Params) -> message::Node {
    message::Node {
        id: node.id.clone(),
        cluster: node.cluster.clone(),
        user_agent: node.user_agent_name.clone(),
        client_features: node.client_features.clone(),
        params: params.clone(),
    }
}
