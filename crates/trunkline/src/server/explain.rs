//! Explains why a client gets what it gets.

use std::sync::Arc;

use trunkline_core::database::{Choice, Database, MatchedHost, TypeId};
use trunkline_core::hosts::{Domain, HostName};
use trunkline_core::kind;
use trunkline_core::name::Name;
use trunkline_core::params::{Params, ParamsId};
use trunkline_core::resource::{Resource, TypeUrl};
use trunkline_proto::text::nearest;

use super::Server;
use super::stream::Stream;
use crate::explain::{
    Asker, BaseExplained, Connected, ExplainError, Explained, Hidden, HostOnStream, OnStream,
    Parameter, ResourceExplained, VariantExplained,
};
use crate::node::Described;

/// The maximum of resources that are searched for one that a wildcard would
/// hide, and of names for a similar one.
const MAX_SEARCHED: usize = 10_000;

/// The client that a question is about.
struct AskingClient {
    /// Its node, if the question names one or rules read it.
    described: Option<Box<Described>>,
    /// Its parameters for the type of the question.
    params: Params,
    /// Its streams; none if it is not connected.
    streams: Vec<Arc<Stream>>,
}

impl Server {
    /// Explains which virtual host a client gets for a host on demand.
    ///
    /// # Errors
    /// If there is no such client, or the host cannot be subscribed to.
    pub fn explain_host(
        &self,
        asker: Asker<'_>,
        route: &str,
        host: &str,
    ) -> Result<Explained, ExplainError> {
        let asked = requested_name(route, host)?;
        let client = self.asking_client(asker, &kind::VHDS.into())?;
        let mut explained = self.explain_name(asked, &client)?;
        if matches!(asker, Asker::Client(_)) {
            let streams = client.streams.iter();
            let on_stream = |stream: &Arc<Stream>| self.host_on_stream(stream, &explained);
            explained.client = Some(Connected {
                has_route: streams
                    .clone()
                    .any(|stream| self.has_route(stream, &explained.asked)),
                streams: streams.filter_map(on_stream).collect(),
            });
        }
        Ok(explained)
    }

    /// Explains which variant of a resource a client gets (TP2).
    ///
    /// # Errors
    /// If there is no such client, or no such resource.
    pub fn explain_resource(
        &self,
        asker: Asker<'_>,
        type_url: &TypeUrl,
        name: &Name,
    ) -> Result<ResourceExplained, ExplainError> {
        let client = self.asking_client(asker, type_url)?;
        let variants = self.shared.with(|db| find_variants(db, type_url, name))?;
        let variants = variants.into_iter();
        let variants = variants.map(|variant| explain_variant(variant, &client.params));

        let on_stream = |stream: &Arc<Stream>| self.on_stream(stream, type_url, name, name);
        let is_connected = matches!(asker, Asker::Client(_));
        Ok(ResourceExplained {
            type_url: type_url.clone(),
            name: name.clone(),
            variants: variants.collect(),
            params: self.explain_params(&client),
            client: is_connected.then(|| client.streams.iter().filter_map(on_stream).collect()),
        })
    }

    /// Finds the client of a question about a type: a connected one by its
    /// streams, another one by the rules for its node or by the parameters of
    /// the question.
    fn asking_client(
        &self,
        asker: Asker<'_>,
        type_url: &TypeUrl,
    ) -> Result<AskingClient, ExplainError> {
        match asker {
            Asker::Client(node) => Ok(self.connected_client(self.streams_of(node)?, type_url)),
            Asker::Node(node) => {
                let rules = &self.shared.rules;
                let described = Described::new(node, rules.wanted());
                let params = rules.params.params(&described).of(type_url).clone();
                Ok(AskingClient {
                    described: Some(Box::new(described)),
                    params,
                    streams: Vec::new(),
                })
            }
            Asker::Params(params) => Ok(AskingClient {
                described: None,
                params: params.clone(),
                streams: Vec::new(),
            }),
        }
    }

    /// Describes a connected client by its streams. Its node and parameters are
    /// those of the last stream that has the type, or of any other if none has.
    fn connected_client(&self, streams: Vec<Arc<Stream>>, type_url: &TypeUrl) -> AskingClient {
        let (mut described, mut params) = (None, None);
        for stream in &streams {
            let state = stream.lock();
            let session = state.session.as_ref();
            let has_type = session.is_some_and(|session| session.has_type(type_url));
            if described.is_none() || has_type {
                described = state.described.clone();
                params = session.map(|session| session.params_of_type(type_url));
            }
        }

        let params = params.unwrap_or(ParamsId::EMPTY);
        AskingClient {
            described,
            params: self.shared.with(|db| db.params(params).clone()),
            streams,
        }
    }

