//! The forms of files, and the resources that result.

use prost::Message as _;
use trunkline_proto::discovery::{Any, DiscoveryResponse};
use trunkline_store::Files;

use crate::place::{Place, clusters, options};

fn names(place: &Place) -> Vec<String> {
    let loaded = place.load();
    assert!(loaded.errors.is_empty(), "{:?}", loaded.errors);
    let names = loaded.resources.iter();
    names
        .map(|(_, resource)| resource.name.to_string())
        .collect()
}

#[test]
fn yaml_json_binary_and_bootstraps_are_read_and_others_are_left() {
    let place = Place::new();
    place.write("a.yaml", clusters([("yaml", 1)]));
    place.write("b.yml", clusters([("yml", 1)]));
    let url = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
    let json = format!("{{\"resources\": [{{\"@type\": \"{url}\", \"name\": \"json\"}}]}}");
    place.write("c.json", json);
    let binary = DiscoveryResponse {
        resources: vec![Any {
            type_url: url.into(),
            value: b"\x0a\x06binary".to_vec().into(),
        }],
        ..DiscoveryResponse::default()
    };
    place.write("d.pb", binary.encode_to_vec());
    place.write(
        "e.yaml",
        "static_resources: {clusters: [{name: bootstrap}]}",
    );
    for other in ["README.md", ".hidden.yaml", "a.yaml~", "f.pb_text", "none"] {
        place.write(other, "no resources: [");
    }
    assert_eq!(
        names(&place),
        ["yaml", "yml", "json", "binary", "bootstrap"]
    );
}

#[test]
fn a_file_that_is_named_is_read_whatever_its_name() {
    let place = Place::new();
    place.write("resources", clusters([("a", 1)]));
    let loaded = Files::new([place.path("resources")], options()).load();
    assert_eq!((loaded.errors.len(), loaded.resources.len()), (0, 1));
    place.write("a.pb_text", "resources {}");
    let loaded = Files::new([place.path("a.pb_text")], options()).load();
    let error = loaded.errors[0].to_string();
    assert!(error.contains(".yaml, .json or a binary"), "{error}");
}

#[test]
fn what_is_around_a_resource_is_read() {
    let place = Place::new();
    place.write(
        "a.yaml",
        r#"resources:
- "@type": type.googleapis.com/envoy.service.discovery.v3.Resource
  name: a
  aliases: [b]
  ttl: 2s
  metadata: {filter_metadata: {x: {y: z}}}
  resource_name:
    name: a
    dynamic_parameter_constraints: {constraint: {key: env, value: prod}}
  resource: {"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: a}
- "@type": type.googleapis.com/envoy.service.discovery.v3.Resource
  name: other
  resource: {"@type": type.googleapis.com/no.such.Type, value: AAA=}
"#,
    );
    let loaded = place.load();
    assert!(loaded.errors.is_empty(), "{:?}", loaded.errors);
    let (_, a) = &loaded.resources[0];
    assert_eq!(a.aliases[0].as_str(), "b");
    assert_eq!(a.ttl.unwrap().as_secs(), 2);
    assert_eq!(a.constraints.as_ref().unwrap().to_string(), "env=prod");
    assert!(a.facts().rare.as_ref().unwrap().metadata.is_some());
    let (url, other) = &loaded.resources[1];
    assert_eq!(url.as_str(), "type.googleapis.com/no.such.Type");
    assert_eq!(other.body.as_deref(), Some(&[0, 0][..]));
}

#[test]
fn every_mistake_of_every_file_is_told_with_its_place() {
    let place = Place::new();
    let slip = clusters([("a", 1)]).replace("alt_stat_name: e1", "alt_stat_nam: e1");
    place.write("a.yaml", slip);
    place.write("b.yaml", clusters([("b", 1)]) + "  lb_policy: NONE\n");
    let two = "resources:\n- \"@type\": type.googleapis.com/envoy.service.discovery.v3.Resource\n  \
               name: x\n  resource: {\"@type\": \
               type.googleapis.com/envoy.config.cluster.v3.Cluster, name: z}\n";
    place.write("c.yaml", two);
    let dir = format!("{}/", place.0.path().display());
    let loaded = place.load();
    let errors = loaded
        .errors
        .iter()
        .map(|e| e.to_string().replace(&dir, ""));
    let starts: Vec<_> = errors
        .map(|e| e.split(' ').take(2).collect::<Vec<_>>().join(" "))
        .collect();
    assert_eq!(
        starts,
        [
            "a.yaml:4:3: resources[0]:",
            "b.yaml:5:14: resources[0].lb_policy:",
            "c.yaml:4:13: resources[0].resource:",
        ]
    );
    assert!(loaded.resources.is_empty());
    assert_eq!(loaded.files, 3);
}
