//! A file that is not what was written is found out, or does not matter; it is
//! never taken for other contents.

use redb::{ReadableTable as _, TableDefinition};

use super::super::message::{HeadRecord, TransactionRecord};
use super::super::tables::HEAD_KEY;
use super::*;
use crate::suite::{change, transaction};

/// Makes a store with some history, and returns its file.
fn make(dir: &Path) -> Vec<u8> {
    let store = EmbeddedStore::open(dir, 100).unwrap();
    for revision in 1..=5 {
        store.commit(&[step(revision)]).unwrap();
    }
    let more = (0..50).map(|n| change(None, Some(row(&format!("more-{n}"), "", None))));
    store.commit(&[transaction(6, more.collect())]).unwrap();
    let path = store.file().to_owned();
    drop(store);
    fs::read(path).unwrap()
}

/// Opens a store with this file, and reads all of it.
fn try_file(bytes: &[u8]) -> Result<Kept, StoreError> {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join(FILE), bytes).unwrap();
    let store = EmbeddedStore::open(dir.path(), 100)?;
    store.check_history()?;
    store.load()
}

#[test]
fn a_bit_that_has_turned_is_found_or_does_not_matter() {
    let dir = tempfile::tempdir().unwrap();
    let bytes = make(dir.path());
    let good = try_file(&bytes).unwrap();
    let mut random = fastrand::Rng::with_seed(20);
    // Most of a new file is not in use, so a place that is not zero is taken.
    let used: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at] != 0).collect();
    let mut found = 0;
    for _ in 0..150 {
        let mut bytes = bytes.clone();
        let at = used[random.usize(..used.len())];
        bytes[at] ^= 1 << random.u8(..8);
        match try_file(&bytes) {
            Err(_) => found += 1,
            Ok(kept) => {
                assert_eq!(kept.revision, good.revision, "byte {at}");
                assert_eq!(kept.rows, good.rows, "byte {at}");
            }
        }
    }
    assert!(found > 20, "{found}");
}

#[test]
fn a_file_that_is_cut_short_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let bytes = make(dir.path());
    for len in [0, 1, 100, 4096, bytes.len() / 2, bytes.len() - 1] {
        let refused = try_file(&bytes[..len]).unwrap_err();
        assert!(
            matches!(refused, StoreError::Damaged { .. }),
            "{len}: {refused}"
        );
    }
}

#[test]
fn a_file_that_is_refused_is_left_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(FILE);
    for bytes in [&b""[..], b"not a database", &[7; 100_000]] {
        fs::write(&path, bytes).unwrap();
        let refused = EmbeddedStore::open(dir.path(), 10).unwrap_err();
        assert!(refused.to_string().contains(FILE), "{refused}");
        assert_eq!(fs::read(&path).unwrap(), bytes);
    }
}

/// Replaces the record of a key by another one, under its seal.
fn forge<'k, K, M>(
    dir: &Path,
    table: TableDefinition<'_, K, &[u8]>,
    key: K::SelfType<'k>,
    seal_key: &[u8],
    change: impl Fn(&mut M),
) where
    K: redb::Key + 'static,
    K::SelfType<'k>: Copy,
    M: prost::Message + Default,
{
    let database = open_file(&dir.join(FILE)).unwrap();
    let file = database.begin_write().unwrap();
    {
        let mut table = file.open_table(table).unwrap();
        let sealed = table.get(key).unwrap().unwrap().value().to_vec();
        let (value, _) = seal::unseal("t", seal_key, &sealed).unwrap();
        let mut record = M::decode(value).unwrap();
        change(&mut record);
        let forged = seal::seal(seal_key, &record.encode_to_vec());
        table.insert(key, &*forged).unwrap();
    }
    file.commit().unwrap();
}

#[test]
fn a_number_of_rows_that_is_not_true_takes_no_memory() {
    let dir = tempfile::tempdir().unwrap();
    make(dir.path());
    for rows in [1 << 40, u64::MAX] {
        let change = |head: &mut HeadRecord| head.rows = rows;
        forge(dir.path(), HEAD, HEAD_KEY, HEAD_KEY.as_bytes(), change);
        let store = EmbeddedStore::open(dir.path(), 100).unwrap();
        let refused = store.load().unwrap_err().to_string();
        assert!(refused.contains("rows are missing"), "{refused}");
    }
}

#[test]
fn counts_of_changes_that_are_not_true_only_shorten_what_is_recent() {
    let dir = tempfile::tempdir().unwrap();
    make(dir.path());
    let change = |record: &mut TransactionRecord| {
        (record.created, record.changed) = (u64::MAX, u64::MAX);
    };
    forge(dir.path(), TRANSACTIONS, 5, &5_u64.to_be_bytes(), change);
    let store = EmbeddedStore::open(dir.path(), 100).unwrap();
    assert_eq!(store.load().unwrap().recent.len(), 1);
}

#[test]
fn a_newer_format_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    drop(EmbeddedStore::open(dir.path(), 10).unwrap());
    {
        let database = open_file(&dir.path().join(FILE)).unwrap();
        let file = database.begin_write().unwrap();
        let mut head = file.open_table(HEAD).unwrap();
        head.insert(FORMAT_KEY, &9u64.to_le_bytes()[..]).unwrap();
        drop(head);
        file.commit().unwrap();
    }
    let refused = EmbeddedStore::open(dir.path(), 10).unwrap_err().to_string();
    assert!(
        refused.ends_with("has format 9, and this release reads up to 2: use a newer one"),
        "{refused}"
    );
}
