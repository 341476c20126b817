//! Edits of several origins, settled with each other.

use std::collections::BTreeSet;
use std::io::Cursor;

use trunkline_core::change::Change;
use trunkline_core::kind;

use super::*;

/// A resource in text: its type, its name, other fields.
fn resource(type_url: &str, fields: &str) -> String {
    format!("- {{'@type': {type_url}, {fields}}}\n")
}

fn cluster(name: &str) -> String {
    resource(kind::CDS, &format!("name: {name}"))
}

/// A cluster whose contents differ with `edition`.
fn edition(name: &str, edition: usize) -> String {
    resource(
        kind::CDS,
        &format!("name: {name}, alt_stat_name: e{edition}"),
    )
}

/// A route configuration with these virtual hosts, each with a domain of its
/// name.
fn route(name: &str, hosts: &[&str]) -> String {
    let hosts = hosts
        .iter()
        .map(|host| format!("{{name: {host}, domains: [{host}]}}"));
    let hosts: Vec<String> = hosts.collect();
    let fields = format!(
        "name: {name}, vhds: {{config_source: {{ads: {{}}}}}}, virtual_hosts: [{}]",
        hosts.join(", ")
    );
    resource(kind::RDS, &fields)
}

fn host(name: &str) -> String {
    resource(kind::VHDS, &format!("name: {name}, domains: [other]"))
}

fn document(resources: &[String]) -> Document {
    let text = format!("resources:\n{}", resources.concat());
    let options = crate::wire::text_options();
    let decoded = decode(&"".into(), Form::ByName, Cursor::new(text), &options).unwrap();
    assert_eq!(decoded.errors, []);
    decoded.document
}

fn write(resources: &[String]) -> ResourceEdit {
    ResourceEdit::of_document(document(resources))
}

fn remove(type_url: &str, name: &str) -> ResourceEdit {
    ResourceEdit {
        removals: vec![Removal {
            type_url: type_url.into(),
            name: name.into(),
            variant: None,
        }],
        ..write(&[])
    }
}

/// A set, and the changes of the last settlement as text.
#[derive(Default)]
struct Fixture {
    set: ContentSet,
    dangling: Dangling,
    guard: Guard,
}

impl Fixture {
    fn propose(
        &mut self,
        origin: &str,
        edit: ResourceEdit,
        effect: Effect,
    ) -> (Vec<String>, Settlement<()>) {
        let mut changes = Vec::new();
        let proposal = Proposal {
            origin,
            edits: vec![Edit::Resources(edit)],
            dangling: self.dangling,
            is_complete: true,
            effect,
            guard: self.guard,
        };
        let settlement = self.set.settle(proposal, |applied| {
            changes = applied.iter().map(describe).collect();
            Ok(())
        });
        changes.sort();
        (changes, settlement)
    }

    /// Settles an edit that must be accepted. Returns its changes.
    fn good(&mut self, origin: &str, edit: ResourceEdit) -> Vec<String> {
        let (changes, settlement) = self.propose(origin, edit, Effect::Applied);
        let rejections = settlement.rejections;
        assert!(rejections.is_empty(), "{:?}", rejections[0].findings);
        changes
    }

    /// Settles an edit that must be rejected, and changes nothing. Returns the
    /// first reason.
    fn bad(&mut self, origin: &str, edit: ResourceEdit) -> String {
        let before = self.contents();
        let (changes, settlement) = self.propose(origin, edit, Effect::Applied);
        assert_eq!(changes, [""; 0]);
        assert_eq!(self.contents(), before);
        settlement.rejections[0].findings[0].to_string()
    }

    fn contents(&self) -> BTreeSet<String> {
        let origins = ["a", "b"];
        let all = origins.iter().flat_map(|origin| {
            let resources = self.set.resources(origin).into_iter();
            resources.map(move |(_, r)| format!("{origin}: {} {}", r.name, r.version))
        });
        all.collect()
    }
}

