//! What an Envoy says that it has: its `/config_dump`, by type and name.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use trunkline::kind;
use trunkline_proto::descriptor::full_name;
use trunkline_proto::redact;

/// The type and the name of a resource.
pub(super) type Key = (String, String);

/// What an Envoy has.
#[derive(Debug, Default)]
pub(super) struct ProxyDump {
    /// The id of its node; `None` if the dump has no bootstrap with one.
    pub(super) node: Option<String>,
    /// Its resources. Virtual hosts that it got on demand are resources of their
    /// own, and not in their route configuration.
    pub(super) resources: BTreeMap<Key, ProxyResource>,
    /// The endpoints that clusters ask for which are not in use yet.
    warming_endpoints: BTreeSet<String>,
}

/// A resource of an Envoy.
#[derive(Debug, Default, PartialEq)]
pub(super) struct ProxyResource {
    /// Whether it is from the bootstrap.
    pub(super) is_static: bool,
    /// The body that is in use.
    pub(super) active: Option<Value>,
    /// The body that is not in use yet.
    pub(super) warming: Option<Value>,
    /// Why Envoy rejected another.
    pub(super) error: Option<String>,
}

/// The shape of a type in a dump.
struct Shape {
    type_url: &'static str,
    /// The message that has all resources of the type.
    dump: &'static str,
    /// Its fields with those of the bootstrap, those in use, and those that are
    /// not in use yet; empty if there is none.
    lists: [&'static str; 3],
    /// The field of an entry that has the body.
    body: &'static str,
}

const SHAPES: &[Shape] = &[
    Shape {
        type_url: kind::LDS,
        dump: "ListenersConfigDump",
        lists: ["static_listeners", "dynamic_listeners", ""],
        body: "listener",
    },
    Shape {
        type_url: kind::CDS,
        dump: "ClustersConfigDump",
        lists: [
            "static_clusters",
            "dynamic_active_clusters",
            "dynamic_warming_clusters",
        ],
        body: "cluster",
    },
    Shape {
        type_url: kind::RDS,
        dump: "RoutesConfigDump",
        lists: ["", "dynamic_route_configs", ""],
        body: "route_config",
    },
    Shape {
        type_url: kind::SRDS,
        dump: "ScopedRoutesConfigDump",
        lists: ["", "dynamic_scoped_route_configs", ""],
        body: "scoped_route_configs",
    },
    Shape {
        type_url: kind::EDS,
        dump: "EndpointsConfigDump",
        lists: ["", "dynamic_endpoint_configs", ""],
        body: "endpoint_config",
    },
    // Those of clusters that are in the bootstrap may be of a server.
    Shape {
        type_url: kind::EDS,
        dump: "EndpointsConfigDump",
        lists: ["", "static_endpoint_configs", ""],
        body: "endpoint_config",
    },
    Shape {
        type_url: kind::SDS,
        dump: "SecretsConfigDump",
        lists: [
            "static_secrets",
            "dynamic_active_secrets",
            "dynamic_warming_secrets",
        ],
        body: "secret",
    },
    Shape {
        type_url: kind::ECDS,
        dump: "EcdsConfigDump",
        lists: ["", "ecds_filters", ""],
        body: "ecds_filter",
    },
];

/// Returns whether a dump shows resources of a type.
pub(super) fn shows(type_url: &str) -> bool {
    type_url == kind::VHDS || SHAPES.iter().any(|shape| shape.type_url == type_url)
}

impl ProxyDump {
    /// Reads a dump. Returns `None` if the JSON is not a dump.
    pub(super) fn read(dump: &Value) -> Option<Self> {
        let mut result = Self::default();
        for section in dump["configs"].as_array()? {
            let name = full_name(section["@type"].as_str().unwrap_or_default());
            let name = name.trim_start_matches("envoy.admin.v3.");
            if name == "BootstrapConfigDump" {
                let id = section["bootstrap"]["node"]["id"].as_str();
                result.node = Some(id.unwrap_or_default().to_owned());
            }
            for shape in SHAPES.iter().filter(|shape| shape.dump == name) {
                result.add_section(shape, section);
            }
        }

        result.warming_endpoints = result.endpoint_names(|cluster| cluster.warming.as_ref());
        result.remove_unrequested_endpoints();
        result.move_virtual_hosts();
        Some(result)
    }

