//! The service: one task for each stream, between a client and the store.

use std::convert::Infallible;
use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use prost::Message as _;
use tokio::sync::{mpsc, watch};
use tokio_stream::wrappers::ReceiverStream;
use tonic::server::{Grpc, NamedService, StreamingService};
use tonic::{Request, Response, Status, Streaming};

use super::intake::{Intake, Reporter, read_reporter};
use super::settings::LoadSettings;
use super::store::{LoadLimits, LoadReports};
use crate::bounds::{FIRST_LOAD, LOAD_ENDPOINT_MESSAGE, LOAD_MESSAGE};
use crate::codec::RawCodec;
use crate::listen::BoxError;
use crate::questions::{Question, peer_of};
use crate::server::BoxFuture;

/// The number of intervals that a report is kept for at least.
const MIN_KEPT: u32 = 3;

/// The one method of the service.
const METHOD: &str = "/envoy.service.load_stats.v3.LoadReportingService/StreamLoadStats";

/// Load reporting: settings, streams and reports. Clones share them.
#[derive(Clone)]
pub struct Load {
    shared: Arc<Shared>,
}

struct Shared {
    settings: watch::Sender<LoadSettings>,
    reports: LoadReports,
    intake: Intake,
    /// Returns the names of the server's clusters.
    list_clusters: Box<dyn Fn() -> Vec<String> + Send + Sync>,
    /// How often the settings or the clusters have changed.
    changes: AtomicU64,
    /// The settings with the names of the clusters, encoded, as of a change:
    /// all clients that need names get the same.
    with_names: Mutex<Option<(u64, Bytes)>>,
    streams: AtomicUsize,
}

impl Shared {
    /// Returns the most bytes that a message may have, by the settings.
    fn message_bytes(&self) -> usize {
        if self.settings.borrow().endpoint_granularity {
            LOAD_ENDPOINT_MESSAGE
        } else {
            LOAD_MESSAGE
        }
    }

    /// Returns the encoded settings for a client. Responses with the names of
    /// clusters are cached until these change.
    fn response(&self, settings: &LoadSettings, understands_all: bool) -> Bytes {
        if !settings.needs_names(understands_all) {
            let response = settings.write_response(understands_all, Vec::new);
            return response.encode_to_vec().into();
        }

        // The counter is read before the names, so that names which change
        // meanwhile are not cached as the newest.
        let change = self.changes.load(Ordering::SeqCst);
        let cached_response = self.with_names.lock();
        let mut cached_response = cached_response.unwrap_or_else(PoisonError::into_inner);
        if let Some((_, bytes)) = cached_response
            .as_ref()
            .filter(|(cached_change, _)| *cached_change == change)
        {
            return bytes.clone();
        }

        let response = settings.write_response(understands_all, &self.list_clusters);
        let bytes = Bytes::from(response.encode_to_vec());
        *cached_response = Some((change, bytes.clone()));
        bytes
    }
}

impl fmt::Debug for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Load");
        debug.field("settings", &*self.shared.settings.borrow());
        debug.field("streams", &self.streams()).finish()
    }
}

impl Load {
    /// Returns a service without streams and reports. Reports are kept for
    /// three intervals at least, even if `limits` ask for less. `known`
    /// returns the server's clusters, for clients that need a list.
    #[must_use]
    pub fn new(
        settings: LoadSettings,
        mut limits: LoadLimits,
        known: impl Fn() -> Vec<String> + Send + Sync + 'static,
    ) -> Self {
        limits.keep = limits.keep.max(settings.interval.saturating_mul(MIN_KEPT));
        let reports = LoadReports::new(limits);
        Self {
            shared: Arc::new(Shared {
                settings: watch::Sender::new(settings),
                intake: Intake::new(reports.clone()),
                reports,
                list_clusters: Box::new(known),
                changes: AtomicU64::new(0),
                with_names: Mutex::default(),
                streams: AtomicUsize::new(0),
            }),
        }
    }

    /// Returns the service for a tonic server.
    #[must_use]
    pub fn service(&self) -> LoadServer {
        LoadServer {
            shared: Arc::clone(&self.shared),
        }
    }

    /// Returns the reports of all clients.
    #[must_use]
    pub fn reports(&self) -> &LoadReports {
        &self.shared.reports
    }

    /// Returns the number of open streams.
    #[must_use]
    pub fn streams(&self) -> usize {
        self.shared.streams.load(Ordering::Relaxed)
    }

    /// Returns the most bytes that a message may have, by the settings.
    pub(crate) fn message_bytes(&self) -> usize {
        self.shared.message_bytes()
    }

    /// Returns whether one more stream would be refused.
    pub(crate) fn is_full(&self) -> bool {
        self.streams() >= self.shared.reports.limits().streams
    }

    /// Changes what clients report. Clients on open streams are told.
    pub fn set(&self, settings: LoadSettings) {
        self.shared.changes.fetch_add(1, Ordering::SeqCst);
        self.shared.settings.send_replace(settings);
    }

    /// Sends the list of clusters to clients that need one, if it is another
    /// one than they were sent last.
    pub fn clusters_changed(&self) {
        self.shared.changes.fetch_add(1, Ordering::SeqCst);
        self.shared.settings.send_modify(|_| ());
    }
}

/// The gRPC service of [`Load`].
#[derive(Clone)]
pub struct LoadServer {
    shared: Arc<Shared>,
}

