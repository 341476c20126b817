//! Explains why a client gets what it gets.

use std::sync::Arc;

use trunkline_core::database::{Choice, Database, MatchedHost, TypeId};
use trunkline_core::hosts::{Domain, HostName};
use trunkline_core::kind;
use trunkline_core::name::Name;
use trunkline_core::params::{Params, ParamsId};
use trunkline_core::resource::{Resource, TypeUrl};
use trunkline_core::session::Session;
use trunkline_proto::text::nearest;

use super::Server;
use super::stream::Stream;
use crate::explain::{
    Asker, BaseExplained, Connected, ExplainError, Explained, Hidden, HostOnStream, OnStream,
    Parameter, ResourceExplained, VariantExplained,
};
use crate::node::Described;

/// Resources that are searched for one that a wildcard would hide, and names
/// for a similar one.
const LOOKED_AT: usize = 10_000;

/// The client of a question: its node, its parameters and its streams.
struct Known {
    described: Option<Box<Described>>,
    params: Params,
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
        let asked = asked(route, host)?;
        let known = self.known(asker, &kind::VHDS.into())?;
        let mut explained = self.explain(asked, &known)?;
        let (on_streams, routes): (Vec<_>, Vec<_>) = known
            .streams
            .iter()
            .filter_map(|stream| self.host_on_stream(stream, &explained))
            .unzip();
        explained.client = matches!(asker, Asker::Client(_)).then(|| Connected {
            has_route: routes.contains(&true),
            streams: on_streams.into_iter().flatten().collect(),
        });
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
        let known = self.known(asker, type_url)?;
        let variants = self.shared.with(|db| variants(db, type_url, name))?;
        let explained = variants.into_iter().map(|resource| {
            let constraints = resource.constraints.as_ref();
            let unmet = constraints.map_or_else(Vec::new, |all| all.unmet(&known.params));
            let unmet = unmet.into_iter().map(ToString::to_string).collect();
            VariantExplained { resource, unmet }
        });
        let on = |stream: &Arc<Stream>| self.on_stream(stream, type_url, name, name);
        let client = matches!(asker, Asker::Client(_));
        let client = client.then(|| known.streams.iter().filter_map(on).collect());
        Ok(ResourceExplained {
            type_url: type_url.clone(),
            name: name.clone(),
            variants: explained.collect(),
            params: self.parameters(&known),
            client,
        })
    }

    fn known(&self, asker: Asker<'_>, type_url: &TypeUrl) -> Result<Known, ExplainError> {
        match asker {
            Asker::Client(node) => Ok(self.connected(self.streams_of(node)?, type_url)),
            Asker::Node(node) => {
                let rules = &self.shared.rules;
                let described = Described::new(node, rules.wanted());
                let params = rules.params.params(&described).of(type_url).clone();
                Ok(Known {
                    described: Some(Box::new(described)),
                    params,
                    streams: Vec::new(),
                })
            }
            Asker::Params(params) => Ok(Known {
                described: None,
                params: params.clone(),
                streams: Vec::new(),
            }),
        }
    }

    /// A client by its streams; a stream with the type decides its node and
    /// parameters.
    fn connected(&self, streams: Vec<Arc<Stream>>, type_url: &TypeUrl) -> Known {
        let (mut described, mut params) = (None, None);
        for stream in &streams {
            let talk = stream.talk();
            let session = talk.session.as_ref();
            let speaks = session.is_some_and(|session| session.has_type(type_url));
            if described.is_none() || speaks {
                described = talk.described.clone();
                params = session.map(|session| session.params_of_type(type_url));
            }
        }
        let params = params.unwrap_or(ParamsId::EMPTY);
        Known {
            described,
            params: self.shared.with(|db| db.params(params).clone()),
            streams,
        }
    }

    /// Each parameter of a client, with its origin.
    fn parameters(&self, known: &Known) -> Vec<Parameter> {
        let described = known.described.as_deref();
        let rules = &self.shared.rules.params;
        let by_rules = described.map(|node| rules.by_rules(node));
        let by_rules = by_rules.unwrap_or_default();
        let one = |(key, value): (&str, &str)| Parameter {
            key: key.to_owned(),
            value: value.to_owned(),
            by: match (by_rules.get(key), described) {
                (Some((said, rule)), _) if said == value => {
                    format!("the rule for {}", rule.node)
                }
                (_, Some(_)) => "dynamic_parameters of the node".to_owned(),
                (_, None) => "the question".to_owned(),
            },
        };
        known.params.iter().map(one).collect()
    }

    fn streams_of(&self, node: &str) -> Result<Vec<Arc<Stream>>, ExplainError> {
        let all = self.shared.streams();
        let (of_it, others): (Vec<_>, Vec<_>) = all.into_iter().partition(|s| s.node_id() == node);
        if !of_it.is_empty() {
            return Ok(of_it);
        }
        let others = others.iter().take(LOOKED_AT);
        Err(ExplainError::UnknownNode {
            node: node.to_owned(),
            near: nearest(node, others.map(|stream| stream.node_id().to_owned())),
        })
    }

    fn explain(&self, asked: Name, known: &Known) -> Result<Explained, ExplainError> {
        self.shared.with(|db| {
            if db.is_cache() {
                return Err(ExplainError::NotReady);
            }
            let params = db.intern_params(known.params.clone());
            db.hold_params(params);
            let explained = self.explain_to(db, asked, known, params);
            db.release_params(params);
            explained
        })
    }

    fn explain_to(
        &self,
        db: &mut Database,
        asked: Name,
        known: &Known,
        params: ParamsId,
    ) -> Result<Explained, ExplainError> {
        let hosts = db.type_id(&kind::VHDS.into());
        let route = HostName::split(asked.as_str()).map_or("", |name| name.route);
        check_route(db, route, params)?;
        let host = db.explain_host(hosts, &asked, params);
        let hidden = host.matched.as_ref();
        let hidden = hidden.and_then(|found| hidden_by(db, hosts, route, found));
        let described = known.described.as_deref();
        let base = described.map(|node| self.base(db, hosts, &asked, node));
        Ok(Explained {
            hidden,
            params: self.parameters(known),
            base: base.unwrap_or_default(),
            client: None,
            host,
            asked,
        })
    }

    fn base(&self, db: &Database, hosts: TypeId, asked: &Name, node: &Described) -> BaseExplained {
        let rules = &self.shared.rules.base;
        let base = rules.base(node);
        let route = HostName::split(asked.as_str()).map_or("", |name| name.route);
        let brings = |set: &str| db.base_hosts(hosts, set, route).contains(asked);
        BaseExplained {
            rules: rules
                .applying(node)
                .map(|rule| rule.node.to_string())
                .collect(),
            by_sets: base
                .sets
                .iter()
                .filter(|set| brings(set))
                .cloned()
                .collect(),
            by_name: base.hosts.contains(asked) && db.has_exact_domain(hosts, asked),
            sets: base.sets,
        }
    }

    /// The state of a host on a stream, if the stream has virtual hosts; and
    /// whether the client cache has the route configuration.
    fn host_on_stream(
        &self,
        stream: &Stream,
        explained: &Explained,
    ) -> Option<(Option<HostOnStream>, bool)> {
        let url = TypeUrl::from(kind::VHDS);
        let asked = &explained.asked;
        let given = given(explained).map_or(asked, |given| &given.name);
        let on = self.on_stream(stream, &url, asked, given);
        let talk = stream.talk();
        let session = talk.session.as_ref()?;
        let has_route = self.has_route(session, asked);
        let on_stream = on.map(|on| {
            let hosts = self.shared.options.limits.hosts;
            let is_expected = self.shared.with(|db| {
                let type_id = db.type_id(&url);
                db.is_bounded_host(type_id, asked)
            });
            HostOnStream {
                on,
                is_full: session.unbounded_hosts() >= hosts && !is_expected,
            }
        });
        Some((on_stream, has_route))
    }

    /// The state of a name on a stream, if the stream has its type.
    fn on_stream(
        &self,
        stream: &Stream,
        url: &TypeUrl,
        asked: &Name,
        given: &Name,
    ) -> Option<OnStream> {
        let may_see = stream.may_see(url);
        let talk = stream.talk();
        let session = talk.session.as_ref()?;
        let status = session.status().find(|status| status.type_url == *url)?;
        Some(self.shared.with(|db| OnStream {
            stream: stream.number,
            mode: stream.mode,
            only: stream.only.clone(),
            may_see,
            asked: session.name_status(db, url, asked),
            holds: session.held_resources(db, url).get(given).cloned(),
            error: status.error,
        }))
    }

    fn has_route(&self, session: &Session, asked: &Name) -> bool {
        let held = self
            .shared
            .with(|db| session.held_resources(db, &kind::RDS.into()));
        let route = HostName::split(asked.as_str()).map(|name| Name::new(name.route));
        route.is_some_and(|route| held.contains_key(&route))
    }
}

