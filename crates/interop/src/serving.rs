//! A server under test on a runtime of its own.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use trunkline::tls::Tls;
use trunkline::{Builder, Change, Server, Store as _};
use trunkline_store::{EmbeddedStore, FileContents, Files, Options};

use crate::journal::Journal;

/// More than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(20);

/// Serves until it is dropped.
#[derive(Debug)]
pub struct Serving {
    /// The reports of the server.
    pub journal: Arc<Journal>,
    /// Where it listens, on loopback.
    pub port: u16,
    /// The server.
    pub server: Server,
    runtime: Option<Runtime>,
    task: Option<JoinHandle<()>>,
}

impl Serving {
    /// A server with these contents on a port of its own.
    ///
    /// # Panics
    ///
    /// When the contents are not sound, and as [`Self::over`].
    #[must_use]
    pub fn start(contents: Vec<Change>) -> Self {
        Self::start_on(0, contents)
    }

    /// The same on a given port.
    ///
    /// # Panics
    ///
    /// When the contents are not sound, and as [`Self::over`].
    #[must_use]
    pub fn start_on(port: u16, contents: Vec<Change>) -> Self {
        let apply = |server: &Server| {
            let applied = server.apply(contents);
            applied.unwrap_or_else(|error| panic!("not sound contents: {error}"));
        };
        Self::begin(Server::builder(), apply, port, None)
    }

    /// A server of the contents that a store in a folder has kept.
    ///
    /// # Panics
    ///
    /// When the store cannot be read, and as [`Self::over`].
    #[must_use]
    pub fn kept(folder: &Path, port: u16) -> Self {
        let (builder, restore) = of_store(folder);
        Self::begin(builder, restore, port, None)
    }

    /// A server of the files of a folder.
    ///
    /// # Panics
    ///
    /// As [`Self::over`].
    #[must_use]
    pub fn files(folder: &Path) -> Self {
        Self::over(of_files(folder), 0, None)
    }

    /// A server with settings of its own. Returns when its contents are there.
    ///
    /// # Panics
    ///
    /// When the port cannot be had, or the contents do not come.
    #[must_use]
    pub fn over(builder: Builder, port: u16, tls: Option<Tls>) -> Self {
        let serving = Self::begin(builder, |_: &Server| (), port, tls);
        serving.block_on(serving.server.ready());
        serving
    }

    /// The same, without waiting for the contents.
    ///
    /// # Panics
    ///
    /// When the port cannot be had.
    #[must_use]
    pub fn unready(builder: Builder, port: u16) -> Self {
        Self::begin(builder, |_: &Server| (), port, None)
    }

    /// Begins to serve once the server is prepared.
    fn begin(builder: Builder, prepare: impl FnOnce(&Server), port: u16, tls: Option<Tls>) -> Self {
        let journal = Arc::new(Journal::default());
        let server = builder
            .observe({
                let journal = Arc::clone(&journal);
                move |peer, report| journal.write(peer, report)
            })
            .build();
        // Before a client can connect.
        prepare(&server);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap_or_else(|error| panic!("no runtime: {error}"));
        let listener = runtime.block_on(listen(port));
        let port = listener
            .local_addr()
            .unwrap_or_else(|error| panic!("a listener without an address: {error}"))
            .port();
        let task = runtime.spawn({
            let server = server.clone();
            async move { server.serve_with(listener, tls).await }
        });
        Self {
            journal,
            port,
            server,
            runtime: Some(runtime),
            task: Some(task),
        }
    }

    /// Changes the contents.
    ///
    /// # Panics
    ///
    /// When the change is not sound.
    pub fn apply(&self, changes: Vec<Change>) {
        let applied = self.server.apply(changes);
        applied.unwrap_or_else(|error| panic!("not a sound change: {error}"));
    }

    /// Waits for something on the server's runtime.
    ///
    /// # Panics
    ///
    /// When it takes too long.
    pub fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        let runtime = self.runtime.as_ref();
        let runtime = runtime.unwrap_or_else(|| panic!("the server has stopped"));
        let waited = runtime.block_on(async { tokio::time::timeout(PATIENCE, future).await });
        waited.unwrap_or_else(|_| panic!("waited {PATIENCE:?} for the server"))
    }

    /// Runs something beside the server for as long as that serves.
    pub fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) {
        if let Some(runtime) = &self.runtime {
            runtime.spawn(future);
        }
    }

    /// Stops the server and waits until it has.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        self.server.stop();
        let (Some(runtime), Some(task)) = (self.runtime.take(), self.task.take()) else {
            return;
        };
        let ended = runtime.block_on(async { tokio::time::timeout(PATIENCE, task).await });
        runtime.shutdown_timeout(Duration::from_secs(1));
        if !std::thread::panicking() {
            assert!(matches!(ended, Ok(Ok(()))), "the server stops: {ended:?}");
        }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.end();
    }
}

/// A builder of a server of the files of a folder, of which there may be none.
/// No change is held: tests remove all that there is.
///
/// # Panics
///
/// When the system gives no thread.
#[must_use]
pub fn of_files(folder: &Path) -> Builder {
    let options = Options {
        guard: false,
        allow_empty: true,
        ..Options::default()
    };
    let contents = FileContents::watch(Files::new([folder], options));
    let contents = contents.unwrap_or_else(|error| panic!("files are not watched: {error}"));
    Server::builder().contents(contents)
}

/// A builder of a server with the store of a folder, and the way back of what it
/// has kept, for when the server is built.
///
/// # Panics
///
/// When the store cannot be read.
pub fn of_store(folder: &Path) -> (Builder, impl FnOnce(&Server) + use<>) {
    let store = EmbeddedStore::open(folder, 1000);
    let kept = store.and_then(|store| Ok((store.load()?, store)));
    let (kept, store) = kept.unwrap_or_else(|error| panic!("not a store: {error}"));
    let restore = |server: &Server| {
        let restored = server.restore(kept);
        restored.unwrap_or_else(|error| panic!("not sound contents: {error}"));
    };
    (Server::builder().store(Arc::new(store)), restore)
}

/// The server before on this port may not have let go of it yet.
async fn listen(port: u16) -> TcpListener {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let deadline = Instant::now() + PATIENCE;
    loop {
        match trunkline::listen::bind(address).await {
            Ok(listener) => return listener,
            Err(error) => assert!(
                Instant::now() < deadline,
                "cannot listen on {address}: {error}"
            ),
        }
        tokio::time::sleep(PAUSE).await;
    }
}