impl fmt::Debug for LoadServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LoadServer")
    }
}

impl NamedService for LoadServer {
    const NAME: &'static str = "envoy.service.load_stats.v3.LoadReportingService";
}

impl<B> tower_service::Service<http::Request<B>> for LoadServer
where
    B: http_body::Body<Data = Bytes, Error: Into<BoxError> + Send> + Send + 'static,
{
    type Response = http::Response<tonic::body::Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    /// Serves the one method; another is an unimplemented one.
    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        let open = Opener(Arc::clone(&self.shared));
        Box::pin(async move {
            let path = request.uri().path();
            if path != METHOD {
                let status = Status::unimplemented(format!("no method {path}"));
                return Ok(status.into_http());
            }
            let limit = open.0.message_bytes();
            let mut grpc = Grpc::new(RawCodec).max_decoding_message_size(limit);
            Ok(grpc.streaming(open, request).await)
        })
    }
}

/// Opens the stream of a request.
struct Opener(Arc<Shared>);

impl StreamingService<Bytes> for Opener {
    type Response = Bytes;
    type ResponseStream = ReceiverStream<Result<Bytes, Status>>;
    type Future = std::future::Ready<Result<Response<Self::ResponseStream>, Status>>;

    /// Starts a task for the stream, whose responses are read from a channel.
    fn call(&mut self, request: Request<Streaming<Bytes>>) -> Self::Future {
        std::future::ready(Open::new(&self.0).map(|open| {
            let (responses, response_queue) = mpsc::channel(1);
            let peer = peer_of(request.extensions());
            let stream = Stream {
                turns: open.0.intake.turns_of(peer),
                open,
                inbound: request.into_inner(),
                responses,
            };
            tokio::spawn(stream.run());
            Response::new(ReceiverStream::new(response_queue))
        }))
    }
}

/// Counts a stream for as long as it lives.
struct Open(Arc<Shared>);

impl Open {
    /// Counts a new stream.
    ///
    /// # Errors
    /// There are too many.
    fn new(shared: &Arc<Shared>) -> Result<Self, Status> {
        let open_streams = shared.streams.fetch_add(1, Ordering::Relaxed);
        // Dropping this guard at a refusal ends the count of the stream.
        let guard = Self(Arc::clone(shared));
        if open_streams < shared.reports.limits().streams {
            return Ok(guard);
        }
        Err(Status::resource_exhausted(
            "too many streams of load reports; report to another server",
        ))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.reports.drop_old_later();
        self.0.streams.fetch_sub(1, Ordering::Relaxed);
    }
}

/// One stream of load reports.
struct Stream {
    open: Open,
    /// The turns of the client's address.
    turns: Question,
    inbound: Streaming<Bytes>,
    responses: mpsc::Sender<Result<Bytes, Status>>,
}

impl Stream {
    /// Serves the stream, and sends the status if the client broke the
    /// protocol.
    async fn run(mut self) {
        if let Err(status) = self.serve().await {
            // Fails if the client no longer reads.
            let _ = self.responses.send(Err(status)).await;
        }
    }

    /// Sends the settings and stores the reports until either side ends the
    /// stream. The settings are sent again when they change for this client.
    ///
    /// # Errors
    /// The first message has no node, or does not come in time.
    async fn serve(&mut self) -> Result<(), Status> {
        let first_message = tokio::time::timeout(FIRST_LOAD, self.next_message()).await;
        let too_late = |_| Status::deadline_exceeded("a load report has to begin with a node");
        let Some(first_message) = first_message.map_err(too_late)?? else {
            return Ok(());
        };
        // gRPC sends the node once, Envoy each time; it does not change.
        let (reporter, understands_all) = read_reporter(&first_message)?;
        self.store(&reporter, first_message).await?;

        let mut settings = self.open.0.settings.subscribe();
        let mut last_sent = None;
        loop {
            let response = {
                let settings = settings.borrow_and_update();
                self.open.0.response(&settings, understands_all)
            };
            if last_sent.as_ref() != Some(&response) {
                last_sent = Some(response.clone());
                if self.responses.send(Ok(response)).await.is_err() {
                    return Ok(());
                }
            }
            if !self.store_until_changed(&reporter, &mut settings).await? {
                return Ok(());
            }
        }
    }

    /// Stores reports until the settings change. Returns `false` if the stream
    /// or the server has ended.
    async fn store_until_changed(
        &mut self,
        reporter: &Reporter,
        settings: &mut watch::Receiver<LoadSettings>,
    ) -> Result<bool, Status> {
        loop {
            let message = tokio::select! {
                change = settings.changed() => return Ok(change.is_ok()),
                message = self.next_message() => message?,
            };
            match message {
                Some(message) => self.store(reporter, message).await?,
                None => return Ok(false),
            }
        }
    }

    /// Stores the reports of a message, when it is the turn of the client's
    /// address.
    async fn store(&self, reporter: &Reporter, message: Bytes) -> Result<(), Status> {
        let intake = &self.open.0.intake;
        intake.store(reporter, &self.turns, message).await
    }

    /// Receives the client's next message; `None` when either side has ended
    /// the stream.
    async fn next_message(&mut self) -> Result<Option<Bytes>, Status> {
        tokio::select! {
            message = self.inbound.message() => message,
            () = self.responses.closed() => Ok(None),
        }
    }
}
