//! The place of a reference inside a resource.
//!
//! Facts tell what a resource refers to, and not where: of a million resources
//! hardly one is asked. For that one the message is walked again.

use bytes::Bytes;
use prost_reflect::{DynamicMessage, ReflectMessage, Value};

use super::references::{CLUSTERS, NAMED, own_references};
use super::{text, texts};
use crate::{
    canonical::{MAX_DEPTH, any_parts},
    descriptor,
    path::{Path, Step, key_text},
};

/// Fields that hold a reference in messages that [`CLUSTERS`] and [`NAMED`] do
/// not have, and in some of those. A cluster without a service name is found by
/// its own name.
const OTHERS: [&[&str]; 4] = [
    &["route_configuration_name"],
    &["srds_resources_locator"],
    &["eds_cluster_config", "service_name"],
    &["name"],
];

/// Finds the first field of an encoded resource that refers to the resource
/// `target`, a type URL and a name. `None` if there is no such field, or if the
/// body cannot be decoded.
#[must_use]
pub fn find_reference(type_url: &str, body: &Bytes, target: (&str, &str)) -> Option<Path> {
    let descriptor = descriptor::message(type_url)?;
    let message = DynamicMessage::decode(descriptor, body.clone()).ok()?;
    let mut search = Search {
        target,
        path: Path::default(),
    };
    search.is_in_message(&message, 0).then_some(search.path)
}

/// A search for a reference. When it has succeeded, the path leads to it.
struct Search<'a> {
    target: (&'a str, &'a str),
    path: Path,
}

impl Search<'_> {
    /// Searches a message and the messages inside it; `depth` counts the
    /// messages around it, through every `Any`.
    fn is_in_message(&mut self, message: &DynamicMessage, depth: usize) -> bool {
        if depth > MAX_DEPTH {
            return false;
        }
        if message.descriptor().full_name() == "google.protobuf.Any" {
            // The fields of a body stand beside its type.
            let inner = any_parts(message).and_then(|(url, body)| {
                DynamicMessage::decode(descriptor::message(&url)?, body).ok()
            });
            return inner.is_some_and(|inner| self.is_in_message(&inner, depth + 1));
        }
        if let Some(own) = self.own_path(message) {
            self.path = self.path.join(&own);
            return true;
        }
        message.fields().any(|(field, value)| {
            self.is_behind(Step::Field(field), |search| {
                search.is_in_value(value, depth)
            })
        })
    }

    /// Searches a value: a message, the items of a list, or the values of a
    /// map.
    fn is_in_value(&mut self, value: &Value, depth: usize) -> bool {
        match value {
            Value::Message(message) => self.is_in_message(message, depth + 1),
            Value::List(list) => list.iter().enumerate().any(|(index, item)| {
                self.is_behind(Step::Index(index), |search| search.is_in_value(item, depth))
            }),
            Value::Map(map) => {
                let mut entries: Vec<_> = map.iter().map(|(k, v)| (key_text(k), v)).collect();
                // A map has no order, and the place should be the same each time.
                entries.sort_by(|(a, _), (b, _)| a.cmp(b));
                entries.into_iter().any(|(key, value)| {
                    self.is_behind(Step::Key(key), |search| search.is_in_value(value, depth))
                })
            }
            _ => false,
        }
    }

    /// Searches behind a step, which stays in the path if the search succeeds.
    fn is_behind(&mut self, step: Step, search: impl FnOnce(&mut Self) -> bool) -> bool {
        self.path.push(step);
        let is_found = search(self);
        if !is_found {
            self.path.pop();
        }
        is_found
    }

    /// Returns the path to a reference in a message's own fields.
    fn own_path(&self, message: &DynamicMessage) -> Option<Path> {
        let (type_url, name) = self.target;
        let descriptor = message.descriptor();
        let references = own_references(descriptor.full_name(), message);
        let is_target = |(url, found): &(&str, String)| *url == type_url && found == name;
        if !references.iter().any(is_target) {
            return None;
        }

        let cluster = CLUSTERS.iter().find(|(m, _)| *m == descriptor.full_name());
        let cluster = cluster.map(|(_, field)| [*field]);
        let named = NAMED
            .iter()
            .find(|named| named.message == descriptor.full_name());
        let named = named.map(|named| [named.name]);
        let first = cluster.iter().chain(&named).map(|field| &field[..]);
        let mut fields = first.chain(OTHERS);
        fields.find_map(|fields| path_to(message, fields, name))
    }
}

