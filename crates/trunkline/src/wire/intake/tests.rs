//! The same contents in each form that they come in.

use super::*;
use prost::Message as _;
use std::io::Cursor;
use trunkline_core::change::Change;
use trunkline_core::hosts::Domains;
use trunkline_core::kind;
use trunkline_core::name::Name;
use trunkline_core::resource::{Resource, Version};
use trunkline_proto::discovery::{Any, DiscoveryResponse};
use trunkline_proto::pieces::{Piece, Pieces};

const ROUTES: &str = r#"
"@type": type.googleapis.com/envoy.config.route.v3.RouteConfiguration
name: r
vhds: {config_source: {ads: {}}}
most_specific_header_mutations_wins: true
virtual_hosts:
- {name: a/b, domains: [a, "*.a"], routes: [{match: {prefix: /}, route: {cluster: c}}]}
- {name: b, domains: [b], request_headers_to_remove: [x]}
"#;

fn read(text: &str) -> text::Resource {
    let mut read = text::read("f.yaml", text, &text::Options::default());
    assert_eq!(read.errors, [], "{text}");
    read.resources.remove(0)
}

fn wrapped(text: &str) -> String {
    format!(
        "\"@type\": type.googleapis.com/envoy.service.discovery.v3.Resource\nname: r\n\
             ttl: 5s\naliases: [s]\nresource_name:\n  name: r\n  dynamic_parameter_constraints: \
             {{constraint: {{key: env, value: prod}}}}\nresource:{}",
        text.replace('\n', "\n  ")
    )
}

/// The same from a binary file.
fn in_pieces(read: &text::Resource) -> Vec<(Resource, String)> {
    let mut any = Any {
        type_url: read.type_url.clone(),
        value: read.body.clone(),
    };
    if read.wrapper != discovery::Resource::default() {
        let mut wrapper = read.wrapper.clone();
        wrapper.resource = Some(any);
        any = Any {
            type_url: types::RESOURCE.to_owned(),
            value: wrapper.encode_to_vec().into(),
        };
    }
    let response = DiscoveryResponse {
        resources: vec![any],
        ..DiscoveryResponse::default()
    };
    let mut pieces = Pieces::new(Cursor::new(response.encode_to_vec()));
    let (mut intake, mut all, mut parent) = (Intake::default(), Vec::new(), None);
    while let Some((index, piece)) = pieces.next().unwrap() {
        let (resources, path) = match piece {
            Piece::Whole(any) => {
                let (accepted, spot) = intake.accept_whole("f.pb", index, any).unwrap();
                assert_eq!(accepted.hosts, []);
                (accepted.variants, spot.path())
            }
            Piece::Route(route) => {
                let (accepted, of) = intake.accept_route("f.pb", index, *route).unwrap();
                parent = Some(of);
                (accepted.variants, Default::default())
            }
            Piece::Host(host, body) => {
                let parent = parent.as_ref().unwrap();
                let made = intake.host_of("f.pb", parent, host, body).unwrap();
                (made.resources, made.spot.path())
            }
        };
        let resources = resources.into_iter();
        all.extend(resources.map(|resource| (resource, path.to_string())));
    }
    all
}

#[test]
fn virtual_hosts_in_a_route_configuration_with_vhds_are_resources_of_their_own() {
    let accepted = Intake::default().accept_text(&read(ROUTES)).unwrap();
    let route = &accepted.variants[0];
    assert_eq!(accepted.type_url.as_str(), kind::RDS);
    assert_eq!(route.facts().references[..], []);
    assert!(route.facts().vhds_version().is_some());
    let alone = ROUTES.split("virtual_hosts").next().unwrap();
    let alone = Intake::default().accept_text(&read(alone)).unwrap();
    assert_eq!(alone.variants[0], *route, "with or without");

    let [Host { resource: a, .. }, Host { resource: b, .. }] = &accepted.hosts[..] else {
        panic!("{:?}", accepted.hosts);
    };
    assert_eq!((a.name.as_str(), b.name.as_str()), ("r/a%2Fb", "r/b"));
    assert_eq!(a.facts().domains, Domains::new(["a", "*.a"]));
    assert_eq!(a.facts().references[0].name.as_str(), "c");
    let own = r#"{"@type": type.googleapis.com/envoy.config.route.v3.VirtualHost, name: r/b, domains: [b], request_headers_to_remove: [x]}"#;
    let own = Intake::default().accept_text(&read(own)).unwrap();
    assert_eq!(own.variants[0], *b, "as if it were written by itself");
    assert_eq!(b.version, Version::of_body(b.body.as_ref().unwrap()));

    let changes: Vec<_> = accepted.changes().collect();
    assert!(matches!(&changes[2], Change::Upsert(url, b)
            if url.as_str() == kind::VHDS && b.name.as_str() == "r/b"));
}

