//! Streams, demand and dirty names.

use super::super::Scope;
use super::*;

#[test]
fn a_stream_that_ended_is_not_woken_and_its_slot_is_used_again() {
    let mut db = Database::new();
    let url = "t".into();
    let type_id = db.type_id(&url);
    let [first, second] = [(); 2].map(|()| {
        let stream = db.open_stream();
        let subscriber = db.add_subscriber(stream, type_id, ParamsId::EMPTY);
        db.subscribers.wake(subscriber);
        db.subscribers.wake(subscriber);
        db.remove_subscriber(subscriber);
        stream
    });
    db.close_stream(first);
    let third = db.open_stream();
    assert!(third != first && third != second);
    assert_eq!(db.take_woken_streams(), [second]);
    assert_eq!(db.take_woken_streams(), []);
    assert_eq!(db.open_stream(), first);
    db.close_stream(second);
    assert_eq!(db.open_stream(), second);
}

#[test]
fn demand_changes_are_recorded_while_somebody_watches() {
    let mut db = Database::new();
    let type_id = db.type_id(&"t".into());
    let stream = db.open_stream();
    let [one, two] = [(); 2].map(|()| db.add_subscriber(stream, type_id, ParamsId::EMPTY));
    let name = Name::new("a");
    let change = |change| [(type_id, Selector::Name(name.clone()), change)];
    let entry = db.subscribe(one, &name, ParamsId::EMPTY);
    assert_eq!(db.take_demand_changes().count(), 0);
    db.watch_demand();
    db.subscribe(two, &name, ParamsId::EMPTY);
    db.unsubscribe(one, entry, ParamsId::EMPTY);
    assert_eq!(db.take_demand_changes().count(), 0);
    db.unsubscribe(two, entry, ParamsId::EMPTY);
    assert!(db.take_demand_changes().eq(change(DemandChange::Ended)));
    db.subscribe(one, &name, ParamsId::EMPTY);
    db.watch_demand();
    assert!(db.take_demand_changes().eq(change(DemandChange::Started)));
    assert_eq!(db.take_demand_changes().count(), 0);
}

#[test]
fn opposite_demand_changes_cancel_out() {
    let mut db = Database::cache();
    let type_id = db.type_id(&"t".into());
    let stream = db.open_stream();
    let one = db.add_subscriber(stream, type_id, ParamsId::EMPTY);
    let cursor = db.open_cursor(one, &Scope::All);
    db.close_cursor(cursor);
    assert_eq!(db.take_demand_changes().count(), 0);
    let cursor = db.open_cursor(one, &Scope::All);
    assert!(
        db.take_demand_changes()
            .eq([(type_id, Selector::Wildcard, DemandChange::Started)])
    );
    db.close_cursor(cursor);
    assert!(
        db.take_demand_changes()
            .eq([(type_id, Selector::Wildcard, DemandChange::Ended)])
    );
}

#[test]
fn open_streams_have_indexes_of_their_own() {
    let mut db = Database::new();
    let streams = [(); 3].map(|()| db.open_stream());
    assert_eq!(streams.map(StreamId::index), [0, 1, 2]);
    db.close_stream(streams[1]);
    assert_eq!(db.open_stream().index(), 1);
}

#[test]
fn s85_dirty_names_are_taken_some_at_a_time() {
    let mut db = Database::new();
    let type_id = db.type_id(&"t".into());
    let stream = db.open_stream();
    let subscriber = db.add_subscriber(stream, type_id, ParamsId::EMPTY);
    for nth in 0..10 {
        let name = Name::new(&nth.to_string());
        let entry = db.subscribe(subscriber, &name, ParamsId::EMPTY);
        db.subscribers
            .mark_dirty(subscriber, entry, ParamsId::EMPTY);
    }
    assert_eq!(db.dirty(subscriber).count(), 10);
    let mut taken = [4, 4, 4, 4].map(|most| db.take_dirty(subscriber, most));
    assert_eq!(taken.each_ref().map(Vec::len), [4, 4, 2, 0]);
    let all: HashSet<_> = taken.iter_mut().flat_map(std::mem::take).collect();
    assert_eq!(all.len(), 10);
}

#[test]
fn a_scope_is_demanded_from_its_first_cursor_to_its_last() {
    let mut db = Database::cache();
    let type_id = db.type_id(&"t".into());
    let stream = db.open_stream();
    let one = db.add_subscriber(stream, type_id, ParamsId::EMPTY);
    let two = db.add_subscriber(stream, type_id, ParamsId::EMPTY);
    let cursors = [one, two].map(|id| db.open_cursor(id, &Scope::All));
    let change = |change| [(type_id, Selector::Wildcard, change)];
    assert!(db.take_demand_changes().eq(change(DemandChange::Started)));
    db.close_cursor(cursors[0]);
    assert_eq!(db.take_demand_changes().count(), 0);
    db.close_cursor(cursors[1]);
    assert!(db.take_demand_changes().eq(change(DemandChange::Ended)));
    db.remove_subscriber(one);
    db.remove_subscriber(two);
    assert_eq!(db.subscribers.list.len(), 0);
}