    /// Lists the parameters of a client, each with its origin in words: a rule,
    /// its node, or the question itself.
    fn explain_params(&self, client: &AskingClient) -> Vec<Parameter> {
        let described = client.described.as_deref();
        let rules = &self.shared.rules.params;
        let by_rules = described.map(|node| rules.by_rules(node));
        let by_rules = by_rules.unwrap_or_default();

        let origin = |key: &str, value: &str| match by_rules.get(key) {
            Some((set, rule)) if set == value => format!("the rule for {}", rule.node),
            _ if described.is_some() => "dynamic_parameters of the node".to_owned(),
            _ => "the question".to_owned(),
        };
        let explain = |(key, value): (&str, &str)| Parameter {
            key: key.to_owned(),
            value: value.to_owned(),
            by: origin(key, value),
        };
        client.params.iter().map(explain).collect()
    }

    /// Returns the streams of the client with this node id. Without any, the
    /// error suggests a similar id.
    fn streams_of(&self, node: &str) -> Result<Vec<Arc<Stream>>, ExplainError> {
        let is_of_node = |stream: &Arc<Stream>| stream.node_id() == node;
        let streams = self.shared.streams().into_iter();
        let (streams_of_node, others): (Vec<_>, Vec<_>) = streams.partition(is_of_node);
        if !streams_of_node.is_empty() {
            return Ok(streams_of_node);
        }

        let others = others.iter().take(MAX_SEARCHED);
        Err(ExplainError::UnknownNode {
            node: node.to_owned(),
            near: nearest(node, others.map(|stream| stream.node_id().to_owned())),
        })
    }

    /// Explains the virtual host for a requested name. The client's parameters
    /// are held in the database for the time of the question, since there may
    /// be no stream that holds them.
    fn explain_name(&self, asked: Name, client: &AskingClient) -> Result<Explained, ExplainError> {
        self.shared.with(|db| {
            if db.is_cache() {
                return Err(ExplainError::NotReady);
            }
            let params = db.intern_params(client.params.clone());
            db.hold_params(params);
            let explained = self.explain_with_params(db, asked, client, params);
            db.release_params(params);
            explained
        })
    }

    /// Explains the virtual host for a requested name, with the database
    /// locked. Leaves the state on the client's streams to the caller: a stream
    /// is locked before the database.
    fn explain_with_params(
        &self,
        db: &mut Database,
        asked: Name,
        client: &AskingClient,
        params: ParamsId,
    ) -> Result<Explained, ExplainError> {
        let hosts = db.type_id(&kind::VHDS.into());
        let route = HostName::split(asked.as_str()).map_or("", |name| name.route);
        check_route(db, route, params)?;

        let host = db.explain_host(hosts, &asked, params);
        let matched = host.matched.as_ref();
        let hidden = matched.and_then(|matched| find_hidden(db, hosts, route, matched));
        let described = client.described.as_deref();
        let base = described.map(|node| self.explain_base(db, hosts, &asked, node));
        Ok(Explained {
            hidden,
            params: self.explain_params(client),
            base: base.unwrap_or_default(),
            client: None,
            host,
            asked,
        })
    }

    /// Explains the base subscriptions of a node, and which of them bring the
    /// requested host.
    fn explain_base(
        &self,
        db: &Database,
        hosts: TypeId,
        asked: &Name,
        node: &Described,
    ) -> BaseExplained {
        let rules = &self.shared.rules.base;
        let base = rules.base(node);
        let route = HostName::split(asked.as_str()).map_or("", |name| name.route);
        let brings_host = |set: &str| db.base_hosts(hosts, set, route).contains(asked);
        let by_sets = base.sets.iter().filter(|set| brings_host(set));
        let applying = rules.applying(node);
        BaseExplained {
            rules: applying.map(|rule| rule.node.to_string()).collect(),
            by_sets: by_sets.cloned().collect(),
            by_name: base.hosts.contains(asked) && db.has_exact_domain(hosts, asked),
            sets: base.sets,
        }
    }

    /// Returns the state of a host on a stream; `None` if the stream does not
    /// have virtual hosts, or has ended.
    fn host_on_stream(&self, stream: &Stream, explained: &Explained) -> Option<HostOnStream> {
        let url = TypeUrl::from(kind::VHDS);
        let asked = &explained.asked;
        let resolved = matched_resource(explained).map_or(asked, |resource| &resource.name);
        let on = self.on_stream(stream, &url, asked, resolved)?;

        let state = stream.lock();
        let session = state.session.as_ref()?;
        let is_at_limit = session.unbounded_hosts() >= self.shared.options.limits.hosts;
        let is_bounded = self.shared.with(|db| {
            let type_id = db.type_id(&url);
            db.is_bounded_host(type_id, asked)
        });
        Some(HostOnStream {
            on,
            is_full: is_at_limit && !is_bounded,
        })
    }

    /// Returns the state of a requested name, and of the resource that it
    /// resolves to, on a stream; `None` if the stream does not have the type,
    /// or has ended.
    fn on_stream(
        &self,
        stream: &Stream,
        url: &TypeUrl,
        asked: &Name,
        resolved: &Name,
    ) -> Option<OnStream> {
        let may_see = stream.may_see(url);
        let state = stream.lock();
        let session = state.session.as_ref()?;
        let status = session.status().find(|status| status.type_url == *url)?;
        Some(self.shared.with(|db| OnStream {
            stream: stream.number,
            mode: stream.mode,
            only: stream.only.clone(),
            may_see,
            asked: session.name_status(db, url, asked),
            holds: session.held_resources(db, url).get(resolved).cloned(),
            error: status.error,
        }))
    }