/// The name that a client subscribes to: Envoy uses lower case.
fn asked(route: &str, host: &str) -> Result<Name, ExplainError> {
    if host.is_empty() || host.contains('/') {
        let host = host.to_owned();
        return Err(ExplainError::NoHost { host });
    }
    Ok(Name::new(&format!("{route}/{}", host.to_ascii_lowercase())))
}

fn given(explained: &Explained) -> Option<&Resource> {
    let (given, _) = explained.host.matched.as_ref()?.answer.as_ref()?;
    Some(given)
}

/// Every variant of a name; an error if there is none.
fn variants(
    db: &Database,
    type_url: &TypeUrl,
    name: &Name,
) -> Result<Vec<Arc<Resource>>, ExplainError> {
    if db.is_cache() {
        return Err(ExplainError::NotReady);
    }
    let type_id = db.find_type(type_url);
    let found = type_id.map_or(&[][..], |id| db.variants(id, name));
    if !found.is_empty() {
        return Ok(found.to_vec());
    }
    let known = type_id.into_iter().flat_map(|id| db.resources(id));
    let known = known.take(LOOKED_AT).map(|r| r.name.to_string());
    Err(ExplainError::NoResource {
        kind: short(type_url).to_owned(),
        name: name.clone(),
        near: nearest(name.as_str(), known),
    })
}

