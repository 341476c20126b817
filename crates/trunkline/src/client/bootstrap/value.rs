//! A bootstrap that was read and found valid, and what it answers.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use trunkline_core::name::{Glob, Name};
use trunkline_core::params::Params;
use trunkline_proto::discovery;
use trunkline_proto::envoy::envoy::config::core::v3 as message;
use trunkline_proto::text::Format;

use super::report::Report;
use super::resolve::{Referrer, Resolver};
use super::statics::Statics;
use super::{
    Authority, AuthoritySource, ConfigError, DataSourcePolicy, DynamicParameters, FileWatcher,
    ListenerTemplates, Mistake, StaticResource, TargetError, envoy, format_of, grpc, is_grpc,
    listener_name, node, read_file,
};
use crate::client::{Address, ConfigSource, ControlPlane, Specifier};

/// Who a client is, and which control planes it asks.
///
/// ```
/// use trunkline::client::{Address, Bootstrap, Specifier};
///
/// let bootstrap = Bootstrap::from_envoy("envoy.yaml", r#"
/// node: {id: n1, cluster: c1}
/// dynamic_resources:
///   ads_config:
///     api_type: DELTA_GRPC
///     transport_api_version: V3
///     grpc_services: [{envoy_grpc: {cluster_name: xds}}]
///   cds_config: {ads: {}, resource_api_version: V3}
/// static_resources:
///   clusters:
///   - name: xds
///     type: STRICT_DNS
///     http2_protocol_options: {}
///     load_assignment:
///       cluster_name: xds
///       endpoints:
///       - lb_endpoints:
///         - endpoint: {address: {socket_address: {address: xds.example.com, port_value: 18000}}}
/// "#)?;
/// let Some(Specifier::Api(ads)) = bootstrap.ads.map(|ads| ads.specifier) else {
///     panic!("there is an aggregated stream");
/// };
/// let address = Address::Tcp { host: "xds.example.com".into(), port: 18000 };
/// assert_eq!(ads.servers[0].address, address);
/// # Ok::<(), trunkline::client::ConfigError>(())
/// ```
#[derive(Clone, PartialEq)]
pub struct Bootstrap {
    /// The node that is sent, with the user agent and the features of this
    /// library (C3).
    pub node: message::Node,
    /// The aggregated stream.
    pub ads: Option<ConfigSource>,
    /// The source of listeners.
    pub lds: Option<ConfigSource>,
    /// The source of clusters.
    pub cds: Option<ConfigSource>,
    /// The collection of listeners that is subscribed to: Envoy's
    /// `lds_resources_locator`.
    pub lds_locator: Option<Glob>,
    /// The collection of clusters.
    pub cds_locator: Option<Glob>,
    /// Resources that need no control plane.
    pub static_resources: Vec<StaticResource>,
    /// Authorities, by their names.
    pub authorities: BTreeMap<String, Authority>,
    /// Sources for authorities, the first that matches counts (E13).
    pub config_sources: Vec<AuthoritySource>,
    /// The source for authorities that nothing else knows (E13).
    pub default_config_source: Option<ConfigSource>,
    /// The layers of the runtime that control planes have (RTDS), in order.
    pub runtime: Vec<RuntimeLayer>,
    /// The templates of listeners' names (C6, C7).
    pub templates: ListenerTemplates,
    /// Certificates, by the names of their instances (C5).
    pub certificate_providers: BTreeMap<String, FileWatcher>,
    /// The dynamic parameters of subscriptions (TP2).
    pub parameters: DynamicParameters,
    /// What is allowed, and may not be meant.
    pub warnings: Vec<Mistake>,
    /// The clusters that sources inside of resources may name.
    pub(super) statics: Arc<Statics>,
    /// Whether `self` means the aggregated stream (C14).
    pub(super) self_is_ads: bool,
}

