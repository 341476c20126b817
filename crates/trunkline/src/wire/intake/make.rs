//! From a body to resources: one, or several if parts of it have conditions.

use bytes::Bytes;
use prost::Message as _;
use trunkline_core::name::Name;
use trunkline_core::params::Constraints;
use trunkline_core::resource::Resource;
use trunkline_proto::conditions;
use trunkline_proto::descriptor::{self, types};
use trunkline_proto::envoy::envoy::config::core::v3::Metadata;
use trunkline_proto::facts::{self, Facts, FactsError};
use trunkline_proto::prost_reflect::{DynamicMessage, ReflectMessage as _};
use trunkline_proto::{Path, discovery, quick};

use super::{Accepted, Intake};
use crate::wire::accept::AcceptError;
use crate::wire::authored::{constraints, name};
use crate::wire::compact::{self, Doubt, Variants};
use crate::wire::hosts::{self, inside};

/// The wrapper of a body.
pub(super) struct Around<'a> {
    type_url: &'a str,
    wrapper: &'a discovery::Resource,
    written: Option<Constraints>,
}

impl<'a> Around<'a> {
    pub(super) fn new(
        type_url: &'a str,
        wrapper: &'a discovery::Resource,
    ) -> Result<Self, AcceptError> {
        if wrapper.metadata.as_ref().is_some_and(has_condition) {
            return Err(AcceptError::ConditionAround);
        }
        Ok(Self {
            type_url,
            wrapper,
            written: constraints(wrapper)?,
        })
    }
}

/// Whether some metadata has a condition.
fn has_condition(metadata: &Bytes) -> bool {
    let read = conditions::mentions(metadata).then(|| Metadata::decode(metadata.clone()));
    let Some(Ok(mut read)) = read else {
        return false;
    };
    let ours = read.filter_metadata.remove(facts::NAMESPACE);
    ours.is_some_and(|ours| ours.fields.contains_key(conditions::WHEN))
}

/// A virtual host, or its variants.
type Made = Result<(Vec<Resource>, Vec<(Path, Doubt)>), AcceptError>;

impl Intake {
    /// A body in which no part has a condition.
    pub(super) fn plain(
        &mut self,
        around: &Around<'_>,
        facts: Facts,
        body: Bytes,
    ) -> Result<Accepted, AcceptError> {
        let written = around.written.clone();
        let never = written.as_ref().is_some_and(Constraints::is_never);
        let doubts = never.then(|| (Path::default(), Doubt::Nobody));
        let (url, clients) = (around.type_url, written.clone());
        let resource = self.authored(url, facts, body, around.wrapper, clients)?;
        Ok(Accepted {
            type_url: self.shared.url(url),
            name: resource.name.clone(),
            clients: written.clone(),
            written,
            variants: vec![resource],
            hosts: Vec::new(),
            doubts: doubts.into_iter().collect(),
        })
    }

    /// A body that is already decoded.
    pub(super) fn decoded(
        &mut self,
        around: &Around<'_>,
        message: &DynamicMessage,
        body: Bytes,
    ) -> Result<Accepted, AcceptError> {
        let facts = facts::of_message(message)?;
        let own = around.written.as_ref();
        let Some(made) = variants(message, &body, own)? else {
            return self.plain(around, facts, body);
        };
        let (url, wrapper) = (around.type_url, around.wrapper);
        let mut accepted = Accepted {
            type_url: self.shared.url(url),
            name: name(url, facts.name.as_deref(), wrapper)?,
            written: around.written.clone(),
            clients: some(made.clients),
            variants: Vec::with_capacity(made.all.len()),
            hosts: Vec::new(),
            doubts: made.doubts,
        };
        for one in made.all {
            let facts = facts::of_message(&one.message)?;
            let resource = self.authored(url, facts, one.body, wrapper, some(one.clients))?;
            accepted.variants.push(resource);
        }
        Ok(accepted)
    }

    /// A body that is canonical and valid.
    pub(super) fn encoded(
        &mut self,
        around: &Around<'_>,
        body: Bytes,
    ) -> Result<Accepted, AcceptError> {
        match quick::look(around.type_url, &body) {
            Some(facts) => self.plain(around, facts, body),
            None => self.decoded(around, &decode(around.type_url, &body)?, body),
        }
    }

    /// A virtual host out of a route configuration for these clients.
    pub(super) fn host(
        &mut self,
        route: &Name,
        clients: Option<&Constraints>,
        body: &Bytes,
    ) -> Made {
        match quick::look(types::VIRTUAL_HOST, body) {
            Some(facts) => self.plain_host(route, clients, facts, body),
            None => self.host_message(route, clients, &decode(types::VIRTUAL_HOST, body)?, body),
        }
    }

    /// The same, decoded.
    pub(super) fn host_message(
        &mut self,
        route: &Name,
        clients: Option<&Constraints>,
        message: &DynamicMessage,
        body: &Bytes,
    ) -> Made {
        let Some(made) = variants(message, body, clients)? else {
            return self.plain_host(route, clients, facts::of_message(message)?, body);
        };
        let one = |one: compact::Variant| {
            let facts = facts::of_message(&one.message)?;
            self.one_host(route, some(one.clients), facts, &one.body)
        };
        let resources: Result<_, AcceptError> = made.all.into_iter().map(one).collect();
        Ok((resources?, made.doubts))
    }

    /// The same, without conditions.
    pub(super) fn plain_host(
        &mut self,
        route: &Name,
        clients: Option<&Constraints>,
        facts: Facts,
        body: &Bytes,
    ) -> Made {
        let one = self.one_host(route, clients.cloned(), facts, body)?;
        Ok((vec![one], Vec::new()))
    }

    fn one_host(
        &mut self,
        route: &Name,
        clients: Option<Constraints>,
        facts: Facts,
        body: &Bytes,
    ) -> Result<Resource, AcceptError> {
        let Some(name) = &facts.name else {
            let type_url = self.vhds();
            return Err(AcceptError::NoName { type_url });
        };
        let name = inside(route, name);
        hosts::check(&name)?;
        Ok(Resource {
            constraints: clients,
            facts: self.shared.facts(facts, None),
            ..Resource::new(name.clone(), hosts::renamed(body, &name)?)
        })
    }
}

/// The variants of a body; none if no part of it has a condition, which is
/// cheap to find out.
fn variants(
    message: &DynamicMessage,
    body: &[u8],
    own: Option<&Constraints>,
) -> Result<Option<Variants>, AcceptError> {
    if !conditions::mentions(body) {
        return Ok(None);
    }
    let found = conditions::find(message)?;
    if found.is_empty() {
        return Ok(None);
    }
    let own = own.cloned().unwrap_or_else(Constraints::always);
    compact::variants(message, &found, &own).map(Some)
}

/// Constraints that match all clients are none.
fn some(clients: Constraints) -> Option<Constraints> {
    Some(clients).filter(|clients| !clients.is_always())
}

fn decode(type_url: &str, body: &Bytes) -> Result<DynamicMessage, AcceptError> {
    let malformed = |source| FactsError::Malformed {
        type_url: type_url.to_owned(),
        source,
    };
    match descriptor::message(type_url) {
        Some(of) => Ok(DynamicMessage::decode(of, body.clone()).map_err(malformed)?),
        // A message of an unknown type has no parts.
        None => Ok(().transcode_to_dynamic()),
    }
}
