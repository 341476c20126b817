//! Subsets by metadata.

use serde_json::{Value, json};

use super::{PickContext, World, endpoint, in_priority, paths, policy};
use crate::balance::LbMetadata;

fn cluster(fallback: &str) -> Value {
    json!({"lb_subset_config": {
        "fallback_policy": fallback,
        "default_subset": {"stage": "prod"},
        "subset_selectors": [{"keys": ["stage"]}, {"keys": ["stage", "version"]}],
    }})
}

fn member(last: u8, fields: &Value) -> Value {
    endpoint(
        last,
        &json!({"metadata": {"filter_metadata": {"envoy.lb": fields}}}),
    )
}

fn all() -> Vec<Value> {
    vec![
        member(1, &json!({"stage": "prod", "version": "1"})),
        member(2, &json!({"stage": "prod", "version": 1})),
        member(3, &json!({"stage": "beta"})),
        member(4, &json!({"version": "1"})),
    ]
}

/// The endpoints that requests get which ask for this metadata.
fn used(world: &mut World, asked: Option<&[(&str, &str)]>) -> Vec<u8> {
    let metadata: Option<LbMetadata> = asked.map(|fields| {
        let fields = fields.iter();
        fields
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect()
    });
    let mut used: Vec<u8> = (0..40)
        .filter_map(|_| {
            world.pick(&PickContext {
                metadata: metadata.as_ref(),
                ..PickContext::default()
            })
        })
        .collect();
    used.sort_unstable();
    used.dedup();
    used
}

#[test]
fn a_subset_has_the_endpoints_with_its_values() {
    let mut world = World::new(&cluster("NO_FALLBACK"), &json!([in_priority(0, &all())]));
    for (asked, expected) in [
        (Some(&[("stage", "\"prod\"")][..]), &[1, 2][..]),
        (Some(&[("stage", "\"beta\"")]), &[3]),
        // A number and a text are two values.
        (Some(&[("stage", "\"prod\""), ("version", "\"1\"")]), &[1]),
        (Some(&[("stage", "\"prod\""), ("version", "1")]), &[2]),
        // No selector has this key alone.
        (Some(&[("version", "\"1\"")]), &[]),
        (Some(&[("stage", "\"gone\"")]), &[]),
        (None, &[]),
    ] {
        assert_eq!(used(&mut world, asked), expected, "{asked:?}");
    }
}

#[test]
fn a_request_without_a_subset_falls_back() {
    for (fallback, expected) in [
        ("NO_FALLBACK", &[][..]),
        ("ANY_ENDPOINT", &[1, 2, 3, 4]),
        ("DEFAULT_SUBSET", &[1, 2]),
    ] {
        let mut world = World::new(&cluster(fallback), &json!([in_priority(0, &all())]));
        for asked in [None, Some(&[("stage", "\"gone\"")][..])] {
            assert_eq!(used(&mut world, asked), expected, "{fallback}");
        }
    }
}

#[test]
fn d63_subsets_follow_their_endpoints() {
    let mut world = World::new(&cluster("NO_FALLBACK"), &json!([in_priority(0, &all())]));
    let beta = Some(&[("stage", "\"beta\"")][..]);
    let mut more = all();
    for last in [5, 6, 7] {
        more.push(member(last, &json!({"stage": "beta"})));
        world.update(&json!([in_priority(0, &more)]));
        assert_eq!(
            used(&mut world, beta),
            (5..=last).fold(vec![3], |mut all, last| {
                all.push(last);
                all
            })
        );
    }
    world.eject(6, true);
    assert_eq!(used(&mut world, beta), [3, 5, 7]);
}

#[test]
fn what_subsets_cannot_do_is_a_finding() {
    for field in [
        "locality_weight_aware",
        "scale_locality_weight",
        "panic_mode_any",
        "list_as_any",
    ] {
        let mut cluster = cluster("ANY_ENDPOINT");
        cluster["lb_subset_config"][field] = true.into();
        assert_eq!(
            paths(policy(&cluster)),
            [format!("lb_subset_config.{field}")]
        );
    }
    let mut other = cluster("ANY_ENDPOINT");
    other["lb_subset_config"]["metadata_fallback_policy"] = "FALLBACK_LIST".into();
    assert_eq!(
        paths(policy(&other)),
        ["lb_subset_config.metadata_fallback_policy"]
    );
    for (field, value) in [
        ("fallback_policy", json!("NO_FALLBACK")),
        ("single_host_per_subset", json!(true)),
    ] {
        let mut cluster = cluster("ANY_ENDPOINT");
        cluster["lb_subset_config"]["subset_selectors"][1][field] = value;
        let path = format!("lb_subset_config.subset_selectors[1].{field}");
        assert_eq!(paths(policy(&cluster)), [path]);
    }
}
