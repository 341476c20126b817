//! A dump of Envoy's admin page, `/config_dump`: the resources that are in it.
//!
//! Taken are the resources that Envoy uses: static ones, and dynamic ones that
//! are active. Left out are the bootstrap, routes and endpoints that a listener
//! or a cluster in the dump holds as well, and resources that Envoy does not
//! use (yet, or any more). A dump does not show secrets: those are left out,
//! too, each with a warning.

use super::{
    Resource,
    document::Reader,
    error::Problem,
    read::TYPE,
    tree::{Entry, Node, Value},
};
use crate::{
    descriptor::{full_name, types},
    path::Step,
    redact::REDACTED,
};

/// The key of the sections of a dump.
const CONFIGS: &str = "configs";

/// The keys of a dump below which there are resources that Envoy uses.
const READ_KEYS: [&str; 19] = [
    CONFIGS,
    "static_listeners",
    "dynamic_listeners",
    "active_state",
    "listener",
    "static_clusters",
    "dynamic_active_clusters",
    "cluster",
    "dynamic_route_configs",
    "route_config",
    "dynamic_scoped_route_configs",
    "scoped_route_configs",
    "dynamic_endpoint_configs",
    "endpoint_config",
    "static_secrets",
    "dynamic_active_secrets",
    "secret",
    "ecds_filters",
    "ecds_filter",
];

/// The field of a locality's weight.
const WEIGHT: &str = "load_balancing_weight";

/// Returns whether a document is a dump, or a section of one.
pub(super) fn is_dump(root: &Node) -> bool {
    match root.get(TYPE) {
        Some(entry) => is_section(&entry.node),
        None => root.get(CONFIGS).is_some(),
    }
}

/// Returns whether a type is that of a dump or of a part of a dump.
fn is_section(type_url: &Node) -> bool {
    let Value::String(url) = &type_url.value else {
        return false;
    };
    let name = full_name(url).strip_prefix("envoy.admin.v3.");
    name.is_some_and(|name| {
        name.split('.')
            .next()
            .unwrap_or(name)
            .ends_with("ConfigDump")
    })
}

impl Reader<'_> {
    /// Reads the resources of a dump. The recursion is bounded, since the
    /// parser limits the levels of a tree.
    pub(super) fn read_dump(&mut self, node: Node) {
        let is_resource = node.get(TYPE).is_some_and(
            |entry| matches!(&entry.node.value, Value::String(url) if is_resource_type(url)),
        );
        if is_resource {
            return self.add_resource(node.at, |reader| reader.read_dump_resource(node));
        }

        match node.value {
            Value::Map(entries) => {
                for Entry { key, node, .. } in entries {
                    if let Some(name) = READ_KEYS.iter().find(|name| **name == key) {
                        self.read_dump_part(Step::Name(name), node);
                    }
                }
            }
            Value::List(items) => {
                for (index, item) in items.into_iter().enumerate() {
                    self.read_dump_part(Step::Index(index), item);
                }
            }
            _ => {}
        }
    }

    /// Reads a part of a dump that is one step further in.
    fn read_dump_part(&mut self, step: Step, node: Node) {
        self.walk.path.push(step);
        self.read_dump(node);
        self.walk.path.pop();
    }

    /// Reads a resource of a dump. A redacted secret is left out, with a
    /// warning.
    fn read_dump_resource(&mut self, node: Node) -> Option<Resource> {
        let position = node.at;
        let resource = self.read_resource(node)?;
        let is_hidden = full_name(&resource.type_url) == full_name(types::SECRET)
            && contains(&resource.body, REDACTED.as_bytes());
        if is_hidden {
            self.walk.warn(position, Problem::RedactedInDump);
            return None;
        }
        let resource = self.remove_zero_weights(resource)?;
        self.name_listener(resource)
    }

    /// Removes the weights that are zero from localities. Envoy dumps a missing
    /// weight as zero, but refuses a zero weight.
    fn remove_zero_weights(&mut self, mut resource: Resource) -> Option<Resource> {
        let endpoints = resource.message.get_field_by_name_mut("endpoints");
        let is_assignment =
            full_name(&resource.type_url) == full_name(types::CLUSTER_LOAD_ASSIGNMENT);
        let Some(localities) = endpoints.filter(|_| is_assignment) else {
            return Some(resource);
        };

        for locality in localities.as_list_mut()? {
            let locality = locality.as_message_mut()?;
            let weight = locality.get_field_by_name(WEIGHT)?;
            let weight = weight.as_message()?.get_field_by_name("value")?.as_u32();
            if weight == Some(0) {
                locality.clear_field_by_name(WEIGHT);
            }
        }

        resource.body = self
            .walk
            .encode(&resource.message, resource.node.at)?
            .into();
        Some(resource)
    }
}

/// Returns whether a type is one of a resource.
fn is_resource_type(url: &str) -> bool {
    types::ALL
        .iter()
        .any(|known| full_name(known) == full_name(url))
}

/// Returns whether bytes contain others.
fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

#[cfg(test)]
mod tests {
    use crate::text::{Document, Options, read};

