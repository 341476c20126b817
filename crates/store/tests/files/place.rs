//! A directory of files, and a watcher of it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use tokio::time::timeout;
use trunkline::Change;
use trunkline_store::{Files, FilesStatus, Loaded, Options, Update, Watcher};

/// Far more than anything here takes, so that only a fault waits that long.
const LONG: Duration = Duration::from_secs(30);

/// Short times, so that tests are quick; none of them is measured. Only
/// notifications count, unless a test says otherwise.
pub(crate) fn options() -> Options {
    Options {
        quiet: Duration::from_millis(20),
        retry: Duration::from_millis(40),
        rescan: Duration::from_secs(3600),
        ..Options::default()
    }
}

pub(crate) struct Place(pub(crate) TempDir);

impl Place {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        fs::write(self.path(name), text).unwrap();
    }

    /// As careful programs write: a new file takes the name of the old one.
    pub(crate) fn replace(&self, name: &str, text: &str) {
        self.write(".new", text);
        fs::rename(self.path(".new"), self.path(name)).unwrap();
    }

    pub(crate) fn remove(&self, name: &str) {
        fs::remove_file(self.path(name)).unwrap();
    }

    pub(crate) fn load(&self) -> Loaded {
        Files::new([self.0.path()], options()).load()
    }

    pub(crate) fn watch(&self) -> Watched {
        Watched::new([self.0.path()], options())
    }
}

/// A cluster in YAML whose contents differ with `edition`.
pub(crate) fn cluster(name: &str, edition: usize) -> String {
    format!(
        "- \"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster\n  \
         name: {name}\n  alt_stat_name: e{edition}\n"
    )
}

/// A file of clusters.
pub(crate) fn clusters<'a>(names: impl IntoIterator<Item = (&'a str, usize)>) -> String {
    let all: String = names.into_iter().map(|(n, e)| cluster(n, e)).collect();
    format!("resources:\n{all}")
}

pub(crate) const BROKEN: &str = "resources:\n- \"@type\": \n  nonsense: [";

/// The state of a database that takes every update: version by name and
/// variant.
pub(crate) struct Watched {
    pub(crate) watcher: Watcher,
    pub(crate) held: BTreeMap<(String, String), String>,
}

impl Watched {
    pub(crate) fn new<P: AsRef<Path>>(
        paths: impl IntoIterator<Item = P>,
        options: Options,
    ) -> Self {
        let paths = paths.into_iter().map(|path| path.as_ref().to_owned());
        let paths: Vec<PathBuf> = paths.collect();
        let watcher = Files::new(paths, options).watch().unwrap();
        let held = BTreeMap::new();
        Self { watcher, held }
    }

    /// The next update, not yet applied.
    pub(crate) async fn peek(&mut self) -> Update {
        let update = timeout(LONG, self.watcher.next()).await;
        update.expect("an update in time").expect("a watcher")
    }

    /// The next update, applied.
    pub(crate) async fn next(&mut self) -> Update {
        let update = self.peek().await;
        for change in &update.changes {
            match change {
                Change::Upsert(_, resource) => {
                    let key = key(resource.name.as_str(), resource.constraints.as_ref());
                    self.held.insert(key, resource.version.to_string());
                }
                Change::RemoveVariant(_, name, constraints) => {
                    let key = key(name.as_str(), constraints.as_ref());
                    assert!(self.held.remove(&key).is_some(), "{key:?} was held");
                }
                other => panic!("not a change of files: {other:?}"),
            }
        }
        update
    }

    /// Waits until the status satisfies `is`. An update that comes in the
    /// meantime stays where it is.
    pub(crate) async fn status(&mut self, is: impl Fn(&FilesStatus) -> bool) -> Arc<FilesStatus> {
        let mut status = self.watcher.status();
        // Asking for the next update would mean that the last one was applied.
        let waiting = async {
            tokio::select! {
                biased;
                found = status.wait_for(|status| is(status)) => Arc::clone(&found.unwrap()),
                update = self.watcher.next() => panic!("no update was expected: {update:?}"),
            }
        };
        timeout(LONG, waiting).await.expect("a status in time")
    }

    pub(crate) async fn bad(&mut self) -> Arc<FilesStatus> {
        self.status(|status| status.bad().count() > 0).await
    }

    pub(crate) async fn good(&mut self) -> Arc<FilesStatus> {
        self.status(|status| status.loaded && status.bad().count() == 0)
            .await
    }
}

fn key(name: &str, constraints: Option<&impl ToString>) -> (String, String) {
    let constraints = constraints.map(ToString::to_string).unwrap_or_default();
    (name.to_owned(), constraints)
}

/// The changes as text: `+a` or `-a`.
pub(crate) fn said(update: &Update) -> Vec<String> {
    let said = update.changes.iter().map(|change| match change {
        Change::Upsert(_, resource) => format!("+{}", resource.name),
        Change::RemoveVariant(_, name, _) => format!("-{name}"),
        other => format!("{other:?}"),
    });
    said.collect()
}

/// Every error, without the directory in it.
pub(crate) fn errors(status: &FilesStatus, place: &Place) -> Vec<String> {
    let dir = format!("{}/", place.0.path().display());
    let errors = status.errors().map(|e| e.to_string().replace(&dir, ""));
    errors.collect()
}
