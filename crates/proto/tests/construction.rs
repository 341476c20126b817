//! Resources of which Envoy 1.40 can or cannot build something, against our
//! checks. A test of `crates/interop` gives the same cases to Envoy itself.
#![allow(clippy::expect_used, reason = "all of this is tests")]

mod cases;

use trunkline_proto::quick;
use trunkline_proto::text::{self, Options};

#[test]
fn each_resource_that_envoy_rejects_has_its_mistake_and_no_other() {
    let mut wrong = Vec::new();
    let cases = cases::read_all();
    for case in &cases {
        let read = text::read("f.yaml", &case.text, &Options::default());
        assert_eq!(read.errors, [], "{} can be read", case.name);
        let [resource] = &read.resources[..] else {
            panic!("{} is one resource", case.name);
        };
        let found: Vec<String> = resource
            .validate()
            .iter()
            .map(|error| format!("{}: {}", error.path, error.problem))
            .collect();
        let expected = case.mistake.iter().cloned().collect::<Vec<_>>();
        if found != expected {
            wrong.push(format!("{}\t{}", case.name, found.join("; ")));
        }

        // A quick walk must not pass over the mistake.
        let quick = quick::look(&resource.type_url, &resource.body);
        assert!(case.mistake.is_none() || quick.is_none(), "{}", case.name);
    }
    assert_eq!(wrong.join("\n"), "");
    assert_eq!(cases.len(), 215);
}

/// The line is that of the field, or of the nearest part around it that is
/// written.
#[test]
fn a_mistake_is_found_at_its_line() {
    let read = text::read(
        "f.yaml",
        r#"
"@type": type.googleapis.com/envoy.config.route.v3.RouteConfiguration
name: r
virtual_hosts:
- name: v
  domains: [a.example]
- name: w
  domains:
  - b.example
  - A.example
"#,
        &Options::default(),
    );
    let found = read.resources[0].validate();
    assert_eq!(
        found[0].to_string(),
        "f.yaml:10:5: virtual_hosts[1].domains[1]: the domain \"A.example\" is one of \
         virtual_hosts[0] too; a route configuration may have it once: remove one"
    );
}

/// Parts with conditions are for different clients, and may be equal.
#[test]
fn parts_with_conditions_are_not_compared() {
    for text in [
        r#"
"@type": type.googleapis.com/envoy.config.route.v3.RouteConfiguration
name: r
virtual_hosts:
- {name: v, domains: [a], metadata: {filter_metadata: {trunkline: {when: env=prod}}}}
- {name: w, domains: [a], metadata: {filter_metadata: {trunkline: {when: env=test}}}}
"#,
        r#"
"@type": type.googleapis.com/envoy.config.listener.v3.Listener
name: l
filter_chains:
- {metadata: {filter_metadata: {trunkline: {when: env=prod}}}}
- {metadata: {filter_metadata: {trunkline: {when: env=test}}}}
"#,
        r#"
"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
name: c
type: LOGICAL_DNS
load_assignment:
  cluster_name: c
  endpoints:
  - {metadata: {filter_metadata: {trunkline: {when: env=prod}}}}
  - {metadata: {filter_metadata: {trunkline: {when: env=test}}}}
"#,
    ] {
        let read = text::read("f.yaml", text, &Options::default());
        assert_eq!(read.errors, []);
        assert_eq!(read.resources[0].validate(), [], "{text}");
    }
}