    /// A dump as Envoy writes it, shortened.
    const DUMP: &str = r#"{"configs": [
 {"@type": "type.googleapis.com/envoy.admin.v3.BootstrapConfigDump",
  "bootstrap": {"static_resources": {"clusters": [{"name": "local"}]}}},
 {"@type": "type.googleapis.com/envoy.admin.v3.ClustersConfigDump", "version_info": "7",
  "static_clusters": [
   {"cluster": {"@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster", "name": "local"},
    "last_updated": "2026-01-01T00:00:00.000Z"}],
  "dynamic_active_clusters": [
   {"version_info": "7", "cluster": {"@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster", "name": "a"}}],
  "dynamic_warming_clusters": [
   {"cluster": {"@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster", "name": "warm"}}]},
 {"@type": "type.googleapis.com/envoy.admin.v3.ListenersConfigDump",
  "static_listeners": [
   {"listener": {"@type": "type.googleapis.com/envoy.config.listener.v3.Listener",
     "address": {"socket_address": {"address": "127.0.0.1", "port_value": 9}}}}],
  "dynamic_listeners": [
   {"name": "l", "client_status": "ACKED",
    "active_state": {"listener": {"@type": "type.googleapis.com/envoy.config.listener.v3.Listener", "name": "l"}},
    "warming_state": {"listener": {"@type": "type.googleapis.com/envoy.config.listener.v3.Listener", "name": "l"}}}]},
 {"@type": "type.googleapis.com/envoy.admin.v3.RoutesConfigDump",
  "static_route_configs": [
   {"route_config": {"@type": "type.googleapis.com/envoy.config.route.v3.RouteConfiguration", "name": "inline"}}],
  "dynamic_route_configs": [
   {"route_config": {"@type": "type.googleapis.com/envoy.config.route.v3.RouteConfiguration", "name": "r"}}]},
 {"@type": "type.googleapis.com/envoy.admin.v3.SecretsConfigDump",
  "static_secrets": [
   {"name": "ca", "secret": {"@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret",
     "name": "ca", "validation_context": {"trusted_ca": {"filename": "/ca.pem"}}}}],
  "dynamic_active_secrets": [
   {"name": "key", "secret": {"@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret",
     "name": "key", "tls_certificate": {"private_key": {"inline_bytes": "W3JlZGFjdGVkXQ=="}}}}]}
]}"#;

    fn paths(read: &Document) -> Vec<String> {
        read.resources.iter().map(|r| r.path.to_string()).collect()
    }

    #[test]
    fn resources_in_use_are_taken() {
        let read = read("dump.json", DUMP, &Options::default());
        assert_eq!(read.errors, []);
        assert_eq!(
            paths(&read),
            [
                "configs[1].static_clusters[0].cluster",
                "configs[1].dynamic_active_clusters[0].cluster",
                "configs[2].static_listeners[0].listener",
                "configs[2].dynamic_listeners[0].active_state.listener",
                "configs[3].dynamic_route_configs[0].route_config",
                "configs[4].static_secrets[0].secret",
            ]
        );
        let warnings: Vec<_> = read.warnings.iter().map(ToString::to_string).collect();
        assert_eq!(
            warnings,
            [
                "dump.json:14:17: configs[2].static_listeners[0].listener: the listener has no \
                 name, and is served as \"127.0.0.1_9\"; add `name: 127.0.0.1_9` to it, or another",
                "dump.json:30:30: configs[4].dynamic_active_secrets[0].secret: the secret is left \
                 out, because the dump does not show it; write it in another file",
            ]
        );
    }

    #[test]
    fn a_section_is_a_dump() {
        let section = r#"{"@type": "type.googleapis.com/envoy.admin.v3.EcdsConfigDump", "ecds_filters":
          [{"ecds_filter": {"@type": "type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig", "name": "f"}}]}"#;
        let one = read("d.json", section, &Options::default());
        assert_eq!(one.errors, []);
        assert_eq!(paths(&one), ["ecds_filters[0].ecds_filter"]);

        // `/config_dump?resource=dynamic_active_clusters`
        let list = r#"{"configs": [{"@type": "type.googleapis.com/envoy.admin.v3.ClustersConfigDump.DynamicCluster",
          "cluster": {"@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster", "name": "a"}}]}"#;
        let one = read("d.json", list, &Options::default());
        assert_eq!(one.errors, []);
        assert_eq!(paths(&one), ["configs[0].cluster"]);
    }

    #[test]
    fn a_mistake_in_a_dump_has_a_place() {
        let slip = DUMP.replace("\"name\": \"a\"", "\"nmae\": \"a\"");
        let read = read("dump.json", &slip, &Options::default());
        let errors: Vec<_> = read.errors.iter().map(ToString::to_string).collect();
        assert_eq!(
            errors,
            [
                "dump.json:9:102: configs[1].dynamic_active_clusters[0].cluster: unknown field \
              \"nmae\" in Cluster, did you mean \"name\"?"
            ]
        );
    }
}
