//! Variants of one name over the API and in files: written as people say them,
//! shown so, and removed one by one (TP2).
#![allow(clippy::unwrap_used)]

mod support;

use support::{Server, bad, good};

const CDS: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";

/// A variant of the cluster `c`.
fn variant(constraints: &str, edition: &str) -> String {
    format!(
        "- \"@type\": type.googleapis.com/envoy.service.discovery.v3.Resource\n  \
         resource_name:\n    name: c\n    dynamic_parameter_constraints: {constraints}\n  \
         resource: {{\"@type\": {CDS}, name: c, alt_stat_name: {edition}}}\n"
    )
}

fn file(variants: &[(&str, &str)]) -> String {
    let all = variants.iter().map(|(c, edition)| variant(c, edition));
    format!("resources:\n{}", all.collect::<String>())
}

fn apply(server: &Server, text: &str) -> String {
    good(&server.ask_with(&["apply", "-f", "-"], text))
}

/// The table: name and constraints.
fn listed(server: &Server, kind: &str) -> Vec<String> {
    let table = good(&server.ask(&["get", kind]));
    let rows = table.lines().skip(1).map(|row| {
        let cells: Vec<&str> = row
            .split("  ")
            .map(str::trim)
            .filter(|cell| !cell.is_empty())
            .collect();
        format!("{} [{}]", cells[0], cells.get(2).unwrap_or(&""))
    });
    rows.collect()
}

#[test]
fn variants_are_written_and_shown_as_people_say_them() {
    let server = Server::start(&[]);
    let message = "{not_constraints: {constraint: {key: env, value: prod}}}";
    let applied = apply(
        &server,
        &file(&[
            ("\"version=v1 AND env=prod\"", "a"),
            ("env=prod AND NOT version=v1", "b"),
            (message, "c"),
        ]),
    );
    assert!(
        applied.contains("cds/c [env=prod AND version=v1] created "),
        "{applied}"
    );
    let expected = [
        "c [NOT env=prod]",
        "c [env=prod AND NOT version=v1]",
        "c [env=prod AND version=v1]",
    ];
    assert_eq!(listed(&server, "cds"), expected);
    for format in ["yaml", "json"] {
        let shown = good(&server.ask(&["get", "cds", "c", "-o", format]));
        assert!(shown.contains("env=prod AND NOT version=v1"), "{shown}");
        assert_eq!(apply(&server, &shown), "3 unchanged\n");
    }
}

#[test]
fn a_text_that_is_no_constraint_is_a_mistake_at_its_place() {
    let server = Server::start(&[]);
    let wrong = file(&[("env=prod", "a"), ("env=prod AND", "b")]);
    let error = bad(&server.ask_with(&["apply", "-f", "-"], &wrong), 1);
    let expected = "standard input:10:36: resources[1].resource_name.dynamic_parameter_constraints: \
                    the text \"env=prod AND\" is no constraint: at byte 12: expected a key";
    assert!(error.contains(expected), "{error}");
}

#[test]
fn one_variant_goes_and_the_others_stay() {
    let server = Server::start(&[]);
    apply(
        &server,
        &file(&[("env=prod", "a"), ("env=test", "b"), ("env=qa", "c")]),
    );
    let missing = bad(
        &server.ask(&["delete", "cds", "c", "--variant", "env=dev"]),
        1,
    );
    let expected = "cds \"c\" has no variant [env=dev]; it has [env=prod], [env=qa], [env=test]";
    assert!(missing.contains(expected), "{missing}");
    let nonsense = bad(&server.ask(&["delete", "cds", "c", "--variant", "env"]), 1);
    assert!(
        nonsense.contains("at byte 3: expected = or exists"),
        "{nonsense}"
    );
    let gone = good(&server.ask(&["delete", "cds", "c", "--variant", "env=test"]));
    assert!(gone.starts_with("cds/c [env=test] deleted "), "{gone}");
    assert_eq!(listed(&server, "cds"), ["c [env=prod]", "c [env=qa]"]);
    let gone = good(&server.ask(&["delete", "cds", "c"]));
    assert_eq!(gone.matches(" deleted ").count(), 2, "{gone}");
    assert_eq!(listed(&server, "cds"), [""; 0]);
}

