//! Tests of the stages of a commit: their order, their cost and their memory.

use std::collections::BTreeSet;
use std::sync::Weak;

use super::*;
use crate::fixture::put_host;
use crate::kind::{CDS, LDS, VHDS};
use crate::params::ParamsId;

fn resource(name: &str, body: &'static str) -> Arc<Resource> {
    Arc::new(Resource::new(name.into(), body.into()))
}

fn upsert(url: &str, name: &str, body: &'static str) -> Change {
    Change::Upsert(url.into(), resource(name, body))
}

fn remove(url: &str, name: &str) -> Change {
    Change::Remove(url.into(), name.into())
}

/// Applies changes in slices. Returns the names that changed, and the number of
/// slices.
fn apply(db: &mut Database, changes: Vec<Change>, budget: usize) -> (Vec<String>, usize) {
    let mut commit = Commit::new(changes).unwrap();
    let (mut told, mut slices) = (Vec::new(), 1);
    let mut tell = |changed: ChangedName<'_>| {
        let sizes = (changed.before.len(), changed.after.len());
        told.push(format!("{}{sizes:?}", changed.name));
    };
    db.end_slice();
    while commit.advance(db, budget, &mut tell).unwrap() == Progress::More {
        db.end_slice();
        slices += 1;
    }
    (told, slices)
}

#[test]
fn s52_names_are_added_by_rank_and_removed_in_reverse_after_that() {
    for budget in [1, 2, usize::MAX] {
        let mut db = Database::new();
        let before = vec![upsert(CDS, "c1", "x"), upsert(LDS, "l1", "x")];
        db.apply(before).unwrap();
        let changes = vec![
            upsert(LDS, "l2", "x"),
            remove(CDS, "c1"),
            remove(LDS, "l1"),
            upsert(CDS, "c2", "x"),
        ];
        let (told, _) = apply(&mut db, changes, budget);
        assert_eq!(told, ["c2(0, 1)", "l2(0, 1)", "l1(1, 0)", "c1(1, 0)"]);
    }
}

#[test]
fn s85_a_replaced_type_costs_its_old_and_its_new_names() {
    let replacement = || {
        let new = (3..8).map(|nth| resource(&nth.to_string(), "y"));
        vec![Change::ReplaceAll("t".into(), new.collect())]
    };
    // In one slice, each name counts once. Otherwise every old name is looked
    // up, and every new one is checked, before anything changes.
    for (budget, slices, cost) in [(10, 1, 8), (9, 3, 18), (5, 4, 18)] {
        let mut db = Database::new();
        let old = (0..5).map(|nth| upsert("t", &nth.to_string(), "x"));
        db.apply(old.collect()).unwrap();
        let before = db.work().entries;
        db.end_slice();
        let (told, made) = apply(&mut db, replacement(), budget);
        assert_eq!(told.len(), 8);
        assert_eq!(db.work().entries - before, cost, "{budget}");
        assert!((slices..=slices + 1).contains(&made), "{budget}: {made}");
        assert!(db.work().largest_slice <= 8.max(budget as u64));
    }
}

#[test]
fn names_that_were_only_requested_are_no_part_of_a_replacement() {
    let mut db = Database::cache();
    let type_id = db.type_id(&"t".into());
    let stream = db.open_stream();
    let subscriber = db.add_subscriber(stream, type_id, ParamsId::EMPTY);
    for name in ["absent", "unknown"] {
        db.subscribe(subscriber, &name.into(), ParamsId::EMPTY);
    }
    let known = vec![
        remove("t", "absent"),
        upsert("t", "old", "x"),
        upsert("t", "stays", "x"),
    ];
    db.apply(known).unwrap();
    for budget in [1, usize::MAX] {
        let new = vec![resource("new", "y"), resource("stays", "y")];
        let all = vec![Change::ReplaceAll("t".into(), new)];
        let (told, _) = apply(&mut db, all, budget);
        assert_eq!(told, ["new(0, 1)", "stays(1, 1)", "old(1, 0)"]);
        let back = vec![upsert("t", "old", "x"), remove("t", "new")];
        db.apply(back).unwrap();
        db.forget(type_id, &"new".into());
    }
}

#[test]
fn s85_a_commit_that_fits_into_one_slice_is_not_divided_by_what_its_names_bring_along() {
    let mut db = Database::new();
    let named = |name: &str| {
        let mut all = Resource::new(name.into(), "x".into());
        all.aliases = vec!["alias".into(), format!("{name} too").as_str().into()].into();
        Change::Upsert("t".into(), Arc::new(all))
    };
    let (told, slices) = apply(&mut db, vec![named("a"), named("b"), named("c")], 3);
    assert_eq!((told.len(), slices), (3, 1));
    assert!(db.work().entries > 3);
}

