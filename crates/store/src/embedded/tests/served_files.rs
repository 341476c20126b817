//! What is served of files, as the file keeps it.

use redb::ReadableTable as _;

use super::super::served_files::{ServedChange, ServedFile};
use super::super::tables::PART;
use super::*;
use crate::suite::row;

/// A file with so many resources.
fn served(name: &str, count: usize) -> ServedFile {
    let resources = (0..count).map(|number| {
        let (key, row) = row(&format!("{name}-{number:05}"), "text", None);
        (key.type_url, row.resource)
    });
    ServedFile {
        name: name.into(),
        ends_line: count > 1,
        resources: resources.collect(),
    }
}

fn keep(store: &EmbeddedStore, files: &[ServedFile]) {
    let changes = files.iter().cloned().map(ServedChange::Served);
    store
        .keep_served_files(&changes.collect::<Vec<_>>())
        .unwrap();
}

#[test]
fn what_is_served_of_files_is_there_when_the_file_is_opened_again() {
    let dir = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(dir.path(), 10).unwrap();
    let files = [0, 1, PART, 2 * PART + 1].map(|count| served(&format!("f{count}"), count));
    keep(&store, &files);
    drop(store);
    let store = EmbeddedStore::open(dir.path(), 10).unwrap();
    let mut expected = files.to_vec();
    expected.sort_by(|a, b| a.name.cmp(&b.name));
    assert_eq!(store.load_served_files().unwrap(), expected);
    assert_eq!(store.load().unwrap().revision, 0, "it is no transaction");

    // Fewer parts than before leave none behind.
    let smaller = ServedFile {
        name: files[3].name.clone(),
        ..served("x", 3)
    };
    keep(&store, std::slice::from_ref(&smaller));
    let removed = ["f0", "f1"].map(|name| ServedChange::Removed(name.into()));
    store.keep_served_files(&removed).unwrap();
    let now = store.load_served_files().unwrap();
    assert_eq!(now, [files[2].clone(), smaller]);
    store.forget_served_files().unwrap();
    assert_eq!(store.load_served_files().unwrap(), []);
}

#[test]
fn a_missing_part_of_a_file_is_found() {
    for missing in 0..3 {
        let dir = tempfile::tempdir().unwrap();
        let store = EmbeddedStore::open(dir.path(), 10).unwrap();
        keep(&store, &[served("a", 3 * PART), served("b", 1)]);
        let removed = store.write(|file| {
            file.open_table(FILES)?.remove(("a", missing))?;
            Ok(())
        });
        removed.unwrap();
        let error = store.load_served_files().unwrap_err().to_string();
        assert!(error.contains("a part of it is missing"), "{error}");
    }
}

#[test]
fn a_part_that_is_not_what_was_written_is_found_at_the_start() {
    let dir = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(dir.path(), 10).unwrap();
    keep(&store, &[served("a", 3)]);
    store.load().unwrap();
    let turned = store.write(|file| {
        let mut table = file.open_table(FILES)?;
        let mut value = match table.get(("a", 0))? {
            Some(value) => value.value().to_vec(),
            None => Vec::new(),
        };
        value[40] ^= 1;
        table.insert(("a", 0), &*value)?;
        Ok(())
    });
    turned.unwrap();
    let error = store.load().unwrap_err();
    assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
}

#[test]
fn a_file_of_an_earlier_release_has_nothing_of_files() {
    let dir = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(&dir.path().join("a"), 10).unwrap();
    let before = store.write(|file| {
        file.delete_table(FILES)?;
        Ok(())
    });
    before.unwrap();
    assert_eq!(store.load_served_files().unwrap(), []);
    let backup = dir.path().join("backup.redb");
    let mut copy = store.back_up().unwrap();
    io::copy(&mut copy, &mut fs::File::create(&backup).unwrap()).unwrap();
    restore_backup(&backup, &dir.path().join("b")).unwrap();

    keep(&store, &[served("a", 1)]);
    assert_eq!(store.load_served_files().unwrap(), [served("a", 1)]);
}
