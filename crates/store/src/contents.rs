//! Files as the contents of a server.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;
use trunkline::{ApplyError, BoxFuture, Change, Contents, Resource, TypeUrl, Writer};

use crate::status::FilesStatus;
use crate::watch::{Update, Watcher};

/// The maximum of files that are named in the origin of a change.
const MOST_NAMED: usize = 3;
/// The number of changes in one part of the first load.
const PART: usize = 100_000;

/// The resources of files as the contents of a server, kept up to date.
///
/// ```no_run
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// use trunkline_store::{FileContents, Files, Options};
///
/// let files = Files::new(["/etc/xds"], Options::default());
/// let contents = FileContents::new(files.watch()?);
/// let status = contents.status();
/// let server = trunkline::Server::builder().contents(contents).build();
/// let listener = trunkline::listen::bind("127.0.0.1:18000").await?;
/// server.serve(listener).await;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct FileContents {
    /// Taken by the task that runs it.
    watcher: Mutex<Option<Watcher>>,
    status: watch::Receiver<Arc<FilesStatus>>,
}

impl FileContents {
    /// Makes the contents of the files that a watcher watches.
    #[must_use]
    pub fn new(watcher: Watcher) -> Self {
        let status = watcher.status();
        let watcher = Mutex::new(Some(watcher));
        Self { watcher, status }
    }

    /// Returns the status of all files, now and whenever it changes.
    #[must_use]
    pub fn status(&self) -> watch::Receiver<Arc<FilesStatus>> {
        self.status.clone()
    }
}

impl Contents for FileContents {
    /// Applies the updates of the watcher one by one until files are no longer
    /// watched, and tells the watcher of those that the database refuses. After
    /// the first update the contents count as loaded. A second run does
    /// nothing.
    fn run(self: Arc<Self>, writer: Writer) -> BoxFuture<'static, ()> {
        let mut watcher = self.watcher.lock().unwrap_or_else(PoisonError::into_inner);
        let watcher = watcher.take();
        Box::pin(async move {
            let Some(mut watcher) = watcher else { return };
            while let Some(update) = watcher.next().await {
                if let Err(error) = apply(&writer, update).await {
                    watcher.refused(error);
                }
            }
        })
    }
}

/// Applies an update: the first one in parts, after which the contents are
/// loaded, and any other as a whole.
async fn apply(writer: &Writer, update: Update) -> Result<(), ApplyError> {
    if update.first {
        apply_first(writer, update, PART).await?;
        writer.loaded();
        return Ok(());
    }
    let origin = origin(&update);
    writer.apply(&origin, update.changes).map(drop)
}

/// Applies the changes of the first update, which are all upserts, in parts of
/// `part` changes. Parts are enough: no stream is served before all of them are
/// applied (S51). They save memory: the changes of a part are freed before the
/// next is applied. If a part is refused, those before it are undone.
async fn apply_first(writer: &Writer, mut update: Update, part: usize) -> Result<(), ApplyError> {
    let origin = origin(&update);
    let mut applied = Applied::new();

    // The list is reversed, because it can be cut short at its end only.
    update.changes.reverse();
    while !update.changes.is_empty() {
        let rest = update.changes.len().saturating_sub(part);
        let mut changes = update.changes.split_off(rest);
        update.changes.shrink_to_fit();
        changes.reverse();

        let upserts: Vec<_> = changes.iter().filter_map(upserted).collect();
        if let Err(error) = writer.apply(&origin, changes) {
            undo(writer, &origin, applied);
            return Err(error);
        }

        for (type_url, resource) in upserts {
            applied.entry(type_url).or_default().push(resource);
        }
        tokio::task::yield_now().await;
    }
    Ok(())
}

/// The resources that were applied, in as little memory as possible.
type Applied = HashMap<TypeUrl, Vec<Arc<Resource>>>;

/// Returns the type and the resource of an upsert; `None` of another change.
fn upserted(change: &Change) -> Option<(TypeUrl, Arc<Resource>)> {
    match change {
        Change::Upsert(type_url, resource) => Some((type_url.clone(), Arc::clone(resource))),
        _ => None,
    }
}

/// Removes the resources of earlier parts, because a later part was refused.
fn undo(writer: &Writer, origin: &str, applied: Applied) {
    let mut removals = Vec::new();
    for (type_url, resources) in applied {
        removals.extend(resources.into_iter().map(|resource| {
            let (name, constraints) = (resource.name.clone(), resource.constraints.clone());
            Change::RemoveVariant(type_url.clone(), name, constraints)
        }));
    }
    // A removal contradicts nothing, so it is not refused.
    let _ = writer.apply(origin, removals);
}

/// Names the files of an update as the origin of its changes: all of a few; of
/// many, the first [`MOST_NAMED`] and the number of the others.
fn origin(update: &Update) -> String {
    let files = &update.files;
    let named = &files[..files.len().min(MOST_NAMED)];
    match files.len() - named.len() {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trunkline::{Resource, Server, kind};

    /// Applies the update in parts, and sends whether it worked.
    struct Parts(Mutex<Option<(Update, tokio::sync::oneshot::Sender<bool>)>>);

    impl Contents for Parts {
        fn run(self: Arc<Self>, writer: Writer) -> BoxFuture<'static, ()> {
            let taken = self.0.lock().unwrap().take();
            Box::pin(async move {
                let (update, done) = taken.unwrap();
                let applied = apply_first(&writer, update, 1).await;
                done.send(applied.is_ok()).unwrap();
            })
        }
    }

    async fn applied(resources: [Resource; 3]) -> (bool, usize) {
        let changes = resources.map(|r| Change::Upsert(kind::CDS.into(), Arc::new(r)));
        let update = Update {
            changes: changes.into(),
            files: Vec::new(),
            first: true,
        };
        let (done, told) = tokio::sync::oneshot::channel();
        let contents = Parts(Mutex::new(Some((update, done))));
        let server = Server::builder().contents(contents).build();
        server.start();
        let good = told.await.unwrap();
        let count = server.read(|db| db.find_type(&kind::CDS.into()).map_or(0, |id| db.len(id)));
        (good, count)
    }

    #[tokio::test]
    async fn first_contents_are_all_there_or_none_of_them() {
        let good = |name: &str| Resource::new(name.into(), "x".into());
        let bad = Resource {
            body: None,
            ..good("c")
        };
        assert_eq!(applied([good("a"), good("b"), good("c")]).await, (true, 3));
        assert_eq!(applied([good("a"), good("b"), bad]).await, (false, 0));
    }
}
