//! Finding out why a client gets what it gets for a host.

use std::sync::Arc;

use trunkline_core::database::{Choice, Database, Found, TypeId};
use trunkline_core::hosts::{Domain, HostName};
use trunkline_core::kind;
use trunkline_core::name::Name;
use trunkline_core::params::ParamsId;
use trunkline_core::resource::{Resource, TypeUrl};
use trunkline_core::session::Session;
use trunkline_proto::discovery::Node;
use trunkline_proto::text::nearest;

use super::Server;
use super::stream::Stream;
use crate::explain::{BaseExplained, Connected, ExplainError, Explained, Hidden, HostOnStream};
use crate::node::Described;

/// Resources that are looked through for one that a wildcard would hide, and
/// names for one that was meant.
const LOOKED_AT: usize = 10_000;

impl Server {
    /// Why a client that is connected gets what it gets for a host.
    ///
    /// # Errors
    /// If there is no such client, or nothing to ask for.
    pub fn explain_client(
        &self,
        node: &str,
        route: &str,
        host: &str,
    ) -> Result<Explained, ExplainError> {
        let asked = asked(route, host)?;
        let streams = self.streams_of(node)?;
        let url = TypeUrl::from(kind::VHDS);
        let (mut described, mut params) = (None, None);
        for stream in &streams {
            let talk = stream.talk();
            let session = talk.session.as_ref();
            let speaks = session.is_some_and(|session| session.speaks_of(&url));
            if described.is_none() || speaks {
                described = talk.described.clone();
                params = session.map(|session| session.params_for(&url));
            }
        }
        let params = params.unwrap_or(ParamsId::EMPTY);
        let mut explained = self.explain(asked, described.as_deref(), params)?;
        let (on_streams, routes): (Vec<_>, Vec<_>) = streams
            .iter()
            .filter_map(|stream| self.on_stream(stream, &explained))
            .unzip();
        explained.client = Some(Connected {
            has_route: routes.contains(&true),
            streams: on_streams.into_iter().flatten().collect(),
        });
        Ok(explained)
    }

    /// Why a client that describes itself like this would get what it would
    /// get for a host.
    ///
    /// # Errors
    /// If there is nothing to ask for.
    pub fn explain_node(
        &self,
        node: &Node,
        route: &str,
        host: &str,
    ) -> Result<Explained, ExplainError> {
        let described = Described::new(node, self.shared.rules.wanted());
        self.explain(asked(route, host)?, Some(&described), ParamsId::EMPTY)
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

    fn explain(
        &self,
        asked: Name,
        described: Option<&Described>,
        params: ParamsId,
    ) -> Result<Explained, ExplainError> {
        self.shared.with(|db| {
            if db.is_cache() {
                return Err(ExplainError::NotReady);
            }
            let hosts = db.type_id(&kind::VHDS.into());
            let route = HostName::split(asked.as_str()).map_or("", |name| name.route);
            check_route(db, route, params)?;
            let host = db.explain_host(hosts, &asked, params);
            let hidden = host.found.as_ref();
            let hidden = hidden.and_then(|found| hidden_by(db, hosts, route, found));
            let base = described.map(|node| self.base(db, hosts, &asked, node));
            Ok(Explained {
                hidden,
                base: base.unwrap_or_default(),
                client: None,
                host,
                asked,
            })
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
            by_name: base.hosts.contains(asked) && db.names_host(hosts, asked),
            sets: base.sets,
        }
    }

    /// How a host stands on a stream, if that speaks of virtual hosts; and
    /// whether its client holds the route configuration.
    fn on_stream(
        &self,
        stream: &Stream,
        explained: &Explained,
    ) -> Option<(Option<HostOnStream>, bool)> {
        let url = TypeUrl::from(kind::VHDS);
        let may_see = stream.may_see(&url);
        let talk = stream.talk();
        let session = talk.session.as_ref()?;
        let has_route = self.has_route(session, &explained.asked);
        let status = session.status().find(|status| status.type_url == url);
        let on_stream = status.map(|status| {
            let asked = &explained.asked;
            let limit = self.shared.options.limits.hosts;
            self.shared.with(|db| {
                let hosts = db.type_id(&url);
                let (held, is_expected) = (session.held(db, &url), db.expects_host(hosts, asked));
                HostOnStream {
                    stream: stream.number,
                    mode: stream.mode,
                    only: stream.only.clone(),
                    may_see,
                    asked: session.asked(db, &url, asked),
                    holds: given(explained).and_then(|given| held.get(&given.name).cloned()),
                    error: status.error,
                    is_full: session.strangers() >= limit && !is_expected,
                }
            })
        });
        Some((on_stream, has_route))
    }

    fn has_route(&self, session: &Session, asked: &Name) -> bool {
        let held = self.shared.with(|db| session.held(db, &kind::RDS.into()));
        let route = HostName::split(asked.as_str()).map(|name| Name::new(name.route));
        route.is_some_and(|route| held.contains_key(&route))
    }
}

/// What a client asks for: Envoy asks in lower case.
fn asked(route: &str, host: &str) -> Result<Name, ExplainError> {
    if host.is_empty() || host.contains('/') {
        let host = host.to_owned();
        return Err(ExplainError::NoHost { host });
    }
    Ok(Name::new(&format!("{route}/{}", host.to_ascii_lowercase())))
}

fn given(explained: &Explained) -> Option<&Resource> {
    let (given, _) = explained.host.found.as_ref()?.given.as_ref()?;
    Some(given)
}

/// The route configuration has to be one that asks for virtual hosts.
fn check_route(db: &mut Database, route: &str, params: ParamsId) -> Result<(), ExplainError> {
    let routes = db.type_id(&kind::RDS.into());
    let name = Name::new(route);
    let route = route.to_owned();
    match db.choose_name(routes, &name, params) {
        Choice::Is(found) | Choice::Failed(_, Some(found)) => match found.facts().vhds {
            Some(_) => Ok(()),
            None => Err(ExplainError::NoVhds { route }),
        },
        _ if !db.variants(routes, &name).is_empty() => Err(ExplainError::NoVariant { route }),
        _ => {
            let known = db.resources(routes).take(LOOKED_AT);
            let near = nearest(&route, known.map(|r| r.name.to_string()));
            Err(ExplainError::NoRoute { route, near })
        }
    }
}

/// What is under the wildcard for which a virtual host is not given whole.
fn hidden_by(db: &Database, hosts: TypeId, route: &str, found: &Found) -> Option<Hidden> {
    let crowded = Domain::of(found.crowded.as_deref()?);
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
