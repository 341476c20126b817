//! Virtual hosts: in their route configuration or by themselves, and domains
//! that two of them have.

use prost::Message as _;
use trunkline::kind;
use trunkline_core::hosts::Domains;
use trunkline_proto::discovery::{Any, DiscoveryResponse};
use trunkline_proto::envoy::envoy::config::route::v3::VirtualHost;
use trunkline_proto::text;
use trunkline_store::Loaded;

use crate::place::{Place, clusters, errors, said};

/// A route configuration with these virtual hosts, with or without VHDS.
fn routes(vhds: bool, hosts: &[(&str, &str)]) -> String {
    let mut text = format!("resources:\n- \"@type\": {}\n  name: r\n", kind::RDS);
    if vhds {
        text.push_str("  vhds: {config_source: {ads: {}}}\n");
    }
    text.push_str("  virtual_hosts:\n");
    for (name, domains) in hosts {
        text.push_str(&format!("  - name: {name}\n    domains: [{domains}]\n"));
    }
    text
}

fn alone(name: &str, domains: &str) -> String {
    let url = kind::VHDS;
    format!("resources:\n- {{\"@type\": {url}, name: {name}, domains: [{domains}]}}\n")
}

/// A variant of a virtual host.
fn variant(name: &str, domain: &str, env: &str) -> String {
    format!(
        "- \"@type\": type.googleapis.com/envoy.service.discovery.v3.Resource
  name: {name}
  resource_name:
    name: {name}
    dynamic_parameter_constraints: {{constraint: {{key: env, {env}}}}}
  resource: {{\"@type\": {}, name: x, domains: [{domain}]}}
",
        kind::VHDS
    )
}

/// The same files in binary.
fn binary(text: &str) -> Vec<u8> {
    let read = text::read("f.yaml", text, &text::Options::default());
    assert_eq!(read.errors, []);
    let any = |resource: text::Resource| Any {
        type_url: resource.type_url,
        value: resource.body,
    };
    let response = DiscoveryResponse {
        resources: read.resources.into_iter().map(any).collect(),
        ..DiscoveryResponse::default()
    };
    response.encode_to_vec()
}

fn wrong(place: &Place) -> Vec<String> {
    let dir = format!("{}/", place.0.path().display());
    let loaded = place.load();
    let wrong = loaded.errors.iter();
    wrong.map(|e| e.to_string().replace(&dir, "")).collect()
}

fn names(loaded: &Loaded) -> Vec<String> {
    assert!(loaded.errors.is_empty(), "{:?}", loaded.errors);
    let names = loaded.resources.iter();
    names.map(|(_, r)| r.name.to_string()).collect()
}

/// The output of Pilot, as the design of on-demand virtual hosts shows it.
#[test]
fn the_hosts_of_pilots_routes_are_resources_of_their_own() {
    let place = Place::new();
    place.write("pilot.json", include_str!("../fixtures/pilot.json"));
    let loaded = place.load();
    assert_eq!(names(&loaded), ["2001", "2001/s1http.none:2001"]);
    let [(rds, route), (vhds, host)] = &loaded.resources[..] else {
        panic!("two resources");
    };
    assert_eq!((rds.as_str(), vhds.as_str()), (kind::RDS, kind::VHDS));
    assert!(route.facts().vhds_version().is_some());
    assert_eq!(route.facts().references[..], []);
    let domains = ["s1http.none", "s1http.none:2001"];
    assert_eq!(host.facts().domains, Domains::new(domains));
    let cluster = &host.facts().references[0].name;
    assert_eq!(cluster.as_str(), "outbound|2001||s1http.none");

    let host = VirtualHost::decode(host.body.clone().unwrap()).unwrap();
    assert_eq!(host.name, "2001/s1http.none:2001");
    let route = &host.routes[0];
    let decorator = route.decorator.as_ref().unwrap();
    assert_eq!(decorator.operation, "s1http.none:2001/*");
    let mixer = &route.typed_per_filter_config["mixer"];
    assert!(mixer.type_url.ends_with("TypedStruct"));

    let cluster = &loaded.warnings[0].to_string();
    let place = "pilot.json:19:28: resources[0].virtual_hosts[0].routes[0].route.cluster: ";
    assert!(cluster.contains(place), "{cluster}");
}

#[test]
fn hosts_are_taken_out_of_a_route_configuration_that_has_vhds() {
    let place = Place::new();
    let hosts = [("a", "a.com"), ("x/y", "'*'")];
    place.write("a.yaml", routes(true, &hosts));
    assert_eq!(names(&place.load()), ["r", "r/a", "r/x%2Fy"]);
    place.write("a.yaml", routes(false, &hosts));
    assert_eq!(names(&place.load()), ["r"]);
    place.remove("a.yaml");
    place.write("a.pb", binary(&routes(true, &hosts)));
    assert_eq!(names(&place.load()), ["r", "r/a", "r/x%2Fy"]);
}

#[tokio::test]
async fn an_edit_or_a_removal_takes_hosts_away() {
    let place = Place::new();
    place.write("a.yaml", routes(true, &[("a", "a"), ("b", "b")]));
    place.write("b.yaml", alone("r/c", "c"));
    let mut watched = place.watch();
    watched.next().await;
    assert_eq!(watched.held.len(), 4);
    place.replace("a.yaml", &routes(true, &[("b", "b"), ("d", "d")]));
    assert_eq!(said(&watched.next().await), ["+r/d", "-r/a"]);
    // A domain may move from one host to another at once.
    place.replace("a.yaml", &routes(true, &[("b", "d"), ("d", "b")]));
    assert_eq!(said(&watched.next().await), ["+r/b", "+r/d"]);
    place.remove("a.yaml");
    assert_eq!(said(&watched.next().await), ["-r", "-r/b", "-r/d"]);
}

#[test]
fn two_hosts_of_one_name_are_an_error_that_names_both_places() {
    let place = Place::new();
    place.write("a.yaml", routes(true, &[("a", "x"), ("a", "w")]));
    assert_eq!(
        wrong(&place),
        [
            "a.yaml:8:5: resources[0].virtual_hosts[1]: virtual host \"r/a\" is there already, \
             at a.yaml:6:5; remove one or rename it"
        ]
    );
    place.write("a.yaml", routes(true, &[("a", "x")]));
    place.write("b.yaml", alone("r/a", "w"));
    assert_eq!(
        wrong(&place),
        [
            "b.yaml:2:3: resources[0]: virtual host \"r/a\" is there already, at a.yaml:6:5; \
             remove one or rename it"
        ]
    );
}

#[test]
fn a_host_by_itself_says_of_which_route_configuration_it_is() {
    let place = Place::new();
    place.write("a.yaml", alone("v", "d"));
    assert_eq!(
        wrong(&place),
        [
            "a.yaml:2:3: resources[0]: the virtual host \"v\" does not say which route \
             configuration it is of; name it <route configuration>/<name>"
        ]
    );
}

#[test]
fn envoys_rules_hold_for_hosts_where_they_are_written() {
    let place = Place::new();
    place.write("a.yaml", routes(true, &[("a", "x"), ("b", "")]));
    let rule = "has 0 items, must have at least 1";
    let expected = format!("resources[0].virtual_hosts[1].domains: {rule}");
    assert_eq!(wrong(&place), [format!("a.yaml:9:5: {expected}")]);
    place.remove("a.yaml");
    place.write("a.pb", binary(&routes(true, &[("a", "x"), ("b", "")])));
    assert_eq!(wrong(&place), [format!("a.pb: {expected}")]);
}

#[test]
fn a_domain_of_two_hosts_is_an_error_that_names_both_places() {
    let place = Place::new();
    place.write(
        "a.yaml",
        routes(true, &[("a", "x, A.com"), ("b", "w, a.COM")]),
    );
    assert_eq!(
        wrong(&place),
        [
            "a.yaml:8:5: resources[0].virtual_hosts[1]: virtual hosts \"r/b\", this one, and \
             \"r/a\", at a.yaml:6:5, both have the domain \"a.com\"; take it out of one"
        ]
    );
    place.write("a.yaml", alone("r/a", "x"));
    place.write("b.pb", binary(&alone("r/b", "x")));
    assert_eq!(
        wrong(&place),
        [
            "b.pb: resources[0]: virtual hosts \"r/b\", this one, and \"r/a\", at a.yaml:2:3, \
             both have the domain \"x\"; take it out of one"
        ]
    );
    place.remove("a.yaml");
    place.write("c.yaml", alone("r/c", "x"));
    let other = "at b.pb: resources[0], both";
    assert!(wrong(&place)[0].contains(other), "{:?}", wrong(&place));
    // Another route configuration does not conflict.
    place.write("c.yaml", alone("s/c", "x, X"));
    assert_eq!(
        wrong(&place),
        ["c.yaml:2:3: resources[0]: virtual host \"s/c\" has the domain \"x\" twice; take one out"]
    );
    place.write("c.yaml", alone("s/c", "x"));
    assert_eq!(wrong(&place), [""; 0]);
}

#[test]
fn a_domain_of_two_hosts_that_nobody_sees_together_is_none() {
    let place = Place::new();
    let prod = variant("r/a", "x", "value: prod");
    let test = variant("r/b", "x", "value: test");
    place.write("a.yaml", format!("resources:\n{prod}{test}"));
    assert_eq!(wrong(&place), [""; 0]);
    let any = variant("r/c", "x", "exists: {}");
    place.write("b.yaml", format!("resources:\n{any}"));
    assert_eq!(
        wrong(&place),
        [
            "b.yaml:7:13: resources[0].resource: virtual hosts \"r/c\", this one, and \"r/a\", \
             at a.yaml:7:13, both have the domain \"x\" for a client with env=prod; \
             take it out of one"
        ]
    );
}

#[tokio::test]
async fn a_file_that_takes_a_domain_is_bad_and_others_go_on() {
    let place = Place::new();
    place.write("a.yaml", alone("r/a", "x"));
    place.write("b.yaml", alone("r/b", "w"));
    let mut watched = place.watch();
    watched.next().await;
    place.replace("b.yaml", &alone("r/b", "x"));
    let status = watched.bad().await;
    assert!(errors(&status, &place)[0].starts_with("b.yaml:2:3: "));
    place.write("c.yaml", clusters([("c", 1)]));
    assert_eq!(said(&watched.next().await), ["+c"]);
    // When the conflicting file changes, the waiting one is taken.
    place.replace("a.yaml", &alone("r/a", "z"));
    assert_eq!(said(&watched.next().await), ["+r/a", "+r/b"]);
    watched.good().await;
}

#[test]
fn a_binary_file_that_is_cut_off_is_bad() {
    let place = Place::new();
    let bytes = binary(&routes(true, &[("a", "a")]));
    let short = bytes.len() - 1;
    place.write("a.pb", &bytes[..short]);
    let cut = format!(
        "a.pb: is not a binary DiscoveryResponse: it ends inside of a field, after {short} bytes"
    );
    assert!(wrong(&place)[0].starts_with(&cut), "{:?}", wrong(&place));
}
