//! Removals of virtual hosts, by what is applied.

use std::io::Cursor;

use super::*;
use trunkline::checked::{Form, decode};
use trunkline::{Change, wire};
use trunkline_proto::text::Format;

/// Decodes a body.
fn document(text: String) -> Document {
    let (form, source) = (Form::Text(Format::Yaml), Cursor::new(text));
    let decoded = decode(&"".into(), form, source, &wire::text_options()).unwrap();
    assert_eq!(decoded.errors, []);
    decoded.document
}

fn given(hosts: &str) -> Document {
    let text = format!(
        "{{\"@type\": {}, name: r, vhds: {{config_source: {{ads: {{}}}}}}, \
         virtual_hosts: [{hosts}]}}",
        kind::RDS
    );
    document(text)
}

fn hosts(names: &[&str]) -> Document {
    let one = |name: &&str| format!("{{name: {name}, domains: [{name}]}}");
    given(&names.iter().map(one).collect::<Vec<_>>().join(", "))
}

fn part(name: &str, number: u64, last: bool) -> Option<Part> {
    let name = name.to_owned();
    Some(Part { name, number, last })
}

/// Makes a change; returns its removals.
fn made(derived: &mut Derived, given: &Document, part: Option<Part>) -> Vec<String> {
    let plan = derived.plan(given, part).unwrap();
    let gone = plan.removed.iter().map(|change| match change {
        Change::RemoveVariant(_, name, None) => name.to_string(),
        other => panic!("{other:?}"),
    });
    let mut gone: Vec<String> = gone.collect();
    gone.sort();
    derived.commit(plan);
    gone
}

#[test]
fn what_no_part_listed_is_gone_with_the_last() {
    let mut derived = Derived::default();
    made(&mut derived, &hosts(&["a", "b", "c", "d"]), None);
    let none = [""; 0];
    assert_eq!(
        made(&mut derived, &hosts(&["b"]), part("x", 0, false)),
        none
    );
    assert_eq!(
        made(&mut derived, &hosts(&["e"]), part("x", 1, false)),
        none
    );
    let gone = made(&mut derived, &hosts(&["d"]), part("x", 2, true));
    assert_eq!(gone, ["r/a", "r/c"]);
    assert_eq!(
        made(&mut derived, &hosts(&["a"]), None),
        ["r/b", "r/d", "r/e"]
    );
    // A change of one part.
    assert_eq!(
        made(&mut derived, &hosts(&["b"]), part("y", 0, true)),
        ["r/a"]
    );
}

#[test]
fn a_part_of_what_is_not_known_is_refused() {
    let mut derived = Derived::default();
    made(&mut derived, &hosts(&["a"]), None);
    let plan = derived.plan(&hosts(&["b"]), part("x", 1, true));
    assert_eq!(plan.unwrap_err(), Forgotten);
    for n in 0..=MOST_OPEN {
        made(&mut derived, &hosts(&["b"]), part(&n.to_string(), 0, false));
    }
    let plan = derived.plan(&hosts(&["b"]), part("0", 1, true));
    assert_eq!(plan.unwrap_err(), Forgotten);
    assert!(derived.plan(&hosts(&["b"]), part("1", 1, true)).is_ok());
    assert_eq!(derived.open.len(), MOST_OPEN);
}

#[test]
fn a_change_that_is_not_made_is_not_kept() {
    let mut derived = Derived::default();
    made(&mut derived, &hosts(&["a"]), None);
    let plan = derived.plan(&hosts(&["b"]), None).unwrap();
    assert_eq!(plan.removed.len(), 1);
    assert_eq!(made(&mut derived, &hosts(&["c"]), None), ["r/a"]);
}

/// The removals of a change of these resources, with their constraints.
fn gone(derived: &mut Derived, given: &Document) -> Vec<String> {
    let plan = derived.plan(given, None).unwrap();
    let gone = plan.removed.iter().map(|change| match change {
        Change::RemoveVariant(_, name, Some(clients)) => format!("{name} [{clients}]"),
        Change::RemoveVariant(_, name, None) => name.to_string(),
        other => panic!("{other:?}"),
    });
    let mut gone: Vec<String> = gone.collect();
    gone.sort();
    derived.commit(plan);
    gone
}

fn variant_of_routes(clients: &str, hosts: &str) -> Document {
    let text = format!(
        "{{\"@type\": type.googleapis.com/envoy.service.discovery.v3.Resource, \
         resource_name: {{name: r, dynamic_parameter_constraints: {clients}}}, \
         resource: {{\"@type\": {}, name: r, vhds: {{config_source: {{ads: {{}}}}}}, \
         virtual_hosts: [{hosts}]}}}}",
        kind::RDS
    );
    document(text)
}

#[test]
fn a_route_configuration_for_all_takes_the_hosts_of_its_variants_away() {
    let mut derived = Derived::default();
    let host = |name: &str| format!("{{name: {name}, domains: [{name}]}}");
    gone(&mut derived, &variant_of_routes("env=prod", &host("a")));
    gone(&mut derived, &variant_of_routes("env=test", &host("b")));
    // A variant is the author of its own hosts only.
    let prod = variant_of_routes("env=prod", &host("c"));
    assert_eq!(gone(&mut derived, &prod), ["r/a [env=prod]"]);
    let whole = gone(&mut derived, &hosts(&["a"]));
    assert_eq!(whole, ["r/b [env=test]", "r/c [env=prod]"]);
    assert_eq!(derived.hosts.len(), 1);
}

#[test]
fn hosts_with_conditions_go_variant_by_variant() {
    let mut derived = Derived::default();
    let host = |when: &str| {
        let route = "match: {prefix: /}, redirect: {}";
        given(&format!(
            "{{name: a, domains: [a], routes: [{{{route}, metadata: {{filter_metadata: \
             {{trunkline: {{when: \"{when}\"}}}}}}}}]}}"
        ))
    };
    assert_eq!(gone(&mut derived, &host("x=1")), [""; 0]);
    let other = ["r/a [NOT x=1]", "r/a [x=1]"];
    assert_eq!(gone(&mut derived, &host("x=2")), other);
    // The last author counts.
    let prod = variant_of_routes("x=2", "{name: a, domains: [a]}");
    assert_eq!(gone(&mut derived, &prod), [""; 0]);
    assert_eq!(
        gone(&mut derived, &hosts(&["b"])),
        ["r/a [NOT x=2]", "r/a [x=2]"]
    );
}