fn describe(change: &Change) -> String {
    match change {
        Change::Upsert(_, resource) => format!("+{}", resource.name),
        Change::RemoveVariant(_, name, _) => format!("-{name}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn within_an_origin_the_last_wins_and_only_changes_count() {
    let mut fixture = Fixture::default();
    let both = write(&[cluster("x"), cluster("yy")]);
    assert_eq!(fixture.good("a", both), ["+x", "+yy"]);
    let again = write(&[cluster("x"), edition("yy", 2)]);
    assert_eq!(fixture.good("a", again), ["+yy"]);
    assert_eq!(fixture.good("a", remove(kind::CDS, "x")), ["-x"]);
    let one = ResourceEdit {
        replaces_origin: true,
        ..write(&[cluster("z")])
    };
    assert_eq!(fixture.good("a", one), ["+z", "-yy"]);
}

#[test]
fn a_name_belongs_to_one_origin_until_another_takes_it_over() {
    let mut fixture = Fixture::default();
    fixture.good("a", write(&[cluster("x"), cluster("yy")]));
    let reason = fixture.bad("b", write(&[cluster("w"), edition("x", 2)]));
    assert!(
        reason.contains("cluster \"x\" belongs to origin \"a\", at origin a"),
        "{reason}"
    );
    let over = ResourceEdit {
        takes_over: true,
        ..write(&[edition("x", 2)])
    };
    assert_eq!(fixture.good("b", over), ["+x"]);
    // Now it is the other's.
    let reason = fixture.bad("a", remove(kind::CDS, "x"));
    assert!(reason.contains("belongs to origin \"b\""), "{reason}");
    let none = ResourceEdit {
        replaces_origin: true,
        ..write(&[])
    };
    assert_eq!(fixture.good("a", none), ["-yy"]);
    assert_eq!(fixture.good("b", remove(kind::CDS, "x")), ["-x"]);
}

#[test]
fn virtual_hosts_go_with_the_route_configuration_that_they_came_with() {
    let mut fixture = Fixture::default();
    let all = write(&[route("r", &["a", "b", "c"])]);
    assert_eq!(fixture.good("a", all), ["+r", "+r/a", "+r/b", "+r/c"]);
    let fewer = write(&[route("r", &["a", "b"])]);
    assert_eq!(fixture.good("a", fewer), ["-r/c"]);
    // One that is written on its own stays.
    assert_eq!(fixture.good("a", write(&[host("r/b")])), ["+r/b"]);
    assert_eq!(fixture.good("a", write(&[route("r", &["a"])])), [""; 0]);
    let (changes, settlement) = fixture.propose("a", write(&[route("r", &[])]), Effect::Applied);
    assert_eq!(changes, [""; 0]);
    let warning = settlement.warnings[0].to_string();
    assert!(
        warning.contains("the one that came with it stays"),
        "{warning}"
    );
    assert_eq!(fixture.good("a", remove(kind::RDS, "r")), ["-r", "-r/a"]);
    assert_eq!(fixture.good("a", remove(kind::VHDS, "r/b")), ["-r/b"]);
}

/// A cluster for the clients of production that a condition of its own leaves to
/// some of them.
fn production(when: Option<&str>) -> String {
    let when = when
        .map(|when| format!(", metadata: {{filter_metadata: {{trunkline: {{when: {when:?}}}}}}}"));
    let cluster = format!(
        "{{'@type': {}, name: x{}}}",
        kind::CDS,
        when.unwrap_or_default()
    );
    let wrapper = "name: x, resource_name: {name: x, dynamic_parameter_constraints: 'env=prod'}";
    let wrapped = format!("{wrapper}, resource: {cluster}");
    resource(
        "type.googleapis.com/envoy.service.discovery.v3.Resource",
        &wrapped,
    )
}

#[test]
fn what_conditions_made_of_a_variant_goes_with_that_variant() {
    let constraints = |fixture: &Fixture| {
        let all = fixture.set.resources("a").into_iter();
        let all = all.map(|(_, r)| r.constraints.as_ref().map(ToString::to_string));
        all.flatten().collect::<Vec<_>>().join("; ")
    };
    let written = [
        (Some("version=v1"), "env=prod AND version=v1"),
        (None, "env=prod"),
        (Some("version=v2"), "env=prod AND version=v2"),
        // For nobody.
        (Some("env=test"), ""),
        (Some("version=v1"), "env=prod AND version=v1"),
    ];
    let mut fixture = Fixture::default();
    for (when, expected) in written {
        fixture.good("a", write(&[production(when)]));
        assert_eq!(constraints(&fixture), expected, "{when:?}");
    }
    let removal = Removal {
        type_url: kind::CDS.into(),
        name: "x".into(),
        variant: Some(Some("env=prod".parse().unwrap())),
    };
    let other = Removal {
        variant: Some(Some("env=test".parse().unwrap())),
        ..removal.clone()
    };
    for (removal, left) in [(other, "env=prod AND version=v1"), (removal, "")] {
        let removals = vec![removal];
        let edit = ResourceEdit {
            removals,
            ..write(&[])
        };
        fixture.good("a", edit);
        assert_eq!(constraints(&fixture), left);
    }
}

#[test]
fn a_reference_that_would_dangle_rejects_whoever_makes_it_so() {
    let mut fixture = Fixture {
        dangling: Dangling::Refuse,
        ..Fixture::default()
    };
    let cluster = resource(
        kind::CDS,
        "name: e, type: EDS, eds_cluster_config: {eds_config: {ads: {}}}",
    );
    let reason = fixture.bad("a", write(std::slice::from_ref(&cluster)));
    assert!(reason.contains("refers to endpoints \"e\""), "{reason}");
    let endpoints = resource(kind::EDS, "cluster_name: e");
    fixture.good("b", write(&[endpoints]));
    fixture.good("a", write(&[cluster]));
    let reason = fixture.bad("b", remove(kind::EDS, "e"));
    assert!(
        reason.contains("no longer has endpoints \"e\", to which cluster \"e\""),
        "{reason}"
    );
    fixture.good("a", remove(kind::CDS, "e"));
    fixture.good("b", remove(kind::EDS, "e"));
}

#[test]
fn a_change_that_removes_most_of_a_type_is_held_until_it_is_confirmed() {
    let mut fixture = Fixture {
        guard: Guard::On,
        ..Fixture::default()
    };
    let clusters: Vec<String> = (0..10).map(|n| cluster(&format!("c{n}"))).collect();
    fixture.good("a", write(&clusters));
    let replace = |clusters: &[String]| ResourceEdit {
        replaces_origin: true,
        ..write(clusters)
    };
    // Half of them may go.
    assert_eq!(fixture.good("a", replace(&clusters[..5])).len(), 5);
    // Of fewer than ten, all.
    assert_eq!(fixture.good("a", replace(&[])).len(), 5);
    fixture.good("a", write(&clusters));
    let reason = fixture.bad("a", replace(&clusters[..4]));
    let hash = reason.rsplit(' ').next().unwrap().to_owned();
    assert!(reason.contains("would remove 6 of 10 clusters"), "{reason}");
    // The hash is of what is removed, in whichever process.
    let mut other = Fixture {
        guard: Guard::On,
        ..Fixture::default()
    };
    other.good("b", write(&clusters));
    let same = other.bad("b", replace(&clusters[..4]));
    assert!(same.ends_with(&hash), "{same}");
    // It confirms no other change, and outlives those that need none.
    fixture.set.confirm(&hash);
    fixture.bad("a", replace(&clusters[..3]));
    fixture.good("a", write(&[edition("c9", 2)]));
    assert_eq!(fixture.good("a", replace(&clusters[..4])).len(), 6);
    // All of them under other names are most of them, too.
    fixture.good("a", write(&clusters));
    let others: Vec<String> = (0..10).map(|n| cluster(&format!("d{n}"))).collect();
    fixture.bad("a", replace(&others));
}

#[test]
fn a_secret_that_was_not_shown_is_refused_wherever_it_comes_from() {
    let text = format!(
        "resources:\n{}{}",
        cluster("c"),
        resource(kind::CDS, "name: d, alt_stat_name: '[redacted]'")
    );
    let options = crate::wire::text_options();
    let decode = |text: &str| {
        let source = Cursor::new(text.to_owned());
        decode(&"a.yaml".into(), Form::ByName, source, &options).unwrap()
    };
    let decoded = decode(&text);
    let errors: Vec<String> = decoded.errors.iter().map(ToString::to_string).collect();
    assert_eq!(
        errors,
        [
            "a.yaml:3:3: resources[1]: holds \"[redacted]\", which stands for a secret that was not \
          shown; put the secret in"
        ]
    );
    assert_eq!(decode(&text.replace("redacted", "other")).errors, []);
}

#[test]
fn a_document_may_say_that_it_removes_much() {
    let mut fixture = Fixture {
        guard: Guard::On,
        ..Fixture::default()
    };
    let clusters: Vec<String> = (0..10).map(|n| cluster(&format!("c{n}"))).collect();
    fixture.good("a", write(&clusters));
    let replace = ResourceEdit {
        replaces_origin: true,
        ..write(&[])
    };
    fixture.bad("a", replace);
    let mut document = document(&[]);
    document.allow_removal = true;
    let replace = ResourceEdit {
        replaces_origin: true,
        ..ResourceEdit::of_document(document)
    };
    assert_eq!(fixture.good("a", replace).len(), 10);
}

/// The names and versions of contents.
fn without_origins(contents: &BTreeSet<String>) -> BTreeSet<&str> {
    let lines = contents.iter().filter_map(|line| line.split_once(": "));
    lines.map(|(_, resource)| resource).collect()
}

/// An edit changes contents if it is applied and has changes, and else leaves
/// all as it was.
#[test]
fn random_edits_change_what_they_say_or_nothing() {
    for seed in 0..60 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut fixture = Fixture::default();
        for _ in 0..40 {
            let origin = ["a", "b"][rng.usize(..2)];
            let name = ["x", "yy", "z"][rng.usize(..3)];
            let edit = match rng.usize(..6) {
                0 => remove(kind::CDS, name),
                1 => remove(kind::RDS, "r"),
                2 => write(&[route("r", &["a", "b", "c"][..rng.usize(..4)])]),
                3 => write(&[host(["r/a", "r/b", "r/d"][rng.usize(..3)])]),
                _ => write(&[edition(name, rng.usize(..3))]),
            };
            let edit = ResourceEdit {
                takes_over: rng.bool(),
                replaces_origin: rng.usize(..8) == 0,
                ..edit
            };
            let before = fixture.contents();
            let effect = [Effect::Applied, Effect::Rehearsed][rng.usize(..2)];
            let (changes, settlement) = fixture.propose(origin, edit, effect);
            let after = fixture.contents();
            if effect == Effect::Rehearsed || !settlement.rejections.is_empty() {
                assert_eq!(after, before, "{seed}");
            }
            // A name that is taken over as it is changes its origin only.
            let is_same = without_origins(&after) == without_origins(&before);
            let is_applied = effect == Effect::Applied && !changes.is_empty();
            assert_eq!(is_same, !is_applied, "{seed}: {changes:?}");
            assert_eq!(
                without_origins(&after).len(),
                after.len(),
                "{seed}: two origins"
            );
        }
    }
}
