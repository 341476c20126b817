//! A file of format 1 is upgraded when it is opened.

use redb::ReadableTable as _;

use super::super::upgrade::{OLD_BODIES, OLD_FORMAT};
use super::*;
use crate::suite::change;

/// Makes a file what the release of format 1 would have made of the same
/// transactions.
fn downgrade(path: &Path) {
    let database = open_file(path).unwrap();
    let file = database.begin_write().unwrap();
    {
        let (index, bodies) = (file.open_table(BODY_INDEX), file.open_table(BODIES));
        let (index, bodies) = (index.unwrap(), bodies.unwrap());
        let mut old_bodies = file.open_table(OLD_BODIES).unwrap();
        for entry in index.iter().unwrap() {
            let (hash, entry) = entry.unwrap();
            let (count, number) = entry.value();
            let body = bodies.get(number).unwrap().unwrap();
            let value = [&count.to_le_bytes(), body.value()].concat();
            old_bodies.insert(hash.value(), &*value).unwrap();
        }
        let mut head = file.open_table(HEAD).unwrap();
        let format = OLD_FORMAT.to_le_bytes();
        head.insert(FORMAT_KEY, &format[..]).unwrap();
    }
    file.delete_table(BODY_INDEX).unwrap();
    file.delete_table(BODIES).unwrap();
    file.commit().unwrap();
}

#[test]
fn a_file_of_the_earlier_format_is_upgraded_with_its_history() {
    let dir = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(dir.path(), 4).unwrap();
    let a = |text: &str| row("a", text, None);
    // One body is needed by two changes, another by one.
    let texts = ["x", "y", "x", "z"];
    for (revision, text) in (1..).zip(texts) {
        let before = (revision > 1).then(|| a(texts[revision - 2]));
        let changes = vec![change(before, Some(a(text)))];
        let transaction = transaction(revision as u64, changes);
        store.commit(&[transaction]).unwrap();
    }
    let changes = |store: &EmbeddedStore| -> Vec<_> {
        let changes = (1..=4).map(|revision| store.changes(revision).unwrap());
        changes.collect()
    };
    let (path, kept, history) = (
        store.file().to_owned(),
        store.load().unwrap(),
        changes(&store),
    );
    drop(store);

    downgrade(&path);
    let store = EmbeddedStore::open(dir.path(), 4).unwrap();
    store.check_history().unwrap();
    assert_eq!(store.load().unwrap().rows, kept.rows);
    assert_eq!(changes(&store), history);
    drop(store);

    // The counts are those of before: the last change forgets the last body.
    let store = EmbeddedStore::open(dir.path(), 1).unwrap();
    let last = change(Some(a("z")), Some(a("last")));
    store.commit(&[transaction(5, vec![last])]).unwrap();
    use redb::ReadableTableMetadata as _;
    let counts = store.read(|file| {
        let index = file.open_table(BODY_INDEX)?.len()?;
        Ok((index, file.open_table(BODIES)?.len()?))
    });
    assert_eq!(counts.unwrap(), (1, 1));
    store.check_history().unwrap();
}
