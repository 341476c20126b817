//! A disk that fails at every point in turn: what was committed is there, in
//! order, and nothing else.

use std::fs::OpenOptions;
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use redb::backends::FileBackend;
use redb::{BackendError, ReadableTableMetadata as _, StorageBackend};
use trunkline::{LeaseChange, LeaseTtl};

use super::*;
use crate::suite::{change, transaction};

/// A file whose writes and syncs fail, once so many have succeeded.
#[derive(Debug)]
struct FailingFile {
    file: FileBackend,
    left: Arc<AtomicU64>,
}

impl FailingFile {
    fn step(&self) -> io::Result<()> {
        let take = |left: u64| left.checked_sub(1);
        let taken = self
            .left
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, take);
        match taken {
            Ok(_) => Ok(()),
            Err(_) => Err(io::Error::from(io::ErrorKind::StorageFull)),
        }
    }
}

impl StorageBackend for FailingFile {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.file.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.step()?;
        self.file.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.step()?;
        self.file.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.step()?;
        self.file.write(offset, data)
    }

    fn close(&self) -> io::Result<()> {
        self.file.close()
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.file.try_lock_range(start, end)
    }
}

/// Opens a store whose disk fails after so many writes and syncs.
pub(super) fn open_failing(dir: &Path, left: &Arc<AtomicU64>) -> EmbeddedStore {
    let left = Arc::clone(left);
    let open = move |path: &Path| {
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        let file = FailingFile {
            file: FileBackend::new(file)?,
            left: Arc::clone(&left),
        };
        Builder::new().create_with_backend(file)
    };
    EmbeddedStore::open_with(dir, 100, Box::new(open)).unwrap()
}

#[test]
fn a_disk_that_fails_at_any_point_loses_nothing_that_was_committed() {
    let mut is_through = false;
    for allowed in 0..200 {
        let dir = tempfile::tempdir().unwrap();
        let left = Arc::new(AtomicU64::new(u64::MAX));
        let store = open_failing(dir.path(), &left);
        store.commit(&[step(1)]).unwrap();

        left.store(allowed, Ordering::SeqCst);
        let mut committed = 1;
        let mut refused = None;
        for revision in 2..=6 {
            match store.commit(&[step(revision)]) {
                Ok(()) => committed = revision,
                Err(error) => {
                    refused = Some((revision, error));
                    break;
                }
            }
        }
        is_through = refused.is_none();
        if let Some((_, error)) = &refused {
            assert!(matches!(error, StoreError::Io { .. }), "{allowed}: {error}");
        }

        // The disk has room again, and the next change is kept. One that was
        // refused is not there, also if only its last sync failed.
        left.store(u64::MAX, Ordering::SeqCst);
        let next = committed + 1;
        let mut next_step = step(next);
        next_step.changes[0].after = Some(row("a", "after", None).1);
        store.commit(&[next_step]).unwrap();
        assert_eq!(store.transactions(None, 1).unwrap()[0].revision, next);
        drop(store);
        let store = EmbeddedStore::open(dir.path(), 100).unwrap();
        store.check_history().unwrap();
        assert_eq!(store.load().unwrap().rows, [row("a", "after", None)]);
        assert_eq!(store.transactions(None, 100).unwrap().len() as u64, next);
        if is_through {
            break;
        }
    }
    assert!(is_through, "more points than were tried");
}

#[test]
fn transactions_that_were_refused_and_are_there_are_taken_back() {
    let lease = |seconds| LeaseTtl::new(Duration::from_secs(seconds)).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(dir.path(), 100).unwrap();
    let (a, b) = (|n| row("a", &format!("text {n}"), None), row("b", "", None));
    let created = [change(None, Some(a(1))), change(None, Some(b.clone()))];
    let mut first = transaction(1, created.into());
    first.lease = LeaseChange::Starts(lease(30));
    store.commit(&[first]).unwrap();
    let before = store.load().unwrap();

    // Their author was told that they are not kept.
    let mut gone = transaction(2, vec![change(Some(b), None)]);
    gone.lease = LeaseChange::Ends;
    gone.repeatable = Some(("key".to_owned(), 1));
    let mut more = step(3);
    more.changes[0].before = Some(a(1).1);
    more.changes.push(change(None, Some(row("c", "", None))));
    more.lease = LeaseChange::Starts(lease(7));
    store.commit(&[gone, more]).unwrap();
    let refused = transaction(2, Vec::new());
    store.take_back(&[refused]).unwrap();
    let after = store.load().unwrap();
    assert_eq!((after.revision, &after.rows), (1, &before.rows));
    assert_eq!(after.leases, before.leases);
    assert_eq!(store.find_key("key").unwrap(), None);
    store.check_history().unwrap();
    let bodies = store.read(|file| Ok(file.open_table(BODIES)?.len()?));
    assert_eq!(bodies.unwrap(), 0);

    // Where the disk did not allow it at once, the next change does it.
    store.commit(&[step(2)]).unwrap();
    let other = change(Some(a(1)), Some(a(9)));
    store.commit(&[transaction(2, vec![other])]).unwrap();
    assert_eq!(store.load().unwrap().rows, [a(9), row("b", "", None)]);
    assert_eq!(store.transactions(None, 9).unwrap().len(), 2);
    store.check_history().unwrap();
}
