//! A server of the library, on a port and in a runtime of its own.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::runtime::Runtime;
use trunkline::envoy::config::cluster::v3::Cluster;
use trunkline::{ResourceMessage, Server};

/// A server that ends with all its connections when it is dropped.
pub(crate) struct Serving {
    pub(crate) server: Server,
    pub(crate) address: SocketAddr,
    runtime: Option<Runtime>,
}

impl Serving {
    pub(crate) fn start() -> Self {
        Self::start_at("127.0.0.1:0")
    }

    /// Starts a server at an address, which another may have used a moment ago.
    pub(crate) fn start_at(address: &str) -> Self {
        Self::start_filled(address, |_| {})
    }

    /// Starts a server that has contents before it listens.
    pub(crate) fn start_with(fill: impl FnOnce(&Self)) -> Self {
        Self::start_filled("127.0.0.1:0", fill)
    }

    fn start_filled(address: &str, fill: impl FnOnce(&Self)) -> Self {
        let address = address.to_owned();
        let started = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(1)
                .enable_all()
                .build()
                .unwrap();
            let server = runtime.block_on(async { Server::builder().build() });
            let listener = runtime.block_on(bind(&address));
            let bound = listener.local_addr().unwrap();
            let serving = Self {
                server,
                address: bound,
                runtime: Some(runtime),
            };
            (serving, listener)
        });
        let (serving, listener) = started.join().unwrap();
        fill(&serving);
        let server = serving.server.clone();
        let runtime = serving.runtime.as_ref().unwrap();
        runtime.spawn(async move { server.serve(listener).await });
        serving
    }

    /// Serves these clusters: names and their timeouts in seconds.
    pub(crate) fn set(&self, clusters: &[(&str, i64)]) {
        let clusters = clusters.iter();
        let messages =
            clusters.map(|(name, seconds)| ResourceMessage::of(&cluster(name, *seconds)));
        self.server.set("test", messages).unwrap();
    }
}

async fn bind(address: &str) -> tokio::net::TcpListener {
    for _ in 0..200 {
        match trunkline::listen::bind(address).await {
            Ok(listener) => return listener,
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
    panic!("{address} is not free");
}

impl Drop for Serving {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// A cluster whose connect timeout tells its versions apart.
pub(crate) fn cluster(name: &str, seconds: i64) -> Cluster {
    Cluster {
        name: name.to_owned(),
        connect_timeout: Some(trunkline::proto::envoy::google::protobuf::Duration {
            seconds,
            nanos: 0,
        }),
        ..Cluster::default()
    }
}
