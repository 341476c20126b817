//! How a client is made.

use std::sync::Arc;

use trunkline_core::client::{Client as Machine, FallbackPolicy};
use trunkline_core::message::Mode;
use trunkline_core::params::{Params, ParamsError};
use trunkline_core::resource::{Resource, TypeUrl};
use trunkline_core::sink::{BackoffConfig, DataErrors};
use trunkline_proto::acceptance::{Policy, ResourceType, Types};
use trunkline_proto::discovery::{Limits, Node};

use super::address::AddressError;
use super::bootstrap::{Bootstrap, DataSourcePolicy, Problem};
use super::config_source::{ApiSource, ConfigSource, Specifier, Transport};
use super::control_plane::{Address, ControlPlane};
use super::events::{Observer, Observers};
use super::handle::Client;
use super::judge::Judge;
use super::settings::Settings;
use super::shared::Shared;
use super::sources::Manners;
use super::transport::{Connector, TransportOptions};
use super::tree::{Resolve, Resolver};

/// Makes a [`Client`].
#[derive(Clone)]
pub struct ClientBuilder {
    settings: Settings,
    node: Node,
    servers: Vec<Arc<ControlPlane>>,
    mode: Mode,
    backoff: BackoffConfig,
    data_errors: DataErrors,
    fallback: FallbackPolicy,
    statics: Vec<(TypeUrl, Arc<Resource>)>,
    types: Types,
    policy: Policy,
    transport: TransportOptions,
    limits: Limits,
    observers: Vec<Arc<dyn Observer>>,
}

impl Default for ClientBuilder {
    fn default() -> Self {
        Self {
            settings: Settings::default(),
            node: Node {
                user_agent_name: "trunkline".to_owned(),
                ..Node::default()
            },
            servers: Vec::new(),
            mode: Mode::Delta,
            backoff: BackoffConfig::default(),
            data_errors: DataErrors::Obey,
            fallback: FallbackPolicy::Grpc,
            statics: Vec::new(),
            types: Types::standard().clone(),
            policy: Policy::generic(),
            transport: TransportOptions::default(),
            limits: Limits::default(),
            observers: Vec::new(),
        }
    }
}

impl ClientBuilder {
    /// Adds a control plane at an address, `host:port` or `unix:path`, without
    /// TLS. Of several, the first that works is used (C46).
    ///
    /// # Errors
    /// The text is no address.
    pub fn server(self, address: &str) -> Result<Self, AddressError> {
        let address: Address = address.parse()?;
        Ok(self.control_plane(ControlPlane::plaintext(address)))
    }

    /// Adds a control plane. Of several, the first that works is used (C46).
    #[must_use]
    pub fn control_plane(mut self, control_plane: ControlPlane) -> Self {
        self.servers.push(Arc::new(control_plane));
        self
    }

    /// Takes everything from a bootstrap: node, sources, authorities, static
    /// resources and dynamic parameters.
    #[must_use]
    pub fn bootstrap(mut self, bootstrap: Bootstrap) -> Self {
        self.node = bootstrap.wire_node();
        for resource in &bootstrap.static_resources {
            let body = resource.body.clone();
            let static_resource = Resource::new(resource.name.as_str().into(), body);
            let type_url = resource.type_url.as_str().into();
            self.statics.push((type_url, Arc::new(static_resource)));
        }
        let providers = bootstrap.certificate_providers.keys();
        self.policy.certificate_providers = providers.cloned().collect();
        self.settings.bootstrap = Some(Arc::new(bootstrap));
        self
    }

    /// Speaks state of the world with control planes that were added here,
    /// instead of delta.
    #[must_use]
    pub fn state_of_the_world(mut self) -> Self {
        self.mode = Mode::Sotw;
        self
    }

    /// Sets the id of the node.
    #[must_use]
    pub fn node_id(mut self, id: &str) -> Self {
        id.clone_into(&mut self.node.id);
        self
    }

    /// Sets the node.
    #[must_use]
    pub fn node(mut self, node: Node) -> Self {
        self.node = node;
        self
    }

    /// Sets what the client is for, such as `xds:///backend`: the label
    /// `grpc.target` of its metrics and the `client_scope` of its CSDS. A program
    /// with several clients tells them apart by it (C50).
    #[must_use]
    pub fn target(mut self, target: &str) -> Self {
        target.clone_into(&mut self.settings.target);
        self
    }

    /// Sets the dynamic parameters of every subscription (TP2).
    ///
    /// # Errors
    /// There are too many, or they are too long.
    pub fn params<'a>(
        mut self,
        params: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, ParamsError> {
        self.settings.params = Params::new(params)?;
        Ok(self)
    }

