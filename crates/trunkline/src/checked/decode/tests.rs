//! The mistakes of documents, with their places.

use prost::Message as _;
use trunkline_proto::envoy::envoy::service::discovery::v3::DiscoveryResponse;
use trunkline_proto::envoy::google::protobuf::Any;

use super::*;

/// A resource in text: its type, and its fields.
fn resource(type_url: &str, fields: &str) -> String {
    format!("- {{'@type': {type_url}, {fields}}}\n")
}

/// The errors of a document, each with its place.
fn errors_of(name: &str, document: impl Into<Vec<u8>>) -> Vec<String> {
    let options = wire::text_options();
    let source = Cursor::new(document.into());
    let decoded = decode(&name.into(), Form::ByName, source, &options).unwrap();
    decoded.errors.iter().map(ToString::to_string).collect()
}

#[test]
fn what_envoy_could_not_build_is_a_mistake_in_text_and_in_binary() {
    let route = "routes: [{match: {safe_regex: {regex: '('}}, redirect: {}}]";
    let text = [
        "resources:\n".to_owned(),
        resource(kind::VHDS, &format!("name: r/v, domains: [a], {route}")),
        resource(kind::CDS, "name: c, type: EDS"),
        resource(
            kind::RDS,
            "name: r, virtual_hosts: [{name: v, domains: [a]}, {name: w, domains: [A]}]",
        ),
    ]
    .concat();
    let words = [
        "resources[0].routes[0].match.safe_regex.regex: is \"(\", which is no regular expression: \
         a `(` is not closed; add `)`, or write `\\(` for the character",
        "resources[1].eds_cluster_config.eds_config: a cluster of type EDS needs eds_config; \
         set it, for example to {ads: {}}",
        "resources[2].virtual_hosts[1].domains[0]: the domain \"A\" is one of virtual_hosts[0] \
         too; a route configuration may have it once: remove one",
    ];

    let in_text = errors_of("a.yaml", text.as_str());
    let places = ["a.yaml:2:124: ", "a.yaml:3:3: ", "a.yaml:4:145: "];
    let expected = places.iter().zip(words).map(|(p, w)| format!("{p}{w}"));
    assert_eq!(in_text, expected.collect::<Vec<_>>());

    let read = text::read("a.yaml", &text, &wire::text_options());
    let to_any = |resource: &text::Resource| Any {
        type_url: resource.type_url.clone(),
        value: resource.body.to_vec(),
    };
    let response = DiscoveryResponse {
        resources: read.resources.iter().map(to_any).collect(),
        ..DiscoveryResponse::default()
    };
    let in_binary = errors_of("a.pb", response.encode_to_vec());
    assert_eq!(in_binary, words.map(|words| format!("a.pb: {words}")));
}
