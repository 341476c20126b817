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
    /// Makes the envelope of a body, with the constraints in its wrapper. A
    /// condition in the metadata of the wrapper is an error, because conditions
    /// belong in the body.
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

/// Returns whether the metadata of a wrapper has a condition. Metadata without
/// the bytes of that key is not decoded; malformed metadata has none.
fn has_condition(metadata: &Bytes) -> bool {
    if !conditions::mentions(metadata) {
        return false;
    }
    let Ok(metadata) = Metadata::decode(metadata.clone()) else {
        return false;
    };
    let annotations = metadata.filter_metadata.get(facts::NAMESPACE);
    annotations.is_some_and(|annotations| annotations.fields.contains_key(conditions::WHEN))
}

/// The resources that a virtual host becomes.
pub(super) struct HostVariants {
    /// The virtual host itself, or its variants.
    pub(super) resources: Vec<Resource>,
    /// Conditions that are hardly intended, with their places.
    pub(super) doubts: Vec<(Path, Doubt)>,
}

impl Intake {
    /// Accepts a body without conditions as one resource, for the clients that
    /// match the constraints of its wrapper.
    pub(super) fn accept_unconditional(
        &mut self,
        envelope: &Envelope<'_>,
        facts: Facts,
        body: Bytes,
    ) -> Result<Accepted, AcceptError> {
        let wrapper_constraints = envelope.written.clone();
        let is_for_nobody = wrapper_constraints
            .as_ref()
            .is_some_and(Constraints::is_never);
        let doubt = is_for_nobody.then(|| (Path::default(), Doubt::Nobody));

        let url = envelope.type_url;
        let resource = self.make_resource(
            url,
            facts,
            body,
            envelope.wrapper,
            wrapper_constraints.clone(),
        )?;
        Ok(Accepted {
            type_url: self.shared.canonical_url(url),
            name: resource.name.clone(),
            clients: wrapper_constraints.clone(),
            written: wrapper_constraints,
            variants: vec![resource],
            hosts: Vec::new(),
            doubts: doubt.into_iter().collect(),
        })
    }

    /// Accepts a decoded body: as it is, or as the variants that its conditions
    /// make of it.
    pub(super) fn accept_decoded(
        &mut self,
        envelope: &Envelope<'_>,
        message: &DynamicMessage,
        body: Bytes,
    ) -> Result<Accepted, AcceptError> {
        let facts = facts::of_message(message)?;
        let wrapper_constraints = envelope.written.as_ref();
        let Some(variants) = variants_if_any(message, &body, wrapper_constraints)? else {
            return self.accept_unconditional(envelope, facts, body);
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

    /// Accepts a body that is canonical and valid. The body is decoded only if
    /// a scan of its bytes does not give all its facts.
    pub(super) fn accept_encoded(
        &mut self,
        envelope: &Envelope<'_>,
        body: Bytes,
    ) -> Result<Accepted, AcceptError> {
        match quick::look(envelope.type_url, &body) {
            Some(facts) => self.accept_unconditional(envelope, facts, body),
            None => self.accept_decoded(envelope, &decode(envelope.type_url, &body)?, body),
        }
    }

    /// Accepts a virtual host of a route configuration, for the clients of that
    /// route configuration. Its body has to be canonical and valid.
    pub(super) fn accept_host(
        &mut self,
        route: &Name,
        clients: Option<&Constraints>,
        body: &Bytes,
    ) -> Result<HostVariants, AcceptError> {
        match quick::look(types::VIRTUAL_HOST, body) {
            Some(facts) => self.accept_unconditional_host(route, clients, facts, body),
            None => {
                self.accept_decoded_host(route, clients, &decode(types::VIRTUAL_HOST, body)?, body)
            }
        }
    }

    /// Accepts a decoded virtual host of a route configuration, for the clients
    /// of that route configuration: as it is, or as its variants.
    pub(super) fn accept_decoded_host(
        &mut self,
        route: &Name,
        clients: Option<&Constraints>,
        message: &DynamicMessage,
        body: &Bytes,
    ) -> Result<HostVariants, AcceptError> {
        let Some(variants) = variants_if_any(message, body, clients)? else {
            return self.accept_unconditional_host(
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

    /// Accepts a virtual host without conditions as one resource, for the
    /// clients of its route configuration.
    pub(super) fn accept_unconditional_host(
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

    /// Makes a resource of a virtual host. Its own name and the name in its
    /// body get that of the route configuration as a prefix.
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

/// Makes the variants of a body for these clients. Returns `None` if no part of
/// the body has a condition.
fn variants_if_any(
    message: &DynamicMessage,
    body: &[u8],
    clients: Option<&Constraints>,
) -> Result<Option<Variants>, AcceptError> {
    // Most bodies have none, and a search for the key costs little.
    if !conditions::mentions(body) {
        return Ok(None);
    }

    let conditions_found = conditions::find(message)?;
    if conditions_found.is_empty() {
        return Ok(None);
    }
    let clients = clients.cloned().unwrap_or_else(Constraints::always);
    compact::make_variants(message, &conditions_found, &clients).map(Some)
}

/// Returns constraints; `None` if they match all clients, which is as good as
/// none.
fn unless_always(clients: Constraints) -> Option<Constraints> {
    Some(clients).filter(|clients| !clients.is_always())
}

/// Decodes a body. A body of an unknown type becomes an empty message, which
/// has no facts and no conditions.
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
