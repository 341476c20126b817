//! Comparisons with what an Envoy 1.40 said, and a server of it, recorded in
//! `testdata`. Times, failed configurations and most of a certificate are taken
//! out.

use serde_json::{Value, json};

use super::*;
use crate::kinds;

/// Both sides as they were recorded.
struct Recorded {
    dump: Value,
    clients: Value,
}

impl Recorded {
    fn new() -> Self {
        let read = |text| serde_json::from_str(text).unwrap();
        Self {
            dump: read(include_str!("testdata/config_dump.json")),
            clients: read(include_str!("testdata/clients.json")),
        }
    }

    /// The section of the dump with this list.
    fn list(&mut self, name: &str) -> &mut Vec<Value> {
        let sections = self.dump["configs"].as_array_mut().unwrap().iter_mut();
        let mut lists = sections.filter_map(|section| section.get_mut(name));
        lists.next().unwrap().as_array_mut().unwrap()
    }

    /// A resource of the server.
    fn served(&mut self, kind: &str, name: &str) -> &mut Value {
        let url = kinds::type_url(kind);
        let resources = self.clients["clients"][0]["resources"].as_array_mut();
        let mut resources = resources.unwrap().iter_mut();
        let is_meant = |r: &&mut Value| r["type"] == url.as_str() && r["name"] == name;
        resources.find(is_meant).unwrap()
    }

    fn compare(&self) -> Vec<(Key, Verdict)> {
        let streams = self.clients["clients"].as_array().unwrap().clone();
        assert_eq!(count_clients(&streams), 1);
        let (served, asked) = read_served(streams).unwrap();
        let proxy = ProxyDump::read(&self.dump).unwrap();
        assert_eq!(proxy.node.as_deref(), Some("sidecar-7"));
        let sides = Sides {
            served: &served,
            asked: &asked,
            proxy: &proxy,
        };
        let mut compared = sides.compare().unwrap();
        compared.sort_by_key(|(_, verdict)| verdict.state);
        compared
    }

    /// The state and the reason of a resource, and its difference.
    fn verdict(&self, kind: &str, name: &str) -> (String, String, String) {
        let url = kinds::type_url(kind);
        let shown = show::to_json("n", &self.compare());
        let mut resources = shown["resources"].as_array().unwrap().iter();
        let is_meant = |r: &&Value| r["type"] == url.as_str() && r["name"] == name;
        let Some(found) = resources.find(is_meant) else {
            return Default::default();
        };
        let text = |key: &str| found[key].as_str().unwrap_or_default().to_owned();
        (text("state"), text("reason"), text("diff"))
    }
}

#[test]
fn what_was_recorded() {
    let text = show::to_text("sidecar-7", &Recorded::new().compare(), Palette::NONE);
    let error = "Didn't find a registered implementation for 'none' with type URL: \
                 'google.protobuf.Struct'";
    assert_eq!(
        text,
        format!(
            "\
sidecar-7: 2 rejected, 1 warming, 1 not compared, 2 only in the proxy (static), 6 same

TYPE  NAME        STATE                       REASON
cds   bad         rejected                    Error adding/updating cluster(s) bad: {error}
lds   broken      rejected                    {error}
cds   warm        warming                     -
sds   ca          not compared                Envoy does not show secrets
cds   dead        only in the proxy (static)  -
cds   xds         only in the proxy (static)  -
cds   backend     same                        -
cds   inline      same                        but for secrets, which Envoy does not show
eds   backend     same                        -
lds   ingress     same                        -
rds   routes      same                        -
vhds  routes/www  same                        -

note: endpoints are compared by address, weight, priority, locality and health: Envoy shows them \
as it uses them
note: secrets are not compared: Envoy does not show them
note: virtual hosts on demand are compared one by one, and not as a part of their route \
configuration
"
        )
    );
}

#[test]
fn states_have_colours() {
    let text = show::to_text("n", &Recorded::new().compare(), Palette::ALL);
    for painted in [
        "\x1b[1;31mrejected\x1b[0m",
        "\x1b[1;33mwarming\x1b[0m",
        "\x1b[32msame\x1b[0m",
    ] {
        assert!(text.contains(painted), "{text}");
    }
}

#[test]
fn a_difference_is_shown_by_line() {
    let mut both = Recorded::new();
    let cluster = &mut both.list("dynamic_active_clusters")[0]["cluster"];
    assert_eq!(cluster["name"], "backend");
    cluster["connect_timeout"] = json!("5s");
    let text = show::to_text("n", &both.compare(), Palette::NONE);
    assert!(
        text.ends_with(
            "\ncds/backend: - in the proxy, + from the server\n\
             @@ eds_cluster_config\n    eds_config:\n      ads: {}\n      \
             resource_api_version: V3\n- connect_timeout: \"5s\"\n+ connect_timeout: \"1s\"\n"
        ),
        "{text}"
    );
    both.served("cds", "backend")["status"] = json!("SENT");
    let (state, reason, _) = both.verdict("cds", "backend");
    assert_eq!(
        (&*state, &*reason),
        ("differs", "sent, and not answered yet")
    );
}

