//! Tests of limits and invariants of a client cache.

use super::*;
use crate::moment::Moment;
use crate::params::Params;

/// A pending ACK with that many updates.
fn pending(nonce: usize, updates: usize) -> PendingAck {
    let name = |nth: usize| Name::new(&format!("{nonce}-{nth:05}"));
    let resource = |nth| Arc::new(Resource::new(name(nth), "x".into()));
    PendingAck {
        nonce: Nonce::of_number(nonce as u64),
        version: None,
        sent_at: Moment::START,
        updates: (0..updates)
            .map(|nth| Update::upsert(&resource(nth), None))
            .collect(),
        answers: Vec::new(),
        advances: Vec::new(),
        merged_nonces: Vec::new(),
        expects_nack: false,
    }
}

/// A cache to which these pending ACKs were added, by their numbers of updates.
fn with_pending(db: &mut Database, updates: impl IntoIterator<Item = usize>) -> ClientCache {
    let mut client_cache = ClientCache::new(db.type_id(&"t".into()));
    for (nonce, updates) in updates.into_iter().enumerate() {
        client_cache.add_pending_ack(db, pending(nonce, updates));
    }
    client_cache
}

fn accepted(name: &str) -> CachedResource {
    CachedResource::accepted(&Arc::new(Resource::new(name.into(), "x".into())))
}

/// Opens a wildcard cursor at the beginning of its view.
fn open_cursor(db: &mut Database, client_cache: &mut ClientCache) {
    let params = db.intern_params(Params::default());
    let stream = db.open_stream();
    let subscriber = db.add_subscriber(stream, client_cache.type_id, params);
    let id = db.open_cursor(subscriber, &Scope::All);
    client_cache.add_cursor(Cursor::new(Scope::All, id));
}

#[test]
fn pending_acks_are_merged_beyond_a_number_of_them() {
    let mut db = Database::new();
    let client_cache = with_pending(&mut db, [1; MAX_PENDING_ACKS]);
    assert_eq!(client_cache.pending_acks.len(), MAX_PENDING_ACKS);
    let client_cache = with_pending(&mut db, [1; MAX_PENDING_ACKS + 1]);
    assert_eq!(client_cache.pending_acks.len(), MAX_PENDING_ACKS);
    let oldest = &client_cache.pending_acks[0];
    assert_eq!(oldest.merged_nonces, [Nonce::of_number(0)]);
    assert_eq!(oldest.updates.len(), 2);
}

#[test]
fn pending_acks_are_merged_beyond_a_number_of_updates() {
    let mut db = Database::new();
    let client_cache = with_pending(&mut db, [1, 1, MAX_PENDING_UPDATES - 2]);
    assert_eq!(client_cache.pending_acks.len(), 3);
    let client_cache = with_pending(&mut db, [1, 1, MAX_PENDING_UPDATES - 1]);
    assert_eq!(client_cache.pending_acks.len(), 2);
    let client_cache = with_pending(&mut db, [1, MAX_PENDING_UPDATES]);
    let count = client_cache.pending_acks.len();
    assert_eq!(count, 2, "the newest response is kept apart");
}

#[test]
fn a_nack_of_a_merged_response_takes_all_that_was_merged() {
    let mut db = Database::new();
    let mut client_cache = with_pending(&mut db, [1; MAX_PENDING_ACKS + 1]);
    assert!(client_cache.take_merged(&Nonce::of_number(1)).is_none());
    let (updates, answers) = client_cache.take_merged(&Nonce::of_number(0)).unwrap();
    assert_eq!((updates.len(), answers.len()), (2, 0));
    let is_pending = |nonce| client_cache.is_pending(&Nonce::of_number(nonce));
    assert_eq!([0, 1].map(is_pending), [false, true]);
}

#[test]
fn a_name_without_a_reason_is_found() {
    let mut db = Database::new();
    let mut client_cache = ClientCache::new(db.type_id(&"t".into()));
    client_cache.record(&mut db, accepted("a"));
    assert_eq!(client_cache.check(|_| true), Ok(()));
    assert!(client_cache.check(|_| false).is_err());
    // A cursor covers it, and it is no exception.
    open_cursor(&mut db, &mut client_cache);
    assert!(client_cache.check(|_| true).is_err());
    client_cache.mark_exception(&"a".into());
    assert_eq!(client_cache.check(|_| false), Ok(()));
}

#[test]
fn a_variant_that_is_recorded_twice_is_found() {
    let mut db = Database::new();
    let mut client_cache = ClientCache::new(db.type_id(&"t".into()));
    client_cache.edit_records(&mut db, &"a".into(), |records| {
        *records = vec![accepted("a"), accepted("a")];
    });
    assert!(client_cache.check(|_| true).is_err());
    client_cache.edit_records(&mut db, &"a".into(), |records| _ = records.pop());
    assert_eq!(client_cache.check(|_| true), Ok(()));
}

#[test]
fn totals_that_do_not_agree_with_the_records_are_found() {
    let mut db = Database::new();
    let mut client_cache = ClientCache::new(db.type_id(&"t".into()));
    client_cache.record(&mut db, accepted("a"));
    client_cache.unknown_bodies += 1;
    assert!(client_cache.check(|_| true).is_err());
    client_cache.unknown_bodies -= 1;
    client_cache.fingerprint_sum ^= 1;
    assert!(client_cache.check(|_| true).is_err());
    client_cache.fingerprint_sum ^= 1;
    assert_eq!(client_cache.check(|_| true), Ok(()));
}

#[test]
fn an_exception_to_no_cursor_is_found() {
    let mut db = Database::new();
    let mut client_cache = ClientCache::new(db.type_id(&"t".into()));
    client_cache.exceptions.insert("a".into());
    assert!(client_cache.check(|_| true).is_err());
    open_cursor(&mut db, &mut client_cache);
    assert_eq!(client_cache.check(|_| true), Ok(()));
}

#[test]
fn updates_out_of_order_are_found() {
    let mut db = Database::new();
    let mut client_cache = with_pending(&mut db, [2]);
    assert_eq!(client_cache.check(|_| true), Ok(()));
    client_cache.pending_acks[0].updates.reverse();
    assert!(client_cache.check(|_| true).is_err());
}
