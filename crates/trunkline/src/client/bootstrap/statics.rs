//! The static resources of a bootstrap.

use std::collections::BTreeSet;
use std::fmt;

use bytes::Bytes;
use trunkline_proto::descriptor::types;
use trunkline_proto::envoy::envoy::config::cluster::v3::Cluster;
use trunkline_proto::envoy::envoy::extensions::transport_sockets::tls::v3::{Secret, secret};
use trunkline_proto::text;

use super::problem::Problem;
use super::report::Scope;

/// A resource that is in the bootstrap: no control plane is asked for it, and
/// none can change it (E20).
#[derive(Clone, PartialEq, Eq)]
pub struct StaticResource {
    /// Its type.
    pub type_url: String,
    /// Its name. A listener without one is named by its address.
    pub name: String,
    /// Its canonical bytes.
    pub body: Bytes,
}

/// By hand: the body may be a secret.
impl fmt::Debug for StaticResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StaticResource")
            .field("type_url", &self.type_url)
            .field("name", &self.name)
            .field("bytes", &self.body.len())
            .finish()
    }
}

impl StaticResource {
    /// Converts the resources that were parsed from a bootstrap. Two of one
    /// type with one name are a mistake.
    pub(super) fn convert_all(parsed: Vec<text::Resource>, scope: &Scope<'_>) -> Vec<Self> {
        let mut names = BTreeSet::new();
        let resources = parsed.into_iter().map(|resource| {
            let name = resource.message.get_field_by_name("name");
            let name = name.as_ref().and_then(|name| name.as_str());
            let name = name.unwrap_or_default().to_owned();
            if !names.insert((resource.type_url.clone(), name.clone())) {
                let kind = kind(&resource.type_url);
                let scope = scope.at_path(&format!("{}.name", resource.path));
                let name = name.clone();
                scope.mistake::<()>(Problem::Duplicate { kind, name });
            }
            Self {
                type_url: resource.type_url,
                name,
                body: resource.body,
            }
        });
        resources.collect()
    }
}

/// Returns what people call a resource of a type. Other static resources than
/// listeners and clusters are secrets.
fn kind(type_url: &str) -> &'static str {
    match type_url {
        types::LISTENER => "listener",
        types::CLUSTER => "cluster",
        _ => "secret",
    }
}

/// The clusters that control planes are, and the secrets of their connections.
#[derive(Clone, Default, PartialEq)]
pub(super) struct Statics {
    pub(super) clusters: Vec<Cluster>,
    pub(super) secrets: Vec<Secret>,
}

/// By hand: there are secrets in it.
impl fmt::Debug for Statics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let clusters = self.clusters.iter().map(|cluster| &cluster.name);
        f.debug_list().entries(clusters).finish()
    }
}

impl Statics {
    /// Finds a cluster, and its index.
    pub(super) fn cluster(&self, name: &str) -> Option<(usize, &Cluster)> {
        let mut clusters = self.clusters.iter().enumerate();
        clusters.find(|(_, cluster)| cluster.name == name)
    }

    /// Returns the name of a cluster that is nearest to a name that no cluster
    /// has.
    pub(super) fn nearest_cluster(&self, name: &str) -> Option<String> {
        let names = self.clusters.iter().map(|cluster| cluster.name.clone());
        text::nearest(name, names)
    }

    /// Finds the contents of a secret, and its index.
    pub(super) fn secret(&self, name: &str) -> Option<(usize, &secret::Type)> {
        let mut secrets = self.secrets.iter().enumerate();
        let (index, secret) = secrets.find(|(_, secret)| secret.name == name)?;
        Some((index, secret.r#type.as_ref()?))
    }
}
