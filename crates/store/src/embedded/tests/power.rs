//! A loss of power at any point: of what was written since the last sync, any
//! part may be on the disk, in any order, and a write by halves. Every
//! transaction that was committed is there.

use std::ops::Bound;
use std::sync::Mutex;

use redb::{BackendError, StorageBackend};

use super::*;

/// The unit in which a disk writes.
const SECTOR: usize = 512;
const ROUNDS: u64 = 200;

/// A disk that is cut off from power after so many writes and syncs.
#[derive(Debug, Default)]
struct Disk {
    /// What is on it for good.
    synced: Vec<u8>,
    /// What was written since.
    written: Vec<Step>,
    /// What readers see.
    seen: Vec<u8>,
    /// The writes and syncs that are left.
    left: u64,
}

#[derive(Clone, Debug)]
enum Step {
    Write(usize, Vec<u8>),
    SetLen(usize),
}

impl Step {
    fn put_into(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::SetLen(len) => bytes.resize(*len, 0),
            Self::Write(at, data) => {
                bytes.resize(bytes.len().max(at + data.len()), 0);
                bytes[*at..at + data.len()].copy_from_slice(data);
            }
        }
    }
}

impl Disk {
    fn step(&mut self, step: Option<Step>) -> io::Result<()> {
        self.left = self
            .left
            .checked_sub(1)
            .ok_or_else(|| io::Error::other("no power"))?;
        match step {
            Some(step) => {
                step.put_into(&mut self.seen);
                self.written.push(step);
            }
            None => {
                self.written.clear();
                self.synced.clone_from(&self.seen);
            }
        }
        Ok(())
    }

    /// Returns what is on the disk when power is back.
    fn after_loss(&self, random: &mut fastrand::Rng) -> Vec<u8> {
        let mut bytes = self.synced.clone();
        let mut written = self.written.clone();
        random.shuffle(&mut written);
        for step in written {
            let whole = random.bool();
            match step {
                Step::Write(at, data) => {
                    for (nth, sector) in data.chunks(SECTOR).enumerate() {
                        if whole || random.bool() {
                            Step::Write(at + nth * SECTOR, sector.to_vec()).put_into(&mut bytes);
                        }
                    }
                }
                // The length of a file is not cut by a write before it.
                Step::SetLen(len) if whole && len > bytes.len() => bytes.resize(len, 0),
                Step::SetLen(_) => {}
            }
        }
        bytes
    }
}

/// The disk as a file of the engine.
#[derive(Debug)]
struct File(Arc<Mutex<Disk>>);

impl StorageBackend for File {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.lock().unwrap().seen.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let at = usize::try_from(offset).unwrap();
        out.copy_from_slice(&self.0.lock().unwrap().seen[at..at + out.len()]);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let len = usize::try_from(len).unwrap();
        self.0.lock().unwrap().step(Some(Step::SetLen(len)))
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.lock().unwrap().step(None)
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let at = usize::try_from(offset).unwrap();
        let step = Step::Write(at, data.to_vec());
        self.0.lock().unwrap().step(Some(step))
    }

    fn try_lock_range(&self, _: Bound<u64>, _: Bound<u64>) -> Result<bool, BackendError> {
        Ok(true)
    }
}

#[test]
fn what_was_committed_survives_a_loss_of_power_at_any_point() {
    let empty = tempfile::tempdir().unwrap();
    drop(EmbeddedStore::open(empty.path(), 100).unwrap());
    let new = fs::read(empty.path().join(FILE)).unwrap();
    let mut was_cut = 0;
    for seed in 0..ROUNDS {
        let mut random = fastrand::Rng::with_seed(seed);
        let disk = Arc::new(Mutex::new(Disk {
            synced: new.clone(),
            seen: new.clone(),
            written: Vec::new(),
            left: u64::MAX,
        }));
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(FILE);
        fs::write(&path, &new).unwrap();
        let file = Arc::clone(&disk);
        let open = move |_: &Path| Builder::new().create_with_backend(File(Arc::clone(&file)));
        let store = EmbeddedStore::open_with(dir.path(), 100, Box::new(open)).unwrap();
        disk.lock().unwrap().left = random.u64(..120);
        let mut committed = 0;
        while committed < 20 && store.commit(&[step(committed + 1)]).is_ok() {
            committed += 1;
        }
        was_cut += u64::from(committed < 20);
        let left = disk.lock().unwrap().after_loss(&mut random);
        drop(store);

        fs::write(&path, left).unwrap();
        let store = EmbeddedStore::open(dir.path(), 100);
        let store = store.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        store.check_history().unwrap();
        let kept = store.load().unwrap();
        // The one on its way may be there.
        let is_right = kept.revision == committed || kept.revision == committed + 1;
        assert!(is_right, "seed {seed}: {} of {committed}", kept.revision);
        let text = |revision| row("a", &format!("text {revision}"), None);
        let expected: Vec<_> = (kept.revision > 0)
            .then(|| text(kept.revision))
            .into_iter()
            .collect();
        assert_eq!(kept.rows, expected, "seed {seed}");
        store.commit(&[step(kept.revision + 1)]).unwrap();
    }
    assert!(was_cut > ROUNDS / 2, "{was_cut}");
}
