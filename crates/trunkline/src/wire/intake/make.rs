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
use crate::wire::authored::agreed_name;
use crate::wire::compact::{self, Doubt, Variants};
use crate::wire::constraints::read_variant_constraints;
use crate::wire::host_name;
use crate::wire::hosts::{self, name_inside};

/// What a body comes in: its type and the `Resource` that wraps it.
pub(super) struct Envelope<'a> {
    type_url: &'a str,
    wrapper: &'a discovery::Resource,
    /// The constraints in the wrapper.
    written: Option<Constraints>,
}

impl<'a> Envelope<'a> {
    /// Reads the constraints in the wrapper. Refuses a condition in its
    /// metadata: those belong in the body.
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
            written: read_variant_constraints(wrapper.resource_name.as_ref())?,
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

/// The resources that a virtual host becomes.
pub(super) struct HostVariants {
    /// The virtual host itself, or its variants.
    pub(super) resources: Vec<Resource>,
    /// Conditions that are hardly intended, with their places.
    pub(super) doubts: Vec<(Path, Doubt)>,
}

impl Intake {
    /// Takes in a body in which no part has a condition: it becomes one
    /// resource, for the clients that match the constraints of its wrapper.
    pub(super) fn take_in_unconditional(
        &mut self,
        envelope: &Envelope<'_>,
        facts: Facts,
        body: Bytes,
    ) -> Result<Accepted, AcceptError> {
        let written = envelope.written.clone();
        let is_for_nobody = written.as_ref().is_some_and(Constraints::is_never);
        let doubt = is_for_nobody.then(|| (Path::default(), Doubt::Nobody));

        let url = envelope.type_url;
        let resource = self.make_resource(url, facts, body, envelope.wrapper, written.clone())?;
        Ok(Accepted {
            type_url: self.shared.canonical_url(url),
            name: resource.name.clone(),
            clients: written.clone(),
            written,
            variants: vec![resource],
            hosts: Vec::new(),
            doubts: doubt.into_iter().collect(),
        })
    }

    /// Takes in a body that is already decoded: as it is, or as the variants
    /// that its conditions make of it.
    pub(super) fn take_in_decoded(
        &mut self,
        envelope: &Envelope<'_>,
        message: &DynamicMessage,
        body: Bytes,
    ) -> Result<Accepted, AcceptError> {
        let facts = facts::of_message(message)?;
        let written = envelope.written.as_ref();
        let Some(variants) = variants_if_any(message, &body, written)? else {
            return self.take_in_unconditional(envelope, facts, body);
        };

        let (url, wrapper) = (envelope.type_url, envelope.wrapper);
        let mut accepted = Accepted {
            type_url: self.shared.canonical_url(url),
            name: agreed_name(url, facts.name.as_deref(), wrapper)?,
            written: envelope.written.clone(),
            clients: unless_always(variants.clients),
            variants: Vec::with_capacity(variants.all.len()),
            hosts: Vec::new(),
            doubts: variants.doubts,
        };

        for variant in variants.all {
            let facts = facts::of_message(&variant.message)?;
            let clients = unless_always(variant.clients);
            let resource = self.make_resource(url, facts, variant.body, wrapper, clients)?;
            accepted.variants.push(resource);
        }
        Ok(accepted)
    }

    /// Takes in a body that is canonical and valid. It is decoded only if a
    /// look at its bytes does not tell all its facts.
    pub(super) fn take_in_encoded(
        &mut self,
        envelope: &Envelope<'_>,
        body: Bytes,
    ) -> Result<Accepted, AcceptError> {
        match quick::look(envelope.type_url, &body) {
            Some(facts) => self.take_in_unconditional(envelope, facts, body),
            None => self.take_in_decoded(envelope, &decode(envelope.type_url, &body)?, body),
        }
    }

    /// Takes a virtual host out of a route configuration, for the clients of
    /// that one. Its body has to be canonical and valid.
    pub(super) fn take_in_host(
        &mut self,
        route: &Name,
        clients: Option<&Constraints>,
        body: &Bytes,
    ) -> Result<HostVariants, AcceptError> {
        match quick::look(types::VIRTUAL_HOST, body) {
            Some(facts) => self.take_in_unconditional_host(route, clients, facts, body),
            None => {
                self.take_in_decoded_host(route, clients, &decode(types::VIRTUAL_HOST, body)?, body)
            }
        }
    }

    /// Takes a virtual host that is already decoded out of a route
    /// configuration, for the clients of that one: as it is, or as its
    /// variants.
    pub(super) fn take_in_decoded_host(
        &mut self,
        route: &Name,
        clients: Option<&Constraints>,
        message: &DynamicMessage,
        body: &Bytes,
    ) -> Result<HostVariants, AcceptError> {
        let Some(variants) = variants_if_any(message, body, clients)? else {
            return self.take_in_unconditional_host(
                route,
                clients,
                facts::of_message(message)?,
                body,
            );
        };

        let mut resources = Vec::with_capacity(variants.all.len());
        for variant in variants.all {
            let facts = facts::of_message(&variant.message)?;
            let clients = unless_always(variant.clients);
            resources.push(self.make_host(route, clients, facts, &variant.body)?);
        }
        Ok(HostVariants {
            resources,
            doubts: variants.doubts,
        })
    }

    /// Takes a virtual host in which no part has a condition out of a route
    /// configuration, for the clients of that one: it becomes one resource.
    pub(super) fn take_in_unconditional_host(
        &mut self,
        route: &Name,
        clients: Option<&Constraints>,
        facts: Facts,
        body: &Bytes,
    ) -> Result<HostVariants, AcceptError> {
        let resource = self.make_host(route, clients.cloned(), facts, body)?;
        Ok(HostVariants {
            resources: vec![resource],
            doubts: Vec::new(),
        })
    }

    /// Makes a resource of a virtual host. It is named after its route
    /// configuration, and so is its body.
    fn make_host(
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

        let name = name_inside(route, name);
        host_name::check_name(&name)?;
        Ok(Resource {
            constraints: clients,
            facts: self.shared.convert_facts(facts, None),
            ..Resource::new(name.clone(), hosts::rename(body, &name)?)
        })
    }
}

/// Makes the variants of a body for these clients; `None` if no part of it has
/// a condition, which is cheap to find out.
fn variants_if_any(
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
    compact::make_variants(message, &found, &clients).map(Some)
}

/// Returns constraints, unless they match all clients, which is as good as
/// none.
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
        Some(descriptor) => {
            let message = DynamicMessage::decode(descriptor, body.clone());
            Ok(message.map_err(malformed)?)
        }
        None => Ok(().transcode_to_dynamic()),
    }
}
