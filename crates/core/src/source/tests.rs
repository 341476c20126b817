//! Tests of a type stream's private state.

use super::client_cache::{Update, variant_of};
use super::*;
use crate::change::Change;
use crate::database::Scope;
use crate::kind;
use crate::message::InitialVersions;
use crate::params::Params;

/// A database with that many clusters.
fn filled(count: usize) -> Database {
    let mut db = Database::new();
    let upsert = |nth| Change::Upsert(kind::CDS.into(), cluster(nth));
    db.apply((0..count).map(upsert).collect()).unwrap();
    db
}

fn cluster(nth: usize) -> Arc<Resource> {
    Arc::new(Resource::new(name(nth), "body".into()))
}

fn name(nth: usize) -> Name {
    Name::new(&format!("c{nth:04}"))
}

/// The clusters of a client without subscriptions.
fn type_stream(db: &mut Database, mode: Mode) -> TypeStream {
    let url = TypeUrl::from(kind::CDS);
    let config = TypeStreamConfig {
        mode,
        dialect: Dialect::Standard,
        supports_resource_errors: false,
        denied: false,
        withholds_keys: false,
        params: db.intern_params(Params::default()),
    };
    let (stream, type_id) = (db.open_stream(), db.type_id(&url));
    TypeStream::new(db, stream, &url, type_id, config)
}

/// A client that holds all clusters by a wildcard, and has the first ones as
/// exceptions that agree with it.
fn with_exceptions(db: &mut Database, count: usize) -> TypeStream {
    let mut clusters = type_stream(db, Mode::Delta);
    clusters.subscribe_scope(db, &Scope::All, &InitialVersions::default());
    let id = clusters.client_cache.cursors()[0].id;
    let cursor = clusters.client_cache.cursor_mut(id).unwrap();
    cursor.move_to_head(db);
    for nth in 0..count {
        clusters.client_cache.make_exception(db, &name(nth));
    }
    assert_eq!(clusters.client_cache.exceptions().len(), count);
    clusters
}

/// A response that has no acknowledgement.
fn pending(nonce: u64, updates: Vec<Update>) -> PendingAck {
    PendingAck {
        nonce: Nonce::of_number(nonce),
        version: Some(Version::of_hash(nonce.into())),
        sent_at: Moment::START,
        updates,
        answers: Vec::new(),
        advances: Vec::new(),
        merged_nonces: Vec::new(),
        expects_nack: false,
    }
}

/// The reasons for which an exception is kept, each of which may have many
/// names.
const REASONS: [fn(&mut TypeStream, usize); 4] = [
    |clusters, nth| _ = clusters.dirty.insert(name(nth)),
    |clusters, nth| _ = clusters.deferred.insert(name(nth)),
    |clusters, nth| {
        let nacked = (cluster(nth).version.clone(), name(nth));
        clusters.quarantine.insert((name(nth), None), nacked);
    },
    |clusters, nth| {
        let nacked = (cluster(nth).version.clone(), name(nth));
        clusters.suspects.insert((name(nth), None), nacked);
    },
];

#[test]
fn an_exception_that_agrees_with_its_cursor_goes_unless_it_has_a_reason() {
    let mut db = filled(100);
    let mut clusters = with_exceptions(&mut db, 100);
    for (nth, reason) in REASONS.iter().enumerate() {
        reason(&mut clusters, nth);
    }
    let params = clusters.params;
    clusters.subscribe(&mut db, &name(4), params, &InitialVersions::default());
    clusters.dirty.remove(&name(4));

    clusters.drop_redundant_exceptions(&mut db);

    let left: Vec<Name> = (0..=REASONS.len()).map(name).collect();
    let exceptions: Vec<Name> = clusters.client_cache.exceptions().iter().cloned().collect();
    assert_eq!(exceptions, left);
    assert_eq!(clusters.client_cache.records().count(), left.len());
}

#[test]
fn exceptions_go_although_many_others_have_reasons() {
    for (index, first) in REASONS.iter().enumerate() {
        for second in &REASONS[index + 1..] {
            let mut db = filled(100);
            let mut clusters = with_exceptions(&mut db, 100);
            (0..10).for_each(|nth| first(&mut clusters, nth));
            (10..20).for_each(|nth| second(&mut clusters, nth));
            clusters.drop_redundant_exceptions(&mut db);
            assert_eq!(clusters.client_cache.exceptions().len(), 20);
        }
    }
}

