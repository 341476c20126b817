//! Files as the contents of a server.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;
use trunkline::{BoxFuture, Contents, Writer};

use crate::status::FilesStatus;
use crate::watch::{Update, Watcher};

/// Files that are named as the origin of a change.
const NAMED: usize = 3;

/// Gives a server what files say, and keeps it up to date.
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
    /// Taken by who runs it.
    watcher: Mutex<Option<Watcher>>,
    status: watch::Receiver<Arc<FilesStatus>>,
}

impl FileContents {
    /// What a watcher sees.
    #[must_use]
    pub fn new(watcher: Watcher) -> Self {
        let status = watcher.status();
        let watcher = Mutex::new(Some(watcher));
        Self { watcher, status }
    }

    /// What is known of all files, now and whenever it changes.
    #[must_use]
    pub fn status(&self) -> watch::Receiver<Arc<FilesStatus>> {
        self.status.clone()
    }
}

impl Contents for FileContents {
    fn run(self: Arc<Self>, writer: Writer) -> BoxFuture<'static, ()> {
        let mut watcher = self.watcher.lock().unwrap_or_else(PoisonError::into_inner);
        let watcher = watcher.take();
        Box::pin(async move {
            let Some(mut watcher) = watcher else { return };
            while let Some(update) = watcher.next().await {
                match writer.apply(&origin(&update), update.changes) {
                    Ok(_) if update.first => writer.loaded(),
                    Ok(_) => {}
                    Err(error) => watcher.refused(error),
                }
            }
        })
    }
}

fn origin(update: &Update) -> String {
    let files = &update.files;
    match files.len().checked_sub(NAMED) {
        Some(more @ 1..) => format!("{} and {more} more", files[..NAMED].join(", ")),
        _ => files.join(", "),
    }
}