const RDS: &str = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration";

/// A route configuration with a route for each of these conditions, and one for
/// all.
fn routes(conditions: &[&str], more: &str) -> String {
    let routes = conditions.iter().map(|condition| {
        format!(
            "    - match: {{path: \"/{condition}\"}}\n      route: {{cluster: c}}\n      \
             metadata: {{filter_metadata: {{trunkline: {{when: \"{condition}\"}}}}}}\n"
        )
    });
    format!(
        "resources:\n- \"@type\": {RDS}\n  name: r\n{more}  virtual_hosts:\n  - name: v\n    \
         domains: [d]\n    routes:\n{}    - match: {{prefix: /}}\n      route: {{cluster: c}}\n",
        routes.collect::<String>()
    )
}

#[test]
fn who_writes_without_constraints_writes_all_of_it() {
    let server = Server::start(&[]);
    let applied = apply(&server, &routes(&["env=prod", "version=v1"], ""));
    assert_eq!(applied.matches(" created ").count(), 4, "{applied}");
    let shown = good(&server.ask(&["get", "rds", "r", "-o", "yaml"]));
    assert!(!shown.contains("when"), "{shown}");
    assert_eq!(apply(&server, &shown), "4 unchanged\n");
    // Fewer conditions, fewer variants, in one change.
    let dry = server.ask_with(
        &["apply", "-f", "-", "--dry-run"],
        &routes(&["env=prod"], ""),
    );
    let fewer = apply(&server, &routes(&["env=prod"], ""));
    assert_eq!(good(&dry).lines().count(), fewer.lines().count());
    assert_eq!(fewer.matches(" created ").count(), 2, "{fewer}");
    assert!(
        fewer.contains("rds/r [env=prod AND version=v1] deleted "),
        "{fewer}"
    );
    assert_eq!(listed(&server, "rds"), ["r [NOT env=prod]", "r [env=prod]"]);
    // One variant is one variant.
    let one = shown_one(&server, "env=prod");
    assert_eq!(apply(&server, &one), "1 unchanged\n");
    let plain = apply(&server, &routes(&[], ""));
    assert_eq!(plain.matches(" deleted ").count(), 2, "{plain}");
    assert_eq!(listed(&server, "rds").len(), 1);
    // And back: the one for all clients does not conflict.
    let parts = apply(&server, &routes(&["env=prod"], ""));
    assert_eq!(parts.matches(" created ").count(), 2, "{parts}");
    // A variant beside one for all clients does, if it was not made of the same
    // resource.
    apply(&server, &routes(&[], ""));
    let beside = bad(&server.ask_with(&["apply", "-f", "-"], &one), 1);
    assert!(
        beside.contains(
            "resources[0].resource: a client with env=prod would match two \
             variants of route configuration \"r\", this one [env=prod] and the one at origin api [always]; \
             make their constraints exclude each other"
        ),
        "{beside}"
    );
}

/// Also where their keys differ, as in the document's transition.
#[test]
fn s62_variants_of_which_a_client_matches_two_are_refused_with_both_places() {
    let server = Server::start(&[]);
    let both = file(&[("env=prod", "a"), ("version=v1", "b")]);
    let error = bad(&server.ask_with(&["apply", "-f", "-"], &both), 1);
    let expected = "standard input:11:13: resources[1].resource: a client with env=prod,version=v1 \
                    would match two variants of cluster \"c\", this one [version=v1] and the one at \
                    6:13 [env=prod]; make their constraints exclude each other";
    assert!(error.contains(expected), "{error}");
    let twice = file(&[("env=prod", "a"), ("env=prod", "b")]);
    let error = bad(&server.ask_with(&["apply", "-f", "-"], &twice), 1);
    assert!(
        error.contains("cluster \"c\" is there already, at 6:13"),
        "{error}"
    );
    let apart = [
        ("NOT version exists", "a"),
        ("version exists AND env=prod", "b"),
    ];
    let applied = apply(&server, &file(&apart));
    assert_eq!(applied.matches(" created ").count(), 2, "{applied}");
}

