//! Which virtual hosts go, and with what.

use super::*;
use crate::admin::given::{Form, Read};
use trunkline::Change;
use trunkline_proto::text::Format;

fn given(hosts: &str) -> Vec<Given> {
    let text = format!(
        "{{\"@type\": {}, name: r, vhds: {{config_source: {{ads: {{}}}}}}, \
         virtual_hosts: [{hosts}]}}",
        kind::RDS
    );
    let read = Read::new(text.into(), Form::Text(Format::Yaml));
    assert_eq!(read.errors, []);
    read.given
}

fn hosts(names: &[&str]) -> Vec<Given> {
    let one = |name: &&str| format!("{{name: {name}, domains: [{name}]}}");
    given(&names.iter().map(one).collect::<Vec<_>>().join(", "))
}

fn part(name: &str, number: u64, last: bool) -> Option<Part> {
    let name = name.to_owned();
    Some(Part { name, number, last })
}

/// Makes a change; what it takes away.
fn made(derived: &mut Derived, given: &[Given], part: Option<Part>) -> Vec<String> {
    let plan = derived.plan(given, &[], part).unwrap();
    let gone = plan.removed.iter().map(|change| match change {
        Change::RemoveVariant(_, name, None) => name.to_string(),
        other => panic!("{other:?}"),
    });
    let mut gone: Vec<String> = gone.collect();
    gone.sort();
    derived.keep(plan);
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
    let plan = derived.plan(&hosts(&["b"]), &[], part("x", 1, true));
    assert_eq!(plan.unwrap_err(), Forgotten);
    for n in 0..=MOST_OPEN {
        made(&mut derived, &hosts(&["b"]), part(&n.to_string(), 0, false));
    }
    let plan = derived.plan(&hosts(&["b"]), &[], part("0", 1, true));
    assert_eq!(plan.unwrap_err(), Forgotten);
    assert!(
        derived
            .plan(&hosts(&["b"]), &[], part("1", 1, true))
            .is_ok()
    );
    assert_eq!(derived.open.len(), MOST_OPEN);
}

#[test]
fn a_change_that_is_not_made_is_not_kept() {
    let mut derived = Derived::default();
    made(&mut derived, &hosts(&["a"]), None);
    let plan = derived.plan(&hosts(&["b"]), &[], None).unwrap();
    assert_eq!(plan.removed.len(), 1);
    assert_eq!(made(&mut derived, &hosts(&["c"]), None), ["r/a"]);
}