    /// Adds a resource that needs no control plane.
    #[must_use]
    pub fn static_resource<T: ResourceType>(mut self, name: &str, message: &T) -> Self {
        let body = message.encode_to_vec().into();
        let resource = Resource::new(name.into(), body);
        self.statics.push((T::TYPE_URL.into(), Arc::new(resource)));
        self
    }

    /// Makes a type of one's own known, so that it is decoded and checked when
    /// it arrives.
    #[must_use]
    pub fn resource_type<T: ResourceType>(mut self) -> Self {
        self.types = self.types.with::<T>();
        self
    }

    /// Sets the rules by which resources are accepted. Without it: those on
    /// fields.
    #[must_use]
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Sets how the hosts of clusters are resolved, whose endpoints come by
    /// DNS. Without it: by the system.
    #[must_use]
    pub fn resolver(mut self, resolver: Arc<dyn Resolve>) -> Self {
        self.settings.resolver = Resolver(resolver);
        self
    }

    /// Sets which files and variables the config sources inside of resources
    /// may name. Without it: none.
    #[must_use]
    pub fn data_sources(mut self, policy: DataSourcePolicy) -> Self {
        self.settings.data_sources = policy;
        self
    }

    /// Sets what becomes of a resource that is in use and is deleted or
    /// rejected (C41).
    #[must_use]
    pub fn data_errors(mut self, data_errors: DataErrors) -> Self {
        self.data_errors = data_errors;
        self
    }

    /// Sets how a source chooses among its servers.
    #[must_use]
    pub fn fallback(mut self, fallback: FallbackPolicy) -> Self {
        self.fallback = fallback;
        self
    }

    /// Sets when to connect again, for control planes that were added here.
    #[must_use]
    pub fn backoff(mut self, backoff: BackoffConfig) -> Self {
        self.backoff = backoff;
        self
    }

    /// Sets windows, timeouts and bounds of connections.
    #[must_use]
    pub fn transport(mut self, transport: TransportOptions) -> Self {
        self.transport = transport;
        self
    }

    /// Adds somebody who is told what happens.
    #[must_use]
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observers.push(observer);
        self
    }

    /// Starts the client in the present tokio runtime. Settings that are
    /// allowed but dubious, such as a token that is sent without TLS, are
    /// logged as warnings.
    ///
    /// # Panics
    /// Outside of a runtime.
    #[must_use]
    pub fn build(mut self) -> Client {
        self.log_warnings();
        if let Some(source) = self.take_own_source() {
            self.settings.ads = Some(source);
        }

        let judge = Judge {
            types: Arc::new(self.types),
            policy: Arc::new(self.policy),
        };
        let mut machine = Machine::new(seed());
        for (type_url, resource) in self.statics {
            machine.add_static(&type_url, resource);
        }

        let shared = Arc::new(Shared::new(machine, judge));
        let manners = Manners {
            node: self.node,
            data_errors: self.data_errors,
            fallback: self.fallback,
            params: self.settings.params_of_node(),
        };

        let observers = Arc::new(Observers::new(self.observers));
        let connector = Connector::new(self.transport);
        Client::start(
            shared,
            self.settings,
            manners,
            connector,
            self.limits,
            observers,
        )
    }

    /// Returns the source of the control planes that were added here; `None` if
    /// there are none, so that the bootstrap's counts.
    fn take_own_source(&mut self) -> Option<ConfigSource> {
        let servers = std::mem::take(&mut self.servers);
        let api = ApiSource {
            transport: Transport::Grpc {
                mode: self.mode,
                aggregated: true,
            },
            servers,
            rate_limit: None,
            backoff: self.backoff,
            node_on_first_message_only: true,
        };
        (!api.servers.is_empty()).then(|| ConfigSource {
            specifier: Specifier::Api(Arc::new(api)),
            initial_fetch_timeout: Some(ConfigSource::INITIAL_FETCH_TIMEOUT),
        })
    }

    /// Logs the warnings of the bootstrap, and of the control planes that the
    /// builder got without one.
    fn log_warnings(&self) {
        let bootstrap = self.settings.bootstrap.iter();
        for warning in bootstrap.flat_map(|bootstrap| &bootstrap.warnings) {
            tracing::warn!(%warning, "bootstrap");
        }
        let exposes_token = |plane: &&Arc<ControlPlane>| plane.sends_token_in_plaintext();
        for plane in self.servers.iter().filter(exposes_token) {
            let warning = Problem::PlainToken;
            tracing::warn!(server = %plane.address, %warning, "control plane");
        }
    }
}

/// Returns a random seed for waits, so that two processes that lost one server do
/// not come back together.
fn seed() -> u64 {
    use std::hash::{BuildHasher as _, RandomState};
    RandomState::new().hash_one(std::process::id())
}