/// One variant of the route configuration, as `get` shows it.
fn shown_one(server: &Server, clients: &str) -> String {
    let shown = good(&server.ask(&["get", "rds", "r", "-o", "json"]));
    let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
    let all = shown["resources"].as_array().unwrap().iter();
    let of =
        |one: &&serde_json::Value| one["resource_name"]["dynamic_parameter_constraints"] == clients;
    let one: Vec<_> = all.filter(of).collect();
    assert_eq!(one.len(), 1, "{shown}");
    serde_json::json!({"resources": one}).to_string()
}

#[test]
fn a_resource_of_which_nothing_is_left_is_gone() {
    let server = Server::start(&[]);
    apply(&server, &routes(&["env=prod"], ""));
    let never = "  metadata: {filter_metadata: {trunkline: {when: never}}}\n";
    let gone = server.ask_with(&["apply", "-f", "-"], &routes(&["env=prod"], never));
    assert!(
        support::said(&gone).contains("warning: standard input:4:44: "),
        "{gone:?}"
    );
    assert_eq!(support::said(&gone).matches("warning: ").count(), 1);
    assert_eq!(good(&gone).matches(" deleted ").count(), 2);
    assert_eq!(listed(&server, "rds"), [""; 0]);
}

#[test]
fn virtual_hosts_have_variants_of_their_own() {
    let server = Server::start(&[]);
    let vhds = "  vhds: {config_source: {ads: {}}}\n";
    let applied = apply(&server, &routes(&["env=prod", "version=v1"], vhds));
    assert!(applied.contains("rds/r created "), "{applied}");
    assert_eq!(applied.matches("vhds/r/v [").count(), 4, "{applied}");
    let fewer = apply(&server, &routes(&["env=prod"], vhds));
    assert!(!fewer.contains("rds/r "), "{fewer}");
    assert_eq!(fewer.matches(" deleted ").count(), 4, "{fewer}");
    assert_eq!(
        listed(&server, "vhds"),
        ["r/v [NOT env=prod]", "r/v [env=prod]"]
    );
    let gone = good(&server.ask(&["delete", "rds", "r"]));
    assert_eq!(gone.matches("vhds/r/v [").count(), 2, "{gone}");
    assert_eq!(listed(&server, "vhds"), [""; 0]);
}

#[test]
fn tp2_a_value_that_no_variant_serves_is_a_warning() {
    let server = Server::start(&[]);
    let quiet = |output: std::process::Output| {
        assert_eq!(support::said(&output), "");
        good(&output)
    };
    let ask = |args: &[&str], text: &str| server.ask_with(args, text);
    let apply = ["apply", "-f", "-"];
    quiet(ask(&apply, &file(&[("env=prod", "a"), ("env=test", "b")])));
    let other = file(&[("env=qa", "a"), ("NOT env=qa", "b")]).replace("name: c", "name: d");
    // Also of a name that is not in the file.
    let warned = support::said(&ask(&apply, &other));
    let expected = "warning: no variant of cluster \"c\" serves env=qa (cluster \"d\", at 11:13, has a \
                    variant that speaks of it): clients with it are told that it does not exist\n\
                    note: standard input:11:13: the one that speaks of it\n";
    assert!(warned.starts_with(expected), "{warned}");
    let dry = ["apply", "-f", "-", "--dry-run"];
    let warned = support::said(&ask(&dry, &file(&[("env=prod", "x")])));
    let at = "warning: standard input:6:13: resources[0].resource: no variant of cluster \"c\" serves env=qa";
    assert!(warned.starts_with(at), "{warned}");
    quiet(ask(&dry, &file(&[("env=qa", "x")])));
    quiet(ask(&apply, &file(&[("env=qa", "x")])));
    let warned = support::said(&ask(&["delete", "cds", "c", "--variant", "env=qa"], ""));
    assert!(warned.contains("cluster \"c\" serves env=qa"), "{warned}");
    // A value that no variant mentions any more is not known.
    quiet(ask(&["delete", "cds", "d"], ""));
    quiet(ask(&apply, &file(&[("env=prod", "w")])));
}
