//! A directory of files, and a server of it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;
use trunkline::{Changed, Hooks, Server};
use trunkline_store::{FileContents, Files, FilesStatus, Loaded, Options};

/// Far more than anything here takes, so that only a fault waits that long.
const LONG: Duration = Duration::from_secs(30);

/// Short times, so that tests are quick; none of them is measured. Only
/// notifications count, unless a test says otherwise.
pub(crate) fn options() -> Options {
    Options {
        guard: false,
        allow_empty: true,
        quiet: Duration::from_millis(20),
        retry: Duration::from_millis(40),
        pair: Duration::from_millis(40),
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

/// A server of files, and every change of its contents: version by name and
/// variant.
pub(crate) struct Watched {
    pub(crate) server: Server,
    status: watch::Receiver<Arc<FilesStatus>>,
    updates: mpsc::UnboundedReceiver<Update>,
    pub(crate) held: BTreeMap<(String, String), String>,
}

/// One transaction.
#[derive(Debug)]
pub(crate) struct Update {
    /// The files that it came from, as they are named in the log.
    pub(crate) files: String,
    pub(crate) changes: Vec<Changed>,
}

/// Tells every change of a server.
struct Tell(mpsc::UnboundedSender<Update>);

impl Hooks for Tell {
    fn changed(&self, _: u64, origin: &str, changed: &[Changed]) {
        let _ = self.0.send(Update {
            files: origin.to_owned(),
            changes: changed.to_vec(),
        });
    }
}

impl Watched {
    pub(crate) fn new<P: AsRef<Path>>(
        paths: impl IntoIterator<Item = P>,
        options: Options,
    ) -> Self {
        let paths = paths.into_iter().map(|path| path.as_ref().to_owned());
        let paths: Vec<PathBuf> = paths.collect();
        let contents = FileContents::watch(Files::new(paths, options)).unwrap();
        let status = contents.status();
        let (tell, updates) = mpsc::unbounded_channel();
        let server = Server::builder().hooks(Tell(tell)).contents(contents);
        let server = server.build();
        server.start();
        Self {
            server,
            status,
            updates,
            held: BTreeMap::new(),
        }
    }

    /// Waits until the first contents are loaded.
    pub(crate) async fn loaded(&mut self) {
        timeout(LONG, self.server.ready())
            .await
            .expect("ready in time");
        while let Ok(update) = self.updates.try_recv() {
            self.hold(&update);
        }
    }

    /// The next update, whoever made it.
    pub(crate) async fn any_update(&mut self) -> Update {
        let update = timeout(LONG, self.updates.recv()).await;
        let update = update.expect("an update in time").expect("a server");
        self.hold(&update);
        update
    }

    /// The next update of files. The status that comes with it is there, too.
    pub(crate) async fn next(&mut self) -> Update {
        let update = self.any_update().await;
        let status = timeout(LONG, self.status.changed()).await;
        status.expect("a status in time").expect("a thread");
        update
    }

    fn hold(&mut self, update: &Update) {
        for change in &update.changes {
            let key = key(change.name.as_str(), change.constraints.as_ref());
            match &change.to {
                Some(version) => drop(self.held.insert(key, version.to_string())),
                None => assert!(self.held.remove(&key).is_some(), "{key:?} was held"),
            }
        }
    }

    /// Waits until the status satisfies `is`. No update may come in the
    /// meantime.
    pub(crate) async fn status(&mut self, is: impl Fn(&FilesStatus) -> bool) -> Arc<FilesStatus> {
        let waiting = async {
            tokio::select! {
                biased;
                found = self.status.wait_for(|status| is(status)) => Arc::clone(&found.unwrap()),
                update = self.updates.recv() => panic!("no update was expected: {update:?}"),
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

/// The changes as text: `+a` or `-a`, in this order.
pub(crate) fn said(update: &Update) -> Vec<String> {
    let said = update.changes.iter().map(|change| match change.to {
        Some(_) => format!("+{}", change.name),
        None => format!("-{}", change.name),
    });
    let mut said: Vec<String> = said.collect();
    said.sort();
    said
}

/// Every error, without the directory in it.
pub(crate) fn errors(status: &FilesStatus, place: &Place) -> Vec<String> {
    let dir = format!("{}/", place.0.path().display());
    let errors = status.errors().map(|e| e.to_string().replace(&dir, ""));
    errors.collect()
}
