//! What every store does, as tests that each of them passes.

use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use bytes::Bytes;
use trunkline::checked::{Row, RowChange, RowKey};
use trunkline::wire::{Intake, KeptResource};
use trunkline::{
    LeaseChange, LeaseTtl, Name, Repeatable, Store, StoredTransaction, TransactionInfo, TypeUrl,
    Version, count_rows, kind,
};
use trunkline_core::params::Constraints;

/// Makes a row: a cluster with this name, and this text in its body. With
/// `clients`, it is the variant with these constraints.
pub(crate) fn row(name: &str, text: &str, clients: Option<&str>) -> (RowKey, Row) {
    let constraints: Option<Constraints> = clients.map(|clients| clients.parse().unwrap());

    let mut body = vec![0x0a, u8::try_from(name.len()).unwrap()];
    body.extend_from_slice(name.as_bytes());
    // Its field 28 is the alternative name for statistics.
    body.extend_from_slice(&[0xe2, 0x01, u8::try_from(text.len()).unwrap()]);
    body.extend_from_slice(text.as_bytes());
    let body = Bytes::from(body);

    let type_url = TypeUrl::from(kind::CDS);
    let kept = KeptResource {
        name: Name::new(name),
        aliases: vec![Name::new("alias")],
        constraints: constraints.clone(),
        version: Version::of_body(&body),
        ttl: Some(Duration::from_secs(7)),
        body,
        metadata: Some(Bytes::from_static(b"\x0a\x05\x0a\x01k\x12\x00")),
        do_not_cache: true,
    };
    let resource = Intake::default().restore(&type_url, kept).unwrap();

    let key = RowKey {
        origin: "api".into(),
        type_url,
        name: Name::new(name),
        constraints: constraints.clone(),
    };
    let row = Row {
        resource: Arc::new(resource),
        wrapper_constraints: constraints,
        is_inline_host: false,
    };
    (key, row)
}

/// Makes a transaction of changes.
pub(crate) fn transaction(revision: u64, changes: Vec<RowChange>) -> StoredTransaction {
    StoredTransaction {
        info: TransactionInfo {
            revision,
            at: UNIX_EPOCH + Duration::from_millis(1_000 + revision),
            author: format!("someone from 127.0.0.1:{revision}"),
            origin: "api".to_owned(),
            restores: None,
            counts: count_rows(&changes),
        },
        changes,
        lease: LeaseChange::Kept,
        repeatable: None,
    }
}

/// Makes the change of a row.
pub(crate) fn change(before: Option<(RowKey, Row)>, after: Option<(RowKey, Row)>) -> RowChange {
    let key = before.as_ref().or(after.as_ref()).unwrap().0.clone();
    RowChange {
        key,
        before: before.map(|(_, row)| row),
        after: after.map(|(_, row)| row),
    }
}

/// Makes the transaction that gives `a` the text of its revision, in place of
/// that of the revision before.
pub(crate) fn step(revision: u64) -> StoredTransaction {
    let text = |revision: u64| row("a", &format!("text {revision}"), None);
    let before = (revision > 1).then(|| text(revision - 1));
    transaction(revision, vec![change(before, Some(text(revision)))])
}

/// Tries all that a store promises. `open` opens it, again with the same
/// contents if it outlives its process; it keeps three transactions.
pub(crate) fn try_store<S: Store>(mut open: impl FnMut() -> S, outlives: bool) {
    let store = open();
    let kept = store.load().unwrap();
    assert_eq!((kept.revision, kept.rows.len()), (0, 0));
    assert!(store.transactions(None, 10).unwrap().is_empty());
    assert_eq!(store.changes(1).unwrap(), None);

    // Rows come back as they were, variants among them.
    let rows = [
        row("a", "text 1", None),
        row("b", "", Some("env=prod AND NOT version=v1")),
        row("b", "", Some("version=v1")),
    ];
    let created = rows.iter().map(|row| change(None, Some(row.clone())));
    let mut first = transaction(1, created.collect());
    first.lease = LeaseChange::Starts(LeaseTtl::new(Duration::from_secs(30)).unwrap());
    first.repeatable = Some(("key".to_owned(), 42));
    store.commit(std::slice::from_ref(&first)).unwrap();
    let mut expected = rows.to_vec();
    expected.sort_by(|(a, _), (b, _)| a.cmp(b));
    let sorted = |store: &S| {
        let mut rows = store.load().unwrap().rows;
        rows.sort_by(|(a, _), (b, _)| a.cmp(b));
        rows
    };
    assert_eq!(sorted(&store), expected);

    // Two transactions at once are kept in their order.
    let gone = change(Some(rows[1].clone()), None);
    let mut third = transaction(3, vec![gone]);
    third.lease = LeaseChange::Ends;
    store.commit(&[step(2), third.clone()]).unwrap();
    let store = match outlives {
        true => {
            drop(store);
            open()
        }
        false => store,
    };
    let kept = store.load().unwrap();
    assert_eq!(
        (kept.revision, kept.rows.len(), kept.leases.len()),
        (3, 2, 0)
    );

    // The history has who, when, and what.
    let infos = store.transactions(None, 10).unwrap();
    let expected = [&third.info, &step(2).info, &first.info].map(Clone::clone);
    assert_eq!(infos, expected);
    assert_eq!(store.transactions(Some(3), 1).unwrap(), expected[1..2]);
    assert_eq!(store.changes(2).unwrap().unwrap(), step(2).changes);
    assert_eq!(store.changes(3).unwrap().unwrap(), third.changes);
    let mut changes = store.changes(1).unwrap().unwrap();
    changes.sort_by(|a, b| a.key.cmp(&b.key));
    first.changes.sort_by(|a, b| a.key.cmp(&b.key));
    assert_eq!(changes, first.changes);
    let made = Repeatable {
        revision: 1,
        request: 42,
    };
    assert_eq!(store.find_key("key").unwrap(), Some(made));
    assert_eq!(store.find_key("other").unwrap(), None);

    // The oldest transactions are forgotten, the contents are not.
    let mut fourth = step(3);
    fourth.info.revision = 4;
    fourth.changes[0].before = Some(row("a", "text 2", None).1);
    store.commit(&[fourth]).unwrap();
    assert_eq!(store.transactions(None, 10).unwrap().len(), 3);
    assert_eq!(store.changes(1).unwrap(), None);
    assert_eq!(store.find_key("key").unwrap(), None);
    assert_eq!(store.changes(2).unwrap().unwrap(), step(2).changes);
    assert_eq!(store.load().unwrap().rows.len(), 2);
}

#[test]
fn a_store_in_memory_keeps_what_it_promises() {
    try_store(|| crate::MemoryStore::new(3), false);
}

#[test]
fn a_store_in_a_file_keeps_what_it_promises() {
    let dir = tempfile::tempdir().unwrap();
    let open = || crate::EmbeddedStore::open(dir.path(), 3).unwrap();
    try_store(open, true);
}
