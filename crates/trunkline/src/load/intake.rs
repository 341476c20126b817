//! Reports on their way to the store: read a cluster at a time, large ones aside
//! and few at once, of each address in turn.

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use tonic::Status;
use trunkline_proto::discovery::{self, Node};
use trunkline_proto::load_stats::{self, ReportLimits};

use super::settings::SENDS_ALL;
use super::store::LoadReports;
use crate::questions::{Question, QuestionLimits, Questions};

/// Messages from this size on are read on another thread.
const LARGE: usize = 4 << 10;
/// Large messages that are read at once, one of each address. Others wait in
/// turn, and their streams take no further messages meanwhile.
const AT_ONCE: usize = 2;
/// Bytes of a node; Envoy sends some sixty kilobytes.
const NODE_BYTES: usize = 1 << 20;
/// Texts of a node that are read.
const NODE_ENTRIES: usize = 10_000;

/// Reads messages into a store.
#[derive(Debug)]
pub(super) struct Intake {
    reports: LoadReports,
    turns: Questions,
}

/// A client: its node, as far as it is kept.
#[derive(Clone, Debug)]
pub(super) struct Reporter {
    id: Arc<str>,
    cluster: Arc<str>,
}

impl Intake {
    /// Returns an intake that stores into these reports.
    pub(super) fn new(reports: LoadReports) -> Self {
        let limits = QuestionLimits {
            at_once: AT_ONCE,
            peer_at_once: 1,
            ..QuestionLimits::default()
        };
        // A report that waits is refused by no limit: only its own stream
        // waits.
        let turns = Questions::new(limits, |_| ());
        Self { reports, turns }
    }

    /// Returns the turns of an address, for one of its streams.
    pub(super) fn turns_of(&self, peer: Option<IpAddr>) -> Question {
        self.turns.ask(peer)
    }

    /// Stores the reports of a message of a client. A large one is read on
    /// another thread, when it is the turn of the client's address.
    ///
    /// # Errors
    /// The bytes are no load report.
    pub(super) async fn store(
        &self,
        reporter: &Reporter,
        turns: &Question,
        message: Bytes,
    ) -> Result<(), Status> {
        self.reports.drop_old_if_due();
        if message.len() < LARGE {
            return store_now(&self.reports, reporter, &message);
        }
        let (reports, reporter) = (self.reports.clone(), reporter.clone());
        let work = move || store_now(&reports, &reporter, &message);
        let outcome = turns.run_in_turn(work).await;
        let on_panic = || Err(Status::internal("the report was dropped"));
        outcome.unwrap_or_else(on_panic)
    }
}

/// Stores the reports of a message, on this thread.
fn store_now(reports: &LoadReports, reporter: &Reporter, message: &[u8]) -> Result<(), Status> {
    let store_stats = |stats| reports.store(&reporter.id, &reporter.cluster, stats);
    let outcome = load_stats::read(message, &ReportLimits::default(), store_stats);
    let outcome = outcome.map_err(|error| Status::invalid_argument(error.to_string()))?;
    reports.add_refused(outcome.refused);
    Ok(())
}

/// Reads the node of a client's first message. Returns the client, and whether
/// it understands `send_all_clusters`.
///
/// # Errors
/// The message has no node, or a malformed one.
pub(super) fn read_reporter(message: &Bytes) -> Result<(Reporter, bool), Status> {
    let invalid = |error: &dyn std::fmt::Display| Status::invalid_argument(error.to_string());
    // Only the node: the clusters are read when they are stored.
    let no_clusters = ReportLimits {
        clusters: 0,
        ..ReportLimits::default()
    };
    let stats = load_stats::read(message, &no_clusters, drop).map_err(|error| invalid(&error))?;
    let node = stats
        .node
        .ok_or_else(|| invalid(&"the first message of a load report has no node"))?;

    let limits = discovery::Limits {
        node_bytes: NODE_BYTES,
        entries: NODE_ENTRIES,
        ..discovery::Limits::DEFAULT
    };
    let node = Node::parse(&message.slice_ref(node), &limits).map_err(|error| invalid(&error))?;
    let understands_all = node.client_features.iter().any(|name| name == SENDS_ALL);
    let reporter = Reporter {
        id: node.id.into(),
        cluster: node.cluster.into(),
    };
    Ok((reporter, understands_all))
}
