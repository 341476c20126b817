//! The stream of load reports to one control plane (C62).
//!
//! ```text
//!   open ── node ──▶ wait for what the server asks ── every interval ──▶ report
//!     ▲                     ▲        │ another answer: other clusters, interval
//!     │ back-off            └────────┘
//!     └── the stream ends;      last reporter gone ──▶ last report, the end
//! ```

use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use prost::Message as _;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use trunkline_core::sink::{Backoff, BackoffConfig};
use trunkline_proto::envoy::envoy::config::core::v3::Node;
use trunkline_proto::envoy::envoy::service::load_stats::v3::{LoadStatsRequest, LoadStatsResponse};

use super::reporter::NewStream;
use super::store::{Store, Wanted};
use crate::client::control_plane::ControlPlane;
use crate::client::transport::{Connector, Stream, StreamError};

const PATH: &str = "/envoy.service.load_stats.v3.LoadReportingService/StreamLoadStats";

/// The feature of a client that a server may ask for all clusters.
const SENDS_ALL: &str = "envoy.lrs.supports_send_all_clusters";

/// The shortest interval of reports, whatever a server asks for.
const SHORTEST: Duration = Duration::from_millis(100);

/// How long the last report may take.
const LAST: Duration = Duration::from_secs(1);

/// What a stream of load reports needs.
pub(in crate::client) struct LoadTask {
    connector: Connector,
    server: Arc<ControlPlane>,
    node: Node,
    store: Arc<Store>,
    closed: oneshot::Receiver<()>,
    backoff: Backoff,
}

/// What the server asks for.
#[derive(Debug, PartialEq)]
pub(super) struct Instructions {
    pub(super) wanted: Wanted,
    pub(super) interval: Duration,
}

/// Why a stream ended.
#[derive(Debug, thiserror::Error)]
enum End {
    #[error("the server ended the stream")]
    Closed,
    #[error(transparent)]
    Stream(#[from] StreamError),
    #[error("the server sent what is no answer to a load report: {0}")]
    Garbage(#[from] prost::DecodeError),
}

/// What happens next on a stream.
enum Next {
    Answer(Instructions),
    Report,
    LastReporterGone,
}

impl LoadTask {
    /// Makes the task of a stream. Its node says that the client can report on
    /// all clusters.
    pub(in crate::client) fn new(
        connector: Connector,
        server: Arc<ControlPlane>,
        mut node: Node,
        new_stream: NewStream,
    ) -> Self {
        node.client_features.push(SENDS_ALL.to_owned());
        Self {
            connector,
            server,
            node,
            store: new_stream.store,
            closed: new_stream.closed,
            backoff: Backoff::new(BackoffConfig::default(), RandomState::new().hash_one(0)),
        }
    }

    /// Keeps a stream open until the last reporter is dropped, and reconnects
    /// with back-off.
    pub(in crate::client) async fn run(mut self) {
        loop {
            let mut was_answered = false;
            match self.open_and_report(&mut was_answered).await {
                Ok(()) => return,
                Err(end) => {
                    let server = &self.server.address;
                    tracing::debug!(%server, %end, "the stream of load reports ended");
                }
            }
            let delay = self.backoff.after_stream(was_answered);
            tokio::select! {
                _ = &mut self.closed => return,
                () = sleep(delay) => {}
            }
        }
    }

    /// Opens a stream and reports until the last reporter is dropped. Sets
    /// `was_answered` when the server has sent its first response.
    async fn open_and_report(&mut self, was_answered: &mut bool) -> Result<(), End> {
        let mut stream = tokio::select! {
            _ = &mut self.closed => return Ok(()),
            stream = self.connector.open(&self.server, PATH) => stream?,
        };
        stream.ready().await?;
        stream.send(self.introduction());

        let mut instructions: Option<Instructions> = None;
        let mut next_report = Instant::now();
        loop {
            let event = tokio::select! {
                biased;
                _ = &mut self.closed => Next::LastReporterGone,
                message = stream.next() => {
                    let message = message?.ok_or(End::Closed)?;
                    Next::Answer(parse_instructions(&message)?)
                }
                () = sleep_until(next_report), if instructions.is_some() => Next::Report,
            };

            match event {
                Next::Answer(answer) => {
                    *was_answered = true;
                    next_report = Instant::now() + answer.interval;
                    instructions = Some(answer);
                }
                Next::Report => {
                    if let Some(instructions) = &instructions {
                        self.report(&mut stream, &instructions.wanted).await?;
                        next_report = Instant::now() + instructions.interval;
                    }
                }
                Next::LastReporterGone => {
                    // The last report is best effort: its loss is no failure.
                    let _ = timeout(LAST, self.finish(&mut stream, instructions)).await;
                    return Ok(());
                }
            }
        }
    }

    /// Returns the first message of a stream, which has the node and no loads.
    fn introduction(&self) -> Bytes {
        let request = LoadStatsRequest {
            node: Some(self.node.clone()),
            cluster_stats: Vec::new(),
        };
        request.encode_to_vec().into()
    }

    /// Sends a report. The counters are read when the stream has room: a stream
    /// that ends before that loses no counts.
    async fn report(&self, stream: &mut Stream, wanted: &Wanted) -> Result<(), StreamError> {
        stream.ready().await?;
        let request = LoadStatsRequest {
            node: None,
            cluster_stats: self.store.take(wanted, Instant::now()),
        };
        stream.send(request.encode_to_vec().into());
        Ok(())
    }

    /// Sends the last report, after the server has said which clusters it
    /// wants, and waits until the server ends the stream.
    async fn finish(
        &self,
        stream: &mut Stream,
        instructions: Option<Instructions>,
    ) -> Result<(), End> {
        let instructions = match instructions {
            Some(instructions) => instructions,
            None => parse_instructions(&stream.next().await?.ok_or(End::Closed)?)?,
        };
        self.report(stream, &instructions.wanted).await?;
        stream.finish();
        while stream.next().await?.is_some() {}
        Ok(())
    }
}

/// Parses the instructions of the server. An empty list of clusters means no
/// cluster, unless the server asks for all.
pub(super) fn parse_instructions(message: &[u8]) -> Result<Instructions, prost::DecodeError> {
    let response = LoadStatsResponse::decode(message)?;
    let interval = response.load_reporting_interval.unwrap_or_default();
    let seconds = u64::try_from(interval.seconds).unwrap_or(0);
    let nanos = u32::try_from(interval.nanos).unwrap_or(0).min(999_999_999);
    let interval = Duration::new(seconds, nanos);
    Ok(Instructions {
        wanted: if response.send_all_clusters {
            Wanted::All
        } else {
            Wanted::Named(response.clusters)
        },
        interval: interval.max(SHORTEST),
    })
}
