//! Where the clients are installed and where their logs go.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::{env, fs, process, thread};

/// The variable that names another Envoy than the installed one.
const ENVOY: &str = "TRUNKLINE_ENVOY";

/// The Envoy that tests run against.
///
/// # Panics
///
/// When it is not installed.
#[must_use]
pub fn envoy() -> PathBuf {
    if let Some(given) = env::var_os(ENVOY) {
        return given.into();
    }
    let lib = venv().join("lib");
    let installed = fs::read_dir(&lib)
        .into_iter()
        .flatten()
        .flatten()
        .map(|python| python.path().join("site-packages/envoy/_bin/envoy"))
        .find(|binary| binary.is_file());
    installed.unwrap_or_else(|| {
        panic!(
            "no Envoy under {}: run `cargo xtask setup`, or name one in {ENVOY}",
            lib.display()
        )
    })
}

/// The Python in which gRPC's xDS client and its messages are installed.
///
/// # Panics
///
/// When it is not installed.
#[must_use]
pub fn python() -> PathBuf {
    let python = venv().join("bin/python");
    assert!(
        python.is_file(),
        "no {}: run `cargo xtask setup`",
        python.display()
    );
    python
}

/// An empty folder for files of the test that runs on this thread. It stays
/// until the test runs again.
///
/// # Panics
///
/// When it cannot be made.
#[must_use]
pub fn folder(name: &str) -> PathBuf {
    scratch(name)
}

/// A folder for the files of a client: named for the test that runs on this
/// thread and for this process, because the same tests may run twice at once,
/// and numbered in the order in which the test starts its clients. The files of
/// earlier runs of the test are removed.
pub(crate) fn scratch(peer: &str) -> PathBuf {
    let test = thread::current()
        .name()
        .unwrap_or("unnamed")
        .replace("::", ".");
    let number = next_number(&test);
    let of_test = target().join("interop").join(test);
    if number == 1 {
        remove_earlier_runs(&of_test);
    }
    let of_run = of_test.join(process::id().to_string());
    let folder = of_run.join(format!("{peer}-{number}"));
    fs::create_dir_all(&folder)
        .unwrap_or_else(|error| panic!("cannot make {}: {error}", folder.display()));
    folder
}

/// Removes the files of runs of a test whose processes have ended.
fn remove_earlier_runs(of_test: &Path) {
    for run in fs::read_dir(of_test).into_iter().flatten().flatten() {
        let process = Path::new("/proc").join(run.file_name());
        let is_own = run.file_name() == process::id().to_string().as_str();
        if is_own || !process.exists() {
            // Another run may remove it at the same time.
            let _ = fs::remove_dir_all(run.path());
        }
    }
}

/// Counts from 1 for each test of this process.
fn next_number(test: &str) -> u32 {
    static STARTED: Mutex<BTreeMap<String, u32>> = Mutex::new(BTreeMap::new());
    // A test that panicked while counting has done no harm to the numbers.
    let mut started = STARTED.lock().unwrap_or_else(PoisonError::into_inner);
    let number = started.entry(test.to_owned()).or_default();
    *number += 1;
    *number
}

/// The Python environment in which the clients are installed.
#[must_use]
pub fn venv() -> PathBuf {
    target().join("venv")
}

pub(crate) fn target() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |given| root.join(given))
}
