//! Endpoints as far as Envoy shows them: it makes them anew out of the state of
//! a cluster, so that only addresses, weights, priorities, localities and health
//! can be compared.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde_json::{Value, json};

/// The endpoints of a cluster, by priority and locality.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Endpoints(BTreeMap<(u64, [String; 3]), Group>);

/// The endpoints of a locality in a priority.
#[derive(Clone, Debug, Default, PartialEq)]
struct Group {
    /// Zero is none.
    weight: u64,
    /// By address.
    endpoints: BTreeMap<String, Endpoint>,
}

/// An endpoint.
#[derive(Clone, Debug, PartialEq)]
struct Endpoint {
    weight: u64,
    health: Health,
}

/// The health of an endpoint as Envoy tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Health {
    Healthy,
    Degraded,
    Unhealthy,
}

impl Health {
    /// Reads the health of an endpoint.
    fn read(status: &Value) -> Self {
        match status.as_str() {
            None | Some("UNKNOWN" | "HEALTHY") => Self::Healthy,
            Some("DEGRADED") => Self::Degraded,
            Some(_) => Self::Unhealthy,
        }
    }

    /// Returns the word for the health.
    fn word(self) -> &'static str {
        match self {
            Self::Healthy => "HEALTHY",
            Self::Degraded => "DEGRADED",
            Self::Unhealthy => "UNHEALTHY",
        }
    }
}

impl Endpoints {
    /// Reads a `ClusterLoadAssignment` in JSON. Localities without endpoints
    /// are left out, as in Envoy.
    pub(super) fn read(assignment: &Value) -> Self {
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let mut groups: BTreeMap<(u64, [String; 3]), Group> = BTreeMap::new();
        for locality in list(&assignment["endpoints"]) {
            let endpoints = list(&locality["lb_endpoints"]);
            if endpoints.is_empty() {
                continue;
            }

            let name_part = |key: &str| locality["locality"][key].as_str().unwrap_or_default();
            let locality_name = ["region", "zone", "sub_zone"].map(|key| name_part(key).to_owned());
            let priority = locality["priority"].as_u64().unwrap_or_default();

            let group = groups.entry((priority, locality_name)).or_default();
            group.weight = locality["load_balancing_weight"].as_u64().unwrap_or(0);
            let endpoints = endpoints
                .iter()
                .map(|endpoint| (format_address(endpoint), read_endpoint(endpoint)));
            group.endpoints.extend(endpoints);
        }
        Self(groups)
    }

    /// Returns whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Replaces the health of each endpoint by the server's, where Envoy's is
    /// worse: Envoy found that out by itself, so it is no difference.
    pub(super) fn without_findings(mut self, served: &Self) -> Self {
        for (key, group) in &mut self.0 {
            let Some(served_group) = served.0.get(key) else {
                continue;
            };
            for (address, endpoint) in &mut group.endpoints {
                if let Some(served_endpoint) = served_group.endpoints.get(address) {
                    endpoint.health = endpoint.health.min(served_endpoint.health);
                }
            }
        }
        self
    }

    /// Returns the fields that are compared, as JSON.
    pub(super) fn to_json(&self) -> Value {
        let groups = self.0.iter().map(|((priority, locality_name), group)| {
            let [region, zone, sub_zone] = locality_name;
            let endpoints = group.endpoints.iter().map(|(address, endpoint)| {
                let (weight, health) = (endpoint.weight, endpoint.health.word());
                json!({"address": address, "load_balancing_weight": weight, "health_status": health})
            });
            json!({
                "priority": priority,
                "locality": {"region": region, "zone": zone, "sub_zone": sub_zone},
                "load_balancing_weight": group.weight,
                "lb_endpoints": endpoints.collect::<Vec<_>>(),
            })
        });

        json!({"endpoints": groups.collect::<Vec<_>>()})
    }
}

/// Reads what is compared of an endpoint.
fn read_endpoint(endpoint: &Value) -> Endpoint {
    Endpoint {
        weight: endpoint["load_balancing_weight"].as_u64().unwrap_or(1),
        health: Health::read(&endpoint["health_status"]),
    }
}

/// Formats the address of an endpoint as host and port. An address that is not
/// a socket with a port number is formatted as JSON.
fn format_address(endpoint: &Value) -> String {
    let address = &endpoint["endpoint"]["address"];
    let socket = &address["socket_address"];
    match (socket["address"].as_str(), socket["port_value"].as_u64()) {
        (Some(host), port) if socket["named_port"].is_null() => {
            let port = port.unwrap_or_default();
            match host.parse::<IpAddr>() {
                Ok(IpAddr::V6(ip)) => format!("[{ip}]:{port}"),
                _ => format!("{host}:{port}"),
            }
        }
        _ => address.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assignment(endpoints: &[(&str, u64, &str)]) -> Value {
        let endpoints = endpoints.iter().map(|(host, port, health)| {
            let socket = json!({"socket_address": {"address": host, "port_value": port}});
            json!({"endpoint": {"address": socket}, "health_status": health})
        });
        json!({"endpoints": [{"lb_endpoints": endpoints.collect::<Vec<_>>()}, {"priority": 1}]})
    }

    #[test]
    fn order_defaults_and_spelling_do_not_count() {
        let served = assignment(&[("::1", 1, "UNKNOWN"), ("127.0.0.1", 2, "DRAINING")]);
        let mut shown = assignment(&[("127.0.0.1", 2, "UNHEALTHY"), ("0:0::1", 1, "HEALTHY")]);
        shown["endpoints"][0]["locality"] = json!({});
        shown["endpoints"][0]["load_balancing_weight"] = json!(0);
        shown["endpoints"][0]["lb_endpoints"][0]["load_balancing_weight"] = json!(1);
        assert_eq!(Endpoints::read(&served), Endpoints::read(&shown));
        assert!(Endpoints::read(&json!({"endpoints": [{"priority": 1}]})).is_empty());
    }

    #[test]
    fn health_that_envoy_finds_is_its_own() {
        let of = |health| Endpoints::read(&assignment(&[("127.0.0.1", 1, health)]));
        let (good, bad) = (of("HEALTHY"), of("UNHEALTHY"));
        assert_eq!(bad.clone().without_findings(&good), good);
        assert_ne!(good.clone().without_findings(&bad), bad);
    }

    #[test]
    fn weights_priorities_and_localities_count() {
        let base = assignment(&[("127.0.0.1", 1, "HEALTHY")]);
        for (key, value) in [
            ("priority", json!(1)),
            ("locality", json!({"zone": "b"})),
            ("load_balancing_weight", json!(2)),
        ] {
            let mut other = base.clone();
            other["endpoints"][0][key] = value;
            assert_ne!(Endpoints::read(&base), Endpoints::read(&other), "{key}");
        }
    }
}
