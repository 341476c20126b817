//! Where contents that come by `apply` are kept.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use trunkline::{Kept, Store, StoreError};
use trunkline_store::{EmbeddedStore, MemoryStore};

use crate::failure::{Failure, Result};
use crate::settings::Settings;

/// The word for contents that are not kept.
const MEMORY: &str = "memory";

/// A store, and what it has kept.
pub(crate) struct OpenStore {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) kept: Kept,
    /// Where what is served of files is kept; `None` if nowhere.
    pub(crate) file_store: Option<Arc<EmbeddedStore>>,
}

/// Where contents are kept.
#[derive(Debug, PartialEq, Eq)]
enum Place {
    /// As long as the program runs.
    Memory,
    /// In a directory.
    Dir(PathBuf),
}

/// Opens the store that the settings name, or the default one.
///
/// # Errors
/// The store cannot be used. The message says what to do.
pub(crate) fn open_store(settings: &Settings) -> Result<OpenStore> {
    let place = find_place(settings, |name| std::env::var_os(name))?;
    let history = settings.history as u64;
    let dir = match place {
        Place::Memory => {
            return Ok(OpenStore {
                store: Arc::new(MemoryStore::new(history)),
                kept: Kept::default(),
                file_store: None,
            });
        }
        Place::Dir(dir) => dir,
    };

    let store = EmbeddedStore::open(&dir, history).map_err(|error| store_failure(&dir, &error))?;
    let contents = store.load().map_err(|error| store_failure(&dir, &error))?;
    tracing::info!(
        data = %dir.display(),
        revision = contents.revision,
        resources = contents.rows.len(),
        "contents that come by `apply` are kept"
    );
    let store = Arc::new(store);
    Ok(OpenStore {
        store: Arc::<EmbeddedStore>::clone(&store),
        kept: contents,
        file_store: Some(store),
    })
}

/// Returns the place of the contents: that of the settings, or else a directory
/// of the environment. With files, or a port that the system chooses, the place
/// is the memory.
///
/// # Errors
/// The environment names no directory.
fn find_place(settings: &Settings, variable: impl Fn(&str) -> Option<OsString>) -> Result<Place> {
    if let Some(data) = &settings.data {
        return Ok(match data.as_os_str() == MEMORY {
            true => Place::Memory,
            false => Place::Dir(data.clone()),
        });
    }

    let port = settings.listen.as_str().rsplit(':').next();
    let port = port.unwrap_or_default();
    // The directory is named by the port, and a port that the system chooses
    // is another one after a restart.
    if !settings.config.is_empty() || port == "0" {
        return Ok(Place::Memory);
    }
    if let Some(list) = variable("STATE_DIRECTORY").filter(|list| !list.is_empty()) {
        let directory = std::env::split_paths(&list).next();
        return Ok(Place::Dir(directory.unwrap_or_default()));
    }

    let absolute_path = |name: &str| {
        let path = PathBuf::from(variable(name)?);
        path.is_absolute().then_some(path)
    };
    let home = || Some(absolute_path("HOME")?.join(".local/state"));
    match absolute_path("XDG_STATE_HOME").or_else(home) {
        Some(state_dir) => Ok(Place::Dir(state_dir.join("trunkline").join(port))),
        None => Err(Failure::wrong(
            "there is no place to keep contents in: neither $STATE_DIRECTORY, $XDG_STATE_HOME nor \
             $HOME is set; name a directory with --data DIR, or keep nothing with --data memory",
        )),
    }
}

/// Makes the failure of a store that cannot be used, with what to do.
fn store_failure(dir: &Path, error: &StoreError) -> Failure {
    let advice = match error {
        StoreError::Damaged { .. } => {
            "it is left as it is; restore a backup into another directory with `trunkline restore`, \
             and name that with --data DIR"
        }
        StoreError::Newer { .. } => "it is left as it is",
        StoreError::InUse { .. } => "stop that one, or name another directory with --data DIR",
        _ => "name another directory with --data DIR, or keep nothing with --data memory",
    };
    Failure::wrong(format!(
        "contents cannot be kept in {}: {error}; {advice}",
        dir.display()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(flags: &[(&'static str, &str)], variables: &[(&str, &str)]) -> Option<Place> {
        let mut raw = crate::settings::Raw::default();
        for (key, value) in flags {
            raw.set(key, vec![(*value).to_owned()]);
        }
        let settings = crate::settings::resolve(None, &raw).unwrap();
        let variable = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| OsString::from(value))
        };
        find_place(&settings, variable).ok()
    }

    #[test]
    fn the_place_of_contents_is_the_first_that_is_named() {
        let dir = |path: &str| Some(Place::Dir(path.into()));
        let home = ("HOME", "/people/a");
        let xdg = ("XDG_STATE_HOME", "/state");
        let systemd = ("STATE_DIRECTORY", "/var/lib/a:/var/lib/b");
        let all = [home, xdg, systemd];
        assert_eq!(find(&[("data", "d")], &all), dir("d"));
        assert_eq!(find(&[("data", "memory")], &all), Some(Place::Memory));
        assert_eq!(find(&[], &all), dir("/var/lib/a"));
        assert_eq!(find(&[], &[home, xdg]), dir("/state/trunkline/18000"));
        let relative = ("XDG_STATE_HOME", "state");
        let expected = dir("/people/a/.local/state/trunkline/18000");
        assert_eq!(find(&[], &[home, relative]), expected);
        let other = [("listen", "127.0.0.1:7")];
        assert_eq!(find(&other, &[xdg]), dir("/state/trunkline/7"));
        assert_eq!(find(&[], &[]), None);
        assert_eq!(find(&[("config", "x")], &all), Some(Place::Memory));
        let any_port = [("listen", "127.0.0.1:0")];
        assert_eq!(find(&any_port, &all), Some(Place::Memory));
        let both = [("config", "x"), ("data", "d")];
        assert_eq!(find(&both, &all), dir("d"));
    }
}
