//! A resource as a part of a bootstrap: cut off from every server, because an
//! Envoy that only validates fetches nothing.

use std::sync::Arc;

use bytes::Bytes;
use trunkline::{Resource, TypeUrl, kind};
use trunkline_proto::prost_reflect::{DynamicMessage, ReflectMessage as _, Value};
use trunkline_proto::{canonical, descriptor, visit};

const CONFIG_SOURCE: &str = "envoy.config.core.v3.ConfigSource";
/// Messages that name a cluster which mostly is one of the client's bootstrap,
/// and the field that does.
const BOOTSTRAP_CLUSTERS: [(&str, &str); 2] = [
    ("envoy.config.core.v3.GrpcService.EnvoyGrpc", "cluster_name"),
    ("envoy.config.core.v3.HttpUri", "cluster"),
];

/// The kinds of resources that a bootstrap can hold, in the order in which they
/// are in it: what is referred to comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Role {
    Secret,
    Cluster,
    Endpoints,
    Routes,
    VirtualHost,
    Listener,
}

/// A resource, as a part of a bootstrap.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) role: Role,
    pub(super) type_url: TypeUrl,
    pub(super) resource: Arc<Resource>,
    /// The message, in which every config source is ADS.
    pub(super) body: Bytes,
    /// The clusters that Envoy wants to know because of it.
    pub(super) clusters: Vec<String>,
}

impl Part {
    /// Makes a part of a resource. Returns `None` if no bootstrap can have the
    /// resource: its type has no role, it cannot be decoded, or it is a
    /// listener for gRPC only.
    pub(super) fn new(type_url: &TypeUrl, resource: &Arc<Resource>) -> Option<Self> {
        let role = part_role(type_url)?;
        let message_type = descriptor::message(type_url.as_str())?;
        let body = resource.body.clone().unwrap_or_default();
        let mut message = DynamicMessage::decode(message_type, body).ok()?;
        if role == Role::Listener && message.has_field_by_name("api_listener") {
            return None;
        }

        let mut clusters = clusters_of(resource);
        let mut replace_sources = |inner: &mut DynamicMessage| {
            clusters.extend(named_cluster(inner));
            use_ads(inner)
        };
        visit::visit(&mut message, &mut replace_sources).ok()?;
        Some(Self {
            role,
            type_url: type_url.clone(),
            resource: Arc::clone(resource),
            body: canonical::encode(&message).ok()?.into(),
            clusters,
        })
    }

    /// Returns the name of the resource.
    pub(super) fn name(&self) -> &str {
        self.resource.name.as_str()
    }
}

/// Returns the role of a type. Returns `None` if a bootstrap cannot have
/// resources of the type.
fn part_role(type_url: &TypeUrl) -> Option<Role> {
    Some(match type_url.as_str() {
        kind::SDS => Role::Secret,
        kind::CDS => Role::Cluster,
        kind::EDS => Role::Endpoints,
        kind::RDS => Role::Routes,
        kind::VHDS => Role::VirtualHost,
        kind::LDS => Role::Listener,
        _ => return None,
    })
}

/// Returns the clusters that a resource refers to.
fn clusters_of(resource: &Resource) -> Vec<String> {
    let references = resource.facts().references.iter();
    let clusters = references.filter(|reference| reference.type_url.as_str() == kind::CDS);
    clusters.map(|cluster| cluster.name.to_string()).collect()
}

/// Returns the cluster that a message names, if it is one of
/// [`BOOTSTRAP_CLUSTERS`].
fn named_cluster(message: &DynamicMessage) -> Option<String> {
    let descriptor = message.descriptor();
    let is_meant = |(name, _): &&(&str, &str)| *name == descriptor.full_name();
    let (_, field) = BOOTSTRAP_CLUSTERS.iter().find(is_meant)?;
    let name = message.get_field_by_name(field)?;
    Some(name.as_str()?.to_owned()).filter(|name| !name.is_empty())
}

/// Replaces a config source by ADS: the cluster or file that it names may exist
/// for clients only. Returns whether the message is a config source.
fn use_ads(message: &mut DynamicMessage) -> bool {
    let descriptor = message.descriptor();
    if descriptor.full_name() != CONFIG_SOURCE {
        return false;
    }
    let ads_field = descriptor.get_field_by_name("ads");
    let Some(ads_type) = ads_field
        .as_ref()
        .and_then(|field| field.kind().as_message().cloned())
    else {
        return false;
    };
    // This clears the field of the oneof that was set before.
    message.set_field_by_name("ads", Value::Message(DynamicMessage::new(ads_type)));
    message.clear_field_by_name("authorities");
    true
}