#[test]
fn a_rejected_update_has_the_difference_and_the_words_of_envoy() {
    let mut both = Recorded::new();
    let mut rejected = both.served("lds", "ingress")["resource"].clone();
    rejected["stat_prefix"] = json!("new");
    let served = both.served("lds", "ingress");
    served["status"] = json!("NACKED");
    served["error"] = json!("two listeners are wrong");
    served["rejected_resource"] = rejected;
    let (state, reason, diff) = both.verdict("lds", "ingress");
    assert_eq!((&*state, &*reason), ("rejected", "two listeners are wrong"));
    assert!(diff.contains("+ stat_prefix: new\n"), "{diff}");

    let listeners = both.list("dynamic_listeners").iter_mut();
    for listener in listeners.filter(|listener| listener["name"] == "ingress") {
        listener["error_state"] = json!({"details": "its own words"});
    }
    assert_eq!(both.verdict("lds", "ingress").1, "its own words");
}

#[test]
fn a_resource_may_be_on_one_side_only() {
    let mut both = Recorded::new();
    both.list("dynamic_active_clusters").clear();
    assert_eq!(both.verdict("cds", "backend").0, "missing");
    assert_eq!(both.verdict("eds", "backend").0, "missing");

    let mut both = Recorded::new();
    both.served("cds", "backend")["status"] = json!("DOES_NOT_EXIST");
    assert_eq!(both.verdict("cds", "backend").0, "only_in_proxy");
    assert_eq!(both.verdict("cds", "xds").0, "static");
    let types = both.clients["clients"][0]["types"].as_array_mut().unwrap();
    types.retain(|state| state["type"] != kind::CDS);
    assert_eq!(both.verdict("cds", "backend").0, "other_source");

    // Nobody gave it endpoints, and Envoy has none.
    let mut both = Recorded::new();
    both.served("eds", "backend")["status"] = json!("DOES_NOT_EXIST");
    both.list("dynamic_endpoint_configs")[0]["endpoint_config"]["endpoints"] = json!([]);
    assert_eq!(both.verdict("eds", "backend").0, "");
}

#[test]
fn endpoints_are_compared_by_what_envoy_shows() {
    let mut both = Recorded::new();
    let served = &mut both.served("eds", "backend")["resource"];
    served["policy"] = json!({"overprovisioning_factor": 200});
    assert_eq!(both.verdict("eds", "backend").0, "same");
    let endpoint = "/endpoints/0/lb_endpoints/0/endpoint/address/socket_address/port_value";
    let served = &mut both.served("eds", "backend")["resource"];
    *served.pointer_mut(endpoint).unwrap() = json!(8090);
    let (state, _, diff) = both.verdict("eds", "backend");
    assert_eq!(state, "differs");
    assert!(diff.contains("-   - address: \"127.0.0.1:8080\""), "{diff}");
    assert!(diff.contains("+   - address: \"127.0.0.1:8090\""), "{diff}");
}

#[test]
fn virtual_hosts_on_demand_are_compared_on_their_own() {
    let mut both = Recorded::new();
    let route = &mut both.list("dynamic_route_configs")[0]["route_config"];
    route["virtual_hosts"][0]["domains"] = json!(["other.example.com"]);
    assert_eq!(both.verdict("rds", "routes").0, "same");
    let (state, _, diff) = both.verdict("vhds", "routes/www");
    assert_eq!(state, "differs");
    assert!(
        diff.contains("- - other.example.com\n+ - www.example.com\n"),
        "{diff}"
    );
}

#[test]
fn what_cannot_be_read_is_not_compared() {
    let mut both = Recorded::new();
    both.list("dynamic_active_clusters")[0]["cluster"]["of_a_later_envoy"] = json!(1);
    let (state, reason, _) = both.verdict("cds", "backend");
    assert_eq!(state, "not_compared");
    assert_eq!(
        reason,
        "what the proxy has cannot be read here: unknown field \"of_a_later_envoy\" in Cluster"
    );
}

#[test]
fn clients_are_told_apart_by_their_streams() {
    let stream = |aggregated: bool, kinds: &[&str]| {
        let types = kinds
            .iter()
            .map(|kind| json!({"type": kinds::type_url(kind).as_str()}));
        json!({"aggregated": aggregated, "types": types.collect::<Vec<_>>()})
    };
    assert_eq!(count_clients(&[]), 0);
    let one = [
        stream(true, &["cds", "lds"]),
        stream(false, &["vhds"]),
        stream(false, &["rds"]),
        stream(false, &["rds"]),
    ];
    assert_eq!(count_clients(&one), 1);
    assert_eq!(count_clients(&one[1..]), 1);
    let two = [stream(true, &["cds"]), stream(true, &["cds"])];
    assert_eq!(count_clients(&two), 2);
    let two = [stream(false, &["lds"]), stream(false, &["lds"])];
    assert_eq!(count_clients(&two), 2);
}
