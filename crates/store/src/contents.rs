//! Files as the contents of a server.

use std::io;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;

use tokio::sync::watch;
use trunkline::{BoxFuture, Contents, Writer};

use crate::files::Files;
use crate::mailbox::Mailbox;
use crate::status::FilesStatus;
use crate::watch::Watching;

/// The resources of files as the contents of a server, kept up to date.
///
/// ```no_run
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// use trunkline_store::{FileContents, Files, Options};
///
/// let files = Files::new(["/etc/xds"], Options::default());
/// let contents = FileContents::watch(files)?;
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
    thread: Mutex<Option<FilesThread>>,
    mailbox: Arc<Mailbox>,
    status: watch::Receiver<Arc<FilesStatus>>,
}

/// The thread that reads and watches files. It waits for the writer, and stops
/// when this is dropped.
struct FilesThread {
    writers: mpsc::Sender<Writer>,
    mailbox: Arc<Mailbox>,
}

impl FileContents {
    /// Starts a thread that waits until a server runs these contents, and then
    /// reads and watches the files.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn watch(files: Files) -> io::Result<Self> {
        let (report, status) = watch::channel(Arc::default());
        let (writers, writer) = mpsc::channel();
        let mailbox = Arc::new(Mailbox::default());
        let watching = Watching::new(files, Arc::clone(&mailbox), report);

        let thread = thread::Builder::new().name("trunkline-files".to_owned());
        thread.spawn(move || {
            if let Ok(writer) = writer.recv() {
                watching.run(writer);
            }
        })?;
        Ok(Self {
            mailbox: Arc::clone(&mailbox),
            thread: Mutex::new(Some(FilesThread { writers, mailbox })),
            status,
        })
    }

    /// Returns the status of all files, now and whenever it changes.
    #[must_use]
    pub fn status(&self) -> watch::Receiver<Arc<FilesStatus>> {
        self.status.clone()
    }
}

impl Contents for FileContents {
    /// Lets the thread settle the files in the server, until the future is
    /// dropped. The contents count as loaded when every file has been good. A
    /// second run does nothing.
    fn run(self: Arc<Self>, writer: Writer) -> BoxFuture<'static, ()> {
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        let thread = thread.take();
        Box::pin(async move {
            let Some(thread) = thread else { return };
            if thread.writers.send(writer).is_ok() {
                std::future::pending().await
            }
        })
    }

    /// Makes the thread propose the changes again that were held.
    fn confirmed(&self) {
        self.mailbox.add_unknown_change();
    }
}

impl Drop for FilesThread {
    fn drop(&mut self) {
        self.mailbox.stop();
    }
}

impl std::fmt::Debug for FilesThread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("FilesThread")
    }
}