#[test]
fn without_vhds_nothing_is_taken_out() {
    let inline = ROUTES.replace("vhds: {config_source: {ads: {}}}\n", "");
    let accepted = Intake::default().accept_text(&read(&inline)).unwrap();
    assert_eq!(accepted.hosts, []);
    assert_eq!(accepted.variants[0].facts().references.len(), 1);
}

#[test]
fn virtual_hosts_are_for_whom_their_route_configuration_is() {
    let accepted = Intake::default()
        .accept_text(&read(&wrapped(ROUTES)))
        .unwrap();
    let route = &accepted.variants[0];
    assert_eq!(route.constraints.as_ref().unwrap().to_string(), "env=prod");
    for Host { resource: host, .. } in &accepted.hosts {
        assert_eq!(host.constraints, route.constraints);
        assert_eq!((host.ttl, host.aliases.len()), (None, 0));
    }
}

#[test]
fn a_binary_file_says_the_same_as_a_text() {
    let host = "{\"@type\": x/envoy.config.route.v3.VirtualHost, name: r/v, domains: [d]}";
    // The short way does not know a cluster's references.
    let cluster = "{\"@type\": x/envoy.config.cluster.v3.Cluster, name: c, type: EDS, eds_cluster_config: {eds_config: {ads: {}}}}";
    let inline = ROUTES.replace("vhds: {config_source: {ads: {}}}\n", "");
    let when = "metadata: {filter_metadata: {trunkline: {when: a=1}}}";
    let marked = |text: &str| {
        text.replace("name: r\n", &format!("name: r\n{when}\n"))
            .replace(
                "cluster: c}",
                &format!("cluster: c}}, {}", when.replace("a=1", "b=1")),
            )
    };
    let (compact, inner) = (marked(ROUTES), marked(&inline));
    assert_eq!(
        Intake::default()
            .accept_text(&read(&inner))
            .unwrap()
            .variants
            .len(),
        2
    );
    let texts = [ROUTES, &wrapped(ROUTES), host, cluster, &inline];
    for text in texts
        .into_iter()
        .chain([&*compact, &inner, &wrapped(&compact)])
    {
        let read = read(text);
        let accepted = Intake::default().accept_text(&read).unwrap();
        let found = in_pieces(&read);
        let hosts = accepted.hosts.iter().map(|host| &host.resource);
        let expected: Vec<_> = accepted.variants.iter().chain(hosts).collect();
        assert_eq!(found.iter().map(|(r, _)| r).collect::<Vec<_>>(), expected);
    }
    let places = in_pieces(&read(&wrapped(ROUTES)));
    assert_eq!(places[2].1, "resources[0].resource.virtual_hosts[1]");
}

#[test]
fn mistakes_of_a_binary_file_are_those_of_the_text() {
    let mut intake = Intake::default();
    let any = |body: &'static [u8]| Any {
        type_url: kind::VHDS.to_owned(),
        value: body.into(),
    };
    let texts = |mistakes: Vec<Mistake>| -> Vec<String> {
        mistakes.iter().map(ToString::to_string).collect()
    };
    let unruly = intake
        .accept_whole("f.pb", 3, any(b"\x0a\x03r/v"))
        .unwrap_err();
    assert_eq!(
        texts(unruly),
        ["f.pb: resources[3].domains: has 0 items, must have at least 1"]
    );
    let unrouted = intake.accept_whole("f.pb", 3, any(b"\x0a\x01v\x12\x01d"));
    assert_eq!(
        texts(unrouted.unwrap_err()),
        [
            "resources[3]: the virtual host \"v\" does not say which route configuration it is \
              of; name it <route configuration>/<name>"
        ]
    );
    let parent = Parent {
        written: None,
        name: Name::new("r"),
        constraints: None,
        index: 1,
        wrapped: false,
    };
    let host = intake.host_of("f.pb", &parent, 2, Bytes::from_static(b"\x12\x01d"));
    assert_eq!(
        texts(host.unwrap_err()),
        ["f.pb: resources[1].virtual_hosts[2].name: has 0 characters, must have at least 1"]
    );
}