impl Bootstrap {
    /// Makes a bootstrap with a node and static clusters and secrets, and without
    /// sources.
    pub(super) fn without_sources(node: message::Node, statics: Statics) -> Self {
        Self {
            node,
            ads: None,
            lds: None,
            cds: None,
            lds_locator: None,
            cds_locator: None,
            static_resources: Vec::new(),
            authorities: BTreeMap::new(),
            config_sources: Vec::new(),
            default_config_source: None,
            runtime: Vec::new(),
            templates: ListenerTemplates::default(),
            certificate_providers: BTreeMap::new(),
            parameters: DynamicParameters::default(),
            warnings: Vec::new(),
            statics: Arc::new(statics),
            self_is_ads: false,
        }
    }
}

/// A layer of the runtime that a control plane has.
#[derive(Clone, Debug, PartialEq)]
pub struct RuntimeLayer {
    /// The name of the resource.
    pub name: String,
    /// The source that has it.
    pub source: ConfigSource,
}

/// By hand: metadata of the node may be secret.
impl fmt::Debug for Bootstrap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bootstrap")
            .field("node", &(&self.node.id, &self.node.cluster))
            .field("ads", &self.ads)
            .field("lds", &self.lds)
            .field("cds", &self.cds)
            .field("lds_locator", &self.lds_locator)
            .field("cds_locator", &self.cds_locator)
            .field("static_resources", &self.static_resources)
            .field("authorities", &self.authorities)
            .field("config_sources", &self.config_sources)
            .field("default_config_source", &self.default_config_source)
            .field("runtime", &self.runtime)
            .field("templates", &self.templates)
            .field("certificate_providers", &self.certificate_providers)
            .field("parameters", &self.parameters)
            .field("warnings", &self.warnings)
            .finish_non_exhaustive()
    }
}

impl Bootstrap {
    /// Reads Envoy's bootstrap. `file` is its name in mistakes, and decides
    /// between YAML and JSON.
    ///
    /// # Errors
    /// All mistakes, each with its place.
    pub fn from_envoy(file: &str, text: &str) -> Result<Self, ConfigError> {
        envoy::read(format_of(file, text), file, text)
    }

    /// Reads gRPC's bootstrap, which is JSON. `file` is its name in mistakes.
    ///
    /// # Errors
    /// All mistakes, each with its place.
    pub fn from_grpc(file: &str, text: &str) -> Result<Self, ConfigError> {
        grpc::read(Format::Json, file, text)
    }

    /// Reads gRPC's bootstrap from the file that `GRPC_XDS_BOOTSTRAP` names, or
    /// else from the text in `GRPC_XDS_BOOTSTRAP_CONFIG` (C1).
    ///
    /// # Errors
    /// All mistakes, each with its place; none of the variables is set.
    pub fn from_env() -> Result<Self, ConfigError> {
        grpc::read_environment(|name| std::env::var_os(name))
    }

    /// Reads a bootstrap from a file. A file with `xds_servers` is parsed as
    /// gRPC's bootstrap, any other as Envoy's.
    ///
    /// # Errors
    /// The file cannot be read, or has mistakes: the error lists all, each with
    /// its place.
    pub fn from_path(path: impl AsRef<Path>) -> Result<Self, ConfigError> {
        let path = path.as_ref();
        let text = read_file(path)?;
        let file = path.display().to_string();
        let format = format_of(&file, &text);
        if is_grpc(format, &file, &text) {
            grpc::read(format, &file, &text)
        } else {
            envoy::read(format, &file, &text)
        }
    }

    /// Returns the node as requests are written with it.
    #[must_use]
    pub fn wire_node(&self) -> discovery::Node {
        node::on_the_wire(&self.node)
    }

    /// Returns the source of the names of an authority. An authority's own
    /// servers come first (C10); without them, gRPC's bootstraps use the
    /// bootstrap's servers (A47). Then comes the first config source that lists
    /// the authority, and last the default source (E13). `None` means that the
    /// names have no source.
    #[must_use]
    pub fn source_of_authority(&self, authority: &str) -> Option<ConfigSource> {
        if let Some(entry) = self.authorities.get(authority) {
            if let Some(own_servers) = entry.servers.clone() {
                return Some(Specifier::Api(own_servers).into());
            }
            if self.self_is_ads {
                return self.ads.clone();
            }
        }

        let lists_authority =
            |source: &&AuthoritySource| source.authorities.iter().any(|name| name == authority);
        let authority_source = self.config_sources.iter().find(lists_authority);
        let source = authority_source.map(|listing| &listing.source);
        source.or(self.default_config_source.as_ref()).cloned()
    }

