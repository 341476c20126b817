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

/// What the table says: name and constraints.
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
    assert_eq!(gone.lines().count(), 2, "{gone}");
    assert_eq!(listed(&server, "cds"), [""; 0]);
}
