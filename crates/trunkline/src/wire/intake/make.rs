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
use crate::wire::authored::name;
use crate::wire::compact::{self, Doubt, Variants};
use crate::wire::constraints::constraints_of;
use crate::wire::hosts::{self, inside};

/// The type and the wrapper of a body.
pub(super) struct Around<'a> {
    type_url: &'a str,
    wrapper: &'a discovery::Resource,
    /// The constraints in the wrapper.
    written: Option<Constraints>,
}

impl<'a> Around<'a> {
    /// Refuses a condition in the metadata of the wrapper: those belong in the
    /// body.
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
            written: constraints_of(wrapper.resource_name.as_ref())?,
        })
    }
}

/// Whether some metadata has a condition. It is decoded only if its bytes
/// contain the key of one.
fn has_condition(metadata: &Bytes) -> bool {
    if !conditions::mentions(metadata) {
        return false;
    }
    let Ok(metadata) = Metadata::decode(metadata.clone()) else {
        return false;
    };
    let annotations = metadata.filter_metadata.get(facts::NAMESPACE);
    annotations.is_some_and(|of_server| of_server.fields.contains_key(conditions::WHEN))
}

/// A virtual host or its variants, with conditions that are hardly intended.
type HostResult = Result<(Vec<Resource>, Vec<(Path, Doubt)>), AcceptError>;

impl Intake {
    /// Takes in a body in which no part has a condition.
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

    /// Takes in a body that is already decoded: as it is, or as its variants.
    pub(super) fn decoded(
        &mut self,
        around: &Around<'_>,
        message: &DynamicMessage,
        body: Bytes,
    ) -> Result<Accepted, AcceptError> {
        let facts = facts::of_message(message)?;
        let written = around.written.as_ref();
        let Some(made) = variants(message, &body, written)? else {
            return self.plain(around, facts, body);
        };
        let (url, wrapper) = (around.type_url, around.wrapper);
        let mut accepted = Accepted {
            type_url: self.shared.url(url),
            name: name(url, facts.name.as_deref(), wrapper)?,
            written: around.written.clone(),
            clients: unless_always(made.clients),
            variants: Vec::with_capacity(made.all.len()),
            hosts: Vec::new(),
            doubts: made.doubts,
        };
        for variant in made.all {
            let facts = facts::of_message(&variant.message)?;
            let clients = unless_always(variant.clients);
            let resource = self.authored(url, facts, variant.body, wrapper, clients)?;
            accepted.variants.push(resource);
        }
        Ok(accepted)
    }

    /// Takes in a body that is canonical and valid, and decodes it only if need
    /// be.
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

    /// Takes a virtual host out of a route configuration, for the clients of that
    /// one. Its body has to be canonical and valid.
    pub(super) fn host(
        &mut self,
        route: &Name,
        clients: Option<&Constraints>,
        body: &Bytes,
    ) -> HostResult {
        match quick::look(types::VIRTUAL_HOST, body) {
            Some(facts) => self.plain_host(route, clients, facts, body),
            None => self.host_message(route, clients, &decode(types::VIRTUAL_HOST, body)?, body),
        }
    }

    /// Does the same as [`Self::host`] with a virtual host that is already
    /// decoded.
    pub(super) fn host_message(
        &mut self,
        route: &Name,
        clients: Option<&Constraints>,
        message: &DynamicMessage,
        body: &Bytes,
    ) -> HostResult {
        let Some(made) = variants(message, body, clients)? else {
            return self.plain_host(route, clients, facts::of_message(message)?, body);
        };
        let one = |variant: compact::Variant| {
            let facts = facts::of_message(&variant.message)?;
            let clients = unless_always(variant.clients);
            self.host_resource(route, clients, facts, &variant.body)
        };
        let resources: Result<_, AcceptError> = made.all.into_iter().map(one).collect();
        Ok((resources?, made.doubts))
    }

    /// Does the same as [`Self::host`] with a virtual host in which no part has a
    /// condition.
    pub(super) fn plain_host(
        &mut self,
        route: &Name,
        clients: Option<&Constraints>,
        facts: Facts,
        body: &Bytes,
    ) -> HostResult {
        let resource = self.host_resource(route, clients.cloned(), facts, body)?;
        Ok((vec![resource], Vec::new()))
    }

    /// Makes a resource of a virtual host, named after its route configuration,
    /// inside and outside.
    fn host_resource(
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

/// Makes the variants of a body for these clients; `None` if no part of it has a
/// condition, which is cheap to find out.
fn variants(
    message: &DynamicMessage,
    body: &[u8],
    clients: Option<&Constraints>,
) -> Result<Option<Variants>, AcceptError> {
    if !conditions::mentions(body) {
        return Ok(None);
    }
    let found = conditions::find(message)?;
    if found.is_empty() {
        return Ok(None);
    }
    let clients = clients.cloned().unwrap_or_else(Constraints::always);
    compact::variants(message, &found, &clients).map(Some)
}

/// Constraints that match all clients are none.
fn unless_always(clients: Constraints) -> Option<Constraints> {
    Some(clients).filter(|clients| !clients.is_always())
}

/// Decodes a body. One of an unknown type becomes an empty message, in which
/// there is nothing to find.
fn decode(type_url: &str, body: &Bytes) -> Result<DynamicMessage, AcceptError> {
    let malformed = |source| FactsError::Malformed {
        type_url: type_url.to_owned(),
        source,
    };
    match descriptor::message(type_url) {
        Some(of) => Ok(DynamicMessage::decode(of, body.clone()).map_err(malformed)?),
        None => Ok(().transcode_to_dynamic()),
    }
}