    /// Returns whether any authority has a source of its own. If none has,
    /// names with an authority come from where others do.
    pub(crate) fn has_authorities(&self) -> bool {
        !self.authorities.is_empty() || !self.config_sources.is_empty()
    }

    /// Returns the dynamic parameters with which a name of a type is subscribed
    /// to (TP2).
    #[must_use]
    pub fn params_of(&self, type_url: &str, name: &Name) -> Params {
        self.parameters
            .params_for_name(type_url, name, &self.authorities)
    }

    /// Returns the name of the listener of a target such as
    /// `xds:///backend:8080` or `xds://authority/backend`, as gRPC spells it
    /// (C7-C9).
    ///
    /// # Errors
    /// The target has an authority that is not known, or no host.
    pub fn listener_name(&self, target: &str) -> Result<String, TargetError> {
        listener_name::client_listener_name(target, &self.templates, &self.authorities)
    }

    /// Returns the name of the listener of a server, by the address that it
    /// listens on (C6).
    ///
    /// # Errors
    /// The bootstrap has no template for servers.
    pub fn server_listener_name(&self, address: &str) -> Result<String, TargetError> {
        listener_name::server_listener_name(address, &self.templates)
    }

    /// Iterates over the control planes of all sources. A control plane of
    /// several sources appears several times.
    pub fn servers(&self) -> impl Iterator<Item = &Arc<ControlPlane>> {
        let sources = [&self.ads, &self.lds, &self.cds, &self.default_config_source];
        let sources = sources.into_iter().flatten();
        let sources = sources.chain(self.config_sources.iter().map(|source| &source.source));
        let sources = sources.filter_map(|source| match &source.specifier {
            Specifier::Api(api) => Some(api),
            _ => None,
        });
        let authority_sources = self.authorities.values();
        let authority_sources =
            authority_sources.filter_map(|authority| authority.servers.as_ref());
        sources
            .chain(authority_sources)
            .flat_map(|api| &api.servers)
    }

    /// Returns whether a control plane is one of the bootstrap (C15).
    #[must_use]
    pub fn has_server(&self, server: &ControlPlane) -> bool {
        self.servers().any(|known| **known == *server)
    }
}

impl ConfigSource {
    /// Resolves a config source that a resource names, by the static clusters
    /// of the bootstrap. A control plane may name files and variables that the
    /// policy allows, and control planes that the bootstrap has.
    ///
    /// # Errors
    /// The source has mistakes; the error lists all, each with its field.
    pub fn resolve(
        bootstrap: &Bootstrap,
        source: &message::ConfigSource,
        policy: &DataSourcePolicy,
    ) -> Result<Self, ConfigError> {
        let addresses = |server: &Arc<ControlPlane>| {
            let main_address = std::iter::once(server.address.clone());
            main_address
                .chain(server.alternatives.clone())
                .collect::<Vec<_>>()
        };
        let known_addresses: Vec<Address> = bootstrap.servers().flat_map(addresses).collect();
        let remedy = "an aggregated stream to the bootstrap";
        let resolver = Resolver {
            statics: &bootstrap.statics,
            referrer: Referrer::Resource {
                policy,
                servers: &known_addresses,
                self_is_ads: bootstrap.self_is_ads,
            },
            missing_ads: bootstrap.ads.is_none().then_some(remedy),
        };

        let report = Report::default();
        let resolved = resolver.resolve_source(source, &report.root());
        // Its warnings concern whoever wrote the resource, and no file here has
        // the lines of it.
        let no_lines = |_: &str| None;
        let (resolved, _warnings) = report.finish(resolved, no_lines)?;
        Ok(resolved)
    }
}