#[test]
fn the_few_exceptions_without_a_reason_stay_while_nearly_all_have_one() {
    for (exceptions, left) in [(80, 80), (90, 90), (91, 80), (100, 80)] {
        let mut db = filled(100);
        let mut clusters = with_exceptions(&mut db, exceptions);
        (0..80).for_each(|nth| REASONS[2](&mut clusters, nth));
        clusters.drop_redundant_exceptions(&mut db);
        assert_eq!(clusters.client_cache.exceptions().len(), left);
    }
}

#[test]
fn a_record_that_nothing_asks_for_is_found() {
    let mut db = filled(1);
    let recorded = |db: &mut Database| {
        let mut clusters = type_stream(db, Mode::Delta);
        let held = CachedResource::accepted(&cluster(0));
        clusters.client_cache.record(db, held);
        clusters
    };
    let clusters = recorded(&mut db);
    assert!(clusters.check(&mut db).is_err());
    for reason in REASONS {
        let mut clusters = recorded(&mut db);
        reason(&mut clusters, 0);
        clusters.trials.extend([vec![variant_of(&cluster(0))]]);
        assert_eq!(clusters.check(&mut db), Ok(()));
    }
    let mut clusters = recorded(&mut db);
    let update = Update::upsert(&cluster(0), None);
    clusters.record_sent(&mut db, pending(1, vec![update]));
    assert_eq!(clusters.check(&mut db), Ok(()));
    let mut clusters = recorded(&mut db);
    let params = clusters.params;
    clusters.subscribe(&mut db, &name(0), params, &InitialVersions::default());
    assert_eq!(clusters.check(&mut db), Ok(()));
}

#[test]
fn a_suspect_without_a_trial_and_an_error_without_a_nack_are_found() {
    let mut db = filled(1);
    let mut clusters = type_stream(&mut db, Mode::Delta);
    assert_eq!(clusters.check(&mut db), Ok(()));
    clusters.last_error = Some(ErrorDetail {
        code: 3,
        message: String::new(),
    });
    assert!(clusters.check(&mut db).is_err());
    REASONS[2](&mut clusters, 0);
    assert_eq!(clusters.check(&mut db), Ok(()));
    REASONS[3](&mut clusters, 0);
    assert!(clusters.check(&mut db).is_err());
}

#[test]
fn the_versions_of_only_so_many_nacked_sets_are_remembered() {
    let mut db = filled(1);
    let mut clusters = type_stream(&mut db, Mode::Sotw);
    let error = ErrorDetail {
        code: 3,
        message: String::new(),
    };
    let versions = |clusters: &TypeStream| Vec::from(clusters.nacked_versions.clone());
    let mut last = Vec::new();
    for nonce in 1..=10 {
        clusters.record_sent(&mut db, pending(nonce, Vec::new()));
        clusters.handle_nack(&mut db, &Nonce::of_number(nonce), &error);
        last.push(Version::of_hash(nonce.into()));
        last.drain(..last.len().saturating_sub(nack::MAX_NACKED_VERSIONS));
        assert_eq!(versions(&clusters), last);
    }
}

#[test]
fn what_a_merged_response_removed_is_no_longer_accepted() {
    let mut db = Database::new();
    let variant = |env: &str, body: &'static str| Resource {
        constraints: Some(format!("env={env}").parse().unwrap()),
        ..Resource::new(name(0), body.into())
    };
    let [first, second, other] =
        [("a", "1"), ("a", "2"), ("b", "1")].map(|(env, body)| Arc::new(variant(env, body)));
    let mut clusters = type_stream(&mut db, Mode::Delta);
    for held in [&first, &other] {
        let held = CachedResource::accepted(held);
        clusters.client_cache.record(&mut db, held);
    }
    let taken = CachedResource::maybe_taken(Arc::clone(&second));
    clusters.client_cache.record(&mut db, taken);

    clusters.drop_accepted(&mut db, &variant_of(&first));

    let held = clusters.client_cache.held(&mut db, &name(0)).into_iter();
    let mut bodies: Vec<_> = held.map(|held| held.resource).collect();
    bodies.sort_by_key(|resource| variant_of(resource));
    assert_eq!(bodies, [second, other]);
}