    /// Adds the resources of a section, those of the bootstrap first: a
    /// resource of a server replaces one of the same name.
    fn add_section(&mut self, shape: &Shape, section: &Value) {
        let [static_list, active_list, warming_list] = shape.lists;
        let entries = |list: &str| section[list].as_array().into_iter().flatten();

        for entry in entries(static_list) {
            let body = &entry[shape.body];
            let resource = self.resource_of(shape, entry, body);
            resource.is_static = true;
            resource.active = Some(body.clone());
        }
        for entry in entries(active_list) {
            // An entry of a listener has all its states; one of scoped routes has a
            // list.
            let bodies = match &entry[shape.body] {
                Value::Array(list) => list.iter().collect(),
                Value::Null => vec![&entry["active_state"][shape.body]],
                body => vec![body],
            };
            for body in bodies {
                let resource = self.resource_of(shape, entry, body);
                resource.is_static = false;
                resource.active = (!body.is_null()).then(|| body.clone());
                let warming = &entry["warming_state"][shape.body];
                resource.warming = (!warming.is_null()).then(|| warming.clone());
                let error = entry["error_state"]["details"].as_str();
                resource.error = error.map(|error| redact::quoted(error).into_owned());
            }
        }
        for entry in entries(warming_list) {
            let body = &entry[shape.body];
            self.resource_of(shape, entry, body).warming = Some(body.clone());
        }
    }

    /// Returns the resource that a body is of, and adds an empty one if it is
    /// new. Its name is in the body, or else in the entry.
    fn resource_of(&mut self, shape: &Shape, entry: &Value, body: &Value) -> &mut ProxyResource {
        let mut names = [&body["name"], &body["cluster_name"], &entry["name"]].into_iter();
        let name = names.find_map(Value::as_str).unwrap_or_default();
        let key = (shape.type_url.to_owned(), name.to_owned());
        self.resources.entry(key).or_default()
    }

    /// Takes endpoints out that no cluster asks for: those of clusters that have
    /// them inside, or that find them by DNS.
    fn remove_unrequested_endpoints(&mut self) {
        let requested_names = self.endpoint_names(|cluster| cluster.active.as_ref());
        self.resources
            .retain(|(kind, name), _| kind != kind::EDS || requested_names.contains(name));
    }

    /// Returns whether a cluster that is not in use yet asks for endpoints.
    pub(super) fn is_warming_for(&self, endpoints: &str) -> bool {
        self.warming_endpoints.contains(endpoints)
    }

    /// Returns the names of the endpoints that clusters subscribe to. `body`
    /// selects the state of a cluster; clusters without it are skipped.
    fn endpoint_names(&self, body: impl Fn(&ProxyResource) -> Option<&Value>) -> BTreeSet<String> {
        let clusters = self.resources.iter();
        let clusters = clusters.filter(|((kind, _), _)| kind == kind::CDS);
        let names = clusters.filter_map(|((_, name), cluster)| {
            let eds = body(cluster)?.get("eds_cluster_config")?;
            let service = eds["service_name"].as_str();
            let service = service.filter(|service| !service.is_empty());
            Some(service.unwrap_or(name).to_owned())
        });
        names.collect()
    }

    /// Moves the virtual hosts out of route configurations that have `vhds`:
    /// the server serves them as resources of their own.
    fn move_virtual_hosts(&mut self) {
        let mut hosts = Vec::new();
        for ((kind, _), route) in &mut self.resources {
            let body = route.active.as_mut().and_then(Value::as_object_mut);
            let Some(body) = body.filter(|body| kind == kind::RDS && body.contains_key("vhds"))
            else {
                continue;
            };
            if let Some(Value::Array(list)) = body.remove("virtual_hosts") {
                hosts.extend(list);
            }
        }
        for mut host in hosts {
            let name = host["name"].as_str().unwrap_or_default().to_owned();
            host["@type"] = json!(kind::VHDS);
            let resource = ProxyResource {
                active: Some(host),
                ..ProxyResource::default()
            };
            let key = (kind::VHDS.to_owned(), name);
            self.resources.insert(key, resource);
        }
    }
}
