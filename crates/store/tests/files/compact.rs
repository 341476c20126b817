//! Variants in files: parts with conditions, in files of each form, and values
//! that no variant serves.

use prost::Message as _;
use trunkline_proto::discovery::{Any, DiscoveryResponse};
use trunkline_proto::text;

use crate::place::{Place, said};

const RDS: &str = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration";

/// A route configuration with a route for each of these conditions.
fn routes(conditions: &[&str], more: &str) -> String {
    let routes = conditions.iter().map(|condition| {
        format!(
            "    - match: {{path: \"/{condition}\"}}\n      redirect: {{}}\n      \
             metadata: {{filter_metadata: {{trunkline: {{when: \"{condition}\"}}}}}}\n"
        )
    });
    format!(
        "resources:\n- \"@type\": {RDS}\n  name: r\n{more}  virtual_hosts:\n  - name: v\n    \
         domains: [d]\n    routes:\n{}    - match: {{prefix: /}}\n      redirect: {{}}\n",
        routes.collect::<String>()
    )
}

/// The same as a binary file.
fn binary(text: &str) -> Vec<u8> {
    let read = text::read("f.yaml", text, &text::Options::default());
    assert_eq!(read.errors, []);
    let resources = read.resources.iter().map(|read| Any {
        type_url: read.type_url.clone(),
        value: read.body.clone(),
    });
    let response = DiscoveryResponse {
        resources: resources.collect(),
        ..DiscoveryResponse::default()
    };
    response.encode_to_vec()
}

const VHDS: &str = "  vhds: {config_source: {ads: {}}}\n";

#[test]
fn files_of_each_form_have_the_same_variants() {
    for (more, expected) in [("", 4), (VHDS, 5)] {
        let text = routes(&["env=prod", "version=v1"], more);
        let place = Place::new();
        place.write("r.yaml", &text);
        let loaded = place.load();
        assert_eq!((loaded.errors, loaded.warnings), (vec![], vec![]));
        assert_eq!(loaded.resources.len(), expected);
        let other = Place::new();
        other.write("r.pb", binary(&text));
        assert_eq!(other.load().resources, loaded.resources);
    }
}

#[tokio::test]
async fn fewer_conditions_are_one_transaction() {
    let place = Place::new();
    place.write("r.yaml", routes(&["env=prod", "version=v1"], ""));
    let mut watched = place.watch();
    watched.next().await;
    place.write("r.yaml", routes(&["env=prod"], ""));
    let mut changes = said(&watched.next().await);
    changes.sort();
    assert_eq!(changes, ["+r", "+r", "-r", "-r", "-r", "-r"]);
    watched.good().await;
}

#[test]
fn what_is_wrong_or_hardly_meant_is_said_at_its_place() {
    let mark = "metadata.filter_metadata[\"trunkline\"][\"when\"]";
    let part = format!("resources[0].virtual_hosts[0].routes[0].{mark}");
    for more in ["", VHDS] {
        let (line, text) = (10 + more.lines().count(), routes(&["env="], more));
        let place = Place::new();
        place.write("r.yaml", &text);
        place.write("r.pb", binary(&text));
        let dir = format!("{}/", place.0.path().display());
        let shown = |all: &[trunkline::checked::Finding]| -> Vec<String> {
            let all = all.iter().map(|p| p.to_string().replace(&dir, ""));
            all.collect()
        };
        let wrong = shown(&place.load().errors);
        let what = "the condition \"env=\": at byte 4: expected a value; \
                    write such as env=prod AND NOT version=v1";
        assert_eq!(wrong[1], format!("r.yaml:{line}:48: {part}: {what}"));
        assert!(wrong[0].starts_with("r.pb: resources[0]"), "{}", wrong[0]);
        assert!(
            wrong[0].contains(mark) && wrong[0].ends_with(what),
            "{}",
            wrong[0]
        );

        place.write("r.yaml", routes(&["always"], more));
        place.write(
            "r.pb",
            binary(&routes(&["never"], more).replace(": r\n", ": s\n")),
        );
        let doubts = shown(&place.load().warnings);
        assert!(doubts[0].starts_with(&format!("r.pb: {part}: the condition \"never\"")));
        let expected =
            format!("r.yaml:{line}:48: {part}: the condition \"always\" holds for every");
        assert!(doubts[1].starts_with(&expected), "{}", doubts[1]);
    }
}

fn variant(name: &str, clients: &str) -> String {
    format!(
        "- \"@type\": type.googleapis.com/envoy.service.discovery.v3.Resource\n  \
         resource_name: {{name: {name}, dynamic_parameter_constraints: \"{clients}\"}}\n  \
         resource: {{\"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: {name}}}\n"
    )
}

#[tokio::test]
async fn tp2_a_value_that_no_variant_serves_is_a_warning() {
    let place = Place::new();
    let of = |variants: &[(&str, &str)]| {
        let all: String = variants.iter().map(|(n, c)| variant(n, c)).collect();
        format!("resources:\n{all}")
    };
    place.write("a.yaml", of(&[("a", "env=prod"), ("a", "env=test")]));
    place.write("b.yaml", of(&[("b", "env=prod"), ("b", "NOT env=prod")]));
    // A resource for some clients only need not serve the others.
    place.write("c.yaml", of(&[("c", "zone=z AND env=prod")]));
    let mut watched = place.watch();
    watched.next().await;
    assert!(watched.good().await.warnings().next().is_none());
    place.write(
        "d.yaml",
        of(&[("d", "env=test"), ("d", "env=qa"), ("d", "env=prod")]),
    );
    watched.next().await;
    let status = watched.status(|status| status.warnings().count() > 0).await;
    let warnings: Vec<String> = status.warnings().map(ToString::to_string).collect();
    let dir = format!("{}/", place.0.path().display());
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert_eq!(
        warnings[0].replace(&dir, ""),
        "a.yaml:4:13: resources[0].resource: no variant of cluster \"a\" serves env=qa \
         (cluster \"d\", at d.yaml:7:13, has a variant that speaks of it): clients with it are told \
         that it does not exist"
    );
    // The warning goes with the variant that mentioned the value.
    place.remove("d.yaml");
    watched.next().await;
    watched
        .status(|status| status.warnings().count() == 0)
        .await;
}

#[test]
fn two_of_one_name_are_told_of_once_however_many_variants_they_have() {
    let place = Place::new();
    place.write("a.yaml", routes(&["env=prod", "version=v1"], ""));
    place.write("b.yaml", routes(&["env=prod"], ""));
    let errors = place.load().errors;
    assert_eq!(errors.len(), 1, "{errors:?}");
    let error = errors[0].to_string();
    assert!(
        error.contains("b.yaml:2:3: resources[0]: a client with env=prod"),
        "{error}"
    );
    assert!(error.contains("a.yaml:2:3"), "{error}");
}
