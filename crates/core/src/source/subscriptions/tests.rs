//! Tests of the indexes and marks of subscriptions.

use super::*;
use crate::database::Database;
use crate::params::Params;
use crate::resource::ErrorCode;

/// There is one for every name of every stream: a large server pays for
/// each byte a hundred million times.
#[test]
fn a_subscription_is_small() {
    assert!(size_of::<(SubscriptionKey, Subscription)>() <= 12);
}

#[test]
fn check_finds_counts_that_disagree() {
    let mut db = Database::new();
    let type_id = db.type_id(&"t".into());
    let stream = db.open_stream();
    let params = ParamsId::EMPTY;
    let subscriber = db.add_subscriber(stream, type_id, params);
    let key = |db: &mut Database, name: &str| SubscriptionKey {
        entry: db.subscribe(subscriber, &name.into(), params),
        params,
    };
    let (subscribed, other) = (key(&mut db, "a"), key(&mut db, "b"));
    let faults: [fn(&mut Subscriptions, SubscriptionKey, SubscriptionKey); 7] = [
        |subscriptions, _, _| subscriptions.unbounded_hosts += 1,
        |subscriptions, _, other| _ = subscriptions.resolved_names.insert(other, "c".into()),
        |subscriptions, subscribed, _| {
            _ = subscriptions.resolved_names.insert(subscribed, "c".into())
        },
        |subscriptions, subscribed, _| {
            subscriptions.set_resolved_name(subscribed, Some("c".into()));
            subscriptions.resolved_counts.insert("c".into(), 2);
        },
        |subscriptions, _, _| _ = subscriptions.resolved_counts.insert("c".into(), 1),
        |subscriptions, _, other| _ = subscriptions.located_only.insert(other),
        |subscriptions, subscribed, _| {
            _ = subscriptions
                .locator_params
                .insert(subscribed.entry, vec![subscribed.params])
        },
    ];
    for (nth, fault) in faults.into_iter().enumerate() {
        let mut subscriptions = Subscriptions::new(params);
        subscriptions.insert(subscribed, Subscription::default(), 1);
        assert_eq!(subscriptions.check(), Ok(()));
        fault(&mut subscriptions, subscribed, other);
        assert!(subscriptions.check().is_err(), "{nth}");
    }
}

/// Subscriptions of plain names without parameters, and keys of three names,
/// each with these parameters and with others.
struct Fixture {
    subscriptions: Subscriptions,
    plain: [SubscriptionKey; 3],
    located: [SubscriptionKey; 3],
}

fn fixture() -> Fixture {
    let mut db = Database::new();
    let type_id = db.type_id(&"t".into());
    let stream = db.open_stream();
    let located = db.intern_params(Params::new([("env", "prod")]).unwrap());
    let subscriber = db.add_subscriber(stream, type_id, ParamsId::EMPTY);
    let mut keys = |params| {
        ["a", "b", "c"].map(|name| SubscriptionKey {
            entry: db.subscribe(subscriber, &name.into(), params),
            params,
        })
    };
    Fixture {
        subscriptions: Subscriptions::new(ParamsId::EMPTY),
        plain: keys(ParamsId::EMPTY),
        located: keys(located),
    }
}

#[test]
fn s84_a_resource_is_found_by_the_subscriptions_that_resolved_to_it() {
    let mut f = fixture();
    let [a, b, c] = f.plain;
    for key in f.plain {
        f.subscriptions.insert(key, Subscription::default(), 1);
    }
    f.subscriptions.set_resolved_name(a, Some("x".into()));
    f.subscriptions.set_resolved_name(b, Some("y".into()));
    f.subscriptions.set_resolved_name(c, Some("x".into()));
    let resolving_to = |name: &str| {
        let keys = f.subscriptions.keys_resolving_to(&name.into());
        keys.into_iter().collect::<BTreeSet<_>>()
    };
    assert_eq!(resolving_to("x"), [a, c].into());
    assert_eq!(resolving_to("y"), [b].into());
    assert_eq!(resolving_to("a"), [].into());
}

