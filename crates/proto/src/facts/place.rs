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

/// Finds the first field of an encoded resource that refers to `target`, a type
/// URL and a name. Returns `None` if there is no such field, or the body cannot
/// be decoded.
#[must_use]
pub fn find_reference(type_url: &str, body: &Bytes, target: (&str, &str)) -> Option<Path> {
    let descriptor = descriptor::message(type_url)?;
    let message = DynamicMessage::decode(descriptor, body.clone()).ok()?;
    let mut search = Search {
        target,
        path: Path::default(),
    };
    search.search_message(&message, 0).then_some(search.path)
}

/// A search for a reference. When it has succeeded, the path leads to it.
struct Search<'a> {
    target: (&'a str, &'a str),
    path: Path,
}

impl Search<'_> {
    /// Searches a message and the messages inside it. Returns whether the
    /// reference was found; the path then leads to it. `depth` is the number of
    /// enclosing messages, through every `Any`.
    fn search_message(&mut self, message: &DynamicMessage, depth: usize) -> bool {
        if depth > MAX_DEPTH {
            return false;
        }
        if message.descriptor().full_name() == "google.protobuf.Any" {
            // In YAML and JSON, the fields of the body are beside its type, so the
            // path has no step for the body.
            let body_message = decode_any_body(message);
            return body_message.is_some_and(|inner| self.search_message(&inner, depth + 1));
        }

        if let Some(own_path) = self.find_in_own_fields(message) {
            self.path = self.path.join(&own_path);
            return true;
        }
        message.fields().any(|(field, value)| {
            self.search_part(Step::Field(field), |search| {
                search.search_value(value, depth)
            })
        })
    }

    /// Searches a value: a message, the items of a list, or the values of a
    /// map.
    fn search_value(&mut self, value: &Value, depth: usize) -> bool {
        match value {
            Value::Message(message) => self.search_message(message, depth + 1),
            Value::List(list) => list.iter().enumerate().any(|(index, item)| {
                self.search_part(Step::Index(index), |search| {
                    search.search_value(item, depth)
                })
            }),
            Value::Map(map) => {
                let mut entries: Vec<_> = map
                    .iter()
                    .map(|(key, value)| (key_text(key), value))
                    .collect();
                // The order of a hash map varies, but the place must always be the same.
                entries.sort_by(|(left, _), (right, _)| left.cmp(right));
                entries.into_iter().any(|(key, value)| {
                    self.search_part(Step::Key(key), |search| search.search_value(value, depth))
                })
            }
            _ => false,
        }
    }

    /// Adds a step to the path and calls `search`. Removes the step again if
    /// the search finds nothing.
    fn search_part(&mut self, step: Step, search: impl FnOnce(&mut Self) -> bool) -> bool {
        self.path.push(step);
        let is_found = search(self);
        if !is_found {
            self.path.pop();
        }
        is_found
    }

    /// Returns the path to a reference in the message's own fields. Returns
    /// `None` if these do not have the reference.
    fn find_in_own_fields(&self, message: &DynamicMessage) -> Option<Path> {
        let (type_url, name) = self.target;
        let descriptor = message.descriptor();
        let references = own_references(descriptor.full_name(), message);
        let is_target = |(url, referenced): &(&str, String)| *url == type_url && referenced == name;
        if !references.iter().any(is_target) {
            return None;
        }

        let message_name = descriptor.full_name();
        let mut clusters = CLUSTERS.iter();
        let cluster_entry = clusters.find(|(message, _)| *message == message_name);
        let cluster_field = cluster_entry.map(|(_, field)| [*field]);
        let mut named_references = NAMED.iter();
        let named_reference = named_references.find(|named| named.message == message_name);
        let named_field = named_reference.map(|named| [named.name]);

        let table_fields = cluster_field.iter().chain(&named_field);
        let mut fields = table_fields.map(|field| &field[..]).chain(OTHERS);
        fields.find_map(|fields| path_to(message, fields, name))
    }
}

/// Decodes the body of an `Any`. Returns `None` if its type is unknown, or the
/// bytes are not of the type.
fn decode_any_body(any: &DynamicMessage) -> Option<DynamicMessage> {
    let (type_url, body) = any_parts(any)?;
    DynamicMessage::decode(descriptor::message(&type_url)?, body).ok()
}

/// Returns the path along these fields, if they lead to the text `name`, or to
/// a list with this text. Returns `None` otherwise.
fn path_to(message: &DynamicMessage, fields: &[&str], name: &str) -> Option<Path> {
    let descriptor = message.descriptor();
    let (field, parents) = fields.split_last()?;
    let mut parent = message.clone();
    for field in parents {
        let value = parent.get_field_by_name(field)?.into_owned();
        parent = value.as_message()?.clone();
    }

    let mut path = Path::of_fields(&descriptor, fields);
    if text(&parent, field).as_deref() == Some(name) {
        return Some(path);
    }
    let index = texts(&parent, field).iter().position(|text| text == name)?;
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
