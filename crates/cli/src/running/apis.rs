//! The admin API on its address, and the pages of `--health`.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use trunkline::Hooks as _;
use trunkline::listen::{Lanes, Listening};
use trunkline::tls::Tls;

use crate::admin::{self, Admin};
use crate::audit::Audit;
use crate::metrics::Count;

/// The connections that the address of `--health` has at once: probes and
/// scrapers are few.
pub(crate) const HEALTH_CONNECTIONS: usize = 128;
/// The requests that one of them has at once.
const HEALTH_STREAMS: usize = 8;

/// What tells of a server as long as it runs.
pub(crate) struct Apis {
    /// The address of `--health`, if there is one.
    pub(crate) health: Option<SocketAddr>,
    tasks: JoinSet<()>,
    stop: CancellationToken,
    audit: Audit,
}

/// Returns the limits of the address of `--health`.
fn health_listening(stop: CancellationToken, lanes: Option<Lanes>) -> Listening {
    Listening {
        connections: HEALTH_CONNECTIONS,
        streams: HEALTH_STREAMS,
        stopped: stop,
        lanes,
        ..Listening::default()
    }
}

impl Apis {
    /// Serves the API on a listener; on the listener of `health`, serves the
    /// pages that need no right.
    pub(crate) fn start(
        api: &Arc<Admin>,
        listener: TcpListener,
        tls: Option<Tls>,
        health: Option<(SocketAddr, TcpListener)>,
        lanes: Option<Lanes>,
    ) -> Self {
        let listening = Listening {
            tls,
            lanes: lanes.clone(),
            ..Listening::default()
        };
        let stop = listening.stopped.clone();

        // These listeners have limits of their own, so the API can be reached
        // when clients use all connections of xDS.
        let count = Count(Arc::clone(&api.metrics));
        let note_limit = move |limit| count.limited(limit);
        let mut tasks = JoinSet::new();

        let health_address = health.as_ref().map(|(address, _)| *address);
        if let Some((_, listener)) = health {
            let health_listening = health_listening(stop.clone(), lanes);
            let pages = admin::health_router(Arc::clone(api));
            tasks.spawn(health_listening.serve(listener, pages, note_limit.clone()));
        }
        tasks.spawn(listening.serve(listener, admin::router(Arc::clone(api)), note_limit));

        Self {
            health: health_address,
            tasks,
            stop,
            audit: api.audit.clone(),
        }
    }

    /// Ends the API, once nothing is to be told any more.
    pub(crate) async fn finish(mut self) {
        self.stop.cancel();
        while self.tasks.join_next().await.is_some() {}
        self.audit.flush();
    }
}