#[test]
fn a_resolved_name_is_free_when_its_last_subscription_leaves_it() {
    let mut f = fixture();
    let [a, b, _] = f.plain;
    for key in [a, b] {
        f.subscriptions.insert(key, Subscription::default(), 1);
        f.subscriptions.set_resolved_name(key, Some("x".into()));
    }
    assert!(matches!(f.subscriptions.remove(a, 1), Some((_, None))));
    let (_, freed) = f.subscriptions.remove(b, 1).unwrap();
    assert_eq!(freed, Some("x".into()));
    assert_eq!(f.subscriptions.resolved_count(&"x".into()), 0);
    assert!(f.subscriptions.is_empty());
    assert_eq!(f.subscriptions.check(), Ok(()));
}

#[test]
fn s61_an_error_is_known_until_another_answer_is() {
    let mut f = fixture();
    let [a, b, _] = f.plain;
    let error = Arc::new(ResourceError {
        code: ErrorCode::Unavailable,
        message: "why".into(),
    });
    f.subscriptions.insert(a, Subscription::default(), 1);
    assert!(!f.subscriptions.is_empty());
    for key in [a, b] {
        let error = Some(Arc::clone(&error));
        f.subscriptions.record_answer(key, AnswerKind::Error, error);
    }
    assert_eq!(f.subscriptions.error(a), Some(&error));
    assert_eq!(f.subscriptions.error(b), None, "it is not subscribed to");
    f.subscriptions.record_answer(a, AnswerKind::Absent, None);
    assert_eq!(f.subscriptions.error(a), None);
}

#[test]
fn only_a_subscription_with_the_plain_parameters_is_a_locators_alone() {
    let mut f = fixture();
    let ([a, b, _], [located, ..]) = (f.plain, f.located);
    for key in [a, located] {
        f.subscriptions.insert(key, Subscription::default(), 1);
    }
    for key in [b, located] {
        f.subscriptions.mark_located_only(key);
        assert!(!f.subscriptions.is_located_only(key));
    }
    assert!(!f.subscriptions.has_located());
    f.subscriptions.mark_located_only(a);
    assert!(f.subscriptions.is_located_only(a));
    assert!(!f.subscriptions.is_plain(a));
    assert!(!f.subscriptions.is_plain(located));
    assert!(f.subscriptions.has_located());
    assert_eq!(f.subscriptions.check(), Ok(()));
}

#[test]
fn a_list_tells_what_makes_a_subscription() {
    let mut f = fixture();
    let [a, ..] = f.plain;
    f.subscriptions.insert(a, Subscription::default(), 1);
    f.subscriptions.set_origins(a, true, true);
    assert!(f.subscriptions.is_plain(a) && f.subscriptions.has_located());
    f.subscriptions.set_origins(a, false, true);
    assert!(f.subscriptions.is_located_only(a));
    f.subscriptions.set_origins(a, true, false);
    assert!(f.subscriptions.is_plain(a) && !f.subscriptions.has_located());
}

#[test]
fn memory_is_given_back_when_most_subscriptions_are_gone() {
    let mut db = Database::new();
    let type_id = db.type_id(&"t".into());
    let stream = db.open_stream();
    let params = ParamsId::EMPTY;
    let subscriber = db.add_subscriber(stream, type_id, params);
    let mut subscriptions = Subscriptions::new(params);
    let keys: Vec<SubscriptionKey> = (0..1000)
        .map(|n| SubscriptionKey {
            entry: db.subscribe(subscriber, &Name::new(&n.to_string()), params),
            params,
        })
        .collect();
    for key in &keys {
        subscriptions.insert(*key, Subscription::default(), 1);
    }
    let full = subscriptions.by_key.capacity();
    let (most, few) = keys.split_at(900);
    let (some, rest) = most.split_at(400);
    for key in some {
        subscriptions.remove(*key, 1);
    }
    // The client may subscribe to others soon.
    assert!(subscriptions.by_key.capacity() > full / 2 + 1);
    for key in rest {
        subscriptions.remove(*key, 1);
    }
    assert!(subscriptions.by_key.capacity() < full / 2);
    assert_eq!(subscriptions.len(), few.len());
}