fn short(type_url: &TypeUrl) -> &str {
    match kind::Kind::of(type_url).short {
        "" => type_url.as_str(),
        short => short,
    }
}

/// The route configuration has to exist and to use VHDS.
fn check_route(db: &mut Database, route: &str, params: ParamsId) -> Result<(), ExplainError> {
    let routes = db.type_id(&kind::RDS.into());
    let name = Name::new(route);
    let route = route.to_owned();
    match db.choose_name(routes, &name, params) {
        Choice::Resource(found) | Choice::Failed(_, Some(found)) => {
            match found.facts().vhds_version() {
                Some(_) => Ok(()),
                None => Err(ExplainError::NoVhds { route }),
            }
        }
        _ if !db.variants(routes, &name).is_empty() => Err(ExplainError::NoVariant { route }),
        _ => {
            let known = db.resources(routes).take(LOOKED_AT);
            let near = nearest(&route, known.map(|r| r.name.to_string()));
            Err(ExplainError::NoRoute { route, near })
        }
    }
}

/// A domain under the wildcard for which a virtual host is not sent whole.
fn hidden_by(db: &Database, hosts: TypeId, route: &str, found: &MatchedHost) -> Option<Hidden> {
    let crowded = Domain::of(found.hiding_wildcard.as_deref()?);
    let is_under = |domain: &Domain<'_>| match (crowded, domain) {
        (Domain::Any, _) => true,
        (Domain::Suffix(suffix), Domain::Exact(text) | Domain::Suffix(text)) => {
            text.ends_with(suffix)
        }
        _ => false,
    };
    let others = db.resources(hosts).take(LOOKED_AT).filter(|other| {
        let name = HostName::split(other.name.as_str());
        other.name != found.host.name && name.is_some_and(|name| name.route == route)
    });
    let mut hidden = others.filter_map(|other| {
        let mut domains = other.facts().domains.iter();
        Some(Hidden {
            domain: domains.find(is_under)?.to_string(),
            name: other.name.clone(),
        })
    });
    hidden.next()
}
