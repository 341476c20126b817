//! The service: one task for each stream, between a client and the store.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{mpsc, watch};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};
use trunkline_proto::envoy::envoy::config::core::v3::Node;
use trunkline_proto::envoy::envoy::config::endpoint::v3::ClusterStats;
use trunkline_proto::envoy::envoy::service::load_stats::v3::load_reporting_service_server::{
    LoadReportingService, LoadReportingServiceServer,
};
use trunkline_proto::envoy::envoy::service::load_stats::v3::{LoadStatsRequest, LoadStatsResponse};

use super::settings::LoadSettings;
use super::store::{LoadLimits, LoadReports};

/// The maximum of bytes in one message: room for a report on every endpoint of
/// a large client.
const MESSAGE_BYTES: usize = 16 << 20;

/// The number of intervals that a report is kept for at least.
const MIN_KEPT: u32 = 3;

/// Load reporting: settings, streams and reports. Clones share them.
#[derive(Clone)]
pub struct Load {
    shared: Arc<Shared>,
}

struct Shared {
    settings: watch::Sender<LoadSettings>,
    reports: LoadReports,
    /// Returns the names of the server's clusters.
    known: Box<dyn Fn() -> Vec<String> + Send + Sync>,
    streams: AtomicUsize,
}

impl fmt::Debug for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Load");
        shown.field("settings", &*self.shared.settings.borrow());
        shown.field("streams", &self.streams()).finish()
    }
}

impl Load {
    /// Makes a service without streams and reports. A report is kept for three
    /// intervals at least, whatever `limits` say. `known` returns the server's
    /// clusters, for clients that need a list.
    #[must_use]
    pub fn new(
        settings: LoadSettings,
        mut limits: LoadLimits,
        known: impl Fn() -> Vec<String> + Send + Sync + 'static,
    ) -> Self {
        limits.keep = limits.keep.max(settings.interval.saturating_mul(MIN_KEPT));
        Self {
            shared: Arc::new(Shared {
                settings: watch::Sender::new(settings),
                reports: LoadReports::new(limits),
                known: Box::new(known),
                streams: AtomicUsize::new(0),
            }),
        }
    }

    /// The service for a tonic server.
    #[must_use]
    pub fn service(&self) -> LoadReportingServiceServer<LoadService> {
        let service = LoadService {
            shared: Arc::clone(&self.shared),
        };
        LoadReportingServiceServer::new(service).max_decoding_message_size(MESSAGE_BYTES)
    }

    /// The reports of all clients.
    #[must_use]
    pub fn reports(&self) -> &LoadReports {
        &self.shared.reports
    }

    /// The number of open streams.
    #[must_use]
    pub fn streams(&self) -> usize {
        self.shared.streams.load(Ordering::Relaxed)
    }

    /// Changes what clients report, also on open streams.
    pub fn set(&self, settings: LoadSettings) {
        self.shared.settings.send_replace(settings);
    }

    /// Sends the list of clusters to clients that need one, if it changed.
    pub fn clusters_changed(&self) {
        self.shared.settings.send_modify(|_| ());
    }
}

/// The gRPC service of [`Load`].
pub struct LoadService {
    shared: Arc<Shared>,
}

impl fmt::Debug for LoadService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LoadService")
    }
}

#[tonic::async_trait]
impl LoadReportingService for LoadService {
    type StreamLoadStatsStream = ReceiverStream<Result<LoadStatsResponse, Status>>;

    /// Starts a task for the stream, whose responses are read from a channel.
    async fn stream_load_stats(
        &self,
        request: Request<Streaming<LoadStatsRequest>>,
    ) -> Result<Response<Self::StreamLoadStatsStream>, Status> {
        let (out, responses) = mpsc::channel(1);
        let stream = Stream {
            open: Open::new(Arc::clone(&self.shared)),
            inbound: request.into_inner(),
            out,
        };
        tokio::spawn(stream.run());
        Ok(Response::new(ReceiverStream::new(responses)))
    }
}

/// Counts a stream for as long as it lives.
struct Open(Arc<Shared>);

impl Open {
    /// Counts a new stream. Drops old reports too: nobody may be reading them.
    fn new(shared: Arc<Shared>) -> Self {
        shared.streams.fetch_add(1, Ordering::Relaxed);
        shared.reports.drop_old();
        Self(shared)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.streams.fetch_sub(1, Ordering::Relaxed);
    }
}

/// One stream of load reports.
struct Stream {
    open: Open,
    inbound: Streaming<LoadStatsRequest>,
    out: mpsc::Sender<Result<LoadStatsResponse, Status>>,
}

impl Stream {
    /// Serves the stream, and sends the status if the client broke the
    /// protocol.
    async fn run(mut self) {
        if let Err(status) = self.serve().await {
            // Fails if the client no longer reads.
            let _ = self.out.send(Err(status)).await;
        }
    }

    /// Sends the settings, and stores the reports, until either side ends the
    /// stream. The settings are sent again when they change for this client. An
    /// error if the first message has no node.
    async fn serve(&mut self) -> Result<(), Status> {
        let Some(first) = self.next_message().await? else {
            return Ok(());
        };
        // gRPC sends the node once, Envoy each time; it does not change.
        let node = first.node.ok_or_else(|| {
            Status::invalid_argument("the first message of a load report has no node")
        })?;
        self.store(&node, first.cluster_stats);

        let mut settings = self.open.0.settings.subscribe();
        let mut last_sent = None;
        loop {
            let response = {
                let settings = settings.borrow_and_update();
                settings.write_response(&node.client_features, &self.open.0.known)
            };
            if last_sent.as_ref() != Some(&response) {
                last_sent = Some(response.clone());
                if self.out.send(Ok(response)).await.is_err() {
                    return Ok(());
                }
            }
            if !self.store_until_changed(&node, &mut settings).await? {
                return Ok(());
            }
        }
    }

    /// Stores reports until the settings change. Returns false if the stream or
    /// the server has ended.
    async fn store_until_changed(
        &mut self,
        node: &Node,
        settings: &mut watch::Receiver<LoadSettings>,
    ) -> Result<bool, Status> {
        loop {
            tokio::select! {
                changed = settings.changed() => return Ok(changed.is_ok()),
                message = self.next_message() => match message? {
                    Some(message) => self.store(node, message.cluster_stats),
                    None => return Ok(false),
                },
            }
        }
    }

    /// Receives the client's next message; `None` when either side has ended
    /// the stream.
    async fn next_message(&mut self) -> Result<Option<LoadStatsRequest>, Status> {
        tokio::select! {
            message = self.inbound.message() => message,
            () = self.out.closed() => Ok(None),
        }
    }

    fn store(&self, node: &Node, stats: Vec<ClusterStats>) {
        let reports = &self.open.0.reports;
        reports.store(&node.id, &node.cluster, stats);
    }
}