#[test]
fn old_contents_are_freed_between_two_slices() {
    let mut db = Database::new();
    let names = ["a", "b", "c", "d"];
    let old = names.map(|name| upsert("t", name, "x"));
    db.apply(old.to_vec()).unwrap();
    drop(old);
    let type_id = db.type_id(&"t".into());
    let kept: Vec<Weak<Resource>> = db.resources(type_id).map(Arc::downgrade).collect();
    let alive = || kept.iter().filter(|old| old.strong_count() > 0).count();
    let new = names.map(|name| upsert("t", name, "y"));
    let mut commit = Commit::new(new.to_vec()).unwrap();
    let mut told = BTreeSet::new();
    let mut advance = |commit: &mut Commit, db: &mut Database| {
        let progress = commit.advance(db, 2, |changed| {
            told.insert(changed.name.to_string());
        });
        (progress.unwrap(), told.len())
    };
    while advance(&mut commit, &mut db).1 == 0 {
        commit.free_memory();
    }
    // Others would wait for their memory to be freed.
    assert_eq!(alive(), 4);
    commit.free_memory();
    assert_eq!(alive(), 2);
    assert_eq!(advance(&mut commit, &mut db).1, 4);
    assert_eq!(alive(), 2);
    commit.free_memory();
    assert_eq!(alive(), 0);
}

fn host(name: &str, domain: &str) -> Change {
    put_host(name, &[domain], None, &[])
}

#[test]
fn a_domain_that_is_given_twice_is_found_although_memory_is_freed_meanwhile() {
    for budget in [1, usize::MAX] {
        let mut db = Database::new();
        let changes = vec![
            host("r/a", "a.com"),
            host("r/b", "b.com"),
            host("r/c", "a.com"),
        ];
        let mut commit = Commit::new(changes).unwrap();
        let refused = loop {
            match commit.advance(&mut db, budget, |_| panic!("nothing changes")) {
                Ok(progress) => assert_eq!(progress, Progress::More),
                Err(refused) => break refused,
            }
            commit.free_memory();
        };
        assert!(matches!(refused, ApplyError::Domain { domain, .. } if domain == "a.com"));
        assert!(db.is_empty());
    }
}

#[test]
fn s85_domains_are_exchanged_however_many_slices_there_are() {
    for budget in [1, usize::MAX] {
        let mut db = Database::new();
        let old = ["r/a a", "r/b b", "r/c c", "r/d d"];
        let hosts = |pairs: [&str; 4]| -> Vec<Change> {
            let pairs = pairs.iter().filter_map(|pair| pair.split_once(' '));
            pairs.map(|(name, domain)| host(name, domain)).collect()
        };
        db.apply(hosts(old)).unwrap();
        let mut new = hosts(["r/a b", "r/b a", "r/c d", "r/e e"]);
        new.push(remove(VHDS, "r/d"));
        let (told, _) = apply(&mut db, new, budget);
        let told: BTreeSet<_> = told.into_iter().collect();
        let expected = [
            "r/a(1, 1)",
            "r/b(1, 1)",
            "r/c(1, 1)",
            "r/d(1, 0)",
            "r/e(0, 1)",
        ];
        assert_eq!(told, expected.map(String::from).into());
        assert_eq!(db.check(), Ok(()));
    }
}

/// Applies changes in slices. Returns the names that changed, without their
/// route configuration, with a bar between two slices.
fn steps(db: &mut Database, changes: Vec<Change>, budget: usize) -> String {
    let mut commit = Commit::new(changes).unwrap();
    let mut steps = String::new();
    let mut advance = |steps: &mut String| {
        let tell = |changed: ChangedName<'_>| steps.push_str(&changed.name.as_str()[2..]);
        commit.advance(db, budget, tell).unwrap()
    };
    while advance(&mut steps) == Progress::More {
        steps.push('|');
    }
    steps.trim_matches('|').to_owned()
}

fn hosts<const N: usize>(pairs: [(&str, &str); N]) -> Vec<Change> {
    let pairs = pairs.into_iter();
    pairs.map(|(name, domain)| host(name, domain)).collect()
}

#[test]
fn s85_a_group_waits_for_a_slice_with_room_or_has_one_of_its_own() {
    let old = [("r/a", "a"), ("r/b", "b"), ("r/c", "c"), ("r/d", "d")];
    let new = [("r/a", "A"), ("r/b", "c"), ("r/c", "b"), ("r/d", "D")];
    // Every name is checked before one changes.
    for (budget, expected) in [(1, "a|bc|d"), (2, "a|bc|d"), (3, "a|bcd")] {
        let mut db = Database::new();
        db.apply(hosts(old)).unwrap();
        assert_eq!(steps(&mut db, hosts(new), budget), expected, "{budget}");
    }
}

#[test]
fn s85_a_removed_virtual_host_goes_with_the_one_that_takes_its_domain() {
    let mut db = Database::new();
    let old = [
        ("r/v", "v"),
        ("r/w", "w"),
        ("r/x", "x"),
        ("r/y", "y"),
        ("r/z", "z"),
    ];
    db.apply(hosts(old)).unwrap();
    let new = hosts([("r/a", "a"), ("r/b", "y"), ("r/c", "c")]);
    let new = new.into_iter().filter_map(|change| match change {
        Change::Upsert(_, resource) => Some(resource),
        _ => None,
    });
    let all = vec![Change::ReplaceAll(VHDS.into(), new.collect())];
    assert_eq!(steps(&mut db, all, 1), "a|by|c|v|w|x|z");
    assert_eq!(db.check(), Ok(()));
}
