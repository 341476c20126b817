//! A server under test on a runtime of its own.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use trunkline::{Change, Server};

use crate::journal::Journal;

/// Serves until it is dropped.
pub(crate) struct Serving {
    pub(crate) journal: Arc<Journal>,
    pub(crate) port: u16,
    server: Server,
    runtime: Option<Runtime>,
    task: Option<JoinHandle<()>>,
}

impl Serving {
    /// On a port of its own.
    pub(crate) fn start(contents: Vec<Change>) -> Self {
        Self::start_on(0, contents)
    }

    pub(crate) fn start_on(port: u16, contents: Vec<Change>) -> Self {
        let journal = Arc::new(Journal::default());
        let server = Server::builder()
            .observe({
                let journal = Arc::clone(&journal);
                move |peer, report| journal.write(peer, report)
            })
            .build();
        server.apply(contents).expect("sound contents");
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .expect("a runtime");
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let listener = runtime
            .block_on(TcpListener::bind(address))
            .expect("a port");
        let port = listener.local_addr().expect("its address").port();
        let task = runtime.spawn({
            let server = server.clone();
            async move { server.serve(listener).await }
        });
        Self {
            journal,
            port,
            server,
            runtime: Some(runtime),
            task: Some(task),
        }
    }

    pub(crate) fn apply(&self, changes: Vec<Change>) {
        self.server.apply(changes).expect("a sound change");
    }

    /// Stops the server and waits until it has.
    pub(crate) fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        self.server.stop();
        let (Some(runtime), Some(task)) = (self.runtime.take(), self.task.take()) else {
            return;
        };
        let patience = Duration::from_secs(10);
        let ended = runtime.block_on(async { tokio::time::timeout(patience, task).await });
        runtime.shutdown_timeout(Duration::from_secs(1));
        if !std::thread::panicking() {
            ended.expect("stops in time").expect("no panic");
        }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.end();
    }
}
