//! Tests of the memory of a view: retired versions, and shared lists.

use super::*;
use crate::change::Change;
use crate::database::Database;

fn resource(body: u64) -> Arc<Resource> {
    Arc::new(Resource::new("a".into(), body.to_string().into()))
}

/// Gives the first names of a view a new version, whose predecessors are
/// `before`.
fn change(view: &mut View, names: usize, before: &mut [Option<Arc<Resource>>]) {
    for (nth, held) in before.iter_mut().enumerate().take(names) {
        let new = resource(view.head);
        view.record(EntryId(nth as u32), held.as_ref(), Some(&new));
        *held = Some(new);
    }
}

/// A view of some names, and their resources.
fn view_of(names: usize) -> (View, Vec<Option<Arc<Resource>>>) {
    let mut view = View::new(Scope::All, ParamsId::EMPTY);
    // A client that holds nothing yet.
    view.pin(0);
    let mut held = vec![None; names];
    change(&mut view, names, &mut held);
    (view, held)
}

/// Changes names while a client holds the old versions, which it then gives up.
fn change_once(view: &mut View, names: usize, held: &mut [Option<Arc<Resource>>]) -> usize {
    let position = view.head;
    view.pin(position);
    change(view, names, held);
    view.unpin(position);
    view.retired_versions()
}

#[test]
fn retired_versions_are_swept_when_there_are_many() {
    let (mut view, mut held) = view_of(SWEEP_AT);
    assert_eq!(
        change_once(&mut view, SWEEP_AT - 1, &mut held),
        SWEEP_AT - 1
    );
    assert_eq!(change_once(&mut view, 1, &mut held), SWEEP_AT);
    assert_eq!(change_once(&mut view, 1, &mut held), 0);
}

#[test]
fn a_view_is_not_swept_again_until_most_of_its_retired_versions_are_new() {
    const KEPT: usize = 100;
    let (mut view, mut held) = view_of(KEPT);
    // A client that is stuck.
    let stuck = view.head;
    view.pin(stuck);
    change(&mut view, KEPT, &mut held);
    assert_eq!(change_once(&mut view, 1, &mut held), KEPT);
    assert_eq!(change_once(&mut view, KEPT, &mut held), 2 * KEPT);
    let most = 2 * KEPT + SWEEP_AT;
    assert_eq!(change_once(&mut view, SWEEP_AT, &mut held), most);
    assert_eq!(change_once(&mut view, 1, &mut held), KEPT);
    view.unpin(0);
    let mut freed = view.unpin(stuck);
    freed.sort_unstable();
    assert_eq!(freed, (0..KEPT as u32).map(EntryId).collect::<Vec<_>>());
    assert_eq!(view.retired_versions(), 0);
    assert_eq!(view.history.capacity(), 0);
}

#[test]
fn a_view_that_is_split_off_has_the_same_past() {
    let (mut view, mut held) = view_of(3);
    let (at, old) = (view.head, held.clone());
    let (stays, leaves) = (SubscriberId(1), SubscriberId(2));
    view.subscribers.extend([stays, leaves]);
    view.pin(at);
    view.pin(at);
    change(&mut view, 2, &mut held);
    // A name that nobody holds comes and goes.
    let passing = resource(100);
    view.record(EntryId(7), None, Some(&passing));
    view.record(EntryId(7), Some(&passing), None);
    let forgot_at = view.head;
    let mut copy = view.split_off(ParamsId::EMPTY, &[leaves], &[at]);
    for (view, subscriber) in [(&mut view, stays), (&mut copy, leaves)] {
        assert_eq!(view.subscribers.iter().collect::<Vec<_>>(), [&subscriber]);
        assert_eq!((view.head(), view.len()), (forgot_at, 3));
        assert!(view.has_forgotten_since(forgot_at - 1));
        assert!(!view.has_forgotten_since(forgot_at));
        assert_eq!(view.retired_versions(), 2);
        for nth in 0..3 {
            let current = held[nth].as_ref();
            let found = view.resource_at(EntryId(nth as u32), at, current);
            assert_eq!(found, old[nth]);
        }
        change(view, 3, &mut held.clone());
        view.unpin(at);
        view.unpin(0);
        assert_eq!(view.retired_versions(), 0);
    }
    assert_eq!(copy.pins().count(), 0);
}

