//! Names of collections.

use crate::descriptor;

/// A collection, and the message of its bodies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collection {
    /// Its name, such as `istio/networking/v1alpha3/virtualservices`.
    pub name: String,
    /// The full name of the message that a body is, if that has a descriptor
    /// here; others are a `google.protobuf.Struct`.
    pub message: Option<String>,
}

/// The end of the groups of Istio's APIs.
const ISTIO: &str = ".istio.io";

impl Collection {
    /// Returns the collection of a manifest. Its `apiVersion` may be that of
    /// Kubernetes, or the package of a known message, such as
    /// `envoy.config.cluster.v3`.
    ///
    /// ```
    /// use trunkline_proto::mcp::Collection;
    ///
    /// let of = |version, kind| Collection::of_manifest(version, kind).name;
    /// assert_eq!(of("networking.istio.io/v1", "Gateway"), "istio/networking/v1/gateways");
    /// assert_eq!(of("apps/v1", "Deployment"), "k8s/apps/v1/Deployment");
    /// assert_eq!(of("envoy.config.cluster.v3", "Cluster"), "envoy/cluster/v3/clusters");
    /// ```
    #[must_use]
    pub fn of_manifest(api_version: &str, kind: &str) -> Self {
        let full_name = format!("{api_version}.{kind}");
        if !api_version.contains('/') && descriptor::message(&full_name).is_some() {
            return Self {
                name: Self::of_message(&full_name),
                message: Some(full_name),
            };
        }

        let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
        match group.strip_suffix(ISTIO) {
            Some(area) => {
                let message = format!("istio.{area}.{version}.{kind}");
                let is_known = descriptor::message(&message).is_some();
                Self {
                    name: format!("istio/{area}/{version}/{}", plural(kind)),
                    message: Some(message).filter(|_| is_known),
                }
            }
            None => Self {
                name: format!("k8s/{api_version}/{kind}"),
                message: None,
            },
        }
    }

    /// Returns the name of the collection for messages of this type: the root,
    /// the area and the version of its package, and its plural.
    ///
    /// ```
    /// use trunkline_proto::mcp::Collection;
    ///
    /// let of = Collection::of_message;
    /// assert_eq!(of("envoy.config.listener.v3.Listener"), "envoy/listener/v3/listeners");
    /// assert_eq!(of("istio.networking.v1.Gateway"), "istio/networking/v1/gateways");
    /// assert_eq!(of("Thing"), "things");
    /// ```
    #[must_use]
    pub fn of_message(full_name: &str) -> String {
        let (package, kind) = full_name.rsplit_once('.').unwrap_or(("", full_name));
        let mut parts: Vec<&str> = package.split('.').filter(|part| !part.is_empty()).collect();
        // The name has the root of a long package and its last two parts, the
        // area and the version.
        if parts.len() > 3 {
            parts.drain(1..parts.len() - 2);
        }
        let plural = plural(kind);
        parts.push(&plural);
        parts.join("/")
    }

    /// Returns whether a type is a collection: a path, whose first part is no
    /// host as that of a type URL is.
    #[must_use]
    pub fn is_name(type_url: &str) -> bool {
        let first = type_url.split_once('/').map(|(first, _)| first);
        first.is_some_and(|first| !first.contains('.'))
    }

    /// Returns the collection that a type URL of an xDS stream means. Istio
    /// subscribes by `group/version/kind`, or by a message; any other text is
    /// a collection itself.
    ///
    /// ```
    /// use trunkline_proto::mcp::Collection;
    ///
    /// let of = Collection::of_type_url;
    /// let gateways = "istio/networking/v1/gateways";
    /// assert_eq!(of("networking.istio.io/v1/Gateway"), gateways);
    /// assert_eq!(of("type.googleapis.com/istio.networking.v1.Gateway"), gateways);
    /// assert_eq!(of("core/v1/Service"), "k8s/v1/Service");
    /// assert_eq!(of(gateways), gateways);
    /// ```
    #[must_use]
    pub fn of_type_url(type_url: &str) -> String {
        if let Some(message) = type_url.strip_prefix("type.googleapis.com/") {
            return Self::of_message(message);
        }
        let parts: Vec<&str> = type_url.split('/').collect();
        match parts[..] {
            [group, version, kind] if kind.starts_with(|c: char| c.is_ascii_uppercase()) => {
                match group {
                    // A collection of Kubernetes' own types.
                    "k8s" => type_url.to_owned(),
                    "" | "core" => Self::of_manifest(version, kind).name,
                    _ => Self::of_manifest(&format!("{group}/{version}"), kind).name,
                }
            }
            _ => type_url.to_owned(),
        }
    }
}

/// Returns the plural of a kind in lower case, by the rules of Kubernetes.
fn plural(kind: &str) -> String {
    let kind = kind.to_ascii_lowercase();
    let is_vowel = |c: char| "aeiou".contains(c);
    if let Some(stem) = kind.strip_suffix('y')
        && !stem.ends_with(is_vowel)
    {
        return format!("{stem}ies");
    }
    let sibilants = ["s", "x", "ch", "sh"];
    match sibilants.iter().any(|end| kind.ends_with(end)) {
        true => format!("{kind}es"),
        false => format!("{kind}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::descriptor::types;

    #[test]
    fn collections_of_istio_are_named_as_in_its_api() {
        for (kind, expected) in [
            ("VirtualService", "virtualservices"),
            ("ServiceEntry", "serviceentries"),
            ("DestinationRule", "destinationrules"),
            ("Gateway", "gateways"),
            ("ProxyConfig", "proxyconfigs"),
            ("Ingress", "ingresses"),
        ] {
            assert_eq!(plural(kind), expected);
        }
        let made = Collection::of_manifest("networking.istio.io/v1alpha3", "VirtualService");
        assert_eq!(made.name, "istio/networking/v1alpha3/virtualservices");
        // There is no descriptor of it, unless one is given.
        assert_eq!(made.message, None);
    }

    #[test]
    fn every_type_of_xds_has_a_collection_of_its_own() {
        let names = types::ALL.iter().map(|url| Collection::of_type_url(url));
        let mut names: Vec<_> = names.collect();
        names.sort();
        let before = names.len();
        names.dedup();
        assert_eq!(names.len(), before, "{names:?}");
        assert!(names.contains(&"envoy/tls/v3/secrets".to_owned()));
    }

    #[test]
    fn a_message_that_is_known_is_that_of_its_manifests() {
        let made = Collection::of_manifest("envoy.config.cluster.v3", "Cluster");
        assert_eq!(
            made.message.as_deref(),
            Some("envoy.config.cluster.v3.Cluster")
        );
        assert_eq!(made.name, Collection::of_type_url(types::CLUSTER));
        let unknown = Collection::of_manifest("envoy.config.cluster.v3", "Clutser");
        assert_eq!(unknown.name, "k8s/envoy.config.cluster.v3/Clutser");
    }
}
