//! A disk that fails at every point in turn: what was committed is there, in
//! order, and nothing else.

use std::fs::OpenOptions;
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};

use redb::backends::FileBackend;
use redb::{BackendError, StorageBackend};

use super::*;

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
fn open_failing(dir: &Path, left: &Arc<AtomicU64>) -> EmbeddedStore {
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

        // The disk has room again, and the next change is kept.
        left.store(u64::MAX, Ordering::SeqCst);
        let kept = store.load().unwrap().revision;
        // A refused transaction may be there if only the last sync failed.
        assert!(kept == committed || Some(kept) == refused.as_ref().map(|(it, _)| *it));
        store.commit(&[step(kept + 1)]).unwrap();
        drop(store);
        let store = EmbeddedStore::open(dir.path(), 100).unwrap();
        store.check_history().unwrap();
        let expected = [row("a", &format!("text {}", kept + 1), None)];
        assert_eq!(store.load().unwrap().rows, expected, "{allowed}");
        if is_through {
            break;
        }
    }
    assert!(is_through, "more points than were tried");
}