/// A database with one name, and a cursor that lists it.
fn database() -> (Database, crate::database::CursorId) {
    let mut db = Database::new();
    let type_id = db.type_id(&"t".into());
    db.apply(vec![Change::Upsert("t".into(), resource(1))])
        .unwrap();
    let stream = db.open_stream();
    let subscriber = db.add_subscriber(stream, type_id, ParamsId::EMPTY);
    let cursor = db.open_cursor(subscriber, &Scope::All);
    (db, cursor)
}

fn versions(name: &str) -> InitialVersions {
    [(name.into(), "1".into())].into_iter().collect()
}

#[test]
fn s46_a_point_that_is_much_larger_than_its_view_is_not_kept() {
    let (mut db, cursor) = database();
    for (strays, is_kept) in [
        (0, true),
        (MAX_POINT_STRAYS, true),
        (MAX_POINT_STRAYS + 1, false),
    ] {
        let versions = versions("a");
        assert!(db.resume_point(cursor, &versions).is_none());
        let names = (0..=strays).map(|nth| Name::new(&nth.to_string()));
        let point = db.add_resume_point(cursor, &versions, names.map(|n| (n, None)).collect());
        assert_eq!(point.len(), strays + 1);
        let kept = db.resume_point(cursor, &versions);
        assert_eq!(kept.is_some(), is_kept, "{strays}");
    }
}

#[test]
fn s46_the_newest_points_are_kept() {
    let (mut db, cursor) = database();
    let all = ["a", "b", "c", "d", "e", "f"].map(versions);
    for versions in &all {
        db.add_resume_point(cursor, versions, Vec::new());
    }
    let kept = all
        .each_ref()
        .map(|all| db.resume_point(cursor, all).is_some());
    let kept = kept.iter().position(|kept| *kept);
    assert_eq!(kept, Some(all.len() - MAX_RESUME_POINTS));
    let last = db.resume_point(cursor, &all[5]);
    assert!(last.is_some_and(|point| point.is_for(&all[5]) && !point.is_for(&all[4])));
}

#[test]
fn s46_a_point_knows_what_a_client_holds_and_of_which_body_nothing_is_known() {
    let (mut db, cursor) = database();
    let known = Resource::new("b".into(), "x".into());
    let unknown = Arc::new(Resource {
        body: None,
        ..Resource::new("c".into(), "".into())
    });
    let known = Arc::new(known);
    let mut held = vec![("b".into(), Some(Arc::clone(&known))), ("a".into(), None)];
    let point = db.add_resume_point(cursor, &versions("b"), held.clone());
    assert!(!point.has_unknown_bodies());
    assert_eq!(point.held_resource(&"b".into()), Some(Some(&known)));
    assert_eq!(point.held_resource(&"a".into()), Some(None));
    assert_eq!(point.held_resource(&"c".into()), None);
    // What the client lacks is added, and what the view lacks is removed.
    let changes = db.resumed_changes(cursor, &point);
    let items: Vec<_> = changes
        .items
        .iter()
        .map(|(n, r)| (n.as_str(), r.is_some()))
        .collect();
    assert_eq!(items, [("a", true), ("b", false)]);
    assert!(Arc::ptr_eq(&changes, &db.resumed_changes(cursor, &point)));
    held.push(("c".into(), Some(unknown)));
    let point = db.add_resume_point(cursor, &versions("c"), held);
    assert!(point.has_unknown_bodies());
    assert_eq!((point.len(), point.iter().count()), (3, 3));
}

#[test]
fn a_whole_set_is_made_once_for_each_form_until_the_view_changes() {
    let (mut db, cursor) = database();
    let lists = [false, true].map(|wrap| db.shared_list(cursor, wrap));
    assert!(!Arc::ptr_eq(&lists[0], &lists[1]));
    for (wrap, list) in [false, true].into_iter().zip(&lists) {
        assert!(Arc::ptr_eq(list, &db.shared_list(cursor, wrap)));
    }
    db.apply(vec![Change::Upsert("t".into(), resource(2))])
        .unwrap();
    assert!(!Arc::ptr_eq(&lists[0], &db.shared_list(cursor, false)));
}
