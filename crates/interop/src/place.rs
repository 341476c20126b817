//! Where the peers are installed and where their logs go.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs, thread};

/// The variable that names another Envoy than the installed one.
const ENVOY: &str = "TRUNKLINE_ENVOY";

/// The Envoy that tests run against.
pub(crate) fn envoy() -> PathBuf {
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

/// A folder for what a peer reads and writes, named for the test that runs on
/// this thread, and new for each peer of a test.
pub(crate) fn scratch(peer: &str) -> PathBuf {
    static COUNT: AtomicU32 = AtomicU32::new(1);
    let test = thread::current()
        .name()
        .unwrap_or("unnamed")
        .replace("::", ".");
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let folder = target()
        .join("interop")
        .join(test)
        .join(format!("{peer}-{number}"));
    let made = fs::remove_dir_all(&folder).or_else(missing_is_fine);
    made.and_then(|()| fs::create_dir_all(&folder))
        .unwrap_or_else(|error| panic!("cannot make {}: {error}", folder.display()));
    folder
}

fn missing_is_fine(error: std::io::Error) -> std::io::Result<()> {
    match error.kind() {
        std::io::ErrorKind::NotFound => Ok(()),
        _ => Err(error),
    }
}

fn venv() -> PathBuf {
    target().join("venv")
}

fn target() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |given| root.join(given))
}
