//! Sinks that say they hold very many resources: their versions are compared a
//! slice at a time, and each gets exactly what it lacks (S85).

use std::collections::BTreeMap;

use super::*;
use crate::database::SLICE;

const LISTED: usize = 5 * SLICE;

fn listed(n: usize, version: &str) -> Change {
    Change::Upsert("A".into(), resource(&format!("ns/{n}@{version}")))
}

fn gone(n: usize) -> Change {
    Change::Remove("A".into(), format!("ns/{n}").as_str().into())
}

/// Applies changes as slices of their own.
fn apply(source: &mut Source, changes: impl IntoIterator<Item = Change>) {
    for change in changes {
        source.db.apply(vec![change]).unwrap();
        source.db.end_slice();
    }
}

/// A source of many resources at version 1, which has another sink.
fn source() -> Source {
    let mut source = Source::new(Served::Any);
    let mut other = McpSource::new(&mut source.db, Served::Any);
    other
        .handle_request(&mut source.db, first("A", true))
        .unwrap();
    apply(&mut source, (0..LISTED).map(|n| listed(n, "1")));
    source
}

/// What a sink holds, by name.
type Contents = BTreeMap<String, String>;

fn ask(holds: &Contents) -> RequestResources {
    let versions = holds.iter();
    let versions = versions.map(|(name, version)| (name.as_str().into(), version.as_str().into()));
    RequestResources {
        initial_versions: versions.collect(),
        ..first("A", true)
    }
}

/// Applies an update to what a sink holds; nothing of it is in vain.
fn take(holds: &mut Contents, response: &Resources) {
    let ResourcesUpdate::Incremental { resources, removed } = &response.update else {
        panic!("{}", words(response));
    };
    for resource in resources {
        let version = resource.version.to_string();
        let before = holds.insert(resource.name.as_str().to_owned(), version.clone());
        assert_ne!(before, Some(version), "{}", resource.name);
    }
    for name in removed {
        assert!(holds.remove(name.as_str()).is_some(), "{name}");
    }
    let names: Vec<_> = resources.iter().map(|resource| &resource.name).collect();
    assert!(names.is_sorted());
}

fn contents(source: &Source) -> Contents {
    let type_id = source.db.find_type(&"A".into()).unwrap();
    let all = source.db.resources(type_id);
    let all = all.map(|r| (r.name.as_str().to_owned(), r.version.to_string()));
    all.collect()
}

/// Names that the source has, at this version and at another, and names that are
/// gone.
fn claim() -> Contents {
    let name = |n: usize| format!("ns/{n}");
    let same = (0..2 * SLICE).map(|n| (name(n), "1".to_owned()));
    let other = (2 * SLICE..3 * SLICE).map(|n| (name(n), "0".to_owned()));
    let gone = (0..7 * SLICE).map(|n| (format!("gone/{n}"), "1".to_owned()));
    same.chain(other).chain(gone).collect()
}

/// Polls until there is a response. `between` is called between two polls.
fn poll(source: &mut Source, mut between: impl FnMut(&mut Source, usize)) -> Resources {
    for nth in 1.. {
        let response = source.machine.poll_resources(&mut source.db);
        source.db.end_slice();
        assert_eq!(response.is_none(), source.machine.is_comparing());
        match response {
            Some(response) => return response,
            None => between(source, nth),
        }
    }
    unreachable!()
}

#[test]
fn s85_versions_that_a_sink_holds_are_compared_a_slice_at_a_time() {
    let mut source = source();
    let mut holds = claim();
    source.handle(ask(&holds));
    source.db.end_slice();
    let before = source.db.work();
    let mut polls = 1;
    let response = poll(&mut source, |_, nth| polls = nth + 1);
    take(&mut holds, &response);
    assert_eq!(holds, contents(&source));
    assert_eq!(polls, (10 * SLICE + LISTED) / SLICE);
    let work = source.db.work();
    assert_eq!(work.entries - before.entries, (10 * SLICE + LISTED) as u64);
    assert_eq!(work.largest_slice, SLICE as u64);
    source.handle(ack(&response, true));
    source.is_silent();
    assert!(source.machine.is_current(&source.db));
}

#[test]
fn m2_what_changes_while_versions_are_compared_is_the_next_update() {
    let mut source = source();
    let state = contents(&source);
    let mut holds = claim();
    source.handle(ask(&holds));
    // Every kind of change, of names that were visited and that were not.
    let response = poll(&mut source, |source, nth| {
        let n = 300 * nth;
        let back = |n| [gone(n), listed(n, "1")];
        let changes = [listed(n, "2"), gone(n + 1), listed(LISTED + n, "1")];
        apply(source, changes.into_iter().chain(back(n + 2)));
        apply(source, [gone(LISTED - nth)]);
        apply(
            source,
            [gone(LISTED + n)].into_iter().filter(|_| nth % 2 == 0),
        );
        assert_eq!(source.db.check(), Ok(()));
    });
    take(&mut holds, &response);
    assert_eq!(holds, state);
    source.handle(ack(&response, true));
    let next = source.poll().unwrap();
    take(&mut holds, &next);
    assert_eq!(holds, contents(&source));
    source.handle(ack(&next, true));
    source.is_silent();
    let type_id = source.db.find_type(&"A".into()).unwrap();
    assert_eq!(source.db.memory_counts(type_id).retired, 0);
}

#[test]
fn m2_other_collections_do_not_wait_for_a_comparison() {
    let mut source = source();
    source.set("B", "b@1");
    source.handle(ask(&claim()));
    source.handle(first("B", false));
    source.sends("B 1 full: b@1");
    assert!(source.machine.is_comparing());
    let response = poll(&mut source, |_, _| ());
    assert_eq!(response.collection, "A".into());
}

#[test]
fn m13_a_conversation_that_begins_anew_gives_up_its_comparison() {
    let mut source = source();
    source.handle(ask(&claim()));
    source.is_silent();
    assert!(source.machine.take_outdated().is_empty());
    let mut holds: Contents = [("ns/7".to_owned(), "0".to_owned())].into();
    assert_eq!(source.handle(ask(&holds)), Handled::Restarted);
    assert_eq!(source.db.check(), Ok(()));
    let outdated = source.machine.take_outdated();
    assert!(outdated.len() > claim().len(), "{outdated:?}");
    let response = poll(&mut source, |_, _| ());
    take(&mut holds, &response);
    assert_eq!(holds, contents(&source));
    // An ACK makes the rest outdated, and so does the end of the stream.
    source.handle(ack(&response, true));
    assert_eq!(source.machine.take_outdated().len(), 1);
    source.handle(ask(&claim()));
    source.is_silent();
    assert!(source.machine.claimed() > 0);
    let outdated = source.machine.close(&mut source.db);
    assert!(outdated.len() > claim().len());
    assert_eq!(source.db.check(), Ok(()));
}

#[test]
fn m5_a_rejected_state_is_compared_again_when_it_is_another() {
    let mut source = source();
    let mut holds = claim();
    source.handle(ask(&holds));
    let response = poll(&mut source, |_, _| ());
    source.handle(nack(&response, true));
    source.is_silent();
    assert!(!source.machine.is_comparing());
    apply(&mut source, [gone(3)]);
    let response = poll(&mut source, |_, _| ());
    take(&mut holds, &response);
    assert_eq!(holds, contents(&source));
}