    /// Returns whether the client cache of a stream has the route configuration
    /// of a requested host.
    fn has_route(&self, stream: &Stream, asked: &Name) -> bool {
        let state = stream.lock();
        let Some(session) = &state.session else {
            return false;
        };
        let routes = TypeUrl::from(kind::RDS);
        let resources = self.shared.with(|db| session.held_resources(db, &routes));
        let route = HostName::split(asked.as_str()).map(|name| Name::new(name.route));
        route.is_some_and(|route| resources.contains_key(&route))
    }
}

/// Returns the name that a client subscribes to for a host, which Envoy writes
/// in lower case. A host that is empty or has a slash is an error.
fn requested_name(route: &str, host: &str) -> Result<Name, ExplainError> {
    if host.is_empty() || host.contains('/') {
        let host = host.to_owned();
        return Err(ExplainError::NoHost { host });
    }
    Ok(Name::new(&format!("{route}/{}", host.to_ascii_lowercase())))
}

/// Returns the virtual host that the client gets; `None` if it gets none.
fn matched_resource(explained: &Explained) -> Option<&Resource> {
    let (resource, _) = explained.host.matched.as_ref()?.answer.as_ref()?;
    Some(resource)
}

/// Explains whether a client with these parameters matches a variant.
fn explain_variant(resource: Arc<Resource>, params: &Params) -> VariantExplained {
    let constraints = resource.constraints.as_ref();
    let unmet = constraints.map_or_else(Vec::new, |constraints| constraints.unmet(params));
    VariantExplained {
        unmet: unmet.into_iter().map(ToString::to_string).collect(),
        resource,
    }
}

/// Finds every variant of a name. Without any, the error suggests a similar
/// name.
fn find_variants(
    db: &Database,
    type_url: &TypeUrl,
    name: &Name,
) -> Result<Vec<Arc<Resource>>, ExplainError> {
    if db.is_cache() {
        return Err(ExplainError::NotReady);
    }
    let type_id = db.find_type(type_url);
    let variants = type_id.map_or(&[][..], |id| db.variants(id, name));
    if !variants.is_empty() {
        return Ok(variants.to_vec());
    }

    let resources = type_id.into_iter().flat_map(|id| db.resources(id));
    let searched = resources.take(MAX_SEARCHED);
    let names = searched.map(|resource| resource.name.to_string());
    Err(ExplainError::NoResource {
        kind: short_name(type_url).to_owned(),
        name: name.clone(),
        near: nearest(name.as_str(), names),
    })
}

/// Returns the short name of a type, or its URL if it has none.
fn short_name(type_url: &TypeUrl) -> &str {
    match kind::Kind::of(type_url).short {
        "" => type_url.as_str(),
        short => short,
    }
}

/// Checks that a route configuration exists, that a client with these
/// parameters gets it, and that it uses VHDS.
fn check_route(db: &mut Database, route: &str, params: ParamsId) -> Result<(), ExplainError> {
    let routes = db.type_id(&kind::RDS.into());
    let name = Name::new(route);
    let route = route.to_owned();
    match db.choose_name(routes, &name, params) {
        Choice::Resource(route_configuration) | Choice::Failed(_, Some(route_configuration)) => {
            match route_configuration.facts().vhds_version() {
                Some(_) => Ok(()),
                None => Err(ExplainError::NoVhds { route }),
            }
        }
        _ if !db.variants(routes, &name).is_empty() => Err(ExplainError::NoVariant { route }),
        _ => {
            let searched = db.resources(routes).take(MAX_SEARCHED);
            let names = searched.map(|resource| resource.name.to_string());
            let near = nearest(&route, names);
            Err(ExplainError::NoRoute { route, near })
        }
    }
}

/// Finds a domain of another virtual host of the route configuration that the
/// wildcard of the matched one would hide. Returns `None` if no wildcard would
/// hide any, or if the first [`MAX_SEARCHED`] resources have none.
fn find_hidden(db: &Database, hosts: TypeId, route: &str, matched: &MatchedHost) -> Option<Hidden> {
    let wildcard = Domain::of(matched.hiding_wildcard.as_deref()?);
    let is_under = |domain: &Domain<'_>| match (wildcard, domain) {
        (Domain::Any, _) => true,
        (Domain::Suffix(suffix), Domain::Exact(text) | Domain::Suffix(text)) => {
            text.ends_with(suffix)
        }
        _ => false,
    };

    let mut others = db.resources(hosts).take(MAX_SEARCHED).filter(|other| {
        let name = HostName::split(other.name.as_str());
        let is_of_route = name.is_some_and(|name| name.route == route);
        is_of_route && other.name != matched.host.name
    });
    others.find_map(|other| {
        let mut domains = other.facts().domains.iter();
        let domain = domains.find(is_under)?;
        Some(Hidden {
            domain: domain.to_string(),
            name: other.name.clone(),
        })
    })
}