/// Returns the path along these fields, if they lead to a text, or to a list
/// with a text, that is `name`.
fn path_to(message: &DynamicMessage, fields: &[&str], name: &str) -> Option<Path> {
    let descriptor = message.descriptor();
    let (field, before) = fields.split_last()?;
    let mut inner = message.clone();
    for field in before {
        let value = inner.get_field_by_name(field)?.into_owned();
        inner = value.as_message()?.clone();
    }

    let mut path = Path::of_fields(&descriptor, fields);
    if text(&inner, field).as_deref() == Some(name) {
        return Some(path);
    }
    let index = texts(&inner, field).iter().position(|text| text == name)?;
    path.push(Step::Index(index));
    Some(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{descriptor::types, text as file};

    /// The path to a reference in a resource that is written in YAML.
    fn found(yaml: &str, target: (&str, &str)) -> Option<String> {
        let read = file::read("a.yaml", yaml, &file::Options::default());
        assert_eq!(read.errors, [], "{yaml}");
        let resource = &read.resources[0];
        let path = find_reference(&resource.type_url, &resource.body, target);
        path.map(|path| path.to_string())
    }

    #[test]
    fn a_reference_is_found_where_it_is_written() {
        let routes = r#"
"@type": type.googleapis.com/envoy.config.route.v3.RouteConfiguration
name: r
virtual_hosts:
- {name: one, domains: [a], routes: [{match: {prefix: /}, route: {cluster: first}}]}
- name: two
  domains: [b]
  routes:
  - match: {prefix: /}
    route: {weighted_clusters: {clusters: [{name: first, weight: 1}, {name: second, weight: 1}]}}
"#;
        let in_routes = |name| found(routes, (types::CLUSTER, name));
        assert_eq!(
            in_routes("first").as_deref(),
            Some("virtual_hosts[0].routes[0].route.cluster")
        );
        assert_eq!(
            in_routes("second").as_deref(),
            Some("virtual_hosts[1].routes[0].route.weighted_clusters.clusters[1].name")
        );
        assert_eq!(in_routes("one"), None);
    }

    #[test]
    fn endpoints_are_named_by_the_service_or_by_the_cluster() {
        let cluster = |config: &str| {
            format!(
                "\"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster\n\
                 name: c\ntype: EDS\neds_cluster_config: {{{config}}}"
            )
        };
        let endpoints = |name| (types::CLUSTER_LOAD_ASSIGNMENT, name);
        assert_eq!(
            found(
                &cluster("service_name: s, eds_config: {ads: {}}"),
                endpoints("s")
            )
            .as_deref(),
            Some("eds_cluster_config.service_name")
        );
        assert_eq!(
            found(&cluster("eds_config: {ads: {}}"), endpoints("c")).as_deref(),
            Some("name")
        );
    }

    #[test]
    fn a_reference_is_found_through_a_filter() {
        let listener = r#"
"@type": type.googleapis.com/envoy.config.listener.v3.Listener
name: l
filter_chains:
- filters:
  - name: hcm
    typed_config:
      "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
      stat_prefix: s
      rds: {route_config_name: routes, config_source: {ads: {}}}
"#;
        assert_eq!(
            found(listener, (types::ROUTE_CONFIGURATION, "routes")).as_deref(),
            Some("filter_chains[0].filters[0].typed_config.rds.route_config_name")
        );
    }
}
