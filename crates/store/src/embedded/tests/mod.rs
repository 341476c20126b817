//! Tests of the file: damage, faults of the disk, loss of power, concurrent
//! changes, backups.

mod damage;
mod faults;
mod linear;
mod power;
mod served_files;
mod upgrade;

use super::*;
use crate::suite::{change, row, step, transaction};

fn texts(kept: &Kept) -> Vec<String> {
    let bodies = kept.rows.iter();
    let bodies =
        bodies.map(|(_, row)| String::from_utf8_lossy(row.resource.body.as_ref().unwrap()));
    bodies.map(|body| body.into_owned()).collect()
}

#[test]
fn a_second_process_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(dir.path(), 10).unwrap();
    let second = EmbeddedStore::open(dir.path(), 10);
    assert!(
        matches!(second, Err(StoreError::InUse { .. })),
        "{second:?}"
    );
    drop(store);
    assert!(EmbeddedStore::open(dir.path(), 10).is_ok());
}

#[test]
fn a_backup_is_the_store_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(&dir.path().join("a"), 10).unwrap();
    store.commit(&[step(1), step(2)]).unwrap();
    let backup = dir.path().join("backup.redb");
    let mut copy = store.back_up().unwrap();
    io::copy(&mut copy, &mut fs::File::create(&backup).unwrap()).unwrap();
    store.commit(&[step(3)]).unwrap();

    let other = dir.path().join("b");
    assert_eq!(restore_backup(&backup, &other).unwrap(), 2);
    assert!(restore_backup(&backup, &other).is_err(), "it has a store");
    let other = EmbeddedStore::open(&other, 10).unwrap();
    let none = dir.path().join("c");
    assert!(restore_backup(&dir.path().join("no backup"), &none).is_err());
    assert_eq!(fs::read_dir(&none).unwrap().count(), 0, "nothing is left");
    assert_eq!(
        texts(&other.load().unwrap()),
        ["\n\u{1}a\u{fffd}\u{1}\u{6}text 2"]
    );
    assert_eq!(other.changes(2).unwrap(), store.changes(2).unwrap());
    assert_eq!(store.load().unwrap().revision, 3);
}

#[test]
fn a_file_can_be_read_by_its_owner_only() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = tempfile::tempdir().unwrap();
    let inner = dir.path().join("data");
    let store = EmbeddedStore::open(&inner, 10).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&inner), mode(store.file())), (0o700, 0o600));
}

#[test]
fn bodies_that_no_transaction_needs_are_forgotten() {
    use redb::ReadableTableMetadata as _;
    let dir = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(dir.path(), 3).unwrap();
    for revision in 1..20 {
        store.commit(&[step(revision)]).unwrap();
    }
    let bodies = store.read(|file| Ok(file.open_table(BODIES)?.len()?));
    assert_eq!(bodies.unwrap(), 3);
    store.check_history().unwrap();
    assert_eq!(store.load().unwrap().rows, [row("a", "text 19", None)]);
}

#[test]
fn a_body_that_several_transactions_took_out_of_service_stays_until_the_last_is_forgotten() {
    use redb::ReadableTableMetadata as _;
    let dir = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(dir.path(), 4).unwrap();
    let a = |n| row("a", &format!("text {n}"), None);
    let mut bodies = Vec::new();
    for revision in 1..=9 {
        // The body goes back and forth, until it stays another one.
        let text = |revision: u64| if revision < 6 { revision % 2 } else { revision };
        let before = (revision > 1).then(|| a(text(revision - 1)));
        let change = change(before, Some(a(text(revision))));
        store
            .commit(&[transaction(revision, vec![change])])
            .unwrap();
        store.check_history().unwrap();
        let count = store.read(|file| Ok(file.open_table(BODIES)?.len()?));
        bodies.push(count.unwrap());
    }
    assert_eq!(bodies, [0, 1, 2, 2, 2, 2, 3, 4, 4]);
}

#[test]
fn the_oldest_transactions_are_forgotten_many_at_a_time() {
    let dir = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(dir.path(), 32).unwrap();
    let kept_after = |revision| {
        store.commit(&[step(revision)]).unwrap();
        store.transactions(None, 100).unwrap().len()
    };
    let kept: Vec<usize> = (1..=38).map(kept_after).collect();
    assert_eq!(kept[30..], [31, 32, 33, 34, 32, 33, 34, 32]);
    store.check_history().unwrap();
}
